"""The difference of two models from the labels so far, valid at every look."""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.label_differences import (
    EITHER,
    FIRST,
    SECOND,
    DrawnSets,
    bound_sum,
    estimate_sum,
    find_first_clear,
)
from steadyeye.metrics.label_studies.answered_sets import METRIC, count_at_least_and_most
from steadyeye.metrics.label_studies.difference_study import DifferenceStudy, plan_difference
from steadyeye.metrics.label_studies.files import LabelledStudy, StudyRecord
from steadyeye.metrics.label_studies.judge import LEAST, Labels, check_known
from steadyeye.metrics.label_studies.model_difference import ModelDifference, check_question

METHOD = "betting, at every look, of these sets only"

# a study with a target looks at all its labels after every vote, the first ones each time
bound_drawn = lru_cache(maxsize=1024)(bound_sum)


@dataclass(frozen=True)
class DifferenceCounts:
    """Labels counted, `labelled` of them.

    `better`: the first model alone is right. `worse`: the second alone is. `unknown`: nobody could
    tell. `later`: labels that are not used, since a set before them in the order has none, or since
    it was enough before them.
    """

    better: int
    worse: int
    unknown: int
    labelled: int
    later: int

    @property
    def total(self) -> int:
        """How many labels count: all are of candidates."""
        return self.labelled


@dataclass(frozen=True)
class DifferenceResult:
    """The result of a study of two models after some labels.

    `difference`: the models, and the interval, which holds at every look. `enough`: whether no
    further label is needed.
    """

    difference: ModelDifference
    counts: DifferenceCounts
    enough: bool

    @property
    def interval(self) -> Interval:
        """The interval of the first model's share of right sets minus the second's, in −1…1."""
        return self.difference.interval

    @property
    def labels(self) -> int:
        """The number of labels that were used."""
        return self.counts.labelled

    @property
    def better(self) -> str:
        """The model whose pm-k is better; '' where no difference is clear."""
        first, second = self.difference.models
        low, high = self.interval.ends
        return first if low > 0 else second if high < 0 else ""


def judge_difference(study: DifferenceStudy, labels: Labels) -> DifferenceResult:
    """The result of labels for the difference, independent of the order in which they came.

    Only the labels up to the first candidate without one count, and only those with which it was
    first enough, unless all candidates are labelled: then all count, and it is exact. Raises
    `UsageError` for labels of sets that the data do not have.
    """
    check_known(study, labels)
    names = list(takewhile(lambda name: name in labels, study.candidates))[: study.stop.budget]
    settled = None if len(names) == len(study.candidates) else _find_settled(study, labels, names)
    names = names[:settled]
    least, most = _draw(study, labels, names)
    low, high = bound_drawn(least, most)
    total, known = len(study.sets), [name for name in names if labels[name]]
    value = None
    if low == high:
        value = low / total
    elif known:
        sample, _ = _draw(study, labels, known)
        estimate = estimate_sum(sample.values, sample.kinds, sample.sizes)
        value = min(max(estimate, low), high) / total
    used = set(names)
    difference = ModelDifference(
        question=study.question,
        models=(study.model, study.against),
        data=study.data,
        interval=Interval(value, low / total, high / total, len(names), METHOD),
        sets=total,
        differing=len(study.candidates),
        next_sets=tuple(name for name in study.candidates if name not in used),
        premise=study.premise,
        notes=study.notes,
    )
    worth = [_worth(study, labels, name)[0] for name in known]
    every = sum(name in labels for name in study.candidates)
    counts = DifferenceCounts(
        better=worth.count(1),
        worse=worth.count(-1),
        unknown=len(names) - len(known),
        labelled=len(names),
        later=every - len(names),
    )
    enough = settled is not None or len(names) in (study.stop.budget, len(study.candidates))
    return DifferenceResult(difference, counts, enough)


def _find_settled(study: DifferenceStudy, labels: Labels, names: list[str]) -> int | None:
    """The number of labels after which it was first enough; None where it is not yet."""
    least, most = _draw(study, labels, names)
    if study.stop.target is None:
        return find_first_clear(least, most)
    for number in range(min(LEAST, len(study.candidates)), len(names) + 1):
        low, high = bound_drawn(least.take_first(number), most.take_first(number))
        if (high - low) / 2 <= study.stop.target * len(study.sets):
            return number
    return None


def _draw(study: DifferenceStudy, labels: Labels, names: list[str]) -> tuple[DrawnSets, DrawnSets]:
    """The labelled sets, each with its least and greatest contribution to the difference."""
    first, second = map(frozenset, study.shared.pools)
    sizes = len(first - second), len(second - first), len(first & second)
    kinds = tuple(
        EITHER if name in first and name in second else FIRST if name in first else SECOND
        for name in names
    )
    worth = [_worth(study, labels, name) for name in names]
    least, most = (tuple(ends[side] for ends in worth) for side in (0, 1))
    return DrawnSets(least, kinds, sizes), DrawnSets(most, kinds, sizes)


def _worth(study: DifferenceStudy, labels: Labels, name: str) -> tuple[int, int]:
    """Least and greatest contribution of a labelled set; equal unless nobody could tell."""
    (first_least, first_most), (second_least, second_most) = (
        count_at_least_and_most(METRIC, answers[name], labels[name])
        if name in pool
        else (False, False)
        for pool, answers in zip(study.shared.pools, study.shared.answers, strict=True)
    )
    return first_least - second_most, first_most - second_least


def plan_difference_again(
    record: StudyRecord, first: Predictions, second: Predictions
) -> DifferenceStudy | None:
    """The study of a record planned on these predictions, in this order; otherwise None."""
    study = plan_difference(
        first,
        second,
        record.question,
        record.premise,
        seed=record.seed,
        stop=record.stop,
    )
    planned = (study.fingerprint, study.candidates)
    return study if planned == (record.fingerprint, record.order) else None


def compare_as_planned(
    labelled: LabelledStudy, first: Predictions, second: Predictions, metric: str = ""
) -> ModelDifference | None:
    """The result of a study for `first` minus `second`; None for other models.

    `metric`: the user's text, by default that of the study. Raises `UsageError` for another metric
    or k.
    """
    record = labelled.record
    check_question(record, metric)
    if study := plan_difference_again(record, first, second):
        return judge_difference(study, labelled.labels).difference
    if study := plan_difference_again(record, second, first):
        return _exchange_models(judge_difference(study, labelled.labels).difference)
    return None


def _exchange_models(difference: ModelDifference) -> ModelDifference:
    """The result for the second model minus the first."""
    share = difference.interval
    low, high = share.ends
    value = None if share.value is None else 0.0 - share.value
    interval = replace(share, value=value, low=0.0 - high, high=0.0 - low)
    return replace(difference, models=difference.models[::-1], interval=interval)
