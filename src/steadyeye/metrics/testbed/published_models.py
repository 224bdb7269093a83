"""The published models and their accuracies on the two released sets."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import unknown
from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.storage.text_files import read_shipped

DATA = Path(__file__).resolve().parent / "data" / "published_testbed.csv"
SOURCE = (
    "Taori et al., “Measuring Robustness to Natural Distribution Shifts in Image Classification”, "
    "NeurIPS 2020, on the sets of Shankar et al., “Do Image Classifiers Generalize Across Time?”"
)
K = 10
"""The distance, in native frames, of every published pm-k."""
TITLES = {"imagenet_vid_robust": "ImageNet-Vid-Robust", "ytbb_robust": "YTBB-Robust"}
# Shankar et al., Table 1: the anchors and pairs that the reviews accepted
ANCHORS = {"imagenet_vid_robust": 1109, "ytbb_robust": 2030}
PAIRS = {"imagenet_vid_robust": 21_070, "ytbb_robust": 36_827}


@dataclass(frozen=True, eq=False)
class PublishedModels:
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
def read_published(data: str) -> PublishedModels:
    """The 335 published models on a released set. Raises `UsageError` for another set."""
    if data not in TITLES:
        raise unknown("published line", data, TITLES)
    rows = [
        (row["model"], float(row[f"{data}_pm0"]) / 100, float(row[f"{data}_pm10"]) / 100)
        for row in read_shipped(DATA)
    ]
    models, original, perturbed = zip(*rows, strict=True)
    return PublishedModels(
        data, TITLES[data], ANCHORS[data], models, np.array(original), np.array(perturbed)
    )


def find_released_set(predictions: Predictions) -> str | None:
    """The released set that predictions are of, whole; None for all else.

    The source gives a released name only to metadata that are the released ones; here each of its
    anchors and pairs must also have been predicted.
    """
    # a second source of the same name is told apart by a number
    name = predictions.data.partition(" #")[0]
    if name not in TITLES:
        return None
    sets = pm_sets(predictions)
    counts = len(sets), int(sets.neighbours.sum())
    return name if counts == (ANCHORS[name], PAIRS[name]) else None


def find_altered_set(predictions: Predictions) -> str | None:
    """The released set that predictions are a part or a variant of; None for it and for others."""
    name = predictions.data.partition(" #")[0].partition(",")[0]
    return name if name in TITLES and find_released_set(predictions) is None else None


def choose_published_set(predictions: Predictions) -> str | None:
    """The released set to compare data with.

    Itself; ImageNet-Vid-Robust for other data, as a yardstick; None for a part or a variant of a
    released set, which would be taken for it.
    """
    return (
        None
        if find_altered_set(predictions)
        else find_released_set(predictions) or "imagenet_vid_robust"
    )


def why_not(predictions: Predictions, k: int | None = None) -> str | None:
    """Why published numbers on pm-sets are not shown with data; None if they may be.

    `k`: the distance of the user's numbers, by default the published one.
    """
    variant = find_altered_set(predictions)
    if variant:
        return (
            f"The published models were measured on the whole {TITLES[variant]}: "
            f"{number_of(ANCHORS[variant], 'anchor')} and {number_of(PAIRS[variant], 'pair')}. "
            "These data are a part or a variant of it (see the notes of the run), so the "
            "published values do not apply."
        )
    largest = int(abs(predictions.tags["offset"]).max(initial=0))
    if largest < K or k not in (None, K):
        return (
            f"The published models were measured at k = {K}; "
            + (
                f"these data reach ±{largest}. "
                if largest < K
                else f"these values are at k = {k}. "
            )
            + "pm-k falls as k grows, for every model, so values at different k cannot be "
            f"compared. Use sets with k = {K} to compare."
        )
    return None
