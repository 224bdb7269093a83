"""The published models and their accuracies on the two released sets."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import unknown

DATA = Path(__file__).resolve().parent / "data" / "published_testbed.csv"
SOURCE = (
    "Taori et al., “Measuring Robustness to Natural Distribution Shifts in Image Classification”, "
    "NeurIPS 2020, on the sets of Shankar et al., “Do Image Classifiers Generalize Across Time?”"
)
K = 10
"""The distance, in native frames, of every published pm-k."""
TITLES = {"imagenet_vid_robust": "ImageNet-Vid-Robust", "ytbb_robust": "YTBB-Robust"}
# Shankar et al., Table 1: the anchors reviewed as good; one a video
ANCHORS = {"imagenet_vid_robust": 1109, "ytbb_robust": 2030}


@dataclass(frozen=True, eq=False)
class Published:
    """The published models on one set, m of them.

    `anchors`: how many anchors each was measured on. `original`, `perturbed`: (m,) accuracy and
    pm-10, shares 0…1.
    """

    data: str
    title: str
    anchors: int
    models: tuple[str, ...]
    original: NDArray[np.float64]
    perturbed: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.models)


@cache
def published(data: str) -> Published:
    """The 335 published models on a released set. Raises `UsageError` for another set."""
    if data not in TITLES:
        raise unknown("published line", data, TITLES)
    with DATA.open(newline="", encoding="utf-8") as file:
        rows = [
            (row["model"], float(row[f"{data}_pm0"]) / 100, float(row[f"{data}_pm10"]) / 100)
            for row in csv.DictReader(file)
        ]
    models, original, perturbed = zip(*rows, strict=True)
    return Published(
        data, TITLES[data], ANCHORS[data], models, np.array(original), np.array(perturbed)
    )


def released(data: str) -> str | None:
    """The released set that data is, or None for other data."""
    # a second source of the same name is told apart by a number
    name = data.partition(" #")[0]
    return name if name in TITLES else None


def beside(data: str) -> str:
    """The released set to compare data with: itself, or ImageNet-Vid-Robust for other data."""
    return released(data) or "imagenet_vid_robust"
