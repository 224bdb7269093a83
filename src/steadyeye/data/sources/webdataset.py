"""Images in tar shards, as the WebDataset library packs them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, boxes
from steadyeye.core.errors import SampleError, UsageError, shorten, unknown
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.storage import tar_index
from steadyeye.core.storage.files import Place, map_requests
from steadyeye.core.storage.remote_path import Remote
from steadyeye.core.storage.text_columns import Texts, find_repeated_texts
from steadyeye.core.types import Classes, Labels, Sample
from steadyeye.data.annotations.sample_columns import Joined, Lists, join_columns, present, within
from steadyeye.data.annotations.tar_source import TarSamples, samples
from steadyeye.data.classes.class_lists import classes_of_names, list_positions, read
from steadyeye.data.images import image_file
from steadyeye.data.video.paths import compose, list_files, resolve_path

TAR = frozenset({".tar"})
MOST_TARS = 1_000_000
"""How many tars braces may stand for."""


@source_in_short
@dataclass(frozen=True, eq=False)
class _Packed:
    """A `Source` over the samples of tars; `places`: for each tar the classes of its labels.

    For each sample it stores the place in its tar, the id and the labels, as columns.
    """

    name: str
    classes: Classes | None
    shards: Sequence[TarSamples] = field(repr=False)
    places: Sequence[NDArray[np.int32]] = field(repr=False)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """`truth` if anything is labelled, and `boxes` if there are any."""
        labelled = self.classes is not None and any(len(shard.labels) for shard in self.shards)
        return (*(("truth",) if labelled else ()), *(("boxes",) if self._has_boxes else ()))

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the samples, their labels, their order and the classes."""
        marks = (shard.fingerprint for shard in self.shards)
        return fingerprint("webdataset", *marks, repr(self.classes))

    @cached_property
    def ids(self) -> Joined[str]:
        """The id of every sample."""
        return join_columns([Texts(shard.rows.column("id")) for shard in self.shards])

    @cached_property
    def truths(self) -> Joined[Labels]:
        """The labels of every sample."""
        return join_columns(self._lists)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """The numbers of images, and of those without a label."""
        empty = [int((np.diff(part.starts) == 0).sum()) for part in self._lists]
        note = f"{number_of(len(self), 'image')} in {len(self.shards):,} tar shards"
        is_noted = self.columns and any(empty)
        return (f"{note}, {sum(empty):,} of them without a label" if is_noted else note,)

    def missing(self) -> Sequence[str]:
        """Nothing: the headers were read, the tars are there and whole."""
        return []

    def files(self) -> Sequence[Place]:
        """The files that the images are read from, each once, in the order of the samples."""
        return [shard.tar for shard in self.shards]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Sample:
        part, row = within(self.ids.first, range(len(self))[index])
        shard = self.shards[part]
        name, (start, size) = shard.id(row), shard.span(row)

        def content() -> bytes:
            image_file.check_length(size, f"{shard.tar}:{name}")
            try:
                return tar_index.read_entry(shard.tar, start, size)
            except OSError as error:
                reason = f"cannot read '{name}' in '{shard.tar}': {error.strerror}"
                raise SampleError(reason) from error

        def key() -> str:
            if isinstance(shard.tar, Remote):
                # told by the store, so that nothing is read to know it
                return f"object {shard.tar} {shard.version} {start} {size}"
            return image_file.key(content())

        image = image_file.EncodedImage(content, f"{shard.tar}:{name}")
        objects = self._boxes(part, row) if self._has_boxes else None
        return Sample(name, image, self._lists[part][row], boxes=objects, key=key)

    @cached_property
    def _has_boxes(self) -> bool:
        return any(shard.has_boxes for shard in self.shards)

    @cached_property
    def _lists(self) -> list[Lists]:
        return [self._labels(*pair) for pair in zip(self.shards, self.places, strict=True)]

    def _labels(self, shard: TarSamples, places: NDArray[np.int32]) -> Lists:
        if self.classes is None:
            return Lists(np.zeros(len(shard) + 1, dtype=np.int32), places)
        labels = places[shard.labels]
        lists = present(shard.starts, labels) if self._has_boxes else (shard.starts, labels)
        return Lists(*lists)

    def _boxes(self, part: int, row: int) -> Boxes:
        shard = self.shards[part]
        own = shard.labels[shard.starts[row] : shard.starts[row + 1]]
        return boxes(shard.corners(row), self.places[part][own])


