"""A contact sheet: one image under operators (rows) at levels (columns)."""

from collections.abc import Sequence

import cv2
import numpy as np

from steadyeye.core.types import Image
from steadyeye.degradation.counter_rng import stream_key
from steadyeye.degradation.operator import Context, Gradient, Operator

GAP = 6
LINE = 18
LEFT = 132
INK = (40, 40, 40)
GROUND = 250


def sheet(
    image: Image,
    name: str,
    operators: Sequence[Operator],
    levels: Sequence[int],
    seed: int = 0,
    gradient: Gradient | None = None,
) -> Image:
    """The sheet, (h, w, 3) uint8 RGB: a row an operator, a column a level.

    `image`: (h, w, 3) uint8. `name`: its id, which with `seed` makes the random streams, so the
    pictures are those of a sweep over an image of that id. A level that an operator does not have
    stays empty.
    """
    height, width, _ = image.shape
    rows, columns = height + GAP, width + GAP
    size = (LINE + rows * len(operators), LEFT + columns * len(levels), 3)
    page = np.full(size, GROUND, dtype=np.uint8)
    for column, level in enumerate(levels):
        _write(page, f"level {level}", LEFT + column * columns + 2, LINE - 5)
    for row, operator in enumerate(operators):
        top = LINE + row * rows
        _write(page, operator.name, 4, top + height // 2)
        trail = operator.start(image, Context(stream_key(seed, name, operator.name), gradient))
        for column, level in enumerate(levels):
            if level <= operator.last:
                left = LEFT + column * columns
                page[top : top + height, left : left + width] = trail(level)
    return page


def _write(page: Image, text: str, x: int, y: int) -> None:
    cv2.putText(page, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.42, INK, 1, cv2.LINE_AA)
