"""The measures by name, with their words and units."""

from dataclasses import dataclass
from math import exp


@dataclass(frozen=True)
class Measure:
    """A measured change. `words`: "motion"; `unit`: what stands behind a value of it.

    `ratio`: kept as a natural logarithm, shown as a factor. `signed`: below 0 as well as above.
    """

    name: str
    words: str
    unit: str = ""
    scale: float = 1.0
    digits: int = 2
    ratio: bool = False
    signed: bool = False

    def scale_value(self, value: float) -> float:
        """A value as a reader sees it: scaled to its unit, or a factor."""
        return exp(value) if self.ratio else value * self.scale

    def format_value(self, value: float, sign: str = "") -> str:
        """A value with its unit; `sign`: "+" for a change that is to show it."""
        number = f"{self.scale_value(value):{'' if self.ratio else sign}.{self.digits}f}"
        number = number.replace("-", "−")
        return f"{'×' if self.ratio else ''}{number}\u202f{self.unit}".rstrip()


FRAME = ("brightness", "contrast", "sharpness")
"""Measured of every frame."""

PAIR = (
    Measure("motion", "motion", "% of the diagonal"),
    Measure("sharpness_change", "sharpness", ratio=True),
    Measure("brightness_change", "brightness", "grey values", digits=1, signed=True),
    Measure("contrast_change", "contrast", ratio=True),
    Measure("difference", "pixel difference", "%", 100, 1),
    Measure("linf", "ℓ∞ distance"),
    Measure("box_area_change", "box size", ratio=True),
    Measure("box_shift", "box shift", "% of the diagonal"),
)
"""Measured of every neighbour against its anchor, those first that are asked for first."""

COLUMNS = (*FRAME, *(measure.name for measure in PAIR))
"""All that the image pass measures."""
