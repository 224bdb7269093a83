"""What hides parts of an image, as functions of shares of its height and width."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.seeds import stream
from steadyeye.core.types import Image

Floats = NDArray[np.float64]


def centres(n: int) -> Floats:
    """(n,) the middles of n equal cells of 0…1: where a mask is asked for an axis of n pixels."""
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
        """(h, w) how much of the image is kept, 0…1, at shares of its height and width."""
        row, below = self._place(ys, self.shift[0])
        column, beside = self._place(xs, self.shift[1])
        # elementwise and in this order: a matrix product differs in its last bit between machines
        lines = (1 - below)[:, None] * self.grid[row] + below[:, None] * self.grid[row + 1]
        return np.asarray((1 - beside) * lines[:, column] + beside * lines[:, column + 1])

    def _place(self, axis: Floats, shift: float) -> tuple[NDArray[np.intp], Floats]:
        """(n,) the line of the grid before each place, and how far beyond it the place lies."""
        places = axis * (len(self.grid) - 2) + shift
        before = np.floor(places).astype(np.intp)
        return before, places - before


def random_mask(cells: int, keep: float, seed: int, *names: str) -> RandomMask:
    """The mask of (seed, names): each cell of the grid is kept with probability `keep`."""
    draw = stream(seed, "rise", *names)
    grid = (draw.random((cells + 2, cells + 2)) < keep).astype(np.float64)
    y, x = (float(value) for value in draw.random(2))
    return RandomMask(grid, (y, x))


def patch(number: int, patches: int) -> tuple[float, float, float, float]:
    """y0 y1 x0 x1 of a sliding patch as shares of the image, row by row from 0.

    `patches`: places along each axis; a patch is two strides long, so that an inner pixel lies
    under four of them, and those at the rim are cut off.
    """
    row, column = divmod(number, patches)
    ends = [
        min(max((place + by) / patches, 0.0), 1.0) for place in (row, column) for by in (-0.5, 1.5)
    ]
    return ends[0], ends[1], ends[2], ends[3]


def fade_image(image: Image, kept: Floats, fill: int) -> Image:
    """The image where `kept`, (h, w), is 1, the grey value `fill` where it is 0, and between.

    In 256 steps, rounded to the nearest.
    """
    weight = np.floor(kept * 256 + 0.5).astype(np.int32)[..., None]
    mixed = weight * (image.astype(np.int32) - fill) + (256 * fill + 128)
    return (mixed >> 8).astype(np.uint8)


def cover_patch(image: Image, ends: tuple[float, float, float, float], fill: int) -> Image:
    """A copy of the image with a patch of the grey value `fill` between those ends."""
    height, width = image.shape[:2]
    y0, y1 = (round(end * height) for end in ends[:2])
    x0, x1 = (round(end * width) for end in ends[2:])
    out = image.copy()
    out[y0:y1, x0:x1] = fill
    return out
