"""The types that cross package borders: samples, models and results."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import notebook
from steadyeye.core.boxes import Boxes, Detections
from steadyeye.core.format import WITHIN, Share, format_metric, format_metric_ends, number_of
from steadyeye.core.predictions import Predictions

Image: TypeAlias = NDArray[np.uint8]
"""(h, w, 3) RGB, 0…255."""

Scores: TypeAlias = NDArray[np.float32]
"""(n, classes), higher is likelier; probabilities or logits, as the model's recipe says."""

Labels: TypeAlias = tuple[int, ...]
"""Indices into `Source.classes`; a prediction is right if it is any of them. Empty: unlabelled."""

Tag: TypeAlias = int | float | str | NDArray[np.float32]
"""What a sample carries beside its image; an array is one of (m,), the same m for all samples."""


@dataclass(frozen=True)
class Classes:
    """An ordered list of classes: names and, where known, WordNet 3.0 ids (`n02834778`).

    `parents`: where the classes have a hierarchy, for each class the indices of those directly
    above it in this same list; a class may have several, or none. `closed`: of a source, whether
    these are all that may be in its images. An open list names only what occurs: then the classes
    of a model that stand for none of these compete too, and an answer among them is wrong.
    """

    names: tuple[str, ...]
    wnids: tuple[str, ...] | None = None
    parents: tuple[tuple[int, ...], ...] | None = None
    # not in comparisons: two lists of the same classes are the same list
    closed: bool = field(default=False, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Sample:
    """One image of a source. `id` is stable and unique; `image()` decodes when it is called.

    `measure`: what is to be recorded of the image itself beside the tags, for it to be measured
    while it is there; a value may be a (m,) float32 array, of one m for all samples. `boxes`: the
    true boxes, where the source has any; `truth` then holds the classes they are of. `size`:
    (height, width) where the annotations say it. `verified`: the classes of which somebody verified
    that they are in the image or that they are not; None: all of them, the annotation is complete.
    `masks()`: (n, h, w) bool, which pixels are of each of the true boxes, in their order; None
    where the data has no masks. `key()`: what names the content of the image without decoding it:
    another image or another measure, another key; None where only the pixels tell.
    """

    id: str
    image: Callable[[], Image]
    truth: Labels = ()
    group: str = ""
    tags: Mapping[str, Tag] = field(default_factory=dict)
    measure: Callable[[Image], Mapping[str, Tag]] | None = None
    boxes: Boxes | None = None
    size: tuple[int, int] | None = None
    verified: Labels | None = None
    masks: Callable[[], NDArray[np.bool_]] | None = None
    key: Callable[[], str] | None = None


@runtime_checkable
class Source(Protocol):
    """A sequence of samples with what can be known about them before any is decoded.

    `columns`: what its samples carry (`truth`, `group` and the tags), for metrics to need.
    `ids`, `truths`: the id and the labels of every sample, known without decoding any.
    `missing()`: files that inference would need and that are not there; asked before a run, not
    before saved predictions are scored.
    `fingerprint`: changes when the samples, their labels or their order change.
    `notes`: what a reader of the numbers must know (sets without neighbours, dropped frames).

    Of one that reads files (`core.abilities.OfFiles`) a run keeps what they held, so that a change
    of them is noticed; of another every sample is asked for its `key`, or decoded, at the start.

    Example, made-up images of 12 pm-sets of five frames:

        >>> from steadyeye.testing import example_source
        >>> source = example_source()
        >>> len(source), source.classes.names, source.truths[0]
        (60, ('bird', 'cat', 'dog'), (2,))
        >>> sample = source[0]
        >>> sample.id, sample.group, sample.tags["offset"], sample.image().shape
        ('s000', 'v0:00', -2, (96, 96, 3))
    """

    @property
    def name(self) -> str: ...
    @property
    def classes(self) -> Classes | None: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def ids(self) -> Sequence[str]: ...
    @property
    def truths(self) -> Sequence[Labels]: ...
    def missing(self) -> Sequence[str]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Sample: ...


@runtime_checkable
class Model(Protocol):
    """A classifier: images in, one row of scores an image out. Safe to call from many threads.

    It consumes the iterable one image at a time, so a batch is never held decoded as a whole.
    `classes` is None where a callable does not say: its scores are then over the data's classes.
    `recipe`: preprocessing, precision, runtime and output, as recorded in every run.
    `fingerprint`: changes when the weights or the recipe change. What it may be able to do besides
    is in Protocols of its own: `Cacheable`, `Differentiable`, `OnDevice`, … in `core.abilities`,
    `Staged` and `CutAtInput` in `core.model_stages`.

    Example, a function on images as a model:

        >>> import numpy as np
        >>> from steadyeye.models.runtimes.python_function import FunctionClassifier
        >>> def tell_brightness(images):
        ...     light = images.reshape(len(images), -1).mean(axis=1) / 255
        ...     return np.stack([1 - light, light], axis=1)
        >>> model = FunctionClassifier(tell_brightness, Classes(("dark", "light")))
        >>> model([np.full((8, 8, 3), 255, dtype=np.uint8)]).tolist()
        [[0.0, 1.0]]
    """

    @property
    def name(self) -> str: ...
    @property
    def classes(self) -> Classes | None: ...
    @property
    def recipe(self) -> Mapping[str, Any]: ...
    @property
    def fingerprint(self) -> str: ...
    def __call__(self, images: Iterable[Image], /) -> Scores: ...


class Detector(Protocol):
    """A detector: images in, the boxes of each image out. Safe to call from many threads.

    As a `Model` in all else; `detects` tells the two apart.
    """

    @property
    def detects(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def classes(self) -> Classes | None: ...
    @property
    def recipe(self) -> Mapping[str, Any]: ...
    @property
    def fingerprint(self) -> str: ...
    def __call__(self, images: Iterable[Image], /) -> Sequence[Detections]: ...


class Estimate(Share, Protocol):
    """A value with its 95 % interval, n and method, as `core.stats.intervals.Interval` is."""

    @property
    def n(self) -> int: ...
    @property
    def method(self) -> str: ...


@dataclass(frozen=True)
class Result:
    """A number with its n and its interval.

    `value` is None on empty input. `interval` names the method; `cells` are the parts of a curve or
    a breakdown, each with its own n and interval. `unit`: "share" 0…1, "ratio" from 0 that may
    exceed 1, "difference" of either, "rank" from 0, "level" of a sweep, "grey value" 0…255, "score"
    of a detection, "seconds", "frames" or "pixels"; an end that is open stays None. `classes`:
    among how many classes the answers were chosen that it is about, which says what chance would
    give; None where it is about no such answers.

    Example, of nine right answers among twelve:

        >>> result = Result("accuracy", 0.75, 0.47, 0.91, 12, "Wilson", classes=3)
        >>> print(result)
        accuracy 75.0 % (95 % interval 47.0–91.0 %, n = 12, among 3 classes)
        >>> result.value, result.n
        (0.75, 12)
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    interval: str
    notes: tuple[str, ...] = ()
    cells: tuple["Result", ...] = ()
    unit: str = "share"
    classes: int | None = None

    @classmethod
    def of(cls, name: str, estimate: Estimate, **more: Any) -> "Result":
        """A result with the numbers of an interval; `more`: its other fields."""
        numbers = (estimate.value, estimate.low, estimate.high, estimate.n, estimate.method)
        return cls(name, *numbers, **more)

    def __str__(self) -> str:
        """One line: the value, its interval, n, and among how many classes."""
        parts = [f"n = {self.n:,}"]
        if self.low is not None or self.high is not None:
            ends = format_metric_ends(self.name, self.low, self.high, self.unit)
            parts.insert(0, f"95 % interval {ends}")
        if self.classes is not None:
            parts.append(f"among {number_of(self.classes, 'class')}")
        if WITHIN in self.interval:
            parts.append(WITHIN)
        line = f"{self.name} {format_metric(self.name, self.value, self.unit)} ({', '.join(parts)})"
        return line.replace("\u202f", " ")

    def __repr__(self) -> str:
        ends = format_metric_ends(self.name, self.low, self.high, self.unit)
        ends = "" if self.low is None else f" ({ends})"
        value = format_metric(self.name, self.value, self.unit)
        return notebook.short("Result", f"{self.name} {value}{ends}, n = {self.n:,}")

    def _repr_html_(self) -> str:
        return results_html(self.name, (self, *self.cells))


def results_html(caption: str, results: Sequence[Result]) -> str:
    """Results as a small table for notebooks, intervals of shares drawn."""
    columns = ("number", "value", "95 % interval", "n", "classes")
    rows = [
        (
            *(
                result.name,
                format_metric(result.name, result.value, result.unit),
                format_metric_ends(result.name, result.low, result.high, result.unit),
            ),
            *(f"{result.n:,}", "" if result.classes is None else f"{result.classes:,}"),
        )
        for result in results
    ]
    return notebook.table(caption, columns, rows, [_bar(result) for result in results])


def _bar(result: Result) -> notebook.Bar | None:
    if result.unit != "share" or None in (result.value, result.low, result.high):
        return None
    return result.low or 0.0, result.value or 0.0, result.high or 0.0


@dataclass(frozen=True, eq=False)
class BoundMetric:
    """A metric with its parameters, to be asked of other predictions of the same samples.

    `outcomes`: gives what models are compared by, `core.stats.trials.Outcomes`, which is built on
    these types; None where they cannot be. `lower`: whether the lower of two values is the better.
    `judged`: whether it judges answers by labels. `of_own_objects`: whether it measures the objects
    that each detector itself finds.
    """

    metric: Callable[[Predictions], Result]
    outcomes: Callable[[Predictions], Any] | None
    lower: bool
    judged: bool = True
    of_own_objects: bool = False


@dataclass(frozen=True)
class Evaluated:
    """One model on one source: the sealed predictions and the results derived from them.

    `bound_metrics`: result name → the metric that gave it. `other_datasets`: the predictions of the
    same model on the other data of the report, such as a reference set; of a probe, what its
    detector said of the data that is explained.
    """

    predictions: Predictions
    results: Mapping[str, Result]
    bound_metrics: Mapping[str, BoundMetric] = field(default_factory=dict)
    other_datasets: tuple[Predictions, ...] = ()


Metric: TypeAlias = Callable[..., Result]
"""`(Predictions, **parameters) -> Result`, with the columns it needs declared by `needs`."""


@runtime_checkable
class Needing(Protocol):
    """A metric or analysis that says what it needs, by the decorator `needs`."""

    needs: tuple[str, ...]
    largest_offset: int
    when: Callable[[Predictions], bool] | None


@runtime_checkable
class Comparable(Protocol):
    """A metric by which models can be compared, by the decorator `core.stats.trials.compare_by`."""

    outcomes: Callable[..., Any]
    lower: bool


def read_needs(plugin: object) -> tuple[str, ...]:
    """The names of the columns that a metric or analysis needs; empty where it declares none."""
    return plugin.needs if isinstance(plugin, Needing) else ()


Plugin = TypeVar("Plugin", bound=Callable[..., Any])


def needs(
    *columns: str, largest_offset: int = 0, when: Callable[[Predictions], bool] | None = None
) -> Callable[[Plugin], Plugin]:
    """Declares the columns a metric or analysis reads, checked before any inference.

    Of a metric nobody asked for by name, `largest_offset`: what the offsets of the data must reach
    for it; `when`: whether predictions hold what it is about.
    """

    def declare(plugin: Plugin) -> Plugin:
        vars(plugin).update(needs=columns, largest_offset=largest_offset, when=when)
        return plugin

    return declare
