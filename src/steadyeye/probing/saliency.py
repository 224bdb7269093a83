"""Maps of what a detection rests on, and how much of them lies within its box."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steadyeye.probing.hiding import RandomMask, centres, patch

Floats = NDArray[np.float64]

SIDE = 48
"""Cells of a map on a side, whatever the shape of the image."""


def share(values: Floats, box: Sequence[float]) -> float:
    """The share of Σ|values| that lies within a box; NaN where all are 0.

    `values`: (h, w) over an image; `box`: x0 y0 x1 y1 in cells of them. A cell that the box cuts
    counts with the part of it that lies inside, so that values all alike give the area of the box
    over that of the image. Lau et al. 2021, Figure 10.
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


def reduced(values: Floats, height: float, width: float) -> Floats:
    """(SIDE, SIDE) `values` summed over equal cells of the first `height` × `width` of them."""
    down, along = (
        _overlap(np.arange(SIDE) * size / SIDE, np.arange(1, SIDE + 1) * size / SIDE, n)
        for size, n in ((height, values.shape[0]), (width, values.shape[1]))
    )
    return np.asarray(down @ values @ along.T)


def _overlap(low: Floats, high: Floats, n: int) -> Floats:
    """(m, n) how much of each of n cells of length 1 lies between `low` and `high`, (m,)."""
    begin = np.arange(n, dtype=np.float64)
    inner = np.minimum(high[:, None], begin + 1) - np.maximum(low[:, None], begin)
    return np.asarray(np.clip(inner, 0, 1))


def rise(scores: Floats, masks: Sequence[RandomMask]) -> Floats:
    """(SIDE, SIDE) by how much the score rises, on average, from a place hidden to it shown.

    `scores`: (n,) under each of the masks; the slope of the score over the mask's value there.
    RISE's own map (Petsiuk et al. 2018, equation 6; of detections: D-RISE, 2021) is the mean of
    the masks weighted with the scores, which is the same up to a factor and an offset: here 0
    says that a place does not matter, as the share within a box needs.
    """
    if len(masks) < 2:
        return np.zeros((SIDE, SIDE))
    at = centres(SIDE)
    kept = np.stack([mask.at(at, at) for mask in masks]).reshape(len(masks), -1)
    about = kept - kept.mean(axis=0)
    spread = (about**2).sum(axis=0)
    slope = (scores - scores.mean()) @ about / np.where(spread > 0, spread, 1)
    return np.asarray(np.where(spread > 0, slope, 0.0).reshape(SIDE, SIDE))


def occlusion(drops: Floats, numbers: Sequence[int], patches: int) -> Floats:
    """(SIDE, SIDE) by how much the score falls, on average over the patches that hide a place.

    `drops`: (n,) the score of the image itself minus that under each patch; `numbers`: which patch
    it was. Zeiler and Fergus, "Visualizing and Understanding Convolutional Networks", 2014,
    Section 4.2.
    """
    total, times = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE))
    for drop, number in zip(drops, numbers, strict=True):
        y0, y1, x0, x1 = (end * SIDE for end in patch(number, patches))
        hidden = np.outer(
            _overlap(np.array([y0]), np.array([y1]), SIDE)[0],
            _overlap(np.array([x0]), np.array([x1]), SIDE)[0],
        )
        total += drop * hidden
        times += hidden
    return np.asarray(total / np.where(times > 0, times, 1))
