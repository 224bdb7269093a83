"""One measure over the time of a watch: its blocks, its periods, and the total."""

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from steadyeye.core.stats.confidence_sequence import RunningMean

BLOCKS = 360
"""Blocks that are stored one by one: three hours of 30 seconds each."""
PERIODS = 168
"""Periods that are stored: a week of hours."""


@dataclass
class Series:
    """The blocks of one measure.

    `total`: over all blocks. `current`: over the blocks of period number `period`. `blocks`:
    (second, value) of the newest blocks. `periods`: first second, value, bounds and n of the
    earlier periods.
    """

    total: RunningMean = field(default_factory=RunningMean)
    current: RunningMean = field(default_factory=RunningMean)
    period: int | None = None
    blocks: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=BLOCKS))
    periods: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=PERIODS))

    def add(self, seconds: float, value: float, length: float) -> None:
        """Adds a block that begins at `second`; `length`: seconds of a period.

        The bounds of a period are those of its own confidence sequence: they hold at any time
        within it, and are wrong at some time in one period of twenty at most.
        """
        period = int(seconds // length)
        if period != self.period:
            if self.period is not None:
                self.periods.append({"seconds": self.period * length, **describe(self.current)})
            self.period, self.current = period, RunningMean()
        self.current = self.current.add(value)
        self.total = self.total.add(value)
        self.blocks.append((round(seconds, 3), round(value, 6)))

    def describe(self) -> dict[str, Any]:
        """The values that the page shows."""
        return {
            "period": describe(self.current),
            "total": describe(self.total),
            "blocks": list(self.blocks),
            "periods": list(self.periods),
        }

    def record(self) -> dict[str, Any]:
        """For the state file."""
        return {
            "total": asdict(self.total),
            "current": asdict(self.current),
            "period": self.period,
            "blocks": list(self.blocks),
            "periods": list(self.periods),
        }

    @classmethod
    def resume(cls, record: Mapping[str, Any]) -> "Series":
        """As a state file holds it."""
        series = cls(
            RunningMean(**record["total"]), RunningMean(**record["current"]), record["period"]
        )
        series.blocks.extend((float(at), float(value)) for at, value in record["blocks"])
        series.periods.extend(record["periods"])
        return series


def describe(mean: RunningMean) -> dict[str, Any]:
    """Value, bounds and number of blocks; None without blocks."""
    low, high = mean.interval or (None, None)
    return {"value": mean.value, "low": low, "high": high, "n": mean.n}
