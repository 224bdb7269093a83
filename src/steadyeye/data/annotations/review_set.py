"""The folder of a set that people review: a manifest, a table of its frames, and the frames.

::

    set.json        classes, videos, how it was drawn, how it is reviewed, what made it
    frames.parquet  one row a frame of a pm-set
    boxes.parquet   one row a suggested box, where the set has any
    images/ab/…jpg  the frames, each named by the SHA-256 of its bytes
    SHA256SUMS      what each file held when it was written; set.json only of a reviewed set
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from steadyeye.core.errors import UsageError, shorten
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import encode, write_output
from steadyeye.core.storage.sha256sums import check_sums, read_sums
from steadyeye.core.storage.text_files import read_json
from steadyeye.core.types import Classes
from steadyeye.data.annotations.coco_file import OUTSIDE

VERSION = 1
TABLES = ("frames.parquet", "boxes.parquet")
CLASSES = b"steadyeye.classes"
"""The key under which frames.parquet has the names of the classes."""
SCENE_CUT, UNDECIDED = "scene cut", "not decided"
"""Reasons why a frame is not accepted."""
FRAMES = pa.schema(
    {
        "id": pa.string(),
        "group": pa.string(),
        "video": pa.string(),
        "frame": pa.int64(),
        "offset": pa.int64(),
        "seconds": pa.float64(),
        "fps": pa.float64(),
        "frame_type": pa.string(),
        "labels": pa.list_(pa.int32()),
        "image": pa.string(),
        "across_cut": pa.bool_(),
        "duplicate_of": pa.string(),
        "accepted": pa.bool_(),
        "reason": pa.string(),
    }
)
"""Columns of frames.parquet. `image`: the name of the file under images/. `across_cut`: a scene
cut lies between the frame and its anchor. `duplicate_of`: the group of an earlier anchor that this
anchor nearly equals. `accepted`: before any review False only across a scene cut. `reason`: why it
is not."""

BOXES = pa.schema(
    {
        "id": pa.string(),
        "image": pa.string(),
        "name": pa.string(),
        "x0": pa.float64(),
        "y0": pa.float64(),
        "x1": pa.float64(),
        "y1": pa.float64(),
        "label": pa.string(),
        "score": pa.float64(),
        "annotated": pa.string(),
    }
)
"""Columns of boxes.parquet: corners in pixels of the image; `name`: the image's own name.

`score`: of the detector that predicted `label`, NaN without a detector. `annotated`: the class of
the object in the data, empty if the data have no object there; null if not known."""


class _ClassList(msgspec.Struct):
    names: list[str]
    wnids: list[str | None] | None = None
    closed: bool = False


class _Manifest(msgspec.Struct):
    """The entries of set.json, without those only for people and the plan of the review."""

    version: int
    name: str
    kind: Literal["frames", "boxes", "labels"] = "frames"
    classes: _ClassList | None = None
    category_ids: list[int] | None = None
    sources: list[dict[str, Any]] | None = None
    notes: list[str] = []


@dataclass(frozen=True, eq=False)
class SetFolder:
    """A set on disk. `content`: set.json. `frames`, `boxes`: the tables, empty where absent."""

    root: Path
    content: Mapping[str, Any]
    frames: pa.Table
    boxes: pa.Table

    @property
    def name(self) -> str:
        """The name of the set."""
        return str(self.content["name"])

    @property
    def classes(self) -> Classes | None:
        """The classes of the labels; None where nothing is labelled."""
        record = self.content.get("classes")
        if not record:
            return None
        wnids = record.get("wnids")
        whole = bool(record.get("closed"))
        return Classes(tuple(record["names"]), tuple(wnids) if wnids else None, closed=whole)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes; none where nothing is labelled."""
        return tuple(self.classes.names) if self.classes else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be known of the videos that it was sampled from."""
        return tuple(self.content.get("notes", ()))

    @cached_property
    def images(self) -> frozenset[str]:
        """The names of the images that belong to the set; nothing else is ever served."""
        return frozenset(self.frames["image"].to_pylist() + self.boxes["image"].to_pylist())

    @cached_property
    def objects(self) -> Mapping[str, Mapping[str, Any]]:
        """The rows of `boxes` by their id."""
        return {row["id"]: row for row in self.boxes.to_pylist()}

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the tables: changes when any frame, label or decision changes.

        Of a label study, whose sets are in no table, of its question and order.
        """
        digest = hashlib.sha256()
        for name in (*TABLES, "study.json"):
            path = self.root / name
            digest.update(path.read_bytes() if path.is_file() else b"")
        return digest.hexdigest()[:16]


