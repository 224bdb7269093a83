"""Fog of uneven density."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import round_to_uint8, severities
from steadyeye.degradation.counter_rng import HIGH, draw
from steadyeye.degradation.operator import Operator

KIND = ("stochastic", "global")
FOG = ((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))
"""Thickness, and the decay of the roughness from scale to scale: as released for ImageNet-C."""
ROUGHNESS = 100.0


def fog() -> Operator:
    """A plasma fractal of 0 … 1, times 1.5 … 3, added to the image, which is then scaled back.

    Scaled so that the brightest value of the image can be reached again. The fractal is a
    diamond-square field on a torus, as large as the next power of two. Severities 1 … 5: the same
    draws. Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(fog(), level=3))
        100 % of pixels changed, mean 127 → 118

    """
    return severities("fog", _cover)


def _cover(image: Image, severity: int, key: np.uint64) -> Image:
    thickness, decay = FOG[severity - 1]
    height, width, _ = image.shape
    side = 1 << (max(height, width, 2) - 1).bit_length()
    plasma = draw_plasma(key, side, decay)[:height, :width, None]
    brightest = float(image.max()) / 255
    scale = np.float32(brightest / (brightest + thickness))
    return round_to_uint8((image + plasma * np.float32(255 * thickness)) * scale)


@njit(nogil=True, cache=True)
def draw_plasma(key: np.uint64, side: int, decay: float) -> NDArray[np.float32]:
    """(side, side) a diamond-square field scaled to 0 … 1; `side`: a power of two, from 2 on.

    `decay`: the factor by which the half-width of the draws falls from scale to scale. Fournier,
    Fussell and Carpenter, "Computer Rendering of Stochastic Models", 1982.
    """
    field = np.zeros((side, side), dtype=np.float32)
    step, rough, i = side, ROUGHNESS, 0
    while step >= 2:
        half, spread = step // 2, rough * rough
        for y in range(half, side, step):
            below = (y + half) % side
            for x in range(half, side, step):
                beside = (x + half) % side
                corners = field[y - half, x - half] + field[y - half, beside]
                corners += field[below, x - half] + field[below, beside]
                field[y, x] = corners / 4 + spread * _draw_sign(key, i)
                i += 1
        for y in range(0, side, half):
            above, below = (y - half) % side, (y + half) % side
            for x in range(half if y % step == 0 else 0, side, step):
                corners = field[above, x] + field[below, x]
                corners += field[y, (x - half) % side] + field[y, (x + half) % side]
                field[y, x] = corners / 4 + spread * _draw_sign(key, i)
                i += 1
        step, rough = half, rough / decay
    least, most = field.min(), field.max()
    scaled: NDArray[np.float32] = (field - least) / (most - least)
    return scaled


@njit(nogil=True, cache=True, inline="always")
def _draw_sign(key: np.uint64, i: int) -> float:
    """Uniform in −1 … 1."""
    return 2.0 * ((draw(key, i) >> HIGH) / 4294967296.0) - 1.0
