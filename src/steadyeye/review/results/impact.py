"""A model's numbers without and with the review: Table 4 of Shankar et al."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import farthest, pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.data.annotations.review_set import UNDECIDED, SetFolder
from steadyeye.review.protocol.stages import ReviewPlan
from steadyeye.review.results.verdicts import FrameVerdict

WITHOUT, WITH = "without review", "with review"


@dataclass(frozen=True)
class Impact:
    """The numbers of a model with or without the review.

    `k`: distance of `perturbed`, native frames. `original`: accuracy on anchors; `perturbed`:
    pm-k; `drop`: right at the anchor, and wrong within ±k. `neighbours`: how many frames beside
    the anchors count.
    """

    model: str
    review: str
    k: int
    original: Interval
    perturbed: Interval
    drop: Interval
    neighbours: int


def measure_impact(
    predictions: Predictions,
    folder: SetFolder,
    plan: ReviewPlan,
    verdicts: Mapping[str, FrameVerdict],
) -> tuple[Impact, Impact]:
    """The numbers of a run without and with the decisions made so far.

    Without: the frames as sampled, those across a scene cut left out, under the labels of the
    data. With: rejected anchors and neighbours left out, under the labels that reviewers gave;
    what is not decided yet stays as it is, so that at the end of a review these are the numbers
    of the exported set. `verdicts`: of `judge_frames`. Predictions are joined by id.
    Raises `UsageError` where a frame of the set was not predicted, or the classes are not those of
    the set.
    """
    names = folder.class_names
    if tuple(predictions.classes) != names:
        raise UsageError(
            f"the run of {predictions.model} has {number_of(len(predictions.classes), 'class')} "
            f"that are not the {len(names)} of {folder.name}; evaluate the set itself"
        )
    ids = {id_: row for row, id_ in enumerate(predictions.ids.tolist())}
    absent = [id_ for id_ in verdicts if id_ not in ids]
    if absent:
        raise UsageError(
            f"the run of {predictions.model} lacks {len(absent):,} of "
            f"{number_of(len(verdicts), 'frame')} of {folder.name}, first '{absent[0]}'; evaluate "
            "reviewed(root=…, review=False)"
        )
    rows = folder.frames.to_pylist()
    sampled = {r["id"] for r in rows if plan.across_cuts or not r["across_cut"]}
    left = {id_ for id_, v in verdicts.items() if v.accepted or v.reason == UNDECIDED}
    # a run of an exported set has the reviewers' labels already
    original = {row["id"]: [names[label] for label in row["labels"]] for row in rows}
    before = _relabel(predictions, ids, original, names)
    judged = _relabel(predictions, ids, {i: v.labels for i, v in verdicts.items()}, names)
    return _measure(before, WITHOUT, sampled), _measure(judged, WITH, left & sampled)


def _relabel(
    predictions: Predictions,
    ids: Mapping[str, int],
    labels: Mapping[str, Sequence[str]],
    names: Sequence[str],
) -> Predictions:
    truth = predictions.truth.copy()
    for id_, own in labels.items():
        truth[ids[id_]] = np.isin(names, own)
    return replace(predictions, truth=truth)


def _measure(predictions: Predictions, review: str, ids: set[str]) -> Impact:
    counts = np.array([id_ in ids for id_ in predictions.ids.tolist()], dtype=np.bool_)
    # a row with an error leaves its set, which is what a frame that was not accepted does
    errors = np.where(counts, predictions.errors.astype(object), "not accepted").astype(np.str_)
    distance = farthest(pm_sets(predictions), None)
    sets = pm_sets(replace(predictions, errors=errors))

    def share(hits: NDArray[np.bool_]) -> Interval:
        return proportion(hits, sets.videos)

    right, survives = sets.breaks_at > 0, sets.breaks_at > distance
    return Impact(
        predictions.model,
        review,
        distance,
        share(right),
        share(survives),
        share(right & ~survives),
        int(sets.neighbours.sum()),
    )
