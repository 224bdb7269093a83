"""Reads sealed predictions; incomplete or altered ones raise an error with the reason."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256 as digest
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD, BoxTable, areas, take
from steadyeye.core.disk_columns import release_pages, return_free_memory, split_entries
from steadyeye.core.errors import UsageError, find_repeated, list_texts, unknown
from steadyeye.core.format import number_of
from steadyeye.core.predictions import LOW_SCORE, Predictions
from steadyeye.core.storage.arrow_files import read_arrow
from steadyeye.core.storage.files import Place, map_requests, sha256
from steadyeye.predictions.box_columns import CellBoxes, split_boxes
from steadyeye.predictions.box_format import describe_mismatch
from steadyeye.predictions.class_order import describe_class_order
from steadyeye.predictions.json_record import (
    CELL,
    MEND,
    RUN,
    SEAL,
    check_keys,
    is_protected,
    read_record,
)
from steadyeye.predictions.label_shift import describe_label_shift
from steadyeye.predictions.schema import (
    ANSWERS,
    in_all,
    list_values,
    matrix,
    membership,
    numbers,
    verified_from_arrow,
)
from steadyeye.predictions.shard_store import Cell, open_cell

AGAIN = "run the same command again to complete it"
SLACK = 0.05
"""Pixels by which a box may extend beyond its image without a note: COCO rounds to hundredths."""

TIES = 0.01
"""Share of samples from which highest scores that classes share are noted."""

PIECE = 100_000  # boxes, or texts, that are processed together


def read(*folders: Place) -> Predictions:
    """The predictions of a sealed cell, or of the rounds of one, in their order.

    Raises `UsageError` for a cell that is not sealed, a shard that is missing or altered, and ids
    that occur twice.
    """
    columns, boxes = split_boxes(chain.from_iterable(map(_read_shards, folders)))
    cell = open_cell(folders[0])
    predictions = _predictions(cell, columns, boxes)
    warning = cell.identity["model"].get("warning", "") or _find_warning(
        columns, boxes, predictions
    )
    del columns
    return_free_memory()  # Arrow keeps the memory of earlier shards
    caveats = filter(None, [_note_scores(predictions), warning, *_note_missing_checksums(folders)])
    return replace(predictions, warning=warning, notes=(*predictions.notes, *caveats))


def _note_missing_checksums(folders: Sequence[Place]) -> tuple[str, ...]:
    """A note on cells whose records have no checksum."""
    records = [folder / name for folder in folders for name in ("cell.json", "seal.json")]
    bare = [path for path in records if not is_protected(path)]
    if not bare:
        return ()
    return (
        f"{bare[0].name} of '{bare[0].parent.name}' was written by an earlier version without a "
        "checksum, so changes in it cannot be detected; run again into another folder",
    )


def read_sealed(folder: Place) -> pa.Table:
    """The rows of a sealed cell as they were written.

    Raises `UsageError` if it is not sealed, or a shard is missing or altered.
    """
    # a shard whose images all failed lacks the measured tags
    return pa.concat_tables(in_all(list(_read_shards(folder))), promote_options="default")


def _read_shards(folder: Place) -> Iterable[pa.Table]:
    """The shards of a sealed cell, each read on demand. Raises the same errors as `read_sealed`."""
    cell = open_cell(folder)
    if not cell.is_sealed:
        done = len(cell.list_finished())
        raise UsageError(f"'{folder}' has {done} of {number_of(cell.shards, 'shard')}; {AGAIN}")
    seal = read_record(folder / "seal.json", SEAL, ("shards",))
    # a seal of an earlier version may lack its cell
    if seal.get("cell", cell.fingerprint) != cell.fingerprint:
        raise UsageError(f"'{folder / 'cell.json'}' was changed after it was written; {CELL}")
    return map_requests(folder, partial(_shard, folder), seal["shards"])


def cells(run: Place) -> list[tuple[Place, ...]]:
    """The cells of a run, in the order its job lists them, each as the folders of its rounds.

    Raises `UsageError` if the folder holds no run, or a trained model.
    """
    path = run / "run.json"
    if not path.is_file():
        raise UsageError(f"no run in '{run}'; give the --out folder of `steadyeye run`")
    record = read_record(path, RUN, ("job",))
    if record.get("kind") == "finetune":
        raise UsageError(
            f"'{run}' holds a trained model and no run; evaluate it with `steadyeye run`, and give "
            "the --out folder of that"
        )
    check_keys(path, record, RUN, ("cells",))
    rounds = record.get("rounds", {})
    return [
        tuple(run / "cells" / folder for folder in rounds.get(name, [name]))
        for name in record["cells"]
    ]


def select_cell(run: Place, name: str | None = None) -> tuple[Place, ...]:
    """The folders of the cell of a name, "MODEL@DATA"; without a name, of the only one.

    Raises `UsageError` for an unknown name, and without a name if there are several cells.
    """
    by_name = {folders[0].name: folders for folders in cells(run)}
    if name is not None and name not in by_name:
        raise unknown("prediction", name, by_name)
    if name is None and len(by_name) > 1:
        *_, last = by_name
        raise UsageError(
            f"'{run}' has the predictions {list_texts(list(by_name))}; name one: "
            f"open_run('{run}', '{last}')"
        )
    return next(iter(by_name.values())) if name is None else by_name[name]


def _shard(folder: Place, entry: dict[str, Any]) -> pa.Table:
    path = folder / entry["file"]
    try:
        content = None if isinstance(path, Path) else path.read_bytes()
        checksum = sha256(path) if content is None else digest(content).hexdigest()
    except FileNotFoundError:
        raise UsageError(f"the shard '{path}' is missing; {MEND}") from None
    if checksum != entry["sha256"]:
        raise UsageError(
            f"the shard '{path}' was changed after it was written (its checksum differs); {MEND}"
        )
    return read_arrow(path, content)


def _predictions(cell: Cell, table: pa.Table, boxes: CellBoxes) -> Predictions:
    """The predictions of a cell; `table`: its columns that are not of boxes."""
    ids = _read_texts(table["id"])
    _check_distinct(ids, cell.folder)
    identity = cell.identity
    tags = [name for name in table.column_names if name.startswith("tag:")]
    # detections are a column also where there are no true boxes
    detections = () if boxes.raw_detections is None else ("detections",)
    parents = identity["data"].get("parents")
    return Predictions(
        model=identity["model"]["name"],
        data=identity["data"]["name"],
        classes=tuple(identity["classes"]),
        model_classes=tuple(identity["model"]["classes"]),
        columns=tuple(dict.fromkeys((*identity["data"]["columns"], *detections))),
        ids=ids,
        groups=_read_texts(table["group"]),
        truth=membership(table["truth"], len(identity["classes"])),
        scores=matrix(table["scores"], np.float32),
        top=matrix(table["top"], np.int32),
        top_scores=matrix(table["top_scores"], np.float32),
        errors=_read_texts(table["error"]),
        tags={name.removeprefix("tag:"): _tag(table[name]) for name in tags},
        fingerprint=identity["data"]["fingerprint"],
        sweep=identity.get("sweep", {}),
        probe=identity.get("probe", {}),
        boxes=boxes.truth,
        detections=boxes.detections,
        raw_detections=boxes.raw_detections,
        model_to_data_class=_read_class_of(identity),
        content=identity.get("content", ""),
        others=np.array(identity.get("others", []), dtype=np.int64),
        model_mark=identity["model"]["fingerprint"],
        recipe=identity["model"]["recipe"],
        parents=None if parents is None else tuple(map(tuple, parents)),
        verified=verified_from_arrow(table),
        stored={name: numbers(table[name]) for name in ANSWERS if name in table.column_names},
        notes=(
            *identity["data"]["notes"],
            *identity["model"].get("notes", ()),
            *_list_caveats(table, ids, boxes, identity["model"]["classes"]),
        ),
    )


def _find_warning(table: pa.Table, boxes: CellBoxes, predictions: Predictions) -> str:
    """`Predictions.warning`, of images as the source has them."""
    if {"operator", "target"} & set(predictions.tags):
        return ""
    mismatch = ""
    if boxes.detections is not None and "size" in table.column_names:
        sizes = matrix(table["size"], np.float64)
        mismatch = describe_mismatch(boxes.truth, boxes.detections, sizes)
    return mismatch or describe_class_order(predictions) or describe_label_shift(predictions)


def _read_texts(column: pa.ChunkedArray) -> NDArray[np.str_]:
    """(n,) texts, '' for missing ones; converted to Python objects one piece at a time."""
    pieces = [
        np.array([text or "" for text in column.slice(start, PIECE).to_pylist()], dtype=np.str_)
        for start in range(0, max(len(column), 1), PIECE)
    ]
    return np.concatenate(pieces)


def _check_distinct(ids: NDArray[np.str_], folder: Place) -> None:
    """Raises `UsageError` for an id that occurs twice."""
    pieces = (ids[start : start + PIECE].tolist() for start in range(0, len(ids), PIECE))
    hashes = np.fromiter(map(hash, chain.from_iterable(pieces)), np.int64, len(ids))
    # ids with different hashes differ; equal hashes need the ids
    if len(np.unique(hashes)) < len(ids) and (twice := find_repeated(ids.tolist())):
        raise UsageError(
            f"{number_of(len(twice), 'id')} more than once in '{folder}', first '{twice[0]}'; "
            "give every sample its own id"
        )


def _read_class_of(identity: Mapping[str, Any]) -> NDArray[np.int64]:
    """The data's class for each class of the model, or −1."""
    destinations = np.full(len(identity["model"]["classes"]), -1, dtype=np.int64)
    for label, members in enumerate(identity["members"]):
        destinations[members] = label
    return destinations


