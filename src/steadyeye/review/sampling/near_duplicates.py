"""Pictures that nearly equal each other, by small grey views of them."""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Image

SIDE = 32
NEAR = 3.0
"""Grey levels, on average over a view: pictures nearer than that show the same."""


def view(image: Image) -> NDArray[np.float32]:
    """(1024,) a grey thumbnail, on which pictures are compared."""
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return np.asarray(small, dtype=np.float32).reshape(-1)


def alike(views: Sequence[NDArray[np.float32]]) -> list[tuple[int, int]]:
    """The pairs of views that differ by less than `NEAR` on average, the lower number first."""
    if not views:
        return []
    stacked = np.stack(views)
    means = stacked.mean(axis=1)
    order = np.argsort(means, kind="stable")
    # views differ by no less than their means do
    last = np.searchsorted(means[order], means[order] + NEAR)
    pairs = []
    for at, one in enumerate(order):
        others = order[at + 1 : last[at]]
        near = np.abs(stacked[others] - stacked[one]).mean(axis=1) < NEAR
        pairs += [(min(int(one), int(j)), max(int(one), int(j))) for j in others[near]]
    return sorted(pairs)
