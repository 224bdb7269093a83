"""The verdict on a requirement of the release gate, as a sentence and in OpenMetrics."""

from collections.abc import Sequence
from dataclasses import dataclass

from steadyeye.core.format import number_of
from steadyeye.core.open_metrics import Family, write_families
from steadyeye.core.stats.intervals import Interval

HOLDS = "holds"
FAILS = "does not hold"
OPEN = "is not certain with this much data"


@dataclass(frozen=True)
class GateVerdict:
    """The verdict on one requirement for one model and its data.

    `outcome`: `HOLDS` if the bound of the 95 % interval meets it; `FAILS` if the value does not,
    also without an interval; `OPEN` otherwise. `numbers`: the value with its interval; of a
    difference, by how much the model is better. `classes`: number of classes among which the model
    chose; None if the requirement is not about predictions. `why`: more about the outcome. `value`,
    `low`, `high`: the numbers in the metric's unit, shares in 0…1. `videos`: the interval for
    videos like these from labels of a few sets; `about_videos`: in words; neither is part of the
    verdict.
    """

    requirement: str
    model: str
    data: str
    outcome: str
    numbers: str
    n: int
    method: str
    why: str
    classes: int | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    videos: Interval | None = None
    about_videos: str = ""

    @property
    def sentence(self) -> str:
        """The verdict in one line."""
        why = f"; {self.why}" if self.why else ""
        among = "" if self.classes is None else f", among {number_of(self.classes, 'class')}"
        return (
            f"{self.requirement} {self.outcome} for {self.model} on {self.data}: {self.numbers}, "
            f"n = {self.n:,}{among}{why}"
        )


def write_metrics(verdicts: Sequence[GateVerdict]) -> str:
    """The OpenMetrics text: for each verdict whether it holds, the value, the interval and n.

    Shares are in 0…1; for a largest drop from a base, the value is by how much the model is better.
    A later verdict from labels of a few sets replaces one without labels.
    """
    # a series may come once only
    series = {(v.requirement, v.model, v.data): v for v in verdicts}
    labels = [dict(zip(("requirement", "model", "data"), key, strict=True)) for key in series]
    once = list(series.values())
    holds, is_open = ([float(v.outcome == name) for v in once] for name in (HOLDS, OPEN))
    parts: tuple[tuple[str, str, Sequence[float | None]], ...] = (
        ("holds", "1 if the data show that the requirement holds.", holds),
        ("open", "1 if the data are too few to decide.", is_open),
        ("value", "The value.", [v.value for v in once]),
        ("low", "Lower 95 % bound.", [v.low for v in once]),
        ("high", "Upper 95 % bound.", [v.high for v in once]),
        ("samples", "Number of cases behind the value.", [float(v.n) for v in once]),
    )
    ends = [v.videos for v in once]
    if any(ends):
        about = "95 % bound for videos like these; the verdict does not use it."
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
