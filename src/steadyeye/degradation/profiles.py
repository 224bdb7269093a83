"""Profiles of a sweep: what is known of every image at every level of every operator."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions

CHOICES = ("right", "all")
UNKNOWN = np.intp(-1)


@dataclass(frozen=True, eq=False)
class Profiles:
    """The rows of a sweep as a block: `row[o, l, i]` of operator o, level l and image i, or −1.

    `levels`: (levels,) rising from 0, whose rows are the same for all operators. `images`: the
    ids of the baseline set, chosen by `baseline`; `videos`: (images,) what their intervals are
    clustered by. `wrong`, `lost`: how many images are not in the baseline set, being wrong at
    level 0 or not predicted.
    """

    predictions: Predictions
    baseline: str
    operators: tuple[str, ...]
    levels: NDArray[np.int64]
    images: NDArray[np.str_]
    videos: NDArray[np.str_]
    row: NDArray[np.intp]
    wrong: int
    lost: int

    @property
    def notes(self) -> tuple[str, ...]:
        """Which images are left out and why."""
        found = []
        if self.wrong:
            found.append(f"{number_of(self.wrong, 'image')} left out: wrong at level 0")
        if self.lost:
            found.append(f"{number_of(self.lost, 'image')} left out: no prediction at some level")
        return tuple(found)

    def curves(self) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.intp]]]:
        """Each operator with the levels it has, (n,), and their rows, (n, images)."""
        for which, operator in enumerate(self.operators):
            has = (self.row[which] != UNKNOWN).any(axis=1)
            yield operator, self.levels[has], self.row[which][has]


def profiles(predictions: Predictions, images: str = "right") -> Profiles:
    """The block of a sweep's predictions.

    `images`: "right", those that are right at level 0, or "all". An image that lacks a prediction
    at any level is left out. Raises `UsageError` where the baseline set is empty.
    """
    if images not in CHOICES:
        raise unknown("baseline set", images, CHOICES)
    tags = predictions.tags
    names, image = np.unique(tags["image"], return_inverse=True)
    operators = tuple(sorted(set(tags["operator"].tolist()) - {""}))
    levels, level = np.unique(tags["level"], return_inverse=True)
    row = np.full((len(operators), len(levels), len(names)), UNKNOWN)
    here = np.arange(len(predictions))
    first = level == 0
    row[:, 0, image[first]] = here[first]
    operator = np.searchsorted(operators, tags["operator"][~first])
    row[operator, level[~first], image[~first]] = here[~first]
    lost = np.zeros(len(names), dtype=np.bool_)
    lost[image[~predictions.valid]] = True
    right = predictions.right[row[0, 0]] if images == "right" else np.ones(len(names), np.bool_)
    keep = right & ~lost
    wrong = int((~right & ~lost).sum())
    if not keep.any():
        raise UsageError(
            f"{predictions.model} is right on none of {number_of(len(names), 'image')} at level 0, "
            "so degradation cannot be measured; check the class map, or use --images all"
        )
    videos = tags.get("video", tags["image"])[row[0, 0]]
    return Profiles(
        predictions,
        images,
        operators,
        levels.astype(np.int64),
        names[keep],
        videos[keep],
        row[:, :, keep],
        wrong,
        int(lost.sum()),
    )
