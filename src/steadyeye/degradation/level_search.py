"""The search for failure levels of what is known of all images at once, as mAP is.

Levels are bisected: where a share falls and never rises again, the level found is that of a full
sweep, for about a third of its work with three thresholds.
"""

from collections.abc import Mapping, Sequence

Known = Mapping[int, Sequence[float]]
"""Level → the shares of level 0 that are left of each quantity there."""


def next_levels(
    levels: Sequence[int], known: Known, thresholds: Sequence[float]
) -> tuple[int, ...]:
    """The levels to ask next for the failure levels that are not known, rising; empty: all are.

    `levels`: of one operator, rising from 0. `known`: those that were asked, beside 0, at which all
    is left.

    Example:
        >>> next_levels(range(31), {}, (0.5,))
        (15,)
        >>> next_levels(range(31), {15: [0.4]}, (0.5,)), next_levels((0, 1, 2), {1: [0.4]}, (0.5,))
        ((7,), ())

    """
    quantities = max((len(values) for values in known.values()), default=1)
    limits = {
        _middle(levels, known, quantity, threshold)
        for quantity in range(quantities)
        for threshold in thresholds
    }
    return tuple(sorted(level for level in limits if level is not None))


def _middle(levels: Sequence[int], known: Known, quantity: int, threshold: float) -> int | None:
    """The level in the middle of those that may be the first below; None where one is left."""
    places = [place for place, level in enumerate(levels) if level in known]
    below = [place for place in places if known[levels[place]][quantity] < threshold]
    high = min(below, default=len(levels))
    low = max((place for place in places if place < high), default=0)
    return levels[(low + high) // 2] if high - low > 1 else None
