"""How many labels a question will cost, before any label is given.

How many sets can count, C of N, is known from the predictions. How many of these are right is not:
every number here is for a number of right sets that is assumed, or that a pilot estimates.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.label_budget import ERROR, RequiredShare, count_ends, fixed_sample
from steadyeye.metrics.label_studies.earlier_labels import serve_study
from steadyeye.metrics.label_studies.files import LabelledStudy, StudyRecord, find_study
from steadyeye.metrics.label_studies.judge import LEAST, judge
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import LabelStudy, plan_study

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DISTANCES = (-20, -10, -5, -3, 3, 5, 10, 20)
"""Distances of the share from the required value, in percentage points."""
RIGHT_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Shares of right sets among those that can count."""
PILOT = 25
"""So many labels at least make a pilot."""
LATE = 0.9
"""The share of studies that end after `DecisionCost.late` labels at most."""
NOTHING = 1e-12  # a probability below it is rounding


@dataclass(frozen=True)
class DecisionCost:
    """Labels until a question is decided, if `right` of the sets are right.

    `value`: their share of all sets, 0…1. `distance`: of it from what is required, −1…1. `median`,
    `late`: labels after which half, and 90 %, of studies are decided. `fixed`: labels of a uniform
    sample of all sets whose size was chosen for this distance, with 90 % power.
    """

    right: int
    value: float
    distance: float
    median: int
    late: int
    fixed: int


@dataclass(frozen=True)
class WidthCost:
    """Labels until an interval is narrow enough, if `right` of the sets are right.

    `among`: their share of the sets that can count, `value`: of all sets, 0…1. `labels`: of sets
    that can count, `uniform`: of a uniform sample of all sets.
    """

    right: int
    among: float
    value: float
    labels: int
    uniform: int


@dataclass(frozen=True)
class SceneCost:
    """Scenes to label where one label does for a scene.

    `least`: enough if all labels say the same; of a width it is always enough. `most`: all scenes.
    """

    least: int
    most: int


@dataclass(frozen=True)
class Pilot:
    """The estimate of the number of right sets from the labels so far.

    `labels`: their number; `unknown`: the number of those that nobody could label. `interval`: of
    the share of all sets. `right`: numbers of right sets at its low end, its value and its high
    end. `start`: (labels, right) from which a study of the same order continues; (0, 0) if it
    cannot.
    """

    labels: int
    unknown: int
    interval: Interval
    right: tuple[int, int, int]
    start: tuple[int, int]


def find_boundaries(required: RequiredShare) -> tuple[Ints, Ints]:
    """(C + 1,) twice: after 0…C labels the fewest right that pass, and the most that fail.

    Labels + 1 and −1 where none does.
    """
    labels = np.arange(required.consistent + 1)
    passing = _find_passing(required.needed, required.consistent)
    # to fail is to pass for the number of wrong sets
    failing = _find_passing(required.consistent - required.needed + 1, required.consistent)
    return passing, labels - failing


def _find_passing(needed: int, consistent: int) -> Ints:
    """(C + 1,) the fewest right of 0…C labels that show `needed` right sets; labels + 1: none do.

    One more label moves it by 0 or 1. The ratio is that of `RequiredShare.decide` in closed form:
    if s of n labels are right, the number of right sets is distributed as the (s + 1)-th smallest
    of n + 1 of the numbers 0…C. Its tail is a hypergeometric sum, of which one more label changes
    one term.
    """
    fewest = np.zeros(consistent + 1, dtype=np.int64)
    if needed <= 0:
        return fewest
    if needed > consistent:
        return np.arange(1, consistent + 2)
    logs = [0.0, *accumulate(map(log, range(1, consistent + 2)))]
    decided, total = -log(ERROR), consistent + 1

    def choose(n: int, k: int) -> float:
        return logs[n] - logs[k] - logs[n - k] if 0 <= k <= n else -inf

    def chance(n: int, s: int) -> float:
        return exp(choose(needed, s) + choose(total - needed, n + 1 - s) - choose(total, n + 1))

    def passes(n: int, s: int, tail: float) -> bool:
        wrong, null = n - s, needed - 1
        if s > null or wrong > consistent - null or tail <= 0:
            return s > null
        # both without what they share, the factorials of the labels
        mean = log(tail) + choose(total, n + 1) - log(total - needed)
        return mean - choose(null, s) - choose(consistent - null, wrong) >= decided

    # of n + 1 numbers at most `right` are below `needed`
    right, tail = 1, chance(0, 0) + chance(0, 1)
    fewest[0] = right
    for n in range(1, consistent + 1):
        tail -= chance(n - 1, right) * (needed - right) / (total - n)
        if not passes(n, right, tail):
            right += 1
            tail += chance(n, right)
        fewest[n] = right
    return fewest


