"""Verdicts of the release gate as metrics of OpenMetrics, for a dashboard over releases."""

from collections.abc import Sequence

from steadyeye.core.open_metrics import Family, write_families
from steadyeye.report.gate_verdict import HOLDS, OPEN, GateVerdict


def write_metrics(verdicts: Sequence[GateVerdict]) -> str:
    """The text: of each verdict whether it holds, the value, the interval and n.

    Shares are in 0…1; of a largest drop from a base, the value is by how much the model is better.
    Where the labels of a few sets decide what was judged without labels before, they count.
    """
    # a series may come once only
    series = {(v.requirement, v.model, v.data): v for v in verdicts}
    labels = [dict(zip(("requirement", "model", "data"), key, strict=True)) for key in series]
    parts: tuple[tuple[str, str, list[float | None]], ...] = (
        (
            "holds",
            "1 if it is shown to hold.",
            [float(v.outcome == HOLDS) for v in series.values()],
        ),
        ("open", "1 if more data must tell.", [float(v.outcome == OPEN) for v in series.values()]),
        ("value", "The value.", [v.value for v in series.values()]),
        ("low", "Lower 95 % bound.", [v.low for v in series.values()]),
        ("high", "Upper 95 % bound.", [v.high for v in series.values()]),
        ("samples", "What the value is over.", [float(v.n) for v in series.values()]),
    )
    ends = [v.videos for v in series.values()]
    if any(ends):
        about = "95 % bound for videos like these, no part of what holds."
        parts += (
            ("videos_low", f"Lower {about}", [share.low if share else None for share in ends]),
            ("videos_high", f"Upper {about}", [share.high if share else None for share in ends]),
        )
    families: list[Family] = [
        (
            f"steadyeye_gate_{name}",
            "gauge",
            about,
            [("", pairs, value) for pairs, value in zip(labels, values, strict=True)],
        )
        for name, about, values in parts
    ]
    return write_families(families)
