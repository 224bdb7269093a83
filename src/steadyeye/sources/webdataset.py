"""Images in tar shards, as the WebDataset library packs them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.classes.known import named, read
from steadyeye.core.boxes import Boxes, boxes, present
from steadyeye.core.errors import SampleError, UsageError, every, unknown
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Classes, Labels, Sample
from steadyeye.footage.paths import listed, located
from steadyeye.images import files
from steadyeye.storage import tars
from steadyeye.storage.place import Place, together

TAR = frozenset({".tar"})
Label = int | str


@dataclass(frozen=True, eq=False)
class _Said:
    """What a sample's `.cls` and `.json` say: labels, and corners where there are boxes."""

    labels: Sequence[Label]
    corners: Sequence[Sequence[float]] | None = None


@dataclass(frozen=True, eq=False)
class _Packed:
    """A `Source` over images in tars; `tar`, `start`, `size`: (n,) where each image's bytes are."""

    name: str
    classes: Classes | None
    columns: tuple[str, ...]
    fingerprint: str
    ids: Sequence[str] = field(repr=False)
    truths: Sequence[Labels] = field(repr=False)
    boxes: Sequence[Boxes] = field(repr=False)
    shards: Sequence[Place]
    tar: NDArray[np.int32] = field(repr=False)
    start: NDArray[np.int64] = field(repr=False)
    size: NDArray[np.int64] = field(repr=False)

    @property
    def notes(self) -> tuple[str, ...]:
        bare = sum(not truth for truth in self.truths) if self.columns else 0
        told = f", {bare:,} of them without a label" if bare else ""
        return (f"{len(self):,} images in {len(self.shards):,} tar shards{told}",)

    def missing(self) -> Sequence[str]:
        return []  # the headers were read: the tars are there and whole

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Sample:
        name, shard = self.ids[index], self.shards[self.tar[index]]
        entry = tars.Entry(name, int(self.start[index]), int(self.size[index]))

        def image() -> Any:
            try:
                data = tars.read(shard, entry)
            except OSError as error:
                raise SampleError(f"cannot read '{name}' in '{shard}': {error.strerror}") from error
            return files.decode(data, f"{shard}:{name}")

        found = self.boxes[index] if self.boxes else None
        return Sample(name, image, self.truths[index], boxes=found)


def webdataset(urls: str, classes: str | None = None) -> _Packed:
    """Images in tar shards, on a disk or a store: `urls='s3://bucket/train-{000..009}.tar'`.

    `urls`: a tar, a folder of them, or either with braces: `{000..009}`, `{train,val}`. Files of
    one name up to the first dot of it are one sample, and that name is its id: an image; `.cls`, a
    class index or name; `.json`, with `label` (index or name), or `boxes` (x0 y0 x1 y1 in pixels)
    and `labels`, one a box. `classes`: what indices are over, a known list or a file; the names
    that occur, sorted, where names are used. Images are read where they lie: nothing is unpacked.
    Raises `UsageError` for ids that occur twice, and for a tar that is cut short or compressed.
    """
    shards = [each for text in expanded(urls) for each in listed(located(text), TAR)]
    samples: dict[str, tuple[int, Mapping[str, tars.Entry]]] = {}
    for number, found in enumerate(together(shards[0], tars.entries, shards)):
        for key, parts in _samples(shards[number], found).items():
            if key in samples:
                raise UsageError(
                    f"the id '{key}' is both in '{shards[samples[key][0]]}' and in "
                    f"'{shards[number]}'; give every sample its own"
                )
            samples[key] = number, parts
    pairs = list(samples.values())
    said = every(pairs, lambda pair: _said(shards[pair[0]], pair[1]))
    known = _classes(classes, said)
    labels = [_positions(key, each.labels, known) for key, each in zip(samples, said, strict=True)]
    boxed = any(each.corners is not None for each in said)
    found_boxes = [_boxes(e, label) for e, label in zip(said, labels, strict=True)] if boxed else []
    pictures = [parts[_picture(parts)] for _, parts in pairs]
    marks = [
        f"{key}:{p.size}:{e.labels}:{e.corners}"
        for key, p, e in zip(samples, pictures, said, strict=True)
    ]
    labelled = (*(("truth",) if any(labels) else ()), *(("boxes",) if boxed else ()))
    return _Packed(
        name=shards[0].stem if len(shards) == 1 else shards[0].parent.name or "webdataset",
        classes=known,
        columns=labelled,
        fingerprint=fingerprint("webdataset", *marks, repr(known)),
        ids=list(samples),
        truths=[present(b) for b in found_boxes] if boxed else labels,
        boxes=found_boxes,
        shards=shards,
        tar=np.array([number for number, _ in pairs], dtype=np.int32),
        start=np.array([picture.start for picture in pictures], dtype=np.int64),
        size=np.array([picture.size for picture in pictures], dtype=np.int64),
    )


