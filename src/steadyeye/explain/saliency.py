"""Attribution maps: masks and patches, and the share of a map inside a box."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.seeds import stream
from steadyeye.core.types import Image

Floats = NDArray[np.float64]

SIDE = 48
"""Cells of a map along each side, for images of any shape."""


def centres(n: int) -> Floats:
    """(n,) the centres of n equal cells of 0…1: the coordinates of n pixels for a mask."""
    return (np.arange(n) + 0.5) / n


@dataclass(frozen=True, eq=False)
class RandomMask:
    """A mask of RISE: a coarse grid of ones and zeros, enlarged smoothly and shifted.

    `grid`: (cells + 2, cells + 2) 0 or 1. `shift`: y and x, by how much of a cell. Petsiuk, Das and
    Saenko, "RISE", 2018, Section 3.2, which enlarge a grid with one cell less and cut off its rim.
    """

    grid: Floats
    shift: tuple[float, float]

    def at(self, ys: Floats, xs: Floats) -> Floats:
        """(h, w) the visible part of the image, 0…1, at shares of its height and width."""
        row, below = self._place(ys, self.shift[0])
        column, beside = self._place(xs, self.shift[1])
        # elementwise and in this order: the last bit of a matrix product depends on the machine
        lines = (1 - below)[:, None] * self.grid[row] + below[:, None] * self.grid[row + 1]
        return np.asarray((1 - beside) * lines[:, column] + beside * lines[:, column + 1])

    def _place(self, axis: Floats, shift: float) -> tuple[NDArray[np.intp], Floats]:
        """(n,) the grid line before each place, and the distance of the place from it."""
        places = axis * (len(self.grid) - 2) + shift
        before = np.floor(places).astype(np.intp)
        return before, places - before


def random_mask(cells: int, keep: float, seed: int, *names: str) -> RandomMask:
    """The mask of (seed, names): each cell of the grid is visible with probability `keep`."""
    draw = stream(seed, "rise", *names)
    grid = (draw.random((cells + 2, cells + 2)) < keep).astype(np.float64)
    y, x = (float(value) for value in draw.random(2))
    return RandomMask(grid, (y, x))


def patch(number: int, patches: int) -> tuple[float, float, float, float]:
    """y0 y1 x0 x1 of a sliding patch as shares of the image, row by row from 0.

    `patches`: places along each axis; a patch is two strides long, so that four patches cover an
    inner pixel, and patches at the border are clipped.
    """
    row, column = divmod(number, patches)
    ends = [
        min(max((place + by) / patches, 0.0), 1.0) for place in (row, column) for by in (-0.5, 1.5)
    ]
    return ends[0], ends[1], ends[2], ends[3]


def fade_image(image: Image, weights: Floats, fill: int) -> Image:
    """The image blended with the grey value `fill`: `weights`, (h, w), 1 is the image, 0 is `fill`.

    In 256 steps, rounded to the nearest.
    """
    weight = np.floor(weights * 256 + 0.5).astype(np.int32)[..., None]
    mixed = weight * (image.astype(np.int32) - fill) + (256 * fill + 128)
    return (mixed >> 8).astype(np.uint8)


def cover_patch(image: Image, ends: tuple[float, float, float, float], fill: int) -> Image:
    """A copy of the image with a patch of the grey value `fill`."""
    height, width = image.shape[:2]
    y0, y1 = (round(end * height) for end in ends[:2])
    x0, x1 = (round(end * width) for end in ends[2:])
    out = image.copy()
    out[y0:y1, x0:x1] = fill
    return out


def share(values: Floats, box: Sequence[float]) -> float:
    """The share of Σ|values| that lies within a box; NaN where all are 0.

    `values`: (h, w) over an image; `box`: x0 y0 x1 y1 in cells of them. A cell that the box cuts
    counts by its part inside, so that uniform values give the area of the box over that of the
    image. Lau et al. 2021, Figure 7.
    """
    size = np.abs(values)
    total = float(size.sum())
    if not total:
        return float("nan")
    down, along = _cover(box, *size.shape)
    return float(down @ size @ along) / total


def area(box: Sequence[float], height: float, width: float) -> float:
    """The area of a box inside the image, as a share of the image."""
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
    weights = np.outer(*_cover(box, SIDE, SIDE))
    return weights / (weights.sum() or 1.0)


def weigh_patches(number: int, patches: int) -> Floats:
    """(SIDE, SIDE) the share of each cell under a sliding patch, 0…1."""
    y0, y1, x0, x1 = (end * SIDE for end in patch(number, patches))
    return np.outer(*_cover((x0, y0, x1, y1), SIDE, SIDE))


def weigh_mask(mask: RandomMask) -> Floats:
    """(SIDE, SIDE) the visibility of the centre of each cell under a mask, 0…1."""
    return mask.at(centres(SIDE), centres(SIDE))


def rise(scores: Floats, weights: Floats) -> Floats:
    """(SIDE, SIDE) the mean rise of the score from a hidden place to a visible one.

    `scores`: (n,) under each of the masks; `weights`: (n, SIDE, SIDE) their visible parts. It is
    the slope of the score over the mask's value there; 0 for fewer than two masks. RISE's own map
    (Petsiuk et al. 2018, equation 6; of detections: D-RISE, 2021) is the mean of the masks weighted
    by the scores, which is the same up to a factor and an offset: here 0 means that a place does
    not matter, as the share within a box needs.
    """
    if len(weights) < 2:
        return np.zeros((SIDE, SIDE))
    about = weights - weights.mean(axis=0)
    spread = (about**2).sum(axis=0)
    slope = np.tensordot(scores - scores.mean(), about, 1) / np.where(spread > 0, spread, 1)
    return np.asarray(np.where(spread > 0, slope, 0.0))


def occlusion(drops: Floats, under: Floats) -> Floats:
    """(SIDE, SIDE) the mean drop of the score over the patches that hide a place.

    `drops`: (n,) the score of the image itself minus that under each patch; `under`: (n, SIDE,
    SIDE) their hidden parts. Zeiler and Fergus, "Visualizing and Understanding Convolutional
    Networks", 2014, Section 4.2.
    """
    times = under.sum(axis=0)
    return np.asarray(np.tensordot(drops, under, 1) / np.where(times > 0, times, 1))


def _cover(box: Sequence[float], height: int, width: int) -> tuple[Floats, Floats]:
    """(height,) and (width,) the part of each row and of each column that a box covers."""
    x0, y0, x1, y1 = box
    ends = ((y0, y1, height), (x0, x1, width))
    down, along = (_overlap(np.array([low]), np.array([high]), n)[0] for low, high, n in ends)
    return down, along


def _overlap(low: Floats, high: Floats, n: int) -> Floats:
    """(m, n) the part of each of n cells of length 1 between `low` and `high`, (m,)."""
    begin = np.arange(n, dtype=np.float64)
    inner = np.minimum(high[:, None], begin + 1) - np.maximum(low[:, None], begin)
    return np.asarray(np.clip(inner, 0, 1))
