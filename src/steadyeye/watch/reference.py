"""The reference ranges of a stream, measured when its watch begins."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from steadyeye.core.seeds import fingerprint

OUTSIDE = 0.1
"""The share of frames of the reference time itself that are outside its range, at most about."""
DRIFTS: Mapping[str, tuple[str, ...]] = {
    "input_drift": ("brightness", "contrast", "sharpness"),
    "confidence_drift": ("confidence",),
}
LEAST = 100
MOST = 1_000
"""Values that are stored of each quantity, evenly drawn from all of the reference time."""


@dataclass
class Reference:
    """The central range of each quantity in the first `seconds`, over at least `LEAST` frames.

    `ranges`: quantity → its lower and upper end, once the time is over. The quantities of one drift
    share `OUTSIDE`, so that the rate of frames outside any range is about that of a single
    quantity.
    """

    seconds: float
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    began: float | None = None
    n: int = 0
    values: dict[str, list[float]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def add(self, seconds: float, values: Mapping[str, float]) -> dict[str, bool]:
        """Drift → whether a frame is outside the range; empty while there is no range.

        `seconds`: the time of the frame. `values`: of its quantities.
        """
        if not self.ranges:
            self._keep(seconds, values)
            return {}
        outside: dict[str, bool] = {}
        for drift, quantities in DRIFTS.items():
            ends = [(values[name], *self.ranges[name]) for name in quantities if name in values]
            if ends and all(name in self.ranges for name in quantities):
                outside[drift] = any(not low <= value <= high for value, low, high in ends)
        return outside

    def _keep(self, seconds: float, values: Mapping[str, float]) -> None:
        # a watch that was begun again by an earlier clock would wait until that catches up
        self.began = seconds if self.began is None else min(self.began, seconds)
        self.n += 1
        for name, value in values.items():
            sample = self.values.setdefault(name, [])
            count = self.numbers[name] = self.numbers.get(name, 0) + 1
            if len(sample) < MOST:
                sample.append(value)
            elif (place := _draw(name, count)) < MOST:
                sample[place] = value
        if self.n >= LEAST and seconds - self.began >= self.seconds:
            self._set_ranges()

    def _set_ranges(self) -> None:
        for quantities in DRIFTS.values():
            tail = OUTSIDE / len(quantities) / 2
            for name in quantities:
                if self.values.get(name):
                    low, high = np.quantile(self.values[name], [tail, 1 - tail])
                    self.ranges[name] = float(low), float(high)
        self.values, self.numbers = {}, {}


def _draw(name: str, count: int) -> int:
    """A random place among `count`, the same in each process (Vitter's reservoir sampling)."""
    return int(fingerprint(f"{name} {count}")[:12], 16) % count