def spread_labels(
    required: RequiredShare, right: Sequence[int], start: tuple[int, int] = (0, 0)
) -> Floats:
    """(m, C + 1) the probability that a study is decided after exactly 0…C labels.

    `right`: m numbers of right sets among the consistent ones. `start`: (labels, right) so far. The
    labels are drawn uniformly without replacement, and a verdict is looked for after each. Raises
    `UsageError` for numbers that cannot be.
    """
    labelled, first = start
    consistent = required.consistent
    if any(not first <= n <= first + consistent - labelled for n in right):
        raise UsageError(
            f"{list(right)} right of {consistent:,} sets cannot be after {first} of "
            f"{number_of(labelled, 'label')}"
        )
    passing, failing = find_boundaries(required)
    truth = np.asarray(right, dtype=np.float64)[:, None]
    ends = np.zeros((len(truth), consistent + 1))
    # (m, …) the probability of each number of right labels from `low` on, while it is open
    alive, low = np.ones((len(truth), 1)), first
    for n in range(labelled, consistent + 1):
        least, most = max(int(failing[n]) + 1, low), min(int(passing[n]), low + alive.shape[1])
        still = alive[:, least - low : max(most, least) - low]
        ends[:, n] = alive.sum(axis=1) - still.sum(axis=1)
        if still.sum() < NOTHING:
            break
        low, counts = least, least + np.arange(still.shape[1])
        next_right = (truth - counts) / (consistent - n)
        alive = np.zeros((len(truth), still.shape[1] + 1))
        alive[:, :-1] = still * (1 - next_right)
        alive[:, 1:] += still * next_right
    return ends


def list_right(study: LabelStudy) -> tuple[int, ...]:
    """The possible numbers of right sets at `DISTANCES` from the required value.

    If none is possible: 0 and all of the sets that can count.
    """
    share, total = study.question.share, len(study.sets)
    assert share is not None, "a question without a number has no distance"
    numbers = (round((share * 100 + distance) * total / 100) for distance in DISTANCES)
    # of few sets several distances are the same number
    possible = dict.fromkeys(n for n in numbers if 0 <= n <= study.countable)
    return tuple(possible) or (0, study.countable)


def estimate_decisions(
    study: LabelStudy, right: Sequence[int], start: tuple[int, int] = (0, 0)
) -> tuple[DecisionCost, ...]:
    """The number of labels for a decision, for each number of right sets.

    `start`: (labels, right) so far, which are included. The question has a required value, and its
    study no scenes. Raises `UsageError` for impossible numbers.
    """
    share, total = study.question.share, len(study.sets)
    assert share is not None, "a question without a number is not decided"
    required = RequiredShare(study.threshold, study.countable, total)
    done = np.cumsum(spread_labels(required, right, start), axis=1)
    costs = []
    for number, decided in zip(right, done, strict=True):
        value = number / total
        median, late = (int(np.argmax(decided >= part - NOTHING)) for part in (0.5, LATE))
        fixed = fixed_sample(value, float(share), total)
        costs.append(DecisionCost(number, value, value - float(share), median, late, fixed))
    return tuple(costs)


