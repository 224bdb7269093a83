"""Metrics and their differences as prose has them."""

CALLED = {
    "flip_rate": "flip rate",
    "degraded_accuracy": "degraded accuracy",
    "degraded_rank": "degraded rank",
    "degraded_probability": "degraded probability",
    **{"mce": "mCE", "relative_mce": "relative mCE", "map": "mAP"},
    "map_without_ood": "mAP without OOD",
    "mar": "mAR",
    "map_drop": "mAP drop",
    "confident_mistakes": "confident mistakes",
    "misclassification": "wrong class",
    "out_of_distribution": "out of distribution",
    "random_neighbour": "random neighbour",
}


def name_metric(metric: str) -> str:
    """A metric as prose names it: `pm_k(k=10)` is pm-10."""
    name, _, rest = metric.partition("(")
    k, size = (
        rest.partition(f"{parameter}=")[2].partition(",")[0].rstrip(")")
        for parameter in ("k", "size")
    )
    if size:
        return f"mAP ({size} objects)"
    return {**CALLED, "pm_k": f"pm-{k}", "pm_k_map": f"pm-{k} mAP"}.get(name, name)


def amount(value: float, unit: str, brief: bool = False) -> str:
    """A difference with its unit: percentage points of shares, ranks of ranks; `brief`: pp."""
    number = _number(value, unit).removeprefix("+")
    share = "pp" if brief else "percentage points"
    return f"{number} {share if unit == 'share' else 'ranks'}"


def format_ends(low: float, high: float, unit: str) -> str:
    """The interval of a difference: `3.1 to 37.4`, with signs where it holds 0."""
    ends = [_number(end, unit) for end in (low, high)]
    if low > 0:
        ends = [end.removeprefix("+") for end in ends]
    return " to ".join(ends)


def _number(value: float, unit: str) -> str:
    text = f"{value * 100:+.1f}" if unit == "share" else f"{value:+.2f}"
    return text.replace("-", "−")
