"""DAVIS: sequences of frames with a mask each, as boxes."""

from pathlib import Path

import cv2
import numpy as np

from steadyeye.core.boxes import Boxes, boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Labels
from steadyeye.footage import sidecar
from steadyeye.footage.annotations import extent
from steadyeye.footage.boxed_sets import boxed_sets
from steadyeye.footage.paths import listed, resolve
from steadyeye.footage.sets import Drawing, FrameSets
from steadyeye.images.files import SUFFIXES


def davis(root: str, labels: str, anchors: int = 1, k: int = 10, seed: int = 0) -> FrameSets:
    """DAVIS' layout, JPEGImages/SEQUENCE and Annotations/SEQUENCE: masks as tight boxes.

    `labels`: a sidecar that names the class of each sequence's object (`video,labels`); where a
    sequence has several, its masks are numbered and the labels are in that order. Anchors are
    drawn among the frames with an object, neighbours are all frames within ±k; those whose mask
    is empty are counted in the notes. Raises `UsageError` for what is missing.
    """
    base = resolve(root)
    known = sidecar.read(labels)
    if known.classes is None:
        raise UsageError(f"'{labels}' names no classes; write video,labels for each sequence")
    sequences = _sequences(base)
    found: dict[str, list[Boxes]] = {}
    for name, frames in sequences.items():
        ranges = known.of(name).ranges
        if not ranges:
            raise UsageError(f"'{labels}' says nothing of the sequence '{name}'; give its class")
        found[name] = [_mask(frame, ranges[0].labels) for frame in frames]
    return boxed_sets(base.name, sequences, found, known.classes, Drawing(anchors, k, seed))


def _sequences(base: Path) -> dict[str, list[Path]]:
    folder = base / "JPEGImages"
    # the released archive has the resolution as one more folder
    folder = folder / "480p" if (folder / "480p").is_dir() else folder
    if not folder.is_dir():
        raise UsageError(f"'{base}' has no folder JPEGImages; give the root of DAVIS")
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    return {name: sorted(listed(folder / name, SUFFIXES)) for name in names}


def _mask(frame: Path, labels: Labels) -> Boxes:
    """The boxes of a frame's mask: of all that is not 0, or of 1, 2, … for several labels."""
    path = Path(str(frame).replace("JPEGImages", "Annotations")).with_suffix(".png")
    mask = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    if mask is None:
        raise UsageError(f"there is no mask '{path}' for the frame '{frame}'; complete the data")
    if mask.ndim == 3:
        mask = mask.max(axis=2)
    parts = [mask > 0] if len(labels) == 1 else [mask == i for i in range(1, len(labels) + 1)]
    there = [
        (box, label, int(np.sum(part)))
        for part, label in zip(parts, labels, strict=True)
        if (box := extent(part)) is not None
    ]
    return boxes([b for b, _, _ in there], [c for _, c, _ in there], None, [a for *_, a in there])