def webdataset(urls: str, classes: str | None = None) -> _Packed:
    """Images in tar shards, on a disk or in a store: `urls='s3://bucket/train-{000..009}.tar'`.

    `urls`: a tar, a folder of them, or either with braces: `{000..009}`, `{train,val}`. Files with
    the same name up to its first dot are one sample, and that name is its id: an image; `.cls`, a
    class index or name; `.json`, with `label` (index or name), or `boxes` (x0 y0 x1 y1 in pixels)
    and `labels`, one per box. `classes`: the list of the indices, known or a file; for names by
    default the sorted names that occur. Images are read in place: nothing is unpacked. Raises
    `UsageError` for repeated ids, and for a tar that is cut short or compressed.

    Example: `webdataset(urls='train-{000..009}.tar', classes='imagenet1k')`
    """
    places = [resolve_path(text) for text in expand_braces(urls)]
    folders = map_requests(places[0], lambda p: list_files(p, TAR), places)
    tars = [tar for own in folders for tar in own]
    shards = list(map_requests(tars[0], samples, tars))
    known = _classes(classes, shards)
    _refuse_bare_among_boxed(shards)
    packed = _Packed(
        name=tars[0].stem if len(tars) == 1 else tars[0].parent.name or "webdataset",
        classes=known,
        shards=shards,
        places=[_places(shard, known) for shard in shards],
    )
    twice = find_repeated_texts(packed.ids)
    if twice:
        ids = ((shard, shard.rows.column("id")) for shard in shards)
        holding = [shard for shard, own in ids if pc.index(own, twice[0]).as_py() >= 0]
        raise UsageError(
            f"the id '{twice[0]}' is both in '{holding[0].tar}' and in '{holding[1].tar}'; "
            "give every sample its own"
        )
    return packed


def expand_braces(urls: str) -> list[str]:
    """Expands braces: `{008..011}` counts with its zeros, `{a,b}` lists."""
    parts = re.split(r"\{([^{}]*)\}", urls)
    choices = [[part] if i % 2 == 0 else _choices(urls, part) for i, part in enumerate(parts)]
    if prod(map(len, choices)) > MOST_TARS:
        raise _too_many(urls)
    return ["".join(words) for words in product(*choices)]


def _too_many(urls: str) -> UsageError:
    return UsageError(f"'{shorten(urls)}' stands for more than {MOST_TARS:,} tars; name fewer")


def _choices(urls: str, text: str) -> list[str]:
    if span := re.fullmatch(r"([0-9]{1,18})\.\.([0-9]{1,18})", text):
        first, last = span[1], span[2]
        if int(last) < int(first):
            raise UsageError(f"'{urls}': {{{text}}} counts down; write {{{last}..{first}}}")
        if int(last) - int(first) >= MOST_TARS:
            raise _too_many(urls)
        return [f"{n:0{len(first)}d}" for n in range(int(first), int(last) + 1)]
    if ".." in text:
        raise UsageError(f"'{urls}': {{{text}}} is no range of numbers; write {{000..009}}")
    return text.split(",")


def _classes(classes: str | None, shards: Sequence[TarSamples]) -> Classes | None:
    if classes:
        return read(classes)
    labels = [label for shard in shards for label in shard.distinct_labels]
    names = sorted({label for label in labels if isinstance(label, str)})
    numbers = [label for label in labels if isinstance(label, int)]
    if numbers:
        raise UsageError(
            f"the shards label by number, first {numbers[0]}; name their classes with classes=…, "
            "a known list such as imagenet1k or a file"
        )
    return classes_of_names(names) if names else None


def _places(shard: TarSamples, known: Classes | None) -> NDArray[np.int32]:
    """The classes of a tar's labels. Raises `UsageError` for an unknown one."""
    if known is None:
        return np.zeros(0, dtype=np.int32)
    places = list_positions(known)
    numbers_ = []
    for index, label in enumerate(shard.distinct_labels):
        if isinstance(label, str) and compose(label) not in places:
            raise unknown(f"class (of {_first(shard, index)})", label, places)
        number = places[compose(label)] if isinstance(label, str) else label
        if not 0 <= number < len(known):
            raise UsageError(
                f"{_first(shard, index)} has the label {number}; classes go to {len(known) - 1}"
            )
        numbers_.append(number)
    return np.array(numbers_, dtype=np.int32)


def _first(shard: TarSamples, number: int) -> str:
    """The first sample with a label, and its tar."""
    place = int(np.flatnonzero(shard.labels == number)[0])
    sample = shard.id(int(np.searchsorted(shard.starts, place, side="right")) - 1)
    return f"'{sample}' in '{shard.tar}'"


def _refuse_bare_among_boxed(shards: Sequence[TarSamples]) -> None:
    """Raises `UsageError` where some samples have boxes and another only a label."""
    if not any(shard.has_boxes for shard in shards):
        return
    for shard in shards:
        bare = np.diff(shard.starts) > 0
        if shard.has_boxes:
            bare &= shard.rows.column("corners").is_null().to_numpy(zero_copy_only=False)
        if bare.any():
            raise UsageError(
                f"'{shard.id(int(bare.argmax()))}' in '{shard.tar}' has a label and no boxes, "
                f"other samples have boxes ({int(bare.sum()):,} such in this tar); give its boxes"
            )
