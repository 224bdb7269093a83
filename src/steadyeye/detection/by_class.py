"""A measure of detections over all classes and for each of them, from the same resamples."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import bootstrap
from steadyeye.core.types import Result
from steadyeye.detection.average_precision import average_recall, dataset_ap
from steadyeye.detection.frames import REPLICATES, Frames
from steadyeye.detection.matching import Matched

Table = Callable[[Matched, NDArray[np.int64] | None], NDArray[np.float64]]
"""`(matched, weight) -> (ious, classes)`, NaN for classes without an object."""


def ap(ious: Sequence[float]) -> Table:
    """AP at some thresholds."""
    return lambda matched, weight: dataset_ap(matched, ious, weight)


def recall(matched: Matched, weight: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Recall of the 100 best detections of an image and class at each threshold."""
    return average_recall(matched, weight=weight)


def by_class(name: str, found: Frames, table: Table, classes: Sequence[str]) -> Result:
    """The mean over thresholds and classes; `cells`: that of each class that is there.

    The n of a class is how many objects of it are to be found, that of the whole the images.
    Intervals as those of mAP, each class over the resamples that hold it. Value None without
    objects.
    """
    matched, n = found.matched(), len(found.rows)
    values = np.append(table(matched, None).mean(axis=0), np.nan)
    there = [int(at) for at in np.flatnonzero(~np.isnan(values))]
    if not there:
        return Result(name, None, None, None, n, "none: there are no objects")
    values[-1] = values[there].mean()
    weights = bootstrap.weights(found.videos, REPLICATES).astype(np.int64)
    drawn = np.array([_with_mean(table(matched, weight)) for weight in weights])
    method = f"bias-corrected {bootstrap.method(found.videos)}, {REPLICATES:,} replicates"
    objects = np.bincount(matched.groups.label, matched.positives, len(classes)).astype(int)

    def told(name: str, at: int, n: int) -> Result:
        seen = drawn[:, at][~np.isnan(drawn[:, at])]
        return Result(name, float(values[at]), *bootstrap.corrected(seen, values[at]), n, method)

    cells = tuple(told(classes[at], at, int(objects[at])) for at in there)
    whole = told(name, -1, n)
    return Result(name, whole.value, whole.low, whole.high, n, method, (), cells)


def _with_mean(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """(classes + 1,) the mean over thresholds of each class, and over all that are there."""
    classes = table.mean(axis=0)
    there = classes[~np.isnan(classes)]
    return np.append(classes, there.mean() if there.size else np.nan)
