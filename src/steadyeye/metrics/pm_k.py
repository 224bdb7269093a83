"""The share of anchors that a model survives within ±k frames."""

from steadyeye.core.competition import among_competing
from steadyeye.core.intervals import proportion
from steadyeye.core.outcomes import Trials, compared
from steadyeye.core.pm_sets import PmSets, farthest, pm_sets
from steadyeye.core.table import Predictions
from steadyeye.core.types import Result, needs


def trials(predictions: Predictions, k: int | None = None) -> Trials:
    """The anchors that the model survives within ±k."""
    sets = pm_sets(predictions)
    return Trials(sets.breaks_at > farthest(sets, k), sets.videos)


@needs("truth", "group", "offset")
@compared(trials)
@among_competing
def pm_k(predictions: Predictions, k: int | None = None) -> Result:
    """The share of anchors whose every frame within ±k is right, the anchor counting as one.

    `k`: distance in native frames, the largest in the data if left out. `cells`: pm-0 … pm-k.
    A set without neighbours counts as its anchor alone. Value None on empty input.
    Shankar et al., "Do Image Classifiers Generalize Across Time?", Section 2, Equation 1.
    """
    sets = pm_sets(predictions)
    reach = farthest(sets, k)
    # the anchor counts too: pm-0 is plain accuracy
    cells = tuple(_at(sets, near) for near in range(reach + 1))
    last = cells[-1]
    return Result(
        f"pm_k(k={reach})",
        last.value,
        last.low,
        last.high,
        last.n,
        last.interval,
        _notes(sets),
        cells,
    )


def _at(sets: PmSets, k: int) -> Result:
    found = proportion(sets.breaks_at > k, sets.videos)
    return Result(f"k={k}", found.value, found.low, found.high, found.n, found.method)


def _notes(sets: PmSets) -> tuple[str, ...]:
    notes = []
    empty = int((sets.neighbours == 0).sum())
    if empty:
        notes.append(f"{empty} of {len(sets)} sets have no neighbour and count as their anchor")
    if sets.lost_anchors:
        notes.append(f"{sets.lost_anchors} sets left out: their anchor was not predicted")
    if sets.lost_neighbours:
        notes.append(f"{sets.lost_neighbours} neighbours left out: not predicted")
    if sets.unlabelled_anchors:
        notes.append(f"{sets.unlabelled_anchors} sets left out: their anchor has no label")
    if sets.unlabelled_neighbours:
        notes.append(f"{sets.unlabelled_neighbours} neighbours left out: no label")
    return tuple(notes)
