"""A detector's AP by class, by IoU and object size, and by distance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import percent, points
from steadyeye.core.pm_sets import PmSets, pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.result_lookup import find
from steadyeye.core.types import Evaluated, needs
from steadyeye.metrics.detection.average_precision import dataset_ap
from steadyeye.metrics.detection.frame_ap import frame_quality, frames, worst
from steadyeye.metrics.detection.matching import AREAS, by_area
from steadyeye.report.charts.specs import WHOLE, chart, layer, lines, quantity, shares
from steadyeye.report.subsets import distance

IOU = (0.5,)


@needs("boxes", "detections", "group", "offset")
def map_breakdown(evaluated: Sequence[Evaluated]) -> Section | None:
    """AP at IoU 0.5 of anchors and worst frames by class and object size; frame AP by offset.

    And mAP over IoU 0.50:0.95. None where no model has `pm_k_map`. Sizes are COCO's: below 32², to
    96², above, in pixels.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections, example_models
        >>> print(map_breakdown(example_models(example_detections())).title)
        AP by class, object size and frame
    """
    models = [model for model in evaluated if find(model.results, "pm_k_map")]
    if not models:
        return None
    rows: list[dict[str, Any]] = []
    tables = []
    for model in models:
        predictions, sets = model.predictions, pm_sets(model.predictions, labels=False)
        quality = frame_quality(predictions, IOU[0])
        chosen, members = worst(sets, quality, distance(model, sets, "pm_k_map"))
        tables += _tables(predictions, sets.anchors[members], chosen)
        rows += _by_offset(predictions.model, sets, quality)
    return Section(
        topic=Topic.WHAT,
        place=24,
        title="AP by class, object size and frame",
        text=(
            "AP at IoU 0.5, and mAP over IoU 0.50:0.95, on the anchors and on the worst frame of "
            "each set, which is that at IoU 0.5; and the mean frame AP at each distance from the "
            "anchor. The AP on the worst frames is at most that at any one distance.",
        ),
        figures=(_figure(rows, [model.predictions.model for model in models]),),
        tables=tuple(tables),
    )


def _tables(
    predictions: Predictions, anchors: NDArray[np.intp], chosen: NDArray[np.intp]
) -> list[Table]:
    header = ("anchors", "worst frames", "difference (pp)")
    sides = [_aps(predictions, rows) for rows in (anchors, chosen)]
    classes = [
        (name, *_cells(sides[0][0][i], sides[1][0][i]))
        for i, name in enumerate(predictions.classes)
        if not np.isnan(sides[0][0][i])
    ]
    names = ("all, IoU 0.5", "all, IoU 0.50:0.95", *list(AREAS)[1:])
    means = [
        (name, *_cells(*pair)) for name, *pair in zip(names, sides[0][1], sides[1][1], strict=True)
    ]
    return [
        Table(f"{predictions.model}: AP by class", ("class", *header), tuple(classes)),
        Table(
            f"{predictions.model}: mAP by IoU and object size", ("objects", *header), tuple(means)
        ),
    ]


def _aps(
    predictions: Predictions, rows: NDArray[np.intp]
) -> tuple[NDArray[np.float64], list[float]]:
    """AP of every class at IoU 0.5, and mAP by `IoU` and object size, in the order of the table."""
    images = frames(predictions, rows)
    everything, *sizes = by_area(images.truth, images.detections, len(rows), images.classes)
    by_iou = dataset_ap(everything)  # from IoU 0.5 on
    aps = [by_iou[0], by_iou.mean(axis=0), *(dataset_ap(matches, IOU)[0] for matches in sizes)]
    means = [float(np.nanmean(ap)) if not np.isnan(ap).all() else float("nan") for ap in aps]
    return aps[0], means


def _cells(before: float, after: float) -> tuple[str, str, str]:
    cells = [percent(None if np.isnan(value) else float(value)) for value in (before, after)]
    lost = float(after - before)
    return cells[0], cells[1], points(None if np.isnan(lost) else lost)


def _by_offset(model: str, sets: PmSets, quality: NDArray[np.float64]) -> list[dict[str, Any]]:
    rows = []
    for offset in np.unique(sets.offsets):
        values = quality[(sets.set_of >= 0) & (sets.offsets == offset)]
        values = values[~np.isnan(values)]
        if values.size:
            mean = round(float(values.mean()), 4)
            rows.append({"model": model, "offset": int(offset), "value": mean, "n": values.size})
    return rows


def _figure(rows: list[dict[str, Any]], models: list[str]) -> Figure:
    encoding = {
        "x": quantity("offset", "offset from the anchor (frames)", axis=WHOLE),
        "y": shares("value", "mean frame AP"),
        **lines(models, "model"),
    }
    line = layer("line", encoding, point=True, tooltip=True)
    return Figure(
        name="map_by_offset",
        caption="Mean frame AP by distance from the anchor.",
        alt=f"Lines of the mean frame AP by offset for {', '.join(models)}.",
        spec=chart([line], height=220, values=rows),
    )
