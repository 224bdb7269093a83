"""Pictures that show the same, but for a little noise: found by a small grey view of each.

Two other questions are answered elsewhere, each with a descriptor of its own: whether a picture
was recoded or resized (`training.leakage`, a perceptual hash that survives both), and whether two
crops of one class look alike in colour (`explain.mining.crops`).
"""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Image

SIDE = 32
NEAR = 3.0
"""Grey levels, on average over a view: pictures nearer than that show the same."""


def make_view(image: Image) -> NDArray[np.float32]:
    """(1024,) the grey levels of an image, (h, w, 3) uint8, at 32 × 32 pixels."""
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return np.asarray(small, dtype=np.float32).reshape(-1)


def find_near_duplicates(views: Sequence[NDArray[np.float32]]) -> list[tuple[int, int]]:
    """The pairs of views that differ by less than `NEAR` on average, the lower number first."""
    if not views:
        return []
    stacked = np.stack(views)
    means = stacked.mean(axis=1)
    order = np.argsort(means, kind="stable")
    # views differ by no less than their means do
    last = np.searchsorted(means[order], means[order] + NEAR)
    pairs = []
    for at, number in enumerate(order):
        others = order[at + 1 : last[at]]
        near = np.abs(stacked[others] - stacked[number]).mean(axis=1) < NEAR
        pairs += [(min(int(number), int(j)), max(int(number), int(j))) for j in others[near]]
    return sorted(pairs)
