"""Which pixels a target's object is of: from the truth, from a segmenter, or guessed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Image, Sample
from steadyeye.explain.targets import OVERLAP, Target
from steadyeye.metrics.detection.error_types import iou

Masker = Callable[[Image, Target], NDArray[np.bool_] | None]
"""`(image, target) -> (h, w) bool`, the object in the target's box; None where there is none."""

ROUNDS = 5
"""Iterations of GrabCut."""


@dataclass(frozen=True, eq=False)
class Mask:
    """The pixels of an object: `size` is (h, w), `packed` its bits; `origin` is who said it."""

    size: tuple[int, int]
    packed: NDArray[np.uint8]
    origin: str

    @cached_property
    def pixels(self) -> NDArray[np.bool_]:
        """(h, w) bool."""
        height, width = self.size
        flat = np.unpackbits(self.packed, count=height * width)
        return flat.reshape(height, width).astype(np.bool_)


def pack_mask(pixels: NDArray[np.bool_], origin: str) -> Mask:
    """The mask of some pixels, an eighth of the size."""
    return Mask((pixels.shape[0], pixels.shape[1]), np.packbits(pixels), origin)


def of_truth(sample: Sample, target: Target) -> NDArray[np.bool_] | None:
    """(h, w) the mask of the true object that overlaps the target best; None below IoU > 0.5.

    Crowds are no objects. None too where the data has no mask of it.
    """
    if sample.masks is None or sample.boxes is None or not len(sample.boxes):
        return None
    overlap = iou(np.array([target.box]), sample.boxes.boxes)[0] * ~sample.boxes.crowd
    best = int(overlap.argmax())
    if overlap[best] <= OVERLAP:
        return None
    mask = sample.masks()[best]
    return mask if mask.any() else None


def nearest(masks: NDArray[np.bool_], target: Target) -> NDArray[np.bool_] | None:
    """(h, w) the one of (n, h, w) masks whose box overlaps the target best, None at IoU ≤ 0.5."""
    masks = masks[masks.any(axis=(1, 2))]
    boxes = [_extent(mask) for mask in masks]
    if not boxes:
        return None
    overlap = iou(np.array([target.box]), np.array(boxes))[0]
    best = int(overlap.argmax())
    return np.asarray(masks[best]) if overlap[best] > OVERLAP else None


def grabcut(image: Image, target: Target) -> NDArray[np.bool_] | None:
    """(h, w) what GrabCut makes of the target's box; None where it finds nothing in it.

    A guess from colours alone, weaker than a mask somebody drew. Rother, Kolmogorov, Blake 2004.
    """
    height, width = image.shape[:2]
    x0, y0 = max(int(target.box[0]), 0), max(int(target.box[1]), 0)
    x1, y1 = min(int(target.box[2]), width), min(int(target.box[3]), height)
    covered = (x1 - x0) * (y1 - y0)
    if min(x1 - x0, y1 - y0) < 2 or covered == height * width:
        return None
    # what it draws is decided by the generator of the thread
    cv2.setRNGSeed(0)
    state = np.zeros((height, width), dtype=np.uint8)
    models = np.zeros((2, 1, 65))
    box = (x0, y0, x1 - x0, y1 - y0)
    cv2.grabCut(image, state, box, models[0], models[1], ROUNDS, cv2.GC_INIT_WITH_RECT)
    found = (state == cv2.GC_FGD) | (state == cv2.GC_PR_FGD)
    return found if found.any() else None


def _extent(mask: NDArray[np.bool_]) -> tuple[float, float, float, float]:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1)
