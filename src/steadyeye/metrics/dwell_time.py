"""How long an answer holds; no labels needed."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.competing_classes import among_own
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import block_bootstrap
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.answer_runs import Runs, between, median, runs

FEWEST_BETWEEN = 20
"""Videos for an interval of the time between changes: over 5 and 10 it covers 92 %."""

Statistic = Callable[[NDArray[np.floating], NDArray[np.bool_]], float]


@needs("group", "scene", "frame", "seconds")
@among_own
def dwell_time(predictions: Predictions) -> Result:
    """The median time an answer holds before it changes, in seconds, n runs of one answer.

    Runs that the end of a scene or video cuts off are censored: the median is Kaplan and Meier's,
    and None where fewer than half of the runs end. `cells`: the median in frames, and the time and
    frames from change to change, all that was seen ÷ the changes. Intervals: a bootstrap over
    videos, or within one video over blocks of consecutive runs.
    """
    found = runs(predictions)
    value = _result("dwell_time", "seconds", found, found.seconds, median)
    cells = (
        _result("median", "frames", found, found.frames.astype(np.float64), median),
        _result("between changes", "seconds", found, found.seconds, between),
        _result("between changes", "frames", found, found.frames.astype(np.float64), between),
    )
    notes: tuple[str, ...] = (
        f"{int((~found.ended).sum()):,} of {number_of(len(found), 'run')} end with a scene or "
        "video; they count as lasting at least that long",
    )
    if len(found) and value.value is None:
        notes += ("the median is not reached: fewer than half of the runs end in a change",)
    return Result(
        value.name,
        value.value,
        value.low,
        value.high,
        value.n,
        value.interval,
        notes,
        cells,
        value.unit,
    )


def _result(
    name: str, unit: str, found: Runs, lengths: NDArray[np.float64], statistic: Statistic
) -> Result:
    # answers come and go in spells, so that short runs stand beside short ones
    block = max(1, min(round(len(found) ** 0.5), len(found) // block_bootstrap.FEWEST))
    told = block_bootstrap.bootstrap(
        lambda rows: statistic(lengths[rows], found.ended[rows]),
        found.videos,
        block,
        FEWEST_BETWEEN if statistic is between else block_bootstrap.FEW,
    )
    named = name if name == "dwell_time" else f"{name}, {unit}"
    return Result(named, told.value, told.low, told.high, told.n, told.method, unit=unit)
