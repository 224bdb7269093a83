"""The detections of a file of results as columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import from_sides
from steadyeye.core.disk_columns import DiskColumn, release_pages, split_entries
from steadyeye.core.storage.json_lists import (
    PIECE,
    ListFile,
    decode_in_pieces,
    list_pieces,
    split_pieces,
)

NAMES = ("category_name", "class_name", "name")
"""Keys under which tools write the name of a category."""


class _Entry(msgspec.Struct, gc=False):
    """An entry as it should be; `saved_detections` says what is wrong with any other."""

    image_id: int | float | str
    category_id: int
    bbox: tuple[float, float, float, float]
    score: float
    file_name: str | None = None
    category_name: str | None = None
    class_name: str | None = None
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Grouping:
    """Entries by sample: `order`: (n,) places in the file; `bounds`: (samples + 1,) in `order`."""

    order: NDArray[np.int32]
    bounds: NDArray[np.int64]

    def of(self, sample: int) -> NDArray[np.int32]:
        """The places of a sample's entries, in the order of the file."""
        return self.order[self.bounds[sample] : self.bounds[sample + 1]]

    @property
    def samples(self) -> NDArray[np.int64]:
        """The samples that have an entry, rising."""
        return np.flatnonzero(np.diff(self.bounds))

    def split(self) -> Iterator[slice]:
        """Consecutive samples in pieces of about `PIECE` entries or one sample."""
        start, samples = 0, len(self.bounds) - 1
        while start < samples:
            stop = int(np.searchsorted(self.bounds, self.bounds[start] + PIECE, side="right")) - 1
            stop = max(stop, start + 1)
            yield slice(start, stop)
            release_pages()
            start = stop

    def places(self, samples: slice) -> NDArray[np.int32]:
        """The places of the entries of consecutive samples."""
        return self.order[self.bounds[samples.start] : self.bounds[samples.stop]]

    def counts(self, samples: slice) -> NDArray[np.int64]:
        """(samples,) how many entries consecutive samples have."""
        return np.diff(self.bounds[samples.start : samples.stop + 1])


@dataclass(frozen=True, eq=False)
class SavedEntries:
    """n detections in the order of their file.

    `image_ids`: the different image ids, as text; `image`: (n,) which of them. `file_names` and
    `file`: the same of the names of files; empty and None unless every entry has one. `category`:
    (n,) the category id. `sides`: (n, 4) x y width height in pixels. `score`: (n,) 0…1. `name_key`:
    the key under which every entry has the name of its category, "" for none; `names`: the
    different pairs of category id and name, in order of their first entry.
    """

    image_ids: Sequence[str]
    image: NDArray[np.int32]
    category: NDArray[np.int64]
    sides: NDArray[np.float64]
    score: NDArray[np.float64]
    file_names: Sequence[str] = ()
    file: NDArray[np.int32] | None = None
    name_key: str = ""
    names: Sequence[tuple[int, str]] = ()

    def __len__(self) -> int:
        return len(self.score)

    @cached_property
    def categories(self) -> NDArray[np.int64]:
        """The different category ids, rising."""
        own: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        for piece in list_pieces(len(self)):
            own = np.union1d(own, self.category[piece])
        release_pages()
        return own

    def group_by_sample(self, sample: NDArray[np.int32], samples: int) -> Grouping:
        """The entries by sample; `sample`: (n,) which sample each entry is of, −1: none."""
        bounds = np.zeros(samples + 2, dtype=np.int64)  # those of no sample come first
        column = DiskColumn(np.int32)
        for entries in split_entries(len(sample), samples):
            bounds[1:] += np.bincount(sample[entries] + 1, minlength=samples + 1)
            column.append(np.zeros(entries.stop - entries.start, dtype=np.int32))
        bounds, order = np.cumsum(bounds), column.array()
        at = bounds[:-1].copy()
        for entries in split_entries(len(sample), samples):
            own = sample[entries] + 1
            by_sample = np.argsort(own, kind="stable")
            counts = np.bincount(own, minlength=samples + 1)
            earlier = np.repeat(np.cumsum(counts) - counts, counts)
            order[at[own[by_sample]] + np.arange(len(own)) - earlier] = by_sample + entries.start
            at += counts
        return Grouping(order, bounds[1:])

    def corners(self, places: NDArray[np.int32]) -> NDArray[np.float64]:
        """(m, 4) x0 y0 x1 y1 of the entries at some places."""
        return from_sides(self.sides[places])

    def entry(self, place: int) -> Mapping[str, Any]:
        """An entry as its file has it, for messages."""
        return {
            "image_id": self.image_ids[self.image[place]],
            "category_id": int(self.category[place]),
            "bbox": self.sides[place].tolist(),
            "score": float(self.score[place]),
        }


