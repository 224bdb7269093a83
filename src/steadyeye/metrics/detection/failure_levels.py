"""The levels at which a detector fails: mAP, or objects found, below shares of level 0.

Of a full sweep, and of a search that asked all images at some levels.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.types import Result
from steadyeye.degradation.curves import MEAN, number_images, shares
from steadyeye.degradation.failure_points import FailurePoint, describe_point, read_thresholds
from steadyeye.metrics.detection.average_precision import dataset_ap
from steadyeye.metrics.detection.degraded import (
    FOUND,
    NO_MAP,
    NO_OBJECTS,
    NONE_FOUND,
    find_objects,
    profile_objects,
    profile_once,
    retain,
)
from steadyeye.metrics.detection.frame_ap import frames, mean
from steadyeye.metrics.detection.iou_thresholds import ious

THRESHOLDS = (0.9, 0.5, 0.1)
BISECTED = "bisection: the level of a full sweep over these images if no value rises again"
SLACK = 1e-6
"""A share that equals a threshold is not below it, whatever the rounding of its sum."""

Known = Mapping[int, Interval]
"""Level → retained share of the quantity at level 0; in a search without interval."""


def find_map_points(
    predictions: Predictions, thresholds: Sequence[float], iou: float | str
) -> Result:
    """`map_failure_points`."""
    if "profile" in predictions.columns:
        profile = profile_once(predictions, iou)
        n, notes = profile.images, profile.notes
        left = retain(profile.clean, profile.clean, n)
        if left.value is None:
            return _build_empty("map_failure_points", thresholds, left.method, notes)
        known = {
            operator: {
                # all is left at level 0 by what is measured
                level: retain(spread, profile.clean, n) if level else Interval(1.0, 1.0, 1.0, n, "")
                for level, spread in levels.items()
            }
            for operator, levels in profile.operators.items()
        }
        return _points(predictions, "map_failure_points", thresholds, known, notes)
    measure = partial(_measure_map, predictions, ious(iou))
    return _search(predictions, "map_failure_points", thresholds, measure)


def _measure_map(
    predictions: Predictions, thresholds: Sequence[float], rows: NDArray[np.intp]
) -> float:
    return mean(dataset_ap(frames(predictions, rows).match_detections(), thresholds))


def _share_found(
    predictions: Predictions, hits: NDArray[np.bool_], rows: NDArray[np.intp]
) -> float:
    """The share of the objects found at level 0 that are found in `rows`, of the same images.

    Without objects that an operator moved out of the image; NaN without objects.
    """
    assert predictions.boxes is not None, "a metric of boxes needs the column"
    first = hits[_objects_of(predictions, _rows_at(predictions, "", 0))]
    own = _objects_of(predictions, rows)
    counted = hits[own][first & ~predictions.boxes.crowd[own]]
    return float(counted.mean()) if len(counted) else float("nan")


def measure_left(predictions: Predictions, operator: str, level: int) -> list[float]:
    """The shares of level 0 that are left at a level: of mAP 0.50:0.95, and of objects found."""
    hits = find_objects(predictions, FOUND)
    measures = (
        partial(_measure_map, predictions, ious("coco")),
        partial(_share_found, predictions, hits),
    )
    zero, rows = _rows_at(predictions, "", 0), _rows_at(predictions, operator, level)
    # where nothing is there to lose nothing is lost
    return [measure(rows) / whole if (whole := measure(zero)) > 0 else 1.0 for measure in measures]


def find_recall_points(
    predictions: Predictions, thresholds: Sequence[float], score: float
) -> Result:
    """`recall_failure_points`."""
    if "profile" in predictions.columns:
        own = profile_objects(predictions, "found", score)
        if own is None:
            return _build_empty("recall_failure_points", thresholds, NONE_FOUND)
        curves = shares("", own.profiles, own.hits)
        known = {
            operator.name: {
                int(cell.name.removeprefix("level ")): Interval(
                    cell.value, cell.low, cell.high, cell.n, cell.interval
                )
                for cell in operator.cells
            }
            for operator in curves.cells
            if operator.name != MEAN
        }
        return _points(predictions, "recall_failure_points", thresholds, known, ())
    measure = partial(_share_found, predictions, find_objects(predictions, score))
    return _search(predictions, "recall_failure_points", thresholds, measure)


def _objects_of(predictions: Predictions, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The true boxes of some rows, row by row."""
    assert predictions.boxes is not None, "a metric of boxes needs the column"
    image = predictions.boxes.image
    parts = [np.arange(*np.searchsorted(image, [row, row + 1])) for row in rows]
    return np.concatenate([np.zeros(0, dtype=np.intp), *parts])


