"""The samples of a tar as columns: made from its headers once, then stored next to the cache."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, every
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage import tar_index
from steadyeye.core.storage.arrow_files import DAMAGE, is_compressed
from steadyeye.core.storage.files import Place
from steadyeye.data.images import image_file

FORMAT = "1"
"""The version of the stored index; another version is made again."""

COLUMNS = pa.schema(
    [
        ("id", pa.string()),
        ("start", pa.int64()),
        ("size", pa.int64()),
        ("labels", pa.list_(pa.int32())),
        ("corners", pa.list_(pa.float64())),
    ]
)

Label: TypeAlias = int | str
"""The index or the name of a class."""


@dataclass(frozen=True, eq=False)
class TarSamples:
    """The n samples of a tar, about 40 bytes each besides the id.

    `rows`: the columns `id`, `start` and `size` (where the image's bytes are), `labels` (positions
    in `distinct_labels`) and, where any sample has boxes, `corners` (four numbers a box, null
    without). `distinct_labels`: the labels that occur, in the order they come first. `version`:
    that of the tar. `fingerprint`: changes with the samples, their labels or their order.
    """

    tar: Place
    rows: pa.RecordBatch
    distinct_labels: Sequence[Label]
    version: str
    fingerprint: str

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def has_boxes(self) -> bool:
        """Whether any sample has boxes."""
        return "corners" in self.rows.schema.names

    @property
    def starts(self) -> NDArray[np.int32]:
        """(n + 1,) where the labels of each sample begin in `labels`."""
        return np.asarray(self.rows.column("labels").offsets.to_numpy())

    @property
    def labels(self) -> NDArray[np.int32]:
        """The labels of all samples, as positions in `distinct_labels`."""
        return np.asarray(self.rows.column("labels").values.to_numpy())

    def id(self, row: int) -> str:
        """The id of a sample."""
        return str(self.rows.column("id")[row].as_py())

    def span(self, row: int) -> tuple[int, int]:
        """Where the bytes of a sample's image begin, and how many they are."""
        return self.rows.column("start")[row].as_py(), self.rows.column("size")[row].as_py()

    def corners(self, row: int) -> NDArray[np.float64]:
        """(boxes, 4) the boxes of a sample; (0, 4) without boxes."""
        values = self.rows.column("corners")[row].values if self.has_boxes else None
        return np.zeros((0, 4)) if values is None else values.to_numpy().reshape(-1, 4)


def samples(tar: Place) -> TarSamples:
    """The samples of a tar, from its stored index unless the tar has changed.

    Raises `UsageError` for other files, and for invalid samples.
    """
    version = tar_index.read_version(tar)
    cached = _read_cached(tar, version, tar_index.read_index(tar))
    if cached is None:
        content = _encode_samples(_gather_samples(tar, tar_index.list_entries(tar)), tar, version)
        tar_index.write_index(tar, content)
        cached = _read_cached(tar, version, content)
        assert cached is not None, "what was just written is read"
    return cached


def _read_cached(tar: Place, version: str, content: bytes | None) -> TarSamples | None:
    """The stored index; None if it is of another version of the tar, or damaged."""
    if content is None:
        return None
    try:
        buffer = pa.py_buffer(content)
        if is_compressed(buffer):
            return None
        reader = pa.ipc.open_file(buffer)
        about = json.loads((reader.schema.metadata or {})[b"steadyeye"])
        if (about["format"], about["version"]) != (FORMAT, version):
            return None
        return TarSamples(
            tar, reader.get_batch(0), about["said"], about["version"], about["fingerprint"]
        )
    except (*DAMAGE, KeyError, TypeError, ValueError, RecursionError):
        return None