def _tag(column: pa.ChunkedArray) -> Any:
    if pa.types.is_string(column.type):
        return _read_texts(column)
    if pa.types.is_fixed_size_list(column.type):
        return matrix(column, np.float32)
    return numbers(column)


def _list_caveats(
    table: pa.Table,
    ids: NDArray[np.str_],
    boxes: CellBoxes,
    model_classes: Sequence[str],
) -> tuple[str, ...]:
    """One sentence each on boxes beyond their images or without an area, and detections left out.

    Each gives the number and the first one. There are none for tables of an earlier version.
    """
    if "size" not in table.column_names:
        return ()
    sizes = matrix(table["size"], np.float64)
    kinds = (("true boxes", boxes.truth), ("detections", boxes.detections))
    several = [(kind, some) for kind, some in kinds if some is not None]
    notes = [_note_beyond_images(kind, some, sizes, ids) for kind, some in several]
    notes.append(_note_empty(boxes.truth, ids) if boxes.truth is not None else None)
    notes.append(_note_unknown_sizes(sizes, ids, [some for _, some in several]))
    if "left_out" in table.column_names:
        notes.append(_note_left_out(table["left_out"], ids, model_classes))
    return tuple(note for note in notes if note)


def _note_beyond_images(
    kind: str, table: BoxTable, sizes: NDArray[np.float64], ids: NDArray[np.str_]
) -> str | None:
    total = completely = 0
    first = None
    for start in range(0, len(table), PIECE):
        piece = take(table, slice(start, start + PIECE))
        out, outside = _find_beyond_images(piece, sizes[piece.image])
        if first is None and out.any():
            first = start + int(out.argmax())
        total, completely = total + int(out.sum()), completely + int(outside.sum())
        release_pages()
    if first is None:
        return None
    box = ", ".join(f"{value:g}" for value in np.round(table.boxes[first], 2))
    height, width = sizes[table.image[first]]
    return (
        f"{total:,} of {len(table):,} {kind} extend beyond their image, "
        f"{completely:,} of them completely, first ({box}) in '{ids[table.image[first]]}' of "
        f"{width:.0f} × {height:.0f} pixels; all are included unchanged"
    )


