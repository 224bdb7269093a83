"""The content of a run's data when it was computed, compared with its content now.

In data/ of the run's folder, a file for each of its data. The mark of it is in every cell.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from steadyeye.core.abilities import OfFiles
from steadyeye.core.difference import describe_difference
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.storage import contents
from steadyeye.core.storage.arrow_files import read_arrow
from steadyeye.core.storage.contents import ContentHashes
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_columns import encode_texts
from steadyeye.core.types import Sample, Source
from steadyeye.degradation.sweep import Sweep
from steadyeye.predictions.json_record import read_content
from steadyeye.predictions.read import cells
from steadyeye.predictions.shard_store import Cell, open_cell
from steadyeye.runner.sweep import print_with_shared

if TYPE_CHECKING:
    # a report reads what was kept and needs neither
    from steadyeye.runner.cache.store import Store
    from steadyeye.runner.task import Task


def mark_tasks(
    out: Place, tasks: Sequence["Task"], store: "Store | None" = None
) -> "tuple[Task, ...]":
    """The tasks with a hash of their data's content in their identity; stores the file hashes.

    Raises `UsageError` if the folder holds predictions of other files or contents.
    """
    marks: dict[str, str] = {}
    for task in tasks:
        spec = str(task.identity["data"]["spec"])
        if spec not in marks:
            marks[spec] = keep(out, spec, task.source, store)
    return tuple(
        replace(task, identity={**task.identity, "content": marks[task.identity["data"]["spec"]]})
        for task in tasks
    )


def keep(out: Place, spec: str, source: Source, store: "Store | None" = None) -> str:
    """Stores the hashes of a source's files in the folder `out`; returns a hash of them.

    `spec`: the text that names the source there. Raises `UsageError` if other hashes are stored.
    """
    path = _path(out, spec)
    before = contents.read_contents(path)
    now = _hash_contents(source, before, store)
    if before is not None:
        if change := contents.compare_contents(before, now):
            raise _name_change(out, source.name, before, change)
        both = ((getattr(before, key), getattr(now, key)) for key in contents.COLUMNS)
        if before.kind == now.kind and all(contents.are_equal(*pair) for pair in both):
            return now.mark
    contents.write_contents(path, now)
    return now.mark


def refuse_other_samples(folder: Place, task: "Task") -> None:
    """Raises `UsageError` if a cell is of the same data with other samples, labels or boxes.

    It names the first computed sample that changed.
    """
    path = folder / "cell.json"
    before = read_content(path) if path.is_file() else None
    if before is None or not isinstance(data := before.get("data"), dict):
        return
    now = task.identity["data"]
    if data.get("spec") != now["spec"] or data.get("fingerprint") == now["fingerprint"]:
        return
    if isinstance(task.source, Sweep) and data["fingerprint"] == print_with_shared(task.source):
        raise UsageError(
            f"'{folder}' is of an earlier version, which degraded a frame once for each set that "
            "holds it; give another --out, or --overwrite to start again"
        )
    change = _find_other_sample(open_cell(folder), task.source, before["classes"])
    raise UsageError(
        f"'{folder}' holds predictions of other samples: "
        f"{change or 'some that are not computed yet changed'}; choose another --out"
    )


def _find_other_sample(cell: Cell, source: Source, classes: Sequence[str]) -> str:
    """In words, how the first computed sample that changed did; '' for none."""
    names = source.classes.names if source.classes else ()
    for shard in cell.list_finished():
        path = cell.path(shard)
        table = read_arrow(path, path.read_bytes())
        for number, row in zip(cell.span(shard), table.to_pylist(), strict=False):
            if number >= len(source):
                return f"there were {cell.rows:,}, now there are {len(source):,}"
            sample = source[number]
            boxes = sample.boxes
            pairs = {
                "id": (row["id"], sample.id),
                "group": (row["group"], sample.group),
                "truth": (_list_names(row["truth"], classes), _list_names(sample.truth, names)),
            }
            if "box" in row and boxes is not None:
                labels = _list_names(row["box_label"], classes)
                pairs["classes of the boxes"] = labels, _list_names(boxes.labels.tolist(), names)
                pairs["boxes"] = _list_corners(row["box"]), _list_corners(boxes.boxes)
            for name, (old, new) in pairs.items():
                if old != new:
                    title = f"the {name} of sample {number + 1:,}, '{row['id']}',"
                    return describe_difference(title, old, new)
    return ""


def _list_corners(boxes: ArrayLike) -> list[str]:
    return [" ".join(f"{end:g}" for end in box) for box in np.reshape(boxes, (-1, 4))]


def _list_names(labels: Sequence[int], names: Sequence[str]) -> list[str]:
    return [names[label] if label < len(names) else str(label) for label in labels]


def refuse_changed(run: Place, data: Mapping[str, str]) -> None:
    """Raises `UsageError` if the files of the data changed since the run.

    `data`: of the identity of a cell. Changes cannot be detected for runs of an earlier version.
    """
    before = contents.read_contents(_path(run, data["spec"]))
    if before is None or before.kind == "samples":
        return
    if change := contents.compare_contents(before, contents.hash_again(before)):
        raise _name_change(run, data["name"], before, change)


def note(run: Place, cell: Place) -> tuple[str, ...]:
    """Notes on changes of the files that a cell's numbers are from; the files may be missing."""
    identity = open_cell(cell).identity
    data, mark = identity["data"], identity.get("content")
    if mark is None:
        return ()
    before = contents.read_contents(_path(run, data["spec"]))
    if before is None or before.mark != mark:
        return (
            f"{data['name']}: cannot check whether its images changed since: their record, "
            f"'{_path(run, data['spec'])}', is lost or damaged",
        )
    if before.kind == "samples":
        return ()
    try:
        change = contents.compare_contents(before, contents.hash_again(before))
    except (UsageError, OSError):
        change = contents.Change(gone=before.paths)
    if len(change.gone) == len(before):
        return (f"{data['name']}: its images are not here, so changes in them were not checked",)
    if not change:
        return ()
    sentence = contents.describe_change(change, len(before))
    return (
        f"{data['name']} changed since the run: {sentence}; the values are from the earlier data",
    )