def read(path: Path) -> tuple[SavedEntries, str] | None:
    """The entries of a file of this machine and its fingerprint; None where it needs a closer look.

    The file is never held as a whole.
    """
    try:
        file = ListFile(path)
        entries = _collect(file.decode(_Entry))
    except (msgspec.MsgspecError, ValueError, RecursionError, OSError):
        return None
    return (entries, str(file.fingerprint)) if _are_in_range(entries) else None


def parse(text: str) -> SavedEntries | None:
    """The entries of a JSON list; None where any of it is not as it should be."""
    try:
        raw = msgspec.json.decode(text, type=list[msgspec.Raw])
        entries = _collect(decode_in_pieces(raw, _Entry))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return entries if _are_in_range(entries) else None


def _are_in_range(entries: SavedEntries) -> bool:
    """Whether sides are finite, none is negative, and scores are in 0…1."""
    for piece in list_pieces(len(entries)):
        sides, score = entries.sides[piece], entries.score[piece]
        in_order = np.isfinite(sides).all() and (sides[:, 2:] >= 0).all()
        in_range = in_order and ((score >= 0) & (score <= 1)).all()
        release_pages()
        if not in_range:
            return False
    return True


def text(value: object) -> str:
    """An id as text; 7.0, as tables write it, is 7."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole and isinstance(value, float) else str(value)


def from_mappings(entries: Sequence[Mapping[str, Any]]) -> SavedEntries:
    """The columns of entries that were found to be as they should be."""
    checked = [
        _Entry(
            image_id=text(entry["image_id"]),
            category_id=int(entry["category_id"]),
            bbox=entry["bbox"],
            score=entry["score"],
            **{key: entry[key] for key in ("file_name", *NAMES) if isinstance(entry.get(key), str)},
        )
        for entry in entries
    ]
    return _collect(split_pieces(checked))


def _collect(pieces: Iterable[Sequence[_Entry]]) -> SavedEntries:
    """The columns of entries that come in pieces."""
    images, files = _Codes(), _Codes()
    names: dict[str, dict[tuple[int, str], None] | None] = {key: {} for key in NAMES}
    columns = (
        *(DiskColumn(kind) for kind in (np.int32, np.int32, np.int64)),
        DiskColumn(np.float64, 4),
        DiskColumn(np.float64),
    )
    has_files = True
    for piece in pieces:
        has_files = has_files and all(entry.file_name is not None for entry in piece)
        for key, pairs in names.items():
            if pairs is None or any(getattr(entry, key) is None for entry in piece):
                names[key] = None
            else:
                pairs.update(dict.fromkeys((e.category_id, getattr(e, key)) for e in piece))
        parts: tuple[NDArray[Any], ...] = (
            images.number([entry.image_id for entry in piece]),
            files.number([entry.file_name for entry in piece if has_files]),
            np.array([entry.category_id for entry in piece], dtype=np.int64),
            _read_numbers(chain.from_iterable(entry.bbox for entry in piece)).reshape(-1, 4),
            _read_numbers(entry.score for entry in piece),
        )
        for column, part in zip(columns, parts, strict=True):
            column.append(part)
    image, file, category, sides, score = (column.array() for column in columns)
    key = next((key for key, pairs in names.items() if pairs), "")
    return SavedEntries(
        images.texts,
        image,
        category,
        sides,
        score,
        files.texts if has_files else (),
        file if has_files and len(score) else None,
        key,
        list(names.get(key) or ()),
    )


def _read_numbers(values: Iterable[float]) -> NDArray[np.float64]:
    # a third of the time that a list of tuples takes
    return np.fromiter(values, np.float64)


class _Codes:
    """Numbers of texts, by their first occurrence."""

    def __init__(self) -> None:
        self._of_value: dict[Any, int] = {}
        self._of_text: dict[str, int] = {}

    @property
    def texts(self) -> Sequence[str]:
        """The texts, by their number."""
        return list(self._of_text)

    def number(self, values: Sequence[Any]) -> NDArray[np.int32]:
        """(n,) the number of each value's text."""
        known = self._of_value
        for value in dict.fromkeys(values):
            if value not in known:
                known[value] = self._of_text.setdefault(text(value), len(self._of_text))
        return np.fromiter(map(known.__getitem__, values), np.int32, len(values))
