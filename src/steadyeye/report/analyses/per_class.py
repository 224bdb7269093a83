"""Accuracy and pm-k class by class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import WITHIN, format_share, format_unsigned_points, number_of
from steadyeye.core.pm_sets import PmSets, pm_sets
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.stats.bounded_means import median_interval
from steadyeye.core.stats.intervals import Interval, number_clusters, proportion
from steadyeye.core.types import Evaluated, needs
from steadyeye.report.charts.specs import PALETTE, SCHEMA, fields_of, layer, map_names, shares
from steadyeye.report.subsets import distance

MEASURES = ("accuracy", "pm-k")


@dataclass(frozen=True)
class _Class:
    model: str
    name: str
    original: Interval
    perturbed: Interval
    nameable: bool

    @property
    def drop(self) -> float:
        return (self.original.value or 0.0) - (self.perturbed.value or 0.0)


@dataclass(frozen=True)
class _Median:
    """The median over classes of accuracy − pm-k, with its 95 % interval.

    `classes`: number of classes in it, those that the model has; `unnamed`: number of classes that
    the model does not have, and for which it has no drop.
    """

    model: str
    value: float
    low: float
    high: float
    classes: int
    unnamed: int
    anchors: int
    method: str


@needs("truth", "group", "offset")
def per_class(evaluated: Sequence[Evaluated]) -> Section | None:
    """Accuracy and pm-k of each class over the anchors that carry it, and the median drop.

    An anchor with several labels counts for each. Classes that the model does not have have no
    drop: the median leaves them out and gives their number. The median's interval
    (`median_interval`) holds for few videos, and for classes of few anchors. None on data without
    anchors. Shankar et al., Figure 7.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_predictions
        >>> print(per_class(example_models(example_predictions(margin=0.5))).title)
        Accuracy and pm-k by class
    """
    rows = [row for model in evaluated for row in _classes(model)]
    if not rows:
        return None
    models = list(dict.fromkeys(row.model for row in rows))
    medians = [median for model in evaluated if (median := _median(model))]
    labels = _label_table(evaluated)
    if medians:
        drops = "; ".join(map(_describe_median, medians))
        text = f"Median drop over classes in percentage points: {drops}."
    else:
        text = "No model has any of these classes, so that there is no median drop."
    if labels:
        text += " An anchor with several labels counts for each of them."
    return Section(
        topic=Topic.WHAT,
        place=40,
        title="Accuracy and pm-k by class",
        text=(text,),
        figures=(_figure(rows, models),),
        tables=(_table(rows), _median_table(medians), *labels),
    )


def _describe_median(median: _Median) -> str:
    left = f", of the {number_of(median.classes, 'class')} that it has" if median.unnamed else ""
    value, low, high = map(format_unsigned_points, (median.value, median.low, median.high))
    return f"{median.model} {value} ({low}–{high}{left})"


def _classes(model: Evaluated) -> list[_Class]:
    sets = pm_sets(model.predictions)
    k = distance(model, sets)
    truth = model.predictions.truth[sets.anchors]
    return [
        _Class(
            model.predictions.model,
            name,
            proportion(sets.breaks_at[carried] > 0, sets.videos[carried]),
            proportion(sets.breaks_at[carried] > k, sets.videos[carried]),
            bool(nameable),
        )
        for name, carried, nameable in zip(
            model.predictions.classes, truth.T, _find_nameable(model), strict=True
        )
        if carried.any()
    ]


def _median(model: Evaluated) -> _Median | None:
    sets = pm_sets(model.predictions)
    k = distance(model, sets)
    every = model.predictions.truth[sets.anchors]
    present, nameable = every.any(axis=0), _find_nameable(model)
    truth = every[:, present & nameable]
    if not truth.size:
        return None
    broken = (sets.breaks_at > 0) & (sets.breaks_at <= k)
    video = number_clusters(sets.videos)
    carried, lost = (_by_video(video, counted) for counted in (truth, truth & broken[:, None]))
    value = float(np.median(lost.sum(axis=0) / carried.sum(axis=0)))
    low, high = median_interval(lost, carried)
    return _Median(
        model.predictions.model,
        value,
        min(low, value),
        max(high, value),
        truth.shape[1],
        int((present & ~nameable).sum()),
        len(sets),
        f"Gaffke's bounds over {_count_clusters(sets)}, of the half of the classes with the "
        "smaller drops and of the class with the largest",
    )


def _count_clusters(sets: PmSets) -> str:
    videos = len(np.unique(sets.videos))
    if videos == 1:
        return f"{number_of(len(sets), 'anchor')} {WITHIN}"
    return number_of(videos, "video")


def _find_nameable(model: Evaluated) -> NDArray[np.bool_]:
    """(classes,) whether the model has a class that maps to a class of the data."""
    labels, classes = model.predictions.model_to_data_class, len(model.predictions.classes)
    if labels is None:
        return np.ones(classes, dtype=np.bool_)
    return np.isin(np.arange(classes), labels)


def _by_video(video: NDArray[np.intp], counted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(videos, classes) how many anchors of each video count for each class."""
    counts = np.zeros((int(video.max()) + 1, counted.shape[1]), dtype=np.float64)
    np.add.at(counts, video, counted)
    return counts