def _find_beyond_images(
    table: BoxTable, sizes: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Two (n,) masks: boxes that extend beyond their image, and boxes that lie outside it.

    `sizes`: (n, 2) height and width of each box's image, 0 if unknown.
    """
    # one side at a time: an `any` over a last axis of two takes several times as long
    height, width = sizes.T
    left, top, right, bottom = table.boxes.T
    out = (left < -SLACK) | (top < -SLACK) | (right > width + SLACK) | (bottom > height + SLACK)
    out &= height > 0
    return out, out & ((right <= 0) | (bottom <= 0) | (left >= width) | (top >= height))


def _note_empty(truth: BoxTable, ids: NDArray[np.str_]) -> str | None:
    """The note on true boxes without an area, crowds and objects outside the classes aside."""
    parts = split_entries(len(truth))
    masks = [areas(truth.boxes[part]) == 0 for part in parts]
    empty = np.flatnonzero(np.concatenate([np.zeros(0, np.bool_), *masks]))
    empty = empty[~truth.crowd[empty] & (truth.label[empty] != OOD)]
    if not len(empty):
        return None
    return (
        f"{len(empty):,} of {len(truth):,} true boxes have no area, first in "
        f"'{ids[truth.image[empty[0]]]}': no detection matches them, so that they count as missed"
    )


def _note_unknown_sizes(
    sizes: NDArray[np.float64], ids: NDArray[np.str_], tables: Sequence[BoxTable]
) -> str | None:
    boxed = np.zeros(len(sizes), dtype=np.bool_)
    for table in tables:
        for part in split_entries(len(table)):
            boxed[table.image[part]] = True
    unknown = np.flatnonzero((sizes[:, 0] == 0) & boxed)
    if not len(unknown):
        return None
    return (
        f"the size of {number_of(len(unknown), 'image')} with boxes is not known, first "
        f"'{ids[unknown[0]]}'; boxes beyond their image were not checked"
    )


def _note_scores(predictions: Predictions) -> str | None:
    """Highest scores that classes share; of a detector, scores that end above `LOW_SCORE`."""
    if predictions.detections is None and predictions.raw_detections is None:
        return _note_ties(predictions)
    if predictions.boxes is None or predictions.score_range is None:
        return None
    low, high = predictions.score_range
    if low == high:
        return f"all detections have the score {low:.2f}: mAP depends on their order in the data"
    if low < LOW_SCORE:
        return None
    return (
        f"no detection has a score below {low:.2f}: if the detector leaves weaker ones out, mAP "
        "and recall are too low; give it a lower threshold"
    )


def _note_ties(predictions: Predictions) -> str | None:
    """Samples for which several classes have the highest score, from `TIES` of them on."""
    scores = predictions.top_scores[predictions.valid]
    tied = int((scores[:, 0] == scores[:, 1]).sum()) if scores.shape[1] > 1 else 0
    if not tied or tied < TIES * len(scores):
        return None
    return (
        f"of {tied:,} of {number_of(len(scores), 'sample')} several classes have the highest "
        "score, and the first of them counts, so accuracy depends on the order of the classes; "
        "return scores that are not rounded, nor cut off at 1"
    )


def _note_left_out(
    column: pa.ChunkedArray, ids: NDArray[np.str_], model_classes: Sequence[str]
) -> str | None:
    lists = column.combine_chunks()
    counts = np.diff(numbers(lists.offsets))
    labels = list_values(lists)
    if not len(labels):
        return None
    first = ids[int((counts > 0).argmax())]
    kinds = len(np.unique(labels))
    return (
        f"{number_of(len(labels), 'detection')} left out: their "
        f"{number_of(kinds, 'class is', 'classes are')} not in the data, first "
        f"'{model_classes[labels[0]]}' in '{first}'"
    )
