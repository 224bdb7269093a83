"""Image datasets of the Hugging Face hub, as Parquet files, without the `datasets` library."""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from steadyeye.classes.known import from_names, read
from steadyeye.core.errors import SampleError, UsageError, unknown
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Classes, Image, Labels, Sample
from steadyeye.footage.paths import listed, located
from steadyeye.images import files
from steadyeye.storage.place import Place, inside, together

PARQUET = frozenset({".parquet"})
_open = threading.local()


@dataclass(frozen=True, eq=False)
class _Groups:
    """The row groups of one Parquet file; `starts`: the first row of each, and the end."""

    path: Place
    starts: Sequence[int]
    features: Mapping[str, Any]
    labels: NDArray[np.int64] | Sequence[str] | None = field(repr=False)


@dataclass(frozen=True, eq=False)
class _Rows:
    """A `Source` over the rows of Parquet files; a row group is held at a time, a thread."""

    name: str
    classes: Classes | None
    columns: tuple[str, ...]
    fingerprint: str
    notes: tuple[str, ...]
    split: str
    column: str
    files: Sequence[_Groups] = field(repr=False)
    truths: Sequence[Labels] = field(repr=False)
    first: Sequence[int] = field(repr=False)

    @property
    def ids(self) -> Sequence[str]:
        return [f"{self.split}/{row:08d}" for row in range(len(self))]

    def missing(self) -> Sequence[str]:
        return []  # the footers were read: the files are there

    def __len__(self) -> int:
        return self.first[-1]

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < len(self):
            raise IndexError(index)
        name = f"{self.split}/{index:08d}"
        which = int(np.searchsorted(self.first, index, side="right")) - 1
        file, row = self.files[which], index - self.first[which]

        def image() -> Image:
            group = int(np.searchsorted(file.starts, row, side="right")) - 1
            value = _group(file.path, group, self.column)[row - file.starts[group]].as_py()
            data = value["bytes"] if isinstance(value, dict) else value
            if not data:
                raise SampleError(f"'{name}' in '{file.path}' holds no image; embed its bytes")
            return files.decode(data, f"{file.path}:{row}")

        return Sample(name, image, self.truths[index])


def hf_dataset(
    path: str,
    split: str = "train",
    image: str = "image",
    label: str | None = "label",
    classes: str | None = None,
) -> _Rows:
    """An image dataset in the hub's layout of Parquet files, on a disk, `hf://` or a store.

    `path`: a folder such as `hf://datasets/cifar10`. `split`: the files `SPLIT-*.parquet` or those
    in a folder of that name. `image`, `label`: columns; without a label column, or with None,
    nothing is labelled. `classes`: a known list or a file; the names that the dataset keeps of its
    labels otherwise. A sample's id is the split and its row. Raises `UsageError` for a split or a
    column that is not there.
    """
    root = located(path)
    paths = _of_split(root, split)
    found = list(together(root, lambda each: _read(each, image, label), paths))
    lengths = [file.starts[-1] for file in found]
    labelled = label is not None and all(file.labels is not None for file in found)
    known = _known(classes, found[0], str(label)) if labelled else None
    truths = [truth for file in found for truth in _truths(file, known)]
    marks = [f"{p.name}:{p.stat().st_size}:{n}" for p, n in zip(paths, lengths, strict=True)]
    notes = f"{sum(lengths):,} images in {len(paths):,} Parquet files of the split '{split}'"
    return _Rows(
        name=f"{root.name}-{split}",
        classes=known,
        columns=("truth",) if known else (),
        fingerprint=fingerprint("hf_dataset", split, image, *marks, repr(truths), repr(known)),
        notes=(notes,),
        split=split,
        column=image,
        files=found,
        truths=truths,
        first=[0, *accumulate(lengths)],
    )


def _of_split(root: Place, split: str) -> list[Place]:
    if root.suffix == ".parquet":
        return [root]
    every = listed(root, PARQUET)
    within = {path: inside(path, root) for path in every}
    # data/train-00000-of-00002.parquet, train/0000.parquet, train.parquet
    splits = {path: _splits(part.parent.parts, part.stem) for path, part in within.items()}
    found = [path for path in every if split in splits[path]]
    if not found:
        raise unknown("split", split, {name for names in splits.values() for name in names})
    return found


def _splits(folders: Sequence[str], stem: str) -> set[str]:
    if named := re.fullmatch(r"(.+)-\d+-of-\d+(-[0-9a-f]+)?", stem):
        return {named[1]}
    if re.fullmatch(r"\d+", stem) and folders:
        return {folders[-1]}
    return {stem, *folders[-1:]}


def _read(path: Place, image: str, label: str | None) -> _Groups:
    try:
        opened = _parquet(path)
        names = opened.schema_arrow.names
        if image not in names:
            raise unknown(f"column in '{path}'", image, names)
        meta = opened.metadata
        sizes = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        labels = None
        if label in names:
            column = opened.read(columns=[label])[label]
            text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            labels = column.to_pylist() if text else _numbers(path, str(label), column)
    except (OSError, pa.ArrowException) as error:
        told = " ".join(str(error).split())[:200]
        raise UsageError(f"cannot read the Parquet file '{path}': {told}; copy it again") from error
    kept = json.loads((opened.schema_arrow.metadata or {}).get(b"huggingface", b"{}"))
    return _Groups(path, [0, *accumulate(sizes)], kept.get("info", {}).get("features", {}), labels)


def _numbers(path: Place, label: str, column: pa.ChunkedArray) -> NDArray[np.int64]:
    if not pa.types.is_integer(column.type):
        raise UsageError(
            f"the column '{label}' of '{path}' holds {column.type}, not classes; name the column "
            "with label=…, or label=None"
        )
    return np.asarray(column.fill_null(-1).to_numpy(), dtype=np.int64)


def _known(classes: str | None, file: _Groups, label: str) -> Classes:
    if classes:
        return read(classes)
    names = file.features.get(label, {}).get("names")
    if not names:
        raise UsageError(
            f"'{file.path}' does not name the classes of '{label}'; give classes=…, a known list "
            "or a file"
        )
    return from_names([str(name) for name in names])


def _truths(file: _Groups, known: Classes | None) -> list[Labels]:
    if known is None or file.labels is None:
        return [()] * file.starts[-1]
    position = {name: i for i, name in enumerate(known.names)}
    found: list[Labels] = []
    for value in file.labels:
        if isinstance(value, str) and value not in position:
            raise unknown("class", value, position)
        number = position[value] if isinstance(value, str) else int(value or 0)
        if number >= len(known):
            raise UsageError(
                f"'{file.path}' has the label {number}; classes go to {len(known) - 1}"
            )
        # the hub writes −1 where a label is not told
        found.append((number,) if number >= 0 else ())
    return found


def _parquet(path: Place) -> pq.ParquetFile:
    return pq.ParquetFile(path if isinstance(path, Path) else path.open("rb"))


def _group(path: Place, number: int, column: str) -> Any:
    """The images of a row group; the thread's last one is kept."""
    kept = _open.__dict__
    if kept.get("at") != (path, number, column):
        if kept.get("path") != path:
            kept["path"], kept["file"] = path, _parquet(path)
        kept["at"] = None
        kept["group"] = kept["file"].read_row_group(number, columns=[column])[column]
        kept["at"] = (path, number, column)
    return kept["group"]
