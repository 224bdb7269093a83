"""Black lines across the image."""

from steadyeye.degradation.kernels import line
from steadyeye.degradation.operator import Operator, incremental

KIND = ("stochastic", "local")


def black_lines() -> Operator:
    """One black 1-px antialiased line per level, from the left or top to the right or bottom edge.

    Both ends are uniform over the pixels of their two edges. Swingler 2022.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(black_lines(), level=10))
        23 % of pixels changed, mean 127 → 110

    """
    return incremental("black_lines", lambda image, key: line(image, key, 0))