def is_answered(pilot: Pilot, costs: Sequence[DecisionCost]) -> bool:
    """Whether the labels of a pilot decide the question; `costs`: of its estimate and its ends."""
    return all(cost.late == pilot.start[0] for cost in costs)


def estimate_widths(study: LabelStudy, right: Sequence[int]) -> tuple[WidthCost, ...]:
    """The number of labels for the study's target width, for each number of right sets."""
    target, total, countable = study.stop.target, len(study.sets), study.countable
    assert target is not None, "the study has a target"
    return tuple(
        WidthCost(
            number,
            number / countable if countable else 0.0,
            number / total,
            count_for_width(number, countable, target * total),
            count_for_width(number, total, target * total),
        )
        for number in right
    )


def count_for_width(right: int, sets: int, half_width: float) -> int:
    """After how many labels the 95 % interval is ± `half_width` sets or less.

    `right`: of the `sets` that labels are drawn from; the labels are taken to have the same share
    of right ones. No fewer than 10, as a study ends no earlier.
    """

    def is_narrow(labelled: int) -> bool:
        low, high = count_ends(round(right * labelled / sets), labelled, sets)
        return (high - low) / 2 <= half_width

    least = min(LEAST, sets)
    return bisect_left(range(sets), True, lo=least, key=is_narrow) if least < sets else sets


def count_scenes(study: LabelStudy, labels: Mapping[str, Sequence[str]]) -> SceneCost:
    """How many scenes it takes, those with a label included, the largest first."""
    result = judge(study, labels)
    most = len(study.scenes)
    if study.question.share is not None:
        return SceneCost(result.labels + (result.more or 0), most)
    assert study.stop.target is not None, "the study has a target"
    # two half-widths on each side, of sets in scenes without a label
    allowed = 2 * study.stop.target * len(study.sets)
    still_open = study.countable - np.cumsum([0, *map(len, study.scenes.values())])
    return SceneCost(int(np.argmax(still_open <= allowed)), most)


def read_pilot(study: LabelStudy, pilot: LabelledStudy, predictions: Predictions) -> Pilot:
    """The estimate for a question from the labels of another study on the same data.

    `pilot`: the study of the labels; if it was of another model, only labels that a study of this
    model can use count. Raises `UsageError` for another metric or premise, other data, and for too
    few labels to estimate anything.
    """
    record, labels = pilot.record, pilot.labels
    check_pilot(study, record)
    own = find_study(record, predictions)
    if own is None:
        measured = parse_question(record.question.name)
        fresh = plan_study(predictions, measured, record.premise, seed=record.seed)
        served = serve_study(fresh, predictions, [pilot])
        own, labels = served.study, served.labels
    result = judge(own, labels)
    share, counts, total = result.interval, result.counts, len(study.sets)
    if share.value is None or share.low is None or share.high is None:
        raise UsageError(
            f"{number_of(counts.labelled, 'label')} of the first sets of the order, "
            f"{counts.unknown} of them without a class, estimate nothing; label {PILOT} sets"
        )
    right = 0 if own.strata else counts.right
    labelled = 0 if own.strata else counts.labelled
    # what nobody could label may be right: the ends say so, and a study that goes on finds it wrong
    most = right + study.countable - labelled
    low, value, high = (
        min(max(round(end * total), right), most) for end in (share.low, share.value, share.high)
    )
    ends = low, value, high
    return Pilot(counts.labelled, counts.unknown, share, ends, (labelled, right))


def check_pilot(study: LabelStudy, record: StudyRecord) -> None:
    """Raises `UsageError` where labels were given for another metric or under another premise."""
    if record.question.name != study.question.name:
        raise UsageError(
            f"the labels were given for {record.question.name}, not for {study.question.name}; "
            "leave --labels out, or ask for the metric that they are of"
        )
    names = [premise.name if premise else None for premise in (record.premise, study.premise)]
    if names[0] != names[1]:
        raise UsageError(
            f"the labels were given with --premise {names[0]}, not {names[1]}; give --premise "
            f"{names[0]}"
        )
