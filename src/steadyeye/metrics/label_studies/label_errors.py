"""An interval that takes every label to be right, where some of them are wrong."""

from steadyeye.core.stats.intervals import Interval


def widen_for_errors(
    share: Interval, wrong: float, countable: int, sets: int
) -> tuple[float, float]:
    """The ends of an interval, as shares of all sets, where some labels are wrong.

    The interval is of what the labels say: of the share of sets that would count if each of the
    `countable` ones, of `sets`, had its label. A wrong label moves that number by one at most. So
    if at most a share of `wrong` of these labels is wrong, 0…1, the truth is no farther from it
    than `wrong` × `countable` sets, whichever labels they are. The ends hold as often as those of
    the interval.
    """
    assert share.low is not None, "a count has an interval"
    assert share.high is not None, "a count has an interval"
    farthest, most = wrong * countable / sets, countable / sets
    return max(share.low - farthest, 0.0), min(share.high + farthest, most)