def notes(runs: Sequence[Place]) -> tuple[str, ...]:
    """Notes on changes of the files that the runs' numbers are from, without repeats."""
    lines = (line for run in runs for cell in cells(run) for line in note(run, cell[0]))
    return tuple(dict.fromkeys(lines))


def difference(run: Place, other: Place, table: Predictions, against: Predictions) -> str:
    """The files in which the same data of two runs differ, in words; '' if unknown."""
    first, second = (_of(*state) for state in ((run, table), (other, against)))
    if first is None or second is None or len(first) != len(second):
        return ""
    pairs = zip(first.paths, first.names, second.names, strict=True)
    differing = [path for path, mine, other_hash in pairs if mine != other_hash]
    if not differing:
        return ""
    return f"{len(differing):,} of {number_of(len(first), 'file')} differ, first '{differing[0]}'"


def _of(run: Place, table: Predictions) -> ContentHashes | None:
    """The recorded content of the data of a table."""
    for folders in cells(run):
        identity = open_cell(folders[0]).identity
        same = identity["data"]["fingerprint"] == table.fingerprint
        if same and identity.get("content") == table.content:
            return contents.read_contents(_path(run, identity["data"]["spec"]))
    return None


def _name_change(
    run: Place, name: str, before: ContentHashes, change: contents.Change
) -> UsageError:
    unit = "samples" if before.kind == "samples" else "files"
    return UsageError(
        f"'{run}' was made from other images: {name} changed since, "
        f"{contents.describe_change(change, len(before), unit)}; "
        "restore them, or choose another --out"
    )


def _path(run: Place, spec: str) -> Place:
    return run / "data" / f"{hashlib.sha256(spec.encode()).hexdigest()[:16]}.contents"


def _hash_contents(
    source: Source, before: ContentHashes | None, store: "Store | None"
) -> ContentHashes:
    """The current hashes of a source's images."""
    source = source.base if isinstance(source, Sweep) else source
    files = source.files() if isinstance(source, OfFiles) else None
    if files is None:
        names = encode_texts(_name(source[row]) for row in range(len(source)))
        return ContentHashes("samples", encode_texts(source.ids), [""] * len(names), names)

    def read_known(stamps: Sequence[str]) -> Mapping[str, str]:
        return store.read_names(stamps) if store else {}

    hashes = contents.hash_files(files, before, read_known)
    if store and hashes.kind == "files":
        pairs = zip(hashes.stamps, hashes.names, strict=True)
        store.put_names({stamp: name for stamp, name in pairs if stamp and name != contents.GONE})
    return hashes


def _name(sample: Sample) -> str:
    try:
        if sample.key is not None:
            return sample.key()
        image = np.ascontiguousarray(sample.image())
    except SampleError:
        return "unreadable"
    digest = hashlib.blake2b(f"{image.shape} {image.dtype}".encode(), digest_size=32)
    digest.update(image.data)
    return f"pixels {digest.hexdigest()}"
