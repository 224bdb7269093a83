"""Metrics and their differences as prose has them."""

SPACED = (
    *("flip_rate", "degraded_accuracy", "degraded_rank", "degraded_probability"),
    *("confident_mistakes", "out_of_distribution"),
)
CALLED = {
    **{name: name.replace("_", " ") for name in SPACED},
    **{"mce": "mCE", "relative_mce": "relative mCE", "map": "mAP", "mar": "mAR"},
    **{"map_without_ood": "mAP without OOD", "map_drop": "mAP drop"},
    **{"precision_at": "precision", "recall_at": "recall", "f1_at": "F1", "best_f1": "best F1"},
    "misclassification": "wrong class",
    "random_neighbour": "random-neighbour accuracy",
}


COCO = "IoU 0.50:0.95"
OF_SWEEPS = frozenset({"mpc", "rpc"})
"""Metrics that are at `COCO` by default."""

USUAL = frozenset({("iou", "0.5"), ("detections", "100")})
"""Parameters that a name leaves out."""


def name_metric(metric: str) -> str:
    """A metric as prose names it: `pm_k(k=10)` is pm-10."""
    name, _, rest = metric.partition("(")
    parts = rest.removesuffix(")").split(", ")
    parameters = dict(part.split("=", 1) for part in parts if "=" in part)
    k, size, score = (parameters.pop(name, "") for name in ("k", "size", "score"))
    title = {**CALLED, "pm_k": f"pm-{k}", "pm_k_map": f"pm-{k} mAP"}.get(name, name)
    if score and name in CALLED:
        title = f"{title} at score {score}"
    more = [_say_parameter(*item) for item in parameters.items() if item not in USUAL]
    more = [text for text in more if text and not (name in OF_SWEEPS and text == COCO)]
    more = [*([f"{size} objects"] if size else []), *more]
    return f"{title} ({', '.join(more)})" if more else title


def _say_parameter(parameter: str, value: str) -> str:
    """A parameter that is not the usual one, in words; blank where the report says it elsewhere."""
    texts = {
        "iou": COCO if value == "coco" else f"IoU {value}",
        "detections": f"{value} per image and class",
        "images": "all images" if value == "all" else f"images {value} at level 0",
        "objects": f"{value} objects",
        "baseline": "no baseline" if value == "none" else f"baseline {value}",
    }
    return texts.get(parameter, "")


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