def read(root: str | Path) -> SetFolder:
    """The set in a folder.

    Raises `UsageError` if there is none, if it has a later version, or was changed since.
    """
    base = Path(root)
    path = base / "set.json"
    if not path.is_file():
        raise UsageError(f"no set in '{base}'; make one with `steadyeye sample`")
    tables = [name for name in TABLES if (base / name).is_file()]
    # of a set that waits for people set.json is theirs to write into
    check_sums(base, [*tables, *({"set.json"} & read_sums(base).keys())])
    content = read_json(path, "set")
    try:
        manifest = msgspec.convert(content, _Manifest)
    except msgspec.ValidationError as error:
        raise UsageError(f"cannot read '{path}': {error}; sample the set again") from error
    if manifest.version > VERSION:
        raise UsageError(
            f"'{path}' is of version {manifest.version}, and this steadyeye reads up to "
            f"{VERSION}; install a newer one"
        )
    frames = _table(base / "frames.parquet", FRAMES)
    folder = SetFolder(base, content, frames, _table(base / "boxes.parquet", BOXES))
    _check_labels(folder)
    _check_boxes(folder, manifest.category_ids)
    return folder


def _check_labels(folder: SetFolder) -> None:
    """Raises `UsageError` where a frame has a label that the list of the set has not."""
    classes = len(folder.classes or ())
    sampled = _sampled_classes(folder.root / "frames.parquet")
    names = list(folder.classes.names) if folder.classes else []
    if names[: len(sampled)] != sampled:
        raise UsageError(
            f"'{folder.root / 'set.json'}' lists other classes than the set was sampled with "
            f"({', '.join(sampled[:5])}, …); put them back, and add new ones at the end"
        )
    labels = pc.list_flatten(folder.frames["labels"]).to_numpy()
    outside = labels[(labels < 0) | (labels >= classes)]
    if len(outside):
        raise UsageError(
            f"the set in '{folder.root}' has {number_of(len(outside), 'label')} outside its "
            f"{number_of(classes, 'class')}, first {outside[0]}; sample it again"
        )


def _check_boxes(folder: SetFolder, category_ids: Sequence[int] | None) -> None:
    """Raises `UsageError` where a box is of no class, or the numbers of the classes are not so."""
    names = folder.class_names
    if category_ids and (len(category_ids), len(set(category_ids))) != (len(names), len(names)):
        raise UsageError(
            f"'{folder.root / 'set.json'}' has {len(category_ids):,} category_ids for "
            f"{number_of(len(names), 'class')}; give each class one of its own"
        )
    foreign = set(folder.boxes["label"].unique().to_pylist()) - {*names, OUTSIDE, None}
    if foreign:
        raise UsageError(
            f"'{folder.root / 'set.json'}' lists no class {min(foreign)!r}, but the set has "
            "boxes of it; put it back, and add new ones at the end"
        )


def _sampled_classes(path: Path) -> list[str]:
    """The names that the labels of a table are indices of; none where it does not say."""
    if not path.is_file():
        return []
    try:
        metadata = pq.read_schema(path).metadata or {}
        classes = json.loads(metadata.get(CLASSES, b"[]"))
    # names of columns that are no UTF-8 are a ValueError of pyarrow, too
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read the classes in '{path}': {error}; copy it again") from None
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise UsageError(f"the classes in '{path}' are no list of names; copy it again")
    return classes


def _table(path: Path, schema: pa.Schema) -> pa.Table:
    if not path.is_file():
        return schema.empty_table()
    try:
        rows = pq.read_table(path)
        table = rows.select(schema.names).cast(schema)
        table.validate(full=True)  # texts that are no UTF-8, too
        return table
    # what cannot be decoded pyarrow raises as an OSError, over several lines
    except (pa.ArrowException, UnicodeDecodeError, KeyError, OSError) as error:
        raise UsageError(
            f"cannot read '{path}': {shorten(str(error))}; sample the set again"
        ) from error


def check_vacant(root: Path) -> None:
    """Raises `UsageError` where a folder holds a set already."""
    if (root / "set.json").is_file():
        raise UsageError(f"'{root}' holds a set already; choose another --out")


def write_manifest(root: Path, content: Mapping[str, Any]) -> None:
    """Writes set.json, the last file of a set.

    Where that fails there is none, also if it is the last sync that fails: the same command may
    begin again.
    """
    path = root / "set.json"
    try:
        write_output(path, encode(content))
    except BaseException:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise


def table(
    rows: Sequence[Mapping[str, Any]], schema: pa.Schema, classes: Sequence[str] = ()
) -> bytes:
    """The Parquet file of rows; `schema`: FRAMES or BOXES.

    `classes`: the names that its labels are indices of. People write into set.json, which lists
    them too; here they are under the sum of the file.
    """
    sink = pa.BufferOutputStream()
    content = pa.Table.from_pylist(list(rows), schema=schema)
    if classes:
        content = content.replace_schema_metadata({CLASSES: json.dumps(list(classes))})
    pq.write_table(content, sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def image_path(root: Path, image: str) -> Path:
    """The file of an image of a set. Raises `UsageError` for a name that is a path."""
    if not image or set(image) & set("/\\\0") or image.startswith("."):
        raise UsageError(f"the set in '{root}' names the image {image[:100]!r}; sample it again")
    return root / "images" / image[:2] / image


def image_name(content: bytes) -> str:
    """The name of a JPEG file under images/."""
    return f"{hashlib.sha256(content).hexdigest()}.jpg"
