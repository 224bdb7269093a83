"""Maps of what a detection rests on, and how much of them lies within its box."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steadyeye.explain.occluders import RandomMask, centres, patch

Floats = NDArray[np.float64]

SIDE = 48
"""Cells of a map on a side, whatever the shape of the image."""


def share(values: Floats, box: Sequence[float]) -> float:
    """The share of Σ|values| that lies within a box; NaN where all are 0.

    `values`: (h, w) over an image; `box`: x0 y0 x1 y1 in cells of them. A cell that the box cuts
    counts with the part of it that lies inside, so that values all alike give the area of the box
    over that of the image. Lau et al. 2021, Figure 7.
    """
    size = np.abs(values)
    total = float(size.sum())
    if not total:
        return float("nan")
    x0, y0, x1, y1 = box
    down, along = (
        _overlap(np.array([low]), np.array([high]), n)[0]
        for low, high, n in ((y0, y1, size.shape[0]), (x0, x1, size.shape[1]))
    )
    return float(down @ size @ along) / total


def area(box: Sequence[float], height: float, width: float) -> float:
    """The area of the part of a box that lies in the image, as a share of the image's."""
    x0, y0, x1, y1 = box
    wide = max(min(x1, width) - max(x0, 0.0), 0.0)
    tall = max(min(y1, height) - max(y0, 0.0), 0.0)
    return wide * tall / (height * width)


def sum_cells(values: Floats, height: float, width: float) -> Floats:
    """(SIDE, SIDE) `values` summed over equal cells of the first `height` × `width` of them."""
    down, along = (
        _overlap(np.arange(SIDE) * size / SIDE, np.arange(1, SIDE + 1) * size / SIDE, n)
        for size, n in ((height, values.shape[0]), (width, values.shape[1]))
    )
    return np.asarray(down @ values @ along.T)


def evenly(box: Sequence[float]) -> Floats:
    """(SIDE, SIDE) weights that sum to 1 of a box, x0 y0 x1 y1 in cells; zeros for one outside."""
    x0, y0, x1, y1 = box
    down, along = (
        _overlap(np.array([low]), np.array([high]), SIDE)[0] for low, high in ((y0, y1), (x0, x1))
    )
    found = np.outer(down, along)
    return found / (found.sum() or 1.0)


def weigh_patches(number: int, patches: int) -> Floats:
    """(SIDE, SIDE) how much of each cell lies under a sliding patch, 0…1."""
    y0, y1, x0, x1 = (end * SIDE for end in patch(number, patches))
    down, along = (
        _overlap(np.array([low]), np.array([high]), SIDE)[0] for low, high in ((y0, y1), (x0, x1))
    )
    return np.outer(down, along)


def weigh_mask(mask: RandomMask) -> Floats:
    """(SIDE, SIDE) how much of the middle of each cell a mask keeps, 0…1."""
    return mask.at(centres(SIDE), centres(SIDE))


def rise(scores: Floats, kept: Floats) -> Floats:
    """(SIDE, SIDE) by how much the score rises, on average, from a place hidden to it shown.

    `scores`: (n,) under each of the masks; `kept`: (n, SIDE, SIDE) what they show. The slope of
    the score over the mask's value there; 0 for fewer than two masks.
    RISE's own map (Petsiuk et al. 2018, equation 6; of detections: D-RISE, 2021) is the mean of
    the masks weighted with the scores, which is the same up to a factor and an offset: here 0
    says that a place does not matter, as the share within a box needs.
    """
    if len(kept) < 2:
        return np.zeros((SIDE, SIDE))
    about = kept - kept.mean(axis=0)
    spread = (about**2).sum(axis=0)
    slope = np.tensordot(scores - scores.mean(), about, 1) / np.where(spread > 0, spread, 1)
    return np.asarray(np.where(spread > 0, slope, 0.0))


def occlusion(drops: Floats, under: Floats) -> Floats:
    """(SIDE, SIDE) by how much the score falls, on average over the patches that hide a place.

    `drops`: (n,) the score of the image itself minus that under each patch; `under`: (n, SIDE,
    SIDE) what they hide. Zeiler and Fergus, "Visualizing and Understanding Convolutional
    Networks", 2014, Section 4.2.
    """
    times = under.sum(axis=0)
    return np.asarray(np.tensordot(drops, under, 1) / np.where(times > 0, times, 1))


def _overlap(low: Floats, high: Floats, n: int) -> Floats:
    """(m, n) how much of each of n cells of length 1 lies between `low` and `high`, (m,)."""
    begin = np.arange(n, dtype=np.float64)
    inner = np.minimum(high[:, None], begin + 1) - np.maximum(low[:, None], begin)
    return np.asarray(np.clip(inner, 0, 1))
