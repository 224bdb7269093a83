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
"""A value of a sample beside its image; an array is (m,), with the same m for all samples."""


@dataclass(frozen=True)
class Classes:
    """An ordered list of classes: names and, if known, WordNet 3.0 ids (`n02834778`).

    `parents`: in a hierarchy, for each class the indices of those directly above it in this list;
    several or none. `closed`: of a source, whether its images have no other classes. An open list
    names only the classes that occur: the model's other classes then compete too, and a prediction
    among them is wrong.
    """

    names: tuple[str, ...]
    wnids: tuple[str, ...] | None = None
    parents: tuple[tuple[int, ...], ...] | None = None
    # not compared: two lists of the same classes are equal
    closed: bool = field(default=False, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Sample:
    """One image of a source. `id` is stable and unique; `image()` decodes when it is called.

    `measure`: values to record of the image beside the tags, measured while it is decoded; a value
    may be a (m,) float32 array, with one m for all samples. `boxes`: the true boxes, if the source
    has any; `truth` then has their classes. `size`: (height, width) if the annotations have it.
    `verified`: the classes whose presence or absence was verified; None: all of them. `masks()`:
    (n, h, w) bool, the pixels of each true box, in their order; None if the data have no masks.
    `key()`: identifies the image and the measure without decoding; None if this needs the pixels.
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
    """A sequence of samples with what is known about them before any is decoded.

    `columns`: the columns of its samples (`truth`, `group` and the tags), for metrics to need.
    `ids`, `truths`: the id and the labels of every sample, known without decoding any.
    `missing()`: missing files that inference needs; read before a run, not for saved predictions.
    `fingerprint`: changes when the samples, their labels or their order change.
    `notes`: remarks for readers of the numbers (sets without neighbours, dropped frames).

    A run stores the contents of the files of a source (`core.abilities.OfFiles`), so that changes
    are noticed; of a source without files every sample's `key` is read, or the sample decoded.

    Example with invented images of 12 pm-sets of five frames:

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
    """A classifier: images in, one row of scores per image out. Safe to call from many threads.

    It consumes the iterable one image at a time, so that a batch is never decoded as a whole.
    `classes` is None if a callable declares none: its scores are then over the data's classes.
    `recipe`: preprocessing, precision, runtime and output, as recorded in every run.
    `fingerprint`: changes when the weights or the recipe change. Optional abilities are separate
    Protocols: `Cacheable`, `Differentiable`, `OnDevice`, … in `core.abilities`, `Staged` and
    `CutAtInput` in `core.model_stages`.

    Example with a function on images as a model:

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
    of a detection, "seconds", "frames" or "pixels"; an end that is open is None. `classes`: the
    number of classes among which the predictions were chosen, which gives the chance level; None if
    the number is not about predictions.

    Example with nine right predictions among twelve:

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
        """One line: the value, its interval, n, and the number of classes."""
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
    """Results as a small table for notebooks, with intervals of shares as bars."""
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
    """A metric with its parameters, for other predictions of the same samples.

    `outcomes`: returns the outcomes by which models are compared, `core.stats.trials.Outcomes`,
    which uses these types; None without such. `lower`: whether the lower of two values is better.
    `judged`: whether it needs labels. `of_own_objects`: whether it measures the objects that each
    detector itself finds.
    """

    metric: Callable[[Predictions], Result]
    outcomes: Callable[[Predictions], Any] | None
    lower: bool
    judged: bool = True
    of_own_objects: bool = False


@dataclass(frozen=True)
class Evaluated:
    """One model on one source: the sealed predictions and the results derived from them.

    `bound_metrics`: result name → its metric. `other_datasets`: the predictions of the same model
    on the other data of the report, such as a reference set; of a probe, its detector's predictions
    on the explained data.
    """

    predictions: Predictions
    results: Mapping[str, Result]
    bound_metrics: Mapping[str, BoundMetric] = field(default_factory=dict)
    other_datasets: tuple[Predictions, ...] = ()


Metric: TypeAlias = Callable[..., Result]
"""`(Predictions, **parameters) -> Result`, with the columns it needs declared by `needs`."""


@runtime_checkable
class Needing(Protocol):
    """A metric or analysis with declared needs, by the decorator `needs`."""

    needs: tuple[str, ...]
    largest_offset: int
    when: Callable[[Predictions], bool] | None


@runtime_checkable
class Comparable(Protocol):
    """A metric by which models can be compared, by the decorator `core.stats.trials.compare_by`."""

    outcomes: Callable[..., Any]
    lower: bool


def read_needs(plugin: object) -> tuple[str, ...]:
    """The names of the columns that a metric or analysis needs; empty without a declaration."""
    return plugin.needs if isinstance(plugin, Needing) else ()


Plugin = TypeVar("Plugin", bound=Callable[..., Any])


def needs(
    *columns: str, largest_offset: int = 0, when: Callable[[Predictions], bool] | None = None
) -> Callable[[Plugin], Plugin]:
    """Declares the columns a metric or analysis reads, checked before any inference.

    Of a default metric, `largest_offset`: the offset that the data must reach; `when`: whether the
    metric applies to some predictions.
    """

    def declare(plugin: Plugin) -> Plugin:
        vars(plugin).update(needs=columns, largest_offset=largest_offset, when=when)
        return plugin

    return declare
