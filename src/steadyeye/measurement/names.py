"""The measures by name: what they are called in words and in which unit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """A measured change. `words`: "motion"; `unit` of a standard deviation of it: "of the …"."""

    name: str
    words: str
    unit: str
    scale: float = 1.0
    digits: int = 2

    def shown(self, value: float) -> str:
        """A value in its unit."""
        return f"{value * self.scale:.{self.digits}f}\u202f{self.unit}".rstrip()


FRAME = ("brightness", "contrast", "sharpness")
"""Measured of every frame."""

PAIR = (
    Measure("linf", "ℓ∞ distance", ""),
    Measure("difference", "mean pixel difference", "%", 100, 1),
    Measure("motion", "motion", "% of the diagonal"),
    Measure("brightness_change", "brightness", "grey values", 1, 1),
    Measure("contrast_change", "contrast", "in ln"),
    Measure("sharpness_change", "sharpness", "in ln"),
    Measure("box_area_change", "size of the object's box", "in ln"),
    Measure("box_shift", "shift of the object's box", "% of the diagonal"),
)
"""Measured of every neighbour against its anchor."""

COLUMNS = (*FRAME, *(measure.name for measure in PAIR))
"""All that the image pass measures."""
