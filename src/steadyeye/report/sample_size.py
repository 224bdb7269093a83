"""Estimates how much more data would make a result clear."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.requirement import is_at
from steadyeye.core.special import betaincinv
from steadyeye.core.stats.intervals import LEVEL
from steadyeye.core.stats.paired import (
    Difference,
    find_width,
    lead_of_shares,
    prepare_outcomes,
)
from steadyeye.core.stats.proportions import lower_bound, tango
from steadyeye.core.stats.trials import Outcomes, Statistic, Trials
from steadyeye.core.types import Result

Floats = NDArray[np.float64]
MOST = 10_000_000


def to_show(result: Result, number: float, outcomes: Outcomes) -> str:
    """About how many trials or videos would show that a result is beyond `number`, in words.

    Assumes the same value. For independent trials, the least n whose Clopper–Pearson interval ends
    there; for trials in videos and for shares, the number of videos like these that Gaffke's bounds
    need; for anything else, the number at which the nearer end, which approaches with the square
    root of the number of videos, reaches it.
    """
    assert result.value is not None, "what cannot be shown has a value"
    assert result.low is not None, "and an interval"
    assert result.high is not None, "and an interval"
    several = len(np.unique(outcomes.videos))
    n = len(outcomes.videos)
    if is_at(result.value, number):
        return "the value equals the requirement, so no amount of data could show it"
    prepared = prepare_outcomes(outcomes)
    if isinstance(outcomes, Trials) and len(prepared.totals) == n:
        return _describe_needed(_clopper_pearson(result.value, number), "samples", n, several == 1)
    if len(prepared.totals):
        # below a number, what counts is the other way round
        sign = 1 if result.value > number else -1
        counted = prepared.totals > 0
        lead = sign * (2 * prepared.wins - prepared.totals)
        bound = sign * (2 * number - 1)
        return _of_clusters(lead[counted], prepared.totals[counted], bound, several, n)
    if result.unit == "share" and result.value in {0.0, 1.0}:
        # all or none: the end that is not closed draws nearer by the number itself, not its root
        noun = "samples" if several in {1, n} else "videos"
        count = n if several == 1 else several
        return _describe_needed(_clopper_pearson(result.value, number), noun, count, several == 1)
    bound = result.low if result.value > number else result.high
    factor = ((result.value - bound) / (result.value - number)) ** 2
    return _scale_sample(factor, several, n)


def to_hold(gap: Difference, drop: float, pair: Sequence[Outcomes]) -> str:
    """About how much data would show that a difference is no drop of more than `drop`, in words.

    Assumes the same difference: for independent trials, by Tango's interval; for trials in videos
    and for shares, by Gaffke's bound over videos like these; for anything else, by the lower end,
    which approaches with the square root of the number of videos.
    """
    if is_at(gap.value, -drop):
        return "the drop equals the allowed maximum, so no amount of data could show it"
    first, second = pair
    several, n = len(np.unique(first.videos)), gap.n
    before, other = prepare_outcomes(first), prepare_outcomes(second)
    if isinstance(first, Statistic) and first.parts is not None:
        lead, totals = lead_of_shares(before, other)
        return _of_clusters(lead, totals, -drop / find_width(totals), several, n)
    if isinstance(first, Trials) and isinstance(second, Trials):
        if len(before.totals) < n:
            return _of_clusters(before.wins - other.wins, before.totals, -drop, several, n)
        gained = float(np.mean(first.success & ~second.success))
        behind = float(np.mean(~first.success & second.success))
        needed = _least(lambda many: tango(gained * many, behind * many, many)[0] >= -drop)
        return _describe_needed(needed, "samples", n, several == 1)
    return _scale_sample(((gap.value - gap.low) / (gap.value + drop)) ** 2, several, n)


def _of_clusters(gains: Floats, totals: Floats, bound: float, several: int, n: int) -> str:
    """Number of videos like these, or samples of one video, for Gaffke's bound to be `bound`."""
    units = len(totals)
    needed = _least(lambda many: lower_bound(gains, totals, many / units) >= bound)
    if several == 1:
        return _describe_needed(math.ceil(needed / units * n), "samples", n, one_video=True)
    return _describe_needed(needed, "videos", units, one_video=False)


def _scale_sample(factor: float, several: int, n: int) -> str:
    if several == 1:
        return _describe_needed(math.ceil(factor * n), "samples", n, one_video=True)
    noun = "videos" if several < n else "samples"
    if not math.isfinite(factor):
        return f"{several:,} {noun} are too few for an interval; more are needed"
    return _describe_needed(math.ceil(factor * several), noun, several, one_video=False)


def _describe_needed(needed: int, noun: str, n: int, one_video: bool) -> str:
    if needed > MOST:
        return f"more than {MOST:,} {noun} like these would be needed; there are {n:,}"
    within = " of this one video" if one_video else ""
    return f"at this value about {needed:,} {noun}{within} would be needed; there are {n:,}"


def _clopper_pearson(value: float, number: float) -> int:
    """The least n at which a share's interval is beyond `number`; `MOST` + 1 if there is none."""
    tail = (1 - LEVEL) / 2

    def excludes(n: int) -> bool:
        hits = value * n
        if value > number:
            return float(betaincinv(hits, n - hits + 1, tail)) >= number
        return float(betaincinv(hits + 1, n - hits, 1 - tail)) <= number

    return _least(excludes)


def _least(excludes: Callable[[int], bool]) -> int:
    few, many = 0, 1
    while not excludes(many):
        few, many = many, 2 * many
        if many > MOST:
            return MOST + 1
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if excludes(middle) else (middle, many)
    return many
