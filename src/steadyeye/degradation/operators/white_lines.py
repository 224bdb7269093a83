"""White lines across the image."""

from steadyeye.degradation.kernels import line
from steadyeye.degradation.operator import Operator, incremental

KIND = ("stochastic", "local")


def white_lines() -> Operator:
    """One white 1-px antialiased line per level, from the left or top to the right or bottom edge.

    Both ends are uniform over the pixels of their two edges. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(white_lines(), level=10))
        28 % of pixels changed, mean 127 → 146

    """
    return incremental("white_lines", lambda image, key: line(image, key, 255))