def _rows_at(predictions: Predictions, operator: str, level: int) -> NDArray[np.intp]:
    """The rows at a level in the order of the data, of images predicted at all that were asked.

    At level 0 the operator is ''.
    """
    tags = predictions.tags
    _, image = number_images(predictions)
    lost = np.unique(image[~predictions.valid])
    rows = np.flatnonzero(
        (tags["operator"] == operator) & (tags["level"] == level) & ~np.isin(image, lost)
    )
    # the rounds of a search may have another order
    return np.asarray(rows[np.argsort(image[rows], kind="stable")], dtype=np.intp)


def _search(
    predictions: Predictions,
    name: str,
    thresholds: Sequence[float],
    measure: Callable[[NDArray[np.intp]], float],
) -> Result:
    """The failure levels as far as a search went: all images at the levels that it asked for."""
    zero = _rows_at(predictions, "", 0)
    whole = measure(zero)
    if not whole > 0:
        nothing = NO_OBJECTS if np.isnan(whole) else NO_MAP
        why = nothing if name == "map_failure_points" else NONE_FOUND
        return _build_empty(name, thresholds, why, (_count_passes(predictions),))
    known: dict[str, dict[int, Interval]] = {}
    for operator in predictions.sweep["levels"]:
        queries = np.unique(predictions.tags["level"][predictions.tags["operator"] == operator])
        values = {
            int(level): measure(_rows_at(predictions, operator, int(level))) / whole
            for level in queries
        }
        known[operator] = {
            level: Interval(value, None, None, len(zero), BISECTED)
            for level, value in {0: 1.0, **values}.items()
        }
    return _points(predictions, name, thresholds, known, (_count_passes(predictions),))


def _count_passes(predictions: Predictions) -> str:
    images = int((predictions.tags["level"] == 0).sum())
    levels = sum(len(steps) - 1 for steps in predictions.sweep["levels"].values())
    whole = images * (1 + levels)
    share = percent(len(predictions) / whole)
    return f"{len(predictions):,} forward passes, {share} of the {whole:,} of a full sweep"


def _points(
    predictions: Predictions,
    name: str,
    thresholds: Sequence[float],
    known: Mapping[str, Known],
    notes: tuple[str, ...],
) -> Result:
    limits, cells = read_thresholds(thresholds), []
    n = next(iter(next(iter(known.values())).values())).n
    for operator, levels in sorted(known.items()):
        points = tuple(
            _measure_point(predictions, operator, threshold, levels, n) for threshold in limits
        )
        cells.append(Result(operator, None, None, None, n, "by threshold", (), points, "level"))
    method = cells[0].cells[0].interval
    return Result(name, None, None, None, n, method, notes, tuple(cells), "level")


def _build_empty(
    name: str, thresholds: Sequence[float], why: str, notes: tuple[str, ...] = ()
) -> Result:
    """The result without objects at level 0."""
    read_thresholds(thresholds)
    return Result(name, None, None, None, 0, why, notes, unit="level")


def _find(
    levels: Known, threshold: float, searched: bool
) -> tuple[int | None, int | None, int | None, str]:
    """The first level below a threshold, the ends of its interval, and the method.

    None beyond the last level. Of a search the interval is between the levels that were asked for.
    """
    order = sorted(levels)
    limit = threshold - SLACK
    values = {level: levels[level].value for level in order}
    below = [level for level in order if (value := values[level]) is not None and value < limit]
    at = below[0] if below else None
    if searched:
        above = [level for level in order if at is None or level < at]
        return at, above[-1] + 1 if at is not None else None, at, BISECTED
    lows = [level for level in order if (low := levels[level].low) is not None and low < limit]
    highs = [level for level in order if (high := levels[level].high) is not None and high < limit]
    method = levels[order[-1]].method
    has_ends = levels[order[-1]].low is not None
    low = min(lows[0], at or lows[0]) if lows and has_ends else None
    return at, low, highs[0] if highs and has_ends else None, method


def _measure_point(
    predictions: Predictions, operator: str, threshold: float, levels: Known, n: int
) -> Result:
    """The failure level of an operator, with what is measured of the images there."""
    level, low, high, method = _find(levels, threshold, "profile" not in predictions.columns)
    changed, brightness, images = None, None, n
    if level is not None:
        rows = _rows_at(predictions, operator, level)
        changed, brightness = (
            float(predictions.tags[tag][rows].mean()) for tag in ("changed", "brightness")
        )
        images = len(rows)
    ends = (level, low, high, changed, brightness)
    return describe_point(FailurePoint(operator, threshold, *ends, n, method), images)