def _encode_samples(
    samples: Mapping[str, Mapping[str, tar_index.TarEntry]], tar: Place, version: str
) -> bytes:
    """The columns of the samples as an Arrow file."""
    texts = every(samples.values(), lambda parts: _read_labels(tar, parts))
    numbers: dict[Label, int] = {}
    labels = [[numbers.setdefault(value, len(numbers)) for value in own] for own, _ in texts]
    corners = [boxes for _, boxes in texts]
    pictures = [parts[_pictures(parts)[0]] for parts in samples.values()]
    spans = [picture.start for picture in pictures], [picture.size for picture in pictures]
    columns: list[Any] = [list(samples), *spans, labels]
    if any(boxes is not None for boxes in corners):
        columns.append(corners)
    sizes = np.array(columns[2], dtype=np.int64)
    marks = ("\n".join(samples), sizes.tobytes(), json.dumps([list(numbers), labels, corners]))
    about = {"format": FORMAT, "version": version, "said": list(numbers)}
    about["fingerprint"] = fingerprint(*marks)
    schema = pa.schema([COLUMNS.field(i) for i in range(len(columns))])
    schema = schema.with_metadata({"steadyeye": json.dumps(about)})
    arrays = [pa.array(value, kind.type) for value, kind in zip(columns, schema, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _gather_samples(
    tar: Place, entries: Iterable[tar_index.TarEntry]
) -> Mapping[str, Mapping[str, tar_index.TarEntry]]:
    """Key → suffix → file, of the samples with an image."""
    samples: dict[str, dict[str, tar_index.TarEntry]] = {}
    for entry in entries:
        folder, slash, name = entry.name.rpartition("/")
        stem, _, suffix = name.partition(".")
        parts = samples.setdefault(f"{folder}{slash}{stem}", {})
        if suffix.lower() in parts:
            raise UsageError(f"the tar '{tar}' holds '{entry.name}' twice; pack it once")
        parts[suffix.lower()] = entry
    without = [key for key, parts in samples.items() if not _pictures(parts)]
    if without:
        raise UsageError(
            f"the tar '{tar}' has {number_of(len(without), 'sample')} without an image, first "
            f"'{without[0]}'; an image ends in {', '.join(sorted(image_file.SUFFIXES))}"
        )
    several = [key for key, parts in samples.items() if len(_pictures(parts)) > 1]
    if several:
        raise UsageError(
            f"the tar '{tar}' has {number_of(len(several), 'sample')} with several images, first "
            f"'{several[0]}'; give each its own name before the first dot"
        )
    return samples


def _pictures(parts: Mapping[str, tar_index.TarEntry]) -> list[str]:
    return [suffix for suffix in parts if f".{suffix.rpartition('.')[2]}" in image_file.SUFFIXES]


def _read_labels(
    tar: Place, parts: Mapping[str, tar_index.TarEntry]
) -> tuple[Sequence[Label], Sequence[float] | None]:
    """The content of `.json` or `.cls` next to an image: labels, and corners of boxes if any.

    Raises `UsageError` for invalid content.
    """
    try:
        if "json" in parts:
            return _of_json(json.loads(parts["json"].text))
        if "cls" in parts:
            text = parts["cls"].text.strip()
            return [int(text) if re.fullmatch(r"\d+", text) else text], None
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        entry = parts.get("json") or parts["cls"]
        raise UsageError(
            f"'{entry.name}' in '{tar}': {error}; write a class into .cls, or a label, or boxes "
            "(x0 y0 x1 y1) and as many labels, into .json"
        ) from error
    return [], None


def _of_json(content: Any) -> tuple[Sequence[Label], Sequence[float] | None]:
    if not isinstance(content, dict):
        raise TypeError("it is no object of JSON")
    if "boxes" in content:
        corners = [[float(value) for value in box] for box in content["boxes"]]
        labels = list(content["labels"])
        whole = all(len(box) == 4 and np.isfinite(box).all() for box in corners)
        is_box = whole and all(x1 >= x0 and y1 >= y0 for x0, y0, x1, y1 in corners)
        if len(labels) != len(corners) or not is_box:
            raise ValueError(
                f"{number_of(len(corners), 'box')}, {number_of(len(labels), 'label')}, or a box "
                "that is none"
            )
        return [_label(text) for text in labels], [value for box in corners for value in box]
    own = content.get("label", content.get("labels", []))
    return [_label(text) for text in (own if isinstance(own, list) else [own])], None


def _label(value: Any) -> Label:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError(f"{value!r} is neither the index nor the name of a class")
    return value