def expanded(urls: str) -> list[str]:
    """What braces stand for: `{008..011}` counts with its zeros, `{a,b}` lists."""
    parts = re.split(r"\{([^{}]*)\}", urls)
    choices = [[part] if i % 2 == 0 else _choices(urls, part) for i, part in enumerate(parts)]
    return ["".join(words) for words in product(*choices)]


def _choices(urls: str, text: str) -> list[str]:
    if span := re.fullmatch(r"(\d+)\.\.(\d+)", text):
        first, last = span[1], span[2]
        if int(last) < int(first):
            raise UsageError(f"'{urls}': {{{text}}} counts down; write {{{last}..{first}}}")
        return [f"{n:0{len(first)}d}" for n in range(int(first), int(last) + 1)]
    if ".." in text:
        raise UsageError(f"'{urls}': {{{text}}} is no range of numbers; write {{000..009}}")
    return text.split(",")


def _samples(tar: Place, found: Sequence[tars.Entry]) -> Mapping[str, Mapping[str, tars.Entry]]:
    """Key → suffix → file, of the samples with an image."""
    samples: dict[str, dict[str, tars.Entry]] = {}
    for entry in found:
        folder, slash, name = entry.name.rpartition("/")
        stem, _, suffix = name.partition(".")
        parts = samples.setdefault(f"{folder}{slash}{stem}", {})
        if suffix.lower() in parts:
            raise UsageError(f"the tar '{tar}' holds '{entry.name}' twice; pack it once")
        parts[suffix.lower()] = entry
    without = [key for key, parts in samples.items() if not _pictures(parts)]
    if without:
        raise UsageError(
            f"the tar '{tar}' has {len(without):,} samples without an image, first '{without[0]}'; "
            f"an image ends in {', '.join(sorted(files.SUFFIXES))}"
        )
    several = [key for key, parts in samples.items() if len(_pictures(parts)) > 1]
    if several:
        raise UsageError(
            f"the tar '{tar}' has {len(several):,} samples with several images, first "
            f"'{several[0]}'; give each its own name before the first dot"
        )
    return samples


def _pictures(parts: Mapping[str, tars.Entry]) -> list[str]:
    return [suffix for suffix in parts if f".{suffix.rpartition('.')[2]}" in files.SUFFIXES]


def _picture(parts: Mapping[str, tars.Entry]) -> str:
    return _pictures(parts)[0]


def _said(tar: Place, parts: Mapping[str, tars.Entry]) -> _Said:
    """What the files beside an image say. Raises `UsageError` where it cannot be understood."""
    try:
        if "json" in parts:
            return _of_json(json.loads(parts["json"].text))
        if "cls" in parts:
            text = parts["cls"].text.strip()
            return _Said([int(text) if re.fullmatch(r"\d+", text) else text])
    except (KeyError, TypeError, ValueError) as error:
        entry = parts.get("json") or parts["cls"]
        raise UsageError(
            f"'{entry.name}' in '{tar}': {error}; write a class into .cls, or a label, or boxes "
            "(x0 y0 x1 y1) and as many labels, into .json"
        ) from error
    return _Said([])


def _of_json(content: Any) -> _Said:
    if "boxes" in content:
        corners = [[float(value) for value in box] for box in content["boxes"]]
        labels = list(content["labels"])
        if len(labels) != len(corners) or not all(_is_box(box) for box in corners):
            raise ValueError(f"{len(corners)} boxes, {len(labels)} labels, or a box that is none")
        return _Said([_label(each) for each in labels], corners)
    found = content.get("label", content.get("labels", []))
    return _Said([_label(each) for each in (found if isinstance(found, list) else [found])])


def _label(value: Any) -> Label:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError(f"{value!r} is neither the index nor the name of a class")
    return value


def _is_box(box: Sequence[float]) -> bool:
    return len(box) == 4 and bool(np.isfinite(box).all()) and box[2] >= box[0] and box[3] >= box[1]


def _classes(classes: str | None, said: Sequence[_Said]) -> Classes | None:
    if classes:
        return read(classes)
    names = sorted({each for one in said for each in one.labels if isinstance(each, str)})
    numbers = [each for one in said for each in one.labels if isinstance(each, int)]
    if numbers:
        raise UsageError(
            f"the shards label by number, first {numbers[0]}; say of what with classes=…, a known "
            "list such as imagenet1k or a file"
        )
    return named(dict.fromkeys(names)) if names else None


def _positions(key: str, labels: Sequence[Label], known: Classes | None) -> Labels:
    if known is None:
        return ()
    by_wnid = {wnid: i for i, wnid in enumerate(known.wnids or ()) if wnid}
    places = by_wnid | {name: i for i, name in enumerate(known.names)}
    found = []
    for label in labels:
        if isinstance(label, str) and label not in places:
            raise unknown(f"class (of '{key}')", label, places)
        number = places[label] if isinstance(label, str) else label
        if not 0 <= number < len(known):
            raise UsageError(f"'{key}' has the label {number}; classes go to {len(known) - 1}")
        found.append(number)
    return tuple(found)


def _boxes(said: _Said, labels: Labels) -> Boxes:
    return boxes(said.corners or [], labels if said.corners else [])
