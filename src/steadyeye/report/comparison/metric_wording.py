"""The words for metrics and their differences, and the order of metrics."""

import re
from collections.abc import Iterable, Sequence

from steadyeye.core.errors import list_texts
from steadyeye.core.predictions import LOW_SCORE
from steadyeye.core.types import Evaluated

CALLED = {
    **{"mce": "mCE", "relative_mce": "relative mCE", "map": "mAP", "mar": "mAR"},
    **{"map_without_ood": "mAP without OOD", "map_drop": "mAP drop"},
    **{"precision_at": "precision", "recall_at": "recall", "f1_at": "F1", "best_f1": "best F1"},
    **{"pm_k": "pm-k", "pm_k_map": "pm-k mAP", "self_consistency": "self-consistency"},
    "misclassification": "wrong class",
    "random_neighbour": "random-neighbour accuracy",
}
"""Metric → its words, if these differ from its name."""

FIRST = ("pm_k_map", "pm_k", "degraded_accuracy", "map", "accuracy", "blink_rate")
"""The metrics of a comparison by importance; the first present one is the main metric."""

SPREAD = 2
"""Factor between the lowest scores of detectors from which a comparison has a caveat."""
COCO = "IoU 0.50:0.95"
OF_SWEEPS = frozenset({"mpc", "rpc", "map_failure_points"})
"""Metrics that are at `COCO` by default; the others at an IoU of 0.5."""


def name_metric(metric: str) -> str:
    """A metric in words, with its unusual parameters: `drop(k=10)` is drop ±10."""
    name, _, rest = metric.partition("(")
    parts = re.split(r", (?=\w+=)", rest.removesuffix(")"))
    parameters = dict(part.split("=", 1) for part in parts if "=" in part)
    k, size, score = (parameters.pop(name, "") for name in ("k", "size", "score"))
    usual = {("iou", "coco" if name in OF_SWEEPS else "0.5"), ("detections", "100")}
    title = CALLED.get(name, name.replace("_", " "))
    if k:
        title = title.replace("pm-k", f"pm-{k}") if "pm-k" in title else f"{title} ±{k}"
    if score:
        title = f"{title} at score {score}"
    more = [_say_parameter(*item) for item in parameters.items() if item not in usual]
    more = [*([f"{size} objects"] if size else []), *more]
    return f"{title} ({', '.join(more)})" if more else title


def place_metric(metric: str, order: Sequence[str] = FIRST) -> int:
    """The place of a metric in `order`, from 0; all other metrics come last."""
    name = metric.partition("(")[0]
    return order.index(name) if name in order else len(order)


def list_detector_caveats(metrics: Iterable[str], evaluated: Sequence[Evaluated]) -> list[str]:
    """Caveats on comparing detectors: thresholds that differ, and metrics of their own objects."""
    return [*_say_lowest_scores(evaluated), *_say_own_objects(metrics, evaluated)]


def _say_lowest_scores(evaluated: Sequence[Evaluated]) -> list[str]:
    """A caveat where some detectors leave weak detections out and others do not."""
    tables = [model.predictions for model in evaluated]
    lowest = {table.model: table.score_range[0] for table in tables if table.score_range}
    scores = lowest.values()
    if not scores or max(scores) < max(LOW_SCORE, SPREAD * min(scores)):
        return []
    texts = [f"{model} {score:.3f}" for model, score in lowest.items()]
    return [
        f"The lowest scores of the detectors differ: {list_texts(texts)}. mAP and recall also "
        "count weak detections, so a detector that leaves them out looks worse; give all the same "
        "threshold."
    ]


def _say_own_objects(metrics: Iterable[str], evaluated: Sequence[Evaluated]) -> list[str]:
    """A caveat on metrics of the objects that each detector itself finds, if there are any."""
    bound = {name: metric for model in evaluated for name, metric in model.bound_metrics.items()}
    text = list_texts(sorted({name_metric(n) for n in metrics if bound[n].of_own_objects}))
    if not text:
        return []
    return [
        f"{text[:1].upper()}{text[1:]}: each detector is measured on the objects that it finds "
        "itself, so one that misses the difficult objects altogether may look better."
    ]


def _say_parameter(parameter: str, value: str) -> str:
    """A parameter that is not the usual one, in words."""
    texts = {
        "iou": COCO if value == "coco" else f"IoU {value}",
        "detections": f"{value} per image and class",
        "images": "all images" if value == "all" else f"images {value} at level 0",
        "objects": f"{value} objects",
        "baseline": "no baseline" if value == "none" else f"baseline {value}",
    }
    return texts.get(parameter, f"{parameter} {value}")


def amount(value: float, unit: str, brief: bool = False) -> str:
    """A difference with its unit: ranks of ranks, percentage points of all others; `brief`: pp."""
    number = _number(value, unit).removeprefix("+")
    share = "pp" if brief else "percentage points"
    return f"{number} {'ranks' if unit == 'rank' else share}"


def format_ends(low: float, high: float, unit: str) -> str:
    """The interval of a difference: `3.1 to 37.4`, with signs where it holds 0."""
    ends = [_number(end, unit) for end in (low, high)]
    if low > 0:
        ends = [end.removeprefix("+") for end in ends]
    return " to ".join(ends)


def _number(value: float, unit: str) -> str:
    text = f"{value:+.2f}" if unit == "rank" else f"{value * 100:+.1f}"
    return text.replace("-", "−")
