"""A measure of detections over all classes and for each of them, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of
from steadyeye.core.stats.class_means import Spread, mean_of_classes, of_class
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.types import Result
from steadyeye.metrics.detection.average_precision import average_recall
from steadyeye.metrics.detection.frame_ap import Frames, Table, spread_of
from steadyeye.metrics.detection.matching import Matched


@dataclass(frozen=True, eq=False)
class Measured:
    """A measure of images by class, and how it moves with them.

    `objects`: (classes,) to be found. `images`: how many there are.
    """

    spread: Spread
    objects: NDArray[np.int64]
    images: int

    @property
    def whole(self) -> Interval:
        """The mean over the classes that are there."""
        return mean_of_classes(self.spread, self.images)


def recall(matched: Matched, weight: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Recall of the 100 best detections of an image and class at each threshold."""
    return average_recall(matched, weight=weight)


def measured(found: Frames, table: Table) -> Measured:
    """A measure of images, matched once."""
    matched = found.matched()
    groups = matched.groups
    objects = np.bincount(groups.label, matched.positives, found.classes).astype(np.int64)
    return Measured(spread_of(matched, table, found.videos), objects, len(found.rows))


def by_class(name: str, measured: Measured, classes: Sequence[str]) -> Result:
    """The mean over thresholds and classes; `cells`: that of each class that is there.

    The n of a class is how many objects of it are to be found, that of the whole the images. Each
    class has the interval of the images that it stands on. Value None without objects.
    """
    whole, spread = measured.whole, measured.spread
    if whole.value is None:
        return Result(name, None, None, None, measured.images, whole.method)

    def told(at: int) -> Result:
        own = of_class(spread, at, int(measured.objects[at]))
        return Result(classes[at], own.value, own.low, own.high, own.n, own.method)

    cells = tuple(told(int(at)) for at in np.flatnonzero(spread.is_present))
    ends = (whole.low, whole.high, whole.n, whole.method)
    return Result(name, whole.value, *ends, (spread.note(),), cells)


def relative_drop(own: Interval, other: Interval) -> Result:
    """How much lower a mean is than on a reference set, as a share of it: 1 − own ÷ other.

    `other`: that of the reference set. Below 0 where it is higher. The two sets share no image; the
    interval is recovered from those of the two (Donner and Zou, "Closed-form confidence intervals
    for functions of the normal mean and standard deviation", 2012, Equation 9). Value None where
    either has no value or the reference is at 0; no lower end where the reference may be at 0.
    """
    n = own.n
    if own.value is None or not other.value:
        return Result("drop", None, None, None, n, "none: the reference value is 0")
    value = 1 - own.value / other.value
    if own.low is None or own.high is None or other.low is None or other.high is None:
        why = own.method if own.low is None else f"{other.method} of the reference data"
        return Result("drop", value, None, None, n, why)
    least = _ratio(own.value, own.low, other.value, other.high)
    most = _ratio(own.value, own.high, other.value, other.low)
    method = (
        f"from the intervals of both: {own.method}; {number_of(other.n, 'image')} of the reference "
        "data"
    )
    low = None if most is None else 1 - most
    return Result("drop", value, low, 1 if least is None else 1 - least, n, method)


def _ratio(one: float, end: float, other: float, far: float) -> float | None:
    """An end of one ÷ other, from the `end` of the one and the opposite of the other; None: ∞."""
    below = far * (2 * other - far)
    if below <= 0:
        return None
    product = one * other
    root = sqrt(max(product**2 - end * (2 * one - end) * below, 0.0))
    return (product + (root if end > one else -root)) / below
