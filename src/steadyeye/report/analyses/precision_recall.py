"""Precision by recall, on anchors and on worst frames."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Figure, Section, Topic
from steadyeye.core.result_lookup import find
from steadyeye.core.types import Evaluated, needs
from steadyeye.metrics.detection.frame_ap import frame_quality, frames, worst
from steadyeye.metrics.detection.iou_thresholds import IOUS
from steadyeye.report.charts.specs import chart, draw_crossed, shares
from steadyeye.report.subsets import distance

POINTS = 101


@needs("boxes", "detections", "group", "offset")
def precision_recall(evaluated: Sequence[Evaluated]) -> Section | None:
    """Precision against recall of all classes together at IoU 0.5, of anchors and worst frames.

    None where no model has `pm_k_map`.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections, example_models
        >>> print(precision_recall(example_models(example_detections())).title)
        Precision and recall
    """
    rows: list[dict[str, Any]] = []
    models = []
    for model in evaluated:
        if find(model.results, "pm_k_map") is None:
            continue
        models.append(model.predictions.model)
        sets = pm_sets(model.predictions, labels=False)
        quality = frame_quality(model.predictions, IOUS[0])
        chosen, members = worst(sets, quality, distance(model, sets, "pm_k_map"))
        for title, those in (("anchors", sets.anchors[members]), ("worst frames", chosen)):
            rows += [
                {"model": model.predictions.model, "frames": title, **point}
                for point in _curve(model.predictions, those)
            ]
    if not rows:
        return None
    return Section(
        topic=Topic.WHAT,
        place=22,
        title="Precision and recall",
        text=(
            "Precision: the share of the detections above a score that are right. Recall: the "
            "share of the objects that these detections find. All classes together, IoU 0.5.",
        ),
        figures=(_figure(rows, models),),
    )


def _curve(predictions: Predictions, rows: NDArray[np.intp]) -> list[dict[str, float]]:
    """Monotone precision at 101 recalls, up to the highest recall."""
    images = frames(predictions, rows)
    matched = images.match_detections()
    first = np.uint16(1)  # the bit of IoU 0.5
    counts = (matched.ignored & first) == 0
    order = np.argsort(-images.detections.score[matched.groups.row[counts]], kind="stable")
    hit = ((matched.hit[counts] & first) > 0)[order]
    objects = int(matched.positives.sum())
    if not objects or not hit.size:
        return []
    right = np.cumsum(hit)
    precision = np.maximum.accumulate((right / np.arange(1, len(hit) + 1))[::-1])[::-1]
    recall = right / objects
    points = np.linspace(0, 1, POINTS)
    at = np.searchsorted(recall, points - 1e-12)
    return [
        {"recall": round(float(point), 2), "precision": round(float(precision[i]), 4)}
        for point, i in zip(points, at, strict=True)
        if i < len(precision)
    ]


def _figure(rows: list[dict[str, Any]], models: list[str]) -> Figure:
    place = {"x": shares("recall", "recall"), "y": shares("precision", "precision")}
    kinds = list(dict.fromkeys(row["frames"] for row in rows))
    # a point at every tenth recall, and not one on the other
    tenth = "round(datum.recall * 100) % 10 === (datum.frames === 'anchors' ? 0 : 5)"
    return Figure(
        name="precision_recall",
        caption="Precision by recall, on anchors and worst frames.",
        alt=f"Curves of precision by recall for {', '.join(models)}.",
        spec=chart(draw_crossed(models, "frames", kinds, place, tenth), values=rows),
    )
