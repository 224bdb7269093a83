"""White lines across the image."""

from steadyeye.degradation.operator import Operator, incremental
from steadyeye.degradation.random_line import line


def white_lines() -> Operator:
    """One white 1-px antialiased line a level, from the left or top to the right or bottom edge.

    Both ends are uniform over the pixels of their two edges. Swingler 2022.
    """
    return incremental("white_lines", lambda image, key: line(image, key, 255))
