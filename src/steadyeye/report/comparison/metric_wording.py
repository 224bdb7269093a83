"""Metrics and their differences as prose has them."""

SPACED = (
    *("flip_rate", "degraded_accuracy", "degraded_rank", "degraded_probability"),
    *("confident_mistakes", "out_of_distribution", "random_neighbour"),
)
CALLED = {
    **{name: name.replace("_", " ") for name in SPACED},
    **{"mce": "mCE", "relative_mce": "relative mCE", "map": "mAP", "mar": "mAR"},
    **{"map_without_ood": "mAP without OOD", "map_drop": "mAP drop"},
    **{"precision_at": "precision", "recall_at": "recall", "f1_at": "F1", "best_f1": "best F1"},
    "misclassification": "wrong class",
}


def name_metric(metric: str) -> str:
    """A metric as prose names it: `pm_k(k=10)` is pm-10."""
    name, _, rest = metric.partition("(")
    k, size, score = (
        rest.partition(f"{parameter}=")[2].partition(",")[0].rstrip(")")
        for parameter in ("k", "size", "score")
    )
    if size:
        return f"mAP ({size} objects)"
    if score and name in CALLED:
        return f"{CALLED[name]} at score {score}"
    return {**CALLED, "pm_k": f"pm-{k}", "pm_k_map": f"pm-{k} mAP"}.get(name, name)


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
