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
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from steadyeye.core.errors import SampleError, UsageError, one_line, unknown
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.storage.files import Place, map_requests, relative_path
from steadyeye.core.storage.remote_path import Remote
from steadyeye.core.types import Classes, Labels, Sample
from steadyeye.data.annotations.sample_columns import (
    Joined,
    Lists,
    NumberedNames,
    join_columns,
    within,
)
from steadyeye.data.classes.class_lists import close_list, find_class, from_names, read
from steadyeye.data.images import image_file
from steadyeye.data.video.paths import list_files, resolve_path

PARQUET = frozenset({".parquet"})
TIMES = 64
"""How many times its size a column may unpack to."""
SMALLEST = 1 << 28
"""Bytes that the column of a row group may always unpack to."""
_open = threading.local()


@dataclass(frozen=True, eq=False)
class _Groups:
    """The row groups of one Parquet file; `starts`: the first row of each, and the end.

    `version`: the file's version in a store; empty for a file on a disk.
    """

    path: Place
    starts: Sequence[int]
    features: Mapping[str, Any]
    version: str


@dataclass(frozen=True, eq=False)
class _Labels:
    """(rows,) the label of each, −1: not known; `names`: the texts that the numbers stand for."""

    numbers: NDArray[np.int64]
    names: Sequence[str] | None = None


@source_in_short
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
    groups: Sequence[_Groups] = field(repr=False)
    truths: Joined[Labels] = field(repr=False)

    @property
    def ids(self) -> Sequence[str]:
        """The split and the row, of every sample."""
        return NumberedNames(f"{self.split}/", len(self))

    def missing(self) -> Sequence[str]:
        """Nothing: the footers were read, the files are there."""
        return []

    def files(self) -> Sequence[Place]:
        return [group.path for group in self.groups]

    def __len__(self) -> int:
        return len(self.truths)

    def __getitem__(self, index: int) -> Sample:
        index = range(len(self))[index]
        name = self.ids[index]
        part, row = within(self.truths.first, index)
        file = self.groups[part]

        def content() -> bytes:
            group = int(np.searchsorted(file.starts, row, side="right")) - 1
            value = _group(file.path, group, self.column)[row - file.starts[group]].as_py()
            data: bytes | None = value["bytes"] if isinstance(value, dict) else value
            if not data:
                raise SampleError(f"'{name}' in '{file.path}' holds no image; embed its bytes")
            return data

        def key() -> str:
            if isinstance(file.path, Remote):
                # told by the store, so that nothing is read to know it
                return f"object {file.path} {file.version} {self.column} {row}"
            return image_file.key(content())

        image = image_file.EncodedImage(content, f"{file.path}:{row}")
        return Sample(name, image, self.truths.parts[part][row], key=key)


def hf_dataset(
    path: str,
    split: str = "train",
    image: str = "image",
    label: str | None = "label",
    classes: str | None = None,
) -> _Rows:
    """An image data set in the hub's layout of Parquet files, on a disk, on `hf://` or in a store.

    `path`: a folder such as `hf://datasets/uoft-cs/cifar10`. `split`: the files `SPLIT-*.parquet`
    or those in a folder of that name. `image`, `label`: columns; without a label column, or with
    None, the data are unlabelled. `classes`: a known list or a file; by default the dataset's names
    of its labels. A sample's id is the split and its row. Raises `UsageError` for a missing split
    or column.

    Example: `hf_dataset(path='hf://datasets/uoft-cs/cifar10', split='test', image='img')`
    """
    root = resolve_path(path)
    paths = _of_split(root, split)
    files = list(map_requests(root, lambda path_: _read(path_, image, label), paths))
    groups = [file for file, _ in files]
    lengths = [file.starts[-1] for file in groups]
    columns = [labels for _, labels in files if labels is not None]
    known = _read_classes(classes, groups[0], str(label)) if len(columns) == len(files) else None
    places = (
        [_places(*pair, known) for pair in zip(groups, columns, strict=True)]
        if known
        else [np.full(length, -1, dtype=np.int32) for length in lengths]
    )
    marks = [f"{p.name}:{p.stat().st_size}:{n}" for p, n in zip(paths, lengths, strict=True)]
    marks += [fingerprint(numbers.tobytes()) for numbers in places]
    note = f"{number_of(sum(lengths), 'image')} in {len(paths):,} Parquet files"
    return _Rows(
        name=f"{root.name}-{split}",
        classes=known,
        columns=("truth",) if known else (),
        fingerprint=fingerprint("hf_dataset", split, image, *marks, repr(known)),
        notes=(f"{note} of the split '{split}'",),
        split=split,
        column=image,
        groups=groups,
        truths=join_columns(
            [Lists(np.append(0, np.cumsum(own >= 0)), own[own >= 0]) for own in places]
        ),
    )


def _of_split(root: Place, split: str) -> list[Place]:
    if root.suffix == ".parquet":
        return [root]
    every = list_files(root, PARQUET)
    within = {path: relative_path(path, root) for path in every}
    # data/train-00000-of-00002.parquet, train/0000.parquet, train.parquet
    splits = {path: _splits(part.parent.parts, part.stem) for path, part in within.items()}
    of_split = [path for path in every if split in splits[path]]
    if not of_split:
        raise unknown("split", split, {name for names in splits.values() for name in names})
    return of_split