def _figure(rows: Sequence[_Class], models: Sequence[str]) -> Figure:
    values: list[dict[str, Any]] = [
        {
            **{"model": row.model, "class": row.name, "measure": measure},
            **fields_of(share),
            "n": share.n,
        }
        for row in rows
        for measure, share in zip(MEASURES, (row.original, row.perturbed), strict=True)
    ]
    facet = {"field": "model", "type": "nominal", "title": None, "sort": list(models)}
    return Figure(
        name="per_class",
        caption="Accuracy and pm-k of each class with 95 % intervals.",
        alt=f"Bars of accuracy and pm-k for each class and {', '.join(models)}; see the table.",
        spec={
            "$schema": SCHEMA,
            "data": {"values": values},
            "facet": facet,
            "columns": min(len(models), 3),
            "spacing": 28,
            "spec": {"width": 190, "height": {"step": 13}, "layer": _layers()},
        },
    )


def _layers() -> list[dict[str, Any]]:
    """One bar per class and measure, with its interval."""
    y = {"field": "class", "type": "nominal", "title": None, "axis": {"labelLimit": 160}}
    offset = {"field": "measure", "sort": list(MEASURES)}
    legend = {"title": None, "orient": "bottom"}
    hue = map_names("measure", MEASURES, [PALETTE[5], PALETTE[0]], legend)
    # or the last label of a chart runs into the first of the next
    axis = {"axis": {"format": ".0%", "labelFlush": True, "values": [0, 0.25, 0.5, 0.75, 1]}}
    place = {"y": y, "yOffset": offset}
    ends = {"x": {**shares("low", "share of anchors"), **axis}, "x2": {"field": "high"}}
    bar = {"x": {**shares("value", "share of anchors"), **axis}, "color": hue}
    return [layer("bar", {**place, **bar}, tooltip=True), layer("rule", {**place, **ends})]


def _table(rows: Sequence[_Class]) -> Table:
    header = ("class", "model", "anchors", "accuracy", "pm-k", "drop (pp)")
    body = tuple(
        (
            row.name,
            row.model,
            f"{row.original.n:,}",
            format_share(row.original),
            format_share(row.perturbed),
            format_unsigned_points(row.drop) if row.nameable else "not a class of the model",
        )
        for row in sorted(rows, key=lambda row: (-row.drop, row.name, row.model))
    )
    return Table("Classes, the largest drop first", header, body)


def _median_table(medians: Sequence[_Median]) -> Table:
    header = (
        "model",
        "median drop (pp)",
        "95 % interval",
        "classes",
        "classes that the model does not have",
        "anchors",
        "method",
    )
    body = tuple(
        (
            median.model,
            format_unsigned_points(median.value),
            f"{format_unsigned_points(median.low)}–{format_unsigned_points(median.high)}",
            f"{median.classes}",
            f"{median.unnamed}",
            f"{median.anchors:,}",
            median.method,
        )
        for median in medians
    )
    return Table("Median drop over classes", header, body)


def _label_table(evaluated: Sequence[Evaluated]) -> tuple[Table, ...]:
    """The effect of second labels on the numbers; None if no frame has a second label."""
    body = []
    for model in evaluated:
        predictions = model.predictions
        several = (predictions.truth.sum(axis=1) > 1) & predictions.valid
        if not several.any():
            continue
        anchors = int(several[pm_sets(predictions).anchors].sum())
        right = predictions.right[several]
        first = predictions.truth[several].argmax(axis=1) == predictions.predicted_class[several]
        counts = (several.sum(), anchors, right.sum(), first.sum())
        body.append((predictions.model, *(f"{count:,}" for count in counts)))
    caption = "Frames with several labels: a prediction is right if it matches any of them"
    header = ("model", "frames", "anchors", "right, any label", "right, first label")
    return (Table(caption, header, tuple(body)),) if body else ()
