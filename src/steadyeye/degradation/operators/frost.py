"""Frost on a window before the image."""

from functools import cache, lru_cache
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import NORMAL, normals, severities
from steadyeye.degradation.counter_rng import draw, high, low, stream_key, uniform
from steadyeye.degradation.operator import Operator

KIND = ("stochastic", "global")
MIX = ((1.0, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))
"""Shares of the image and of the frost at each severity: as released for ImageNet-C."""
SIZE = (544, 800)
"""Height and width of a pane, in pixels."""
UNIT = 2**16
LAYERS = 64
PARTS = 4
"""The bits of a position below one pixel."""
SPREAD = np.pi / 3
"""The angle between a needle of ice and its branches: ice crystals have six sides."""


class Pane(NamedTuple):
    """A window pane with frost: its mean colour, contrast, and crystals.

    `deviation`: of the grey values. `crystals`: their number; `length`: of the longest needle, in
    pixels. `patches`, `grain`: the shares of uneven thickness and of fine grain in the deviation;
    the rest is crystals.
    """

    colour: tuple[float, float, float]
    deviation: float
    crystals: int
    length: int
    patches: float
    grain: float


PANES = (
    Pane((77.7, 149.1, 165.7), 17.8, 3000, 60, 0.9, 0.24),
    Pane((200.8, 205.4, 214.5), 21.8, 9000, 60, 0.8, 0.03),
    Pane((200.8, 205.4, 214.5), 21.8, 9000, 60, 0.8, 0.03),
    Pane((137.6, 152.8, 165.1), 28.6, 14000, 20, 0.75, 0.1),
    Pane((112.4, 123.4, 134.8), 42.6, 9000, 50, 0.8, 0.05),
)
"""Colours and deviations are those of the release's five photographs."""


def frost() -> Operator:
    """The image darkened to 100 … 60 %, plus 40 … 75 % of a piece of frosted glass.

    The release for ImageNet-C cuts the piece from one of five photographs, which we may not
    redistribute: here the panes are drawn, with crystals of ice, in the colour and the contrast of
    those photographs. Pane and place of an image are the same at all severities 1 … 5. Hendrycks
    and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(frost(), level=3))
        100 % of pixels changed, mean 127 → 181

    """
    return severities("frost", _freeze)


def _freeze(image: Image, severity: int, key: np.uint64) -> Image:
    height, width, channels = image.shape
    choice, place = (np.uint64(draw(key, i)) for i in range(2))
    pane = _fit_pane(high(choice, len(PANES)), height, width)
    top = high(place, len(pane) - height + 1)
    left = low(place, pane.shape[1] - width + 1)
    piece = pane[top : top + height, left : left + width]
    if channels == 1:
        piece = np.asarray(cv2.cvtColor(piece, cv2.COLOR_RGB2GRAY), dtype=np.uint8)
    image_share, frost_share = MIX[severity - 1]
    mixed = cv2.addWeighted(image, image_share, piece.reshape(image.shape), frost_share, 0)
    return np.asarray(mixed, dtype=np.uint8).reshape(image.shape)


@lru_cache(maxsize=4)
def _fit_pane(number: int, height: int, width: int) -> Image:
    """A pane at least as large as the image, enlarged as little as possible."""
    pane = _draw_pane(number)
    factor = max(height / SIZE[0], width / SIZE[1])
    if factor <= 1:
        return pane
    tall, wide = (int(np.ceil(side * factor)) for side in SIZE)
    return np.asarray(cv2.resize(pane, (wide, tall), interpolation=cv2.INTER_CUBIC))


@cache
def _draw_pane(number: int) -> Image:
    """The pane of a number, (h, w, 3), always the same."""
    pane = PANES[number]
    key = stream_key(number, "frost", "pane")
    area = SIZE[0] * SIZE[1]
    coarse = normals(key, 4 * 6, NORMAL).reshape(4, 6)
    patches = np.asarray(cv2.resize(coarse, SIZE[::-1], interpolation=cv2.INTER_CUBIC), np.float32)
    grain = normals(stream_key(number, "frost", "grain"), area, NORMAL).reshape(SIZE)
    ice = _draw_crystals(key, pane).astype(np.float32)
    crystals = np.sqrt(1 - pane.patches**2 - pane.grain**2)
    grey = pane.patches * _standardise(patches) + pane.grain * _standardise(grain)
    grey = _standardise(grey + crystals * _standardise(ice)) * pane.deviation
    colours = grey[..., None] + np.array(pane.colour, dtype=np.float32)
    return np.asarray(np.clip(np.rint(colours), 0, 255), dtype=np.uint8)


def _draw_crystals(key: np.uint64, pane: Pane) -> Image:
    """Needles with branches on both sides, in 64 layers with a brightness each."""
    count = -(-pane.crystals // LAYERS) * LAYERS
    y, x, turn, size = uniform(np.uint64(int(key) ^ 1), UNIT, 4 * count).reshape(4, -1) / UNIT
    foot = np.stack((x * SIZE[1], y * SIZE[0]), axis=-1)
    angle, length = 2 * np.pi * turn, pane.length * (0.3 + 0.7 * size)
    needles = [_find_ends(foot, angle, length)]
    for step in (0.25, 0.45, 0.65):
        base = foot + step * (needles[0][:, 1] - foot)
        for side in (-SPREAD, SPREAD):
            needles.append(_find_ends(base, angle + side, 0.6 * (1 - step) * length))
    lines = np.stack(needles, axis=1).reshape(LAYERS, -1, 2, 2)
    canvas = np.full(SIZE, 128, dtype=np.uint8)
    for layer, ink in enumerate(uniform(np.uint64(int(key) ^ 2), 256, LAYERS).tolist()):
        points = np.rint(lines[layer] * 2**PARTS).astype(np.int32)
        cv2.polylines(canvas, list(points), False, ink, 1, cv2.LINE_AA, PARTS)
    return canvas


def _find_ends(
    foot: NDArray[np.float64], angle: NDArray[np.float64], length: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n, 2, 2) the ends of n needles, x and y."""
    tip = foot + length[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=-1)
    return np.stack((foot, tip), axis=1)


def _standardise(values: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray((values - values.mean()) / values.std(), dtype=np.float32)
