"""A measure of detections over all classes and for each of them, from the same resamples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import bootstrap
from steadyeye.core.seeds import stream
from steadyeye.core.types import Result
from steadyeye.detection.average_precision import average_recall, dataset_ap
from steadyeye.detection.frames import REPLICATES, Frames
from steadyeye.detection.matching import Matched

Table = Callable[[Matched, NDArray[np.int64] | None], NDArray[np.float64]]
"""`(matched, weight) -> (ious, classes)`, NaN for classes without an object."""


@dataclass(frozen=True, eq=False)
class Resampled:
    """A measure of images and what it is in each of r resamples of them.

    `values`: (classes + 1,) the mean over thresholds of each class, NaN for one without an object,
    and last the mean of all that are there. `drawn`: (r, classes + 1) the same of each resample.
    `objects`: (classes,) to be found. `images`: how many there are; `method`: what is resampled.
    """

    values: NDArray[np.float64]
    drawn: NDArray[np.float64]
    objects: NDArray[np.int64]
    images: int
    method: str


def ap(ious: Sequence[float]) -> Table:
    """AP at some thresholds."""
    return lambda matched, weight: dataset_ap(matched, ious, weight)


def recall(matched: Matched, weight: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Recall of the 100 best detections of an image and class at each threshold."""
    return average_recall(matched, weight=weight)


def resampled(found: Frames, table: Table) -> Resampled:
    """A measure of images, matched once, with the resamples that every interval of mAP is from."""
    matched = found.matched()
    weights = bootstrap.weights(found.videos, REPLICATES).astype(np.int64)
    groups = matched.groups
    return Resampled(
        _with_mean(table(matched, None)),
        np.array([_with_mean(table(matched, weight)) for weight in weights]),
        np.bincount(groups.label, matched.positives, found.classes).astype(np.int64),
        len(found.rows),
        bootstrap.method(found.videos),
    )


def by_class(name: str, measured: Resampled, classes: Sequence[str]) -> Result:
    """The mean over thresholds and classes; `cells`: that of each class that is there.

    The n of a class is how many objects of it are to be found, that of the whole the images. Each
    class has its interval from the resamples that hold it. Value None without objects.
    """
    values, drawn = measured.values, measured.drawn
    if np.isnan(values[-1]):
        return Result(name, None, None, None, measured.images, "none: there are no objects")
    method = f"bias-corrected {measured.method}, {REPLICATES:,} replicates"

    def told(name: str, at: int, n: int) -> Result:
        seen = drawn[:, at][~np.isnan(drawn[:, at])]
        low, high = bootstrap.corrected(seen, float(values[at]))
        return Result(name, float(values[at]), low, high, n, method)

    there = [at for at in range(len(classes)) if not np.isnan(values[at])]
    cells = tuple(told(classes[at], at, int(measured.objects[at])) for at in there)
    whole = told(name, -1, measured.images)
    return Result(name, whole.value, whole.low, whole.high, whole.n, method, (), cells)


def relative_drop(measured: Resampled, reference: Resampled) -> Result:
    """How much lower the mean is than on a reference set, as a share of it: 1 − own ÷ reference.

    Below 0 where it is higher. The two sets share no image, so that each is resampled on its own;
    the interval is of the ratio. Value None where either has no value or the reference is at 0.
    """
    own, other = measured.values[-1], reference.values[-1]
    n = measured.images
    if np.isnan(own) or np.isnan(other) or not other:
        return Result("drop", None, None, None, n, "none: there is nothing to divide by")
    # the same draws of sets of one size would pair images that have nothing to do with each other
    order = stream(0, "relative drop").permutation(len(reference.drawn))
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = 1 - measured.drawn[:, -1] / reference.drawn[order, -1]
    value = float(1 - own / other)
    low, high = bootstrap.corrected(drawn[np.isfinite(drawn)], value)
    method = f"bias-corrected {measured.method}, and of its own over {reference.images} others"
    return Result("drop", value, low, high, n, method)


def _with_mean(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """(classes + 1,) the mean over thresholds of each class, and over all that are there."""
    classes = table.mean(axis=0)
    there = classes[~np.isnan(classes)]
    return np.append(classes, there.mean() if there.size else np.nan)