def _splits(folders: Sequence[str], stem: str) -> set[str]:
    if match := re.fullmatch(r"(.+)-\d+-of-\d+(-[0-9a-f]+)?", stem):
        return {match[1]}
    if re.fullmatch(r"\d+", stem) and folders:
        return {folders[-1]}
    return {stem, *folders[-1:]}


def _read(path: Place, image: str, label: str | None) -> tuple[_Groups, _Labels | None]:
    try:
        file = _parquet(path)
        names = file.schema_arrow.names
        if image not in names:
            raise unknown(f"column in '{path}'", image, names)
        meta = file.metadata
        sizes = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        for name in {image, label} & {*names}:
            _check_sizes(path, meta, str(name))
        column = file.read(columns=[label])[label] if label in names else None
        version = path.version() if isinstance(path, Remote) else ""
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        why = f"cannot read the Parquet file '{path}': {one_line(error)}; copy it again"
        raise UsageError(why) from error
    features = _read_features(path, (file.schema_arrow.metadata or {}).get(b"huggingface", b"{}"))
    groups = _Groups(path, [0, *accumulate(sizes)], features, version)
    return groups, None if column is None else _read_labels(path, str(label), column)


def _read_features(path: Place, metadata: bytes) -> dict[str, Any]:
    """The description of each column in the metadata of `datasets`; empty if there is none."""
    try:
        features = json.loads(metadata)["info"]["features"] or {}
    except KeyError:
        return {}
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read the metadata of '{path}': {error}; copy it again") from None
    if not isinstance(features, dict):
        raise UsageError(f"the metadata of '{path}' name no features; copy it again")
    return features


def _read_labels(path: Place, label: str, column: pa.ChunkedArray) -> _Labels:
    kinds = (pa.string(), pa.large_string())
    if pa.types.is_dictionary(column.type) and column.type.value_type in kinds:
        coded = column.unify_dictionaries().combine_chunks()
        numbers = np.asarray(pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False))
        # a file may list texts that no row has
        used = np.unique(numbers[numbers >= 0])
        places = np.where(numbers < 0, -1, np.searchsorted(used, numbers))
        return _Labels(places.astype(np.int64), coded.dictionary.take(pa.array(used)).to_pylist())
    if not pa.types.is_integer(column.type):
        raise UsageError(
            f"the column '{label}' of '{path}' holds {column.type}, not classes; name the column "
            "with label=…, or label=None"
        )
    return _Labels(np.asarray(column.fill_null(-1).to_numpy(), dtype=np.int64))


def _read_classes(classes: str | None, file: _Groups, label: str) -> Classes:
    if classes:
        return read(classes)
    names = file.features.get(label, {}).get("names")
    if not names:
        raise UsageError(
            f"'{file.path}' does not name the classes of '{label}'; give classes=…, a known list "
            "or a file"
        )
    return close_list(from_names([str(name) for name in names]))


def _places(file: _Groups, labels: _Labels, known: Classes) -> NDArray[np.int32]:
    """(rows,) the class of each row, −1 where the label is not told."""
    numbers = labels.numbers
    if labels.names is not None:
        places = [find_class(text, known, "class") for text in labels.names]
        # the hub writes −1 where a label is not told: the last place
        numbers = np.array([*places, -1])[numbers]
    if len(numbers) and numbers.max() >= len(known):
        first = numbers[numbers >= len(known)][0]
        raise UsageError(f"'{file.path}' has the label {first}; classes go to {len(known) - 1}")
    return numbers.astype(np.int32)


def _parquet(path: Place) -> pq.ParquetFile:
    """The file; equal texts and bytes are held once, as a page of a few bytes may repeat them."""
    source = path if isinstance(path, Path) else path.open("rb")
    metadata = pq.ParquetFile(source).metadata
    leaves = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    return pq.ParquetFile(source, metadata=metadata, read_dictionary=texts)


def _check_sizes(path: Place, metadata: pq.FileMetaData, name: str) -> None:
    """Raises `UsageError` for a column with a row group that unpacks to far more than its size."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for column in map(group.column, range(group.num_columns)):
            packed, unpacked = column.total_compressed_size, column.total_uncompressed_size
            own = column.path_in_schema.split(".")[0] == name
            if own and unpacked > max(TIMES * packed, SMALLEST):
                raise UsageError(
                    f"the column '{name}' of '{path}' has {packed:,} bytes in a row group and "
                    f"unpacks to {unpacked:,}; write it again with fewer rows a row group"
                )


def _group(path: Place, number: int, column: str) -> Any:
    """The images of a row group; the thread's last one is kept."""
    cached = _open.__dict__
    if cached.get("at") != (path, number, column):
        if cached.get("path") != path:
            cached["path"], cached["file"] = path, _parquet(path)
        cached["at"] = None
        cached["group"] = cached["file"].read_row_group(number, columns=[column])[column]
        cached["at"] = (path, number, column)
    return cached["group"]
