"""The share of anchors that a model survives within ±k frames."""

from dataclasses import replace

import numpy as np

from steadyeye.core.competing_classes import among_competing
from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import PmSets, farthest, pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import CellTrials as Counts
from steadyeye.core.stats.intervals import proportions
from steadyeye.core.stats.trials import Trials, compare_by
from steadyeye.core.types import Result, needs


def trials(predictions: Predictions, k: int | None = None) -> Trials:
    """The anchors that the model survives within ±k."""
    sets = pm_sets(predictions)
    return Trials(sets.breaks_at > farthest(sets, k), sets.videos)


@needs("truth", "group", "offset")
@compare_by(trials)
@among_competing
def pm_k(predictions: Predictions, k: int | None = None) -> Result:
    """The share of anchors with a right prediction on every frame within ±k, the anchor included.

    `k`: distance in native frames, by default the largest in the data. `cells`: pm-0 … pm-k. A set
    without neighbours counts as its anchor alone. Value None on empty input. Shankar et al., "Do
    Image Classifiers Generalize Across Time?", Section 2, Equation 1.

    Example with invented predictions:

        >>> from steadyeye.testing import example_predictions
        >>> print(pm_k(example_predictions(margin=0.5), k=1))
        pm_k(k=1) 33.3 % (95 % interval 11.1–65.9 %, n = 12, among 3 classes)
    """
    sets = pm_sets(predictions)
    distance_limit = farthest(sets, k)
    # the anchor counts too: pm-0 is plain accuracy
    cells = _cells(sets, distance_limit)
    name = f"pm_k(k={distance_limit})"
    return replace(cells[-1], name=name, notes=_notes(sets), cells=cells)


def _cells(sets: PmSets, distance_limit: int) -> tuple[Result, ...]:
    """Pm-0 … pm-reach, the intervals of all in one go."""
    near = np.arange(distance_limit + 1)
    survived = (sets.breaks_at > near[:, None]).ravel()
    cell = np.repeat(near, len(sets))
    ones = np.ones(len(cell), dtype=np.int64)
    shares = proportions(
        Counts(survived, ones, np.tile(sets.videos, distance_limit + 1), cell), distance_limit + 1
    )
    return tuple(Result.of(f"k={k}", share) for k, share in enumerate(shares))


def _notes(sets: PmSets) -> tuple[str, ...]:
    notes = []
    empty = int((sets.neighbours == 0).sum())
    if empty:
        notes.append(
            f"{empty:,} of {number_of(len(sets), 'set')} without a neighbour, of which the anchor "
            "alone counts"
        )
    notes += sets.note_lost()
    if sets.unlabelled_anchors:
        notes.append(
            f"{number_of(sets.unlabelled_anchors, 'set')} left out: the anchor has no label"
        )
    if sets.unlabelled_neighbours:
        notes.append(f"{number_of(sets.unlabelled_neighbours, 'neighbour')} left out: no label")
    return tuple(notes)
