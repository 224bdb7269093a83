"""How long an answer holds; no labels needed."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.competing_classes import among_own
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import block_bootstrap
from steadyeye.core.types import Result, needs
from steadyeye.metrics.sequences.answer_runs import Runs, between, median, runs

Statistic = Callable[[NDArray[np.floating], NDArray[np.bool_]], float]


@needs("group", "scene", "frame", "seconds")
@among_own
def dwell_time(predictions: Predictions) -> Result:
    """The median time in seconds for which a prediction stays the same.

    Runs that are cut off by the end of a scene or video are censored: the median is Kaplan and
    Meier's, and None if fewer than half of the runs end. `cells`: the median in frames, and the
    mean time and frames between changes, the total ÷ the changes. Intervals: a bootstrap over
    videos, or within one video over blocks of consecutive runs.

    Example with invented predictions:

        >>> from steadyeye.testing import example_video
        >>> print(dwell_time(example_video()))
        dwell_time 0.70 s (n = 14, among 3 classes)
    """
    answer_runs = runs(predictions)
    value = _result("dwell_time", "seconds", answer_runs, answer_runs.seconds, median)
    cells = (
        _result("median", "frames", answer_runs, answer_runs.frames.astype(np.float64), median),
        _result("between changes", "seconds", answer_runs, answer_runs.seconds, between),
        _result(
            "between changes", "frames", answer_runs, answer_runs.frames.astype(np.float64), between
        ),
    )
    notes: tuple[str, ...] = (
        f"{int((~answer_runs.ended).sum()):,} of {number_of(len(answer_runs), 'run')} end with a "
        "scene or video; they count as lasting at least that long",
    )
    if len(answer_runs) and value.value is None:
        notes += ("the median is not reached: fewer than half of the runs end in a change",)
    return replace(value, notes=notes, cells=cells)


def _result(
    name: str, unit: str, answer_runs: Runs, lengths: NDArray[np.float64], statistic: Statistic
) -> Result:
    # answers come and go in spells, so that short runs stand beside short ones
    block = max(1, min(round(len(answer_runs) ** 0.5), len(answer_runs) // block_bootstrap.FEWEST))
    estimate = block_bootstrap.bootstrap(
        lambda rows: statistic(lengths[rows], answer_runs.ended[rows]),
        answer_runs.videos,
        block,
        block_bootstrap.FEW_OF_MEAN if statistic is between else block_bootstrap.FEW,
    )
    full_name = name if name == "dwell_time" else f"{name}, {unit}"
    return Result.of(full_name, estimate, unit=unit)
