"""DAVIS: sequences of frames with a mask each, as boxes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from steadyeye.core.boxes import Boxes, boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Sample
from steadyeye.footage import sidecar
from steadyeye.footage.annotations import extent
from steadyeye.footage.paths import listed, resolve
from steadyeye.footage.sets import COLUMNS, Drawing, FrameSets, Member, draw, set_notes
from steadyeye.footage.stills import absentees, sampler
from steadyeye.images.files import SUFFIXES


def davis(root: str, labels: str, anchors: int = 1, k: int = 10, seed: int = 0) -> FrameSets:
    """DAVIS' layout, JPEGImages/SEQUENCE and Annotations/SEQUENCE: masks as tight boxes.

    `labels`: a sidecar that names the class of each sequence's object (`video,labels`); where a
    sequence has several, its masks are numbered and the labels are in that order. Anchors and
    their neighbours within ±k frames are drawn as in `video`. A frame whose masks are empty has
    no object; such frames are counted in the notes. Raises `UsageError` for what is missing.
    """
    base = resolve(root)
    known = sidecar.read(labels)
    if known.classes is None:
        raise UsageError(f"'{labels}' names no classes; write video,labels for each sequence")
    sequences = _sequences(base)
    how = Drawing(anchors, k, seed)
    members: list[Member] = []
    for name, found in sequences.items():
        ranges = known.of(name)
        if not ranges.ranges:
            raise UsageError(f"'{labels}' says nothing of the sequence '{name}'; give its class")
        members += draw(name, len(found), ranges, how)

    def locate(member: Member) -> Path:
        return sequences[member.video][member.frame]

    named = {name: known.of(name).ranges[0].labels for name in sequences}
    masks = {(m.video, m.frame): _mask(base, locate(m), named[m.video]) for m in members}
    empty = sum(not len(found) for found in masks.values())
    marks = [f"{file.name}:{file.stat().st_size}" for found in sequences.values() for file in found]
    marks += [repr((where, found.boxes.tolist())) for where, found in masks.items()]
    return FrameSets(
        name=base.name,
        classes=known.classes,
        columns=(*COLUMNS, "truth", "boxes"),
        fingerprint=fingerprint(*marks, repr(known), repr(how)),
        members=tuple(replace(m, truth=_present(masks[m.video, m.frame])) for m in members),
        sample=_boxed(sampler(locate), masks),
        absent=absentees(locate),
        notes=(*set_notes(members), f"{empty} of {len(masks)} frames without an object"),
    )


def _sequences(base: Path) -> dict[str, list[Path]]:
    folder = base / "JPEGImages"
    # the released archive has the resolution as one more folder
    folder = folder / "480p" if (folder / "480p").is_dir() else folder
    if not folder.is_dir():
        raise UsageError(f"'{base}' has no folder JPEGImages; give the root of DAVIS")
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    return {name: sorted(listed(folder / name, SUFFIXES)) for name in names}


def _mask(base: Path, frame: Path, labels: tuple[int, ...]) -> Boxes:
    """The boxes of a frame's mask: of all that is not 0, or of 1, 2, … for several labels."""
    path = Path(str(frame).replace("JPEGImages", "Annotations")).with_suffix(".png")
    mask = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    if mask is None:
        raise UsageError(f"there is no mask '{path}' for the frame '{frame}' in '{base}'")
    if mask.ndim == 3:
        mask = mask.max(axis=2)
    parts = [mask > 0] if len(labels) == 1 else [mask == i for i in range(1, len(labels) + 1)]
    there = [
        (box, label, int(np.sum(part)))
        for part, label in zip(parts, labels, strict=True)
        if (box := extent(part)) is not None
    ]
    return boxes([b for b, _, _ in there], [c for _, c, _ in there], None, [a for *_, a in there])


def _present(found: Boxes) -> tuple[int, ...]:
    return tuple(sorted({int(label) for label in found.labels}))


def _boxed(
    sample: Callable[[Member], Sample], masks: dict[tuple[str, int], Boxes]
) -> Callable[[Member], Sample]:
    def with_boxes(member: Member) -> Sample:
        return replace(sample(member), boxes=masks[member.video, member.frame])

    return with_boxes
