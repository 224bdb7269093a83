"""The levels at which a degraded model fails."""

from collections.abc import Sequence
from itertools import groupby

from steadyeye.core.competing_classes import among_competing
from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.degradation import failure_points as failure
from steadyeye.degradation.curves import profiles

NO_VALUE = (None, None, None)
"""No value and no interval: the measured levels are in the cells."""


@needs("truth", "operator", "level")
@among_competing
def failure_points(
    predictions: Predictions,
    thresholds: Sequence[float] = (0.9, 0.5, 0.1),
    images: str = "right",
) -> Result:
    """The first level of each operator with accuracy below each threshold.

    `thresholds`: shares, 0…1. `images` as in `degraded_accuracy`. `cells`: the operators, each with
    its thresholds, the level (None: not reached) and its interval, and in these the share of
    changed pixels and the mean value there. The whole has no value of its own. Swingler 2022,
    Tables 1–3. After a search (`--fast`) the interval is that of the search. Raises `UsageError`
    for thresholds that are no shares.

    Example with invented predictions:

        >>> from steadyeye.testing import example_sweep
        >>> for operator in failure_points(example_sweep(), thresholds=(0.9,)).cells:
        ...     print(operator.name, operator.cells[0])
        blur below 0.9 2 (95 % interval ≥ 1, n = 20)
        noise below 0.9 4 (95 % interval ≥ 1, n = 20)
    """
    shares = failure.read_thresholds(thresholds)
    if "profile" in predictions.columns:
        sweep = profiles(predictions, images)
        points, notes = failure.failure_points(sweep, shares), sweep.notes
    else:
        points = failure.searched_points(predictions, shares)
        notes = (failure.cost(predictions),)
    n = points[0].n
    cells = []
    for operator, group in groupby(points, key=lambda point: point.operator):
        of_operator = tuple(failure.describe_point(point, point.n) for point in group)
        cells.append(Result(operator, *NO_VALUE, n, "by threshold", (), of_operator, "level"))
    method = cells[0].cells[0].interval
    return Result("failure_points", *NO_VALUE, n, method, notes, tuple(cells), "level")
