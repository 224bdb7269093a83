"""Fewer colours."""

import numpy as np
from numba import njit

from steadyeye.core.types import Image
from steadyeye.degradation.operator import Operator, of_original

KIND = ("deterministic", "global")


def posterize() -> Operator:
    """Bins of width 255 / b, b = 32 − level, per channel; bin i becomes (i + 1) 255 / b, rounded.

    Each level is made from the image itself. 255 is in the last bin; ½ rounds up. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(posterize(), level=10))
        100 % of pixels changed, mean 127 → 133

    """
    return of_original("posterize", lambda image, level: _bin_values(image, 32 - level))


@njit(nogil=True, cache=True)
def _bin_values(image: Image, bins: int) -> Image:
    out = np.empty_like(image)
    values, binned = image.reshape(-1), out.reshape(-1)
    # ⌊v b / 255⌋ = (v b × 32897) >> 23 below 2¹⁵ (v b ≤ 7905), and the same for ⌊x / 2 b⌋ in 2²²
    last, doubled = np.int32(bins - 1), 2 * bins
    part = np.int32(((1 << 22) + doubled - 1) // doubled)
    for i in range(values.size):
        bin_number = min(
            (np.int32(values[i]) * np.int32(bins) * np.int32(32897)) >> np.int32(23), last
        )
        rounded = (bin_number + np.int32(1)) * np.int32(510) + np.int32(bins)
        binned[i] = np.uint8((np.int64(rounded) * np.int64(part)) >> np.int64(22))
    return out
