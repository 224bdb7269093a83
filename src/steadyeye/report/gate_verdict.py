"""What became of a requirement of the release gate."""

from dataclasses import dataclass

from steadyeye.core.format import number_of
from steadyeye.core.stats.intervals import Interval

HOLDS = "holds"
FAILS = "does not hold"
OPEN = "is not certain with this much data"


@dataclass(frozen=True)
class GateVerdict:
    """What became of one requirement on one model and its data.

    `outcome`: `HOLDS`, where the bound of the 95 % interval meets it; `FAILS`, where the value does
    not; `OPEN`, where the value does and the bound does not. `numbers`: the value with its
    interval; of a difference, by how much the model is better. `classes`: among how many the model
    chose its answers; None where the requirement is not about answers. `why`: more about the
    outcome. `value`, `low`, `high`: the numbers in the metric's unit, shares in 0…1. `videos`: what
    labels of a few sets show of videos like these, `about_videos`: in words; neither is part of the
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
