"""How often a right answer is still right a given distance away."""

from dataclasses import replace

import numpy as np

from steadyeye.core.competing_classes import among_competing
from steadyeye.core.pm_sets import farthest, pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import CellTrials, proportions
from steadyeye.core.types import Result, needs


@needs("truth", "group", "offset")
@among_competing
def conditional_robustness(predictions: Predictions, k: int | None = None) -> Result:
    """The share of right frames exactly ±k from a right anchor; n counts these frames.

    `k`: distance in native frames, by default the largest in the data. `cells`: distances 1 … k.
    Each frame counts separately, unlike in pm-k, for which all frames between it and the anchor
    count, too. Value None if no right anchor has a frame that far away. Gu et al., "Using Videos to
    Evaluate Image Model Robustness", 2019; Shankar et al., Figure 8.

    Example with invented predictions:

        >>> from steadyeye.testing import example_predictions
        >>> print(conditional_robustness(example_predictions(margin=0.5), k=1))
        conditional_robustness(k=1) 70.0 % (95 % interval 35.9–89.1 %, n = 20, among 3 classes)
    """
    sets = pm_sets(predictions)
    distance_limit = farthest(sets, k)
    distance = np.abs(sets.offsets)
    near = np.flatnonzero((sets.set_of >= 0) & (distance > 0) & (distance <= distance_limit))
    anchored = sets.breaks_at[sets.set_of[near]] > 0
    _, video = np.unique(sets.videos, return_inverse=True)
    shares = proportions(
        CellTrials(
            predictions.right[near] & anchored,
            anchored.astype(np.int64),
            video[sets.set_of[near]],
            distance[near] - 1,
        ),
        max(distance_limit, 1),
    )
    cells = tuple(Result.of(f"distance={d}", share) for d, share in enumerate(shares, start=1))
    name = f"conditional_robustness(k={distance_limit})"
    return replace(cells[-1], name=name, cells=cells[:distance_limit])
