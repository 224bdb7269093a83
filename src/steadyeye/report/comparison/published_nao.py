"""The published detectors on natural adversarial objects."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from steadyeye.report.charts.style import PALETTE

DATA = Path(__file__).resolve().parent / "data" / "published_nao.csv"
SOURCE = "Lau et al., “Natural Adversarial Objects”, 2021, Table 2"


@dataclass(frozen=True)
class PublishedDetector:
    """A published detector, shares 0…1. `reference`: mAP on `of`, COCO val or else test-dev."""

    model: str
    plain: float
    without: float
    found: float
    reference: float
    of: str

    @property
    def drop(self) -> float:
        """The share of the reference mAP that is lost, Figure 1."""
        return 1 - self.plain / self.reference


@cache
def read_published() -> tuple[PublishedDetector, ...]:
    """The published detectors, in the order of the paper's table."""
    with DATA.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))

    def share(line: dict[str, str], key: str) -> float:
        return float(line[key]) / 100

    found = []
    for line in lines:
        key = "coco_val_map" if line["coco_val_map"] else "coco_test_dev_map"
        of = "COCO val" if line["coco_val_map"] else "COCO test-dev"
        plain, without = share(line, "nao_map"), share(line, "nao_map_without_ood")
        shares = (plain, without, share(line, "nao_mar"), share(line, key))
        found.append(PublishedDetector(line["model"], *shares, of))
    return tuple(found)


def layers(models: Sequence[str]) -> list[dict[str, Any]]:
    """A line from end to end of each interval that there is, and a dot at every drop."""
    x = {
        "type": "quantitative",
        "title": "relative drop in mAP",
        "axis": {"format": ".0%", "tickCount": 5},
    }
    y = {
        "field": "model",
        "type": "nominal",
        "sort": list(models),
        "title": None,
        "axis": {"labelLimit": 150, "ticks": False},
    }
    hue = {
        "field": "of",
        "type": "nominal",
        "scale": {"domain": ["yours", "published"], "range": [PALETTE[1], PALETTE[6]]},
        "legend": {"title": None, "orient": "bottom"},
    }
    line = {
        "mark": {"type": "rule", "strokeWidth": 3},
        "transform": [{"filter": "isValid(datum.low)"}],
        "encoding": {"y": y, "x": {"field": "low", **x}, "x2": {"field": "high"}, "color": hue},
    }
    dot = {
        "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1, "tooltip": True},
        "encoding": {"y": y, "x": {"field": "drop", **x}, "color": hue},
    }
    return [line, dot]
