"""The difference of two models in pm-k from the labels of the few sets where they can differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from steadyeye.core.errors import UsageError
from steadyeye.core.format import list_some, number_of, points, span
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.label_budget import bound_difference
from steadyeye.metrics.label_studies.answered_sets import (
    METRIC,
    SharedSets,
    count_at_least_and_most,
    find_sets,
    find_shared_sets,
)
from steadyeye.metrics.label_studies.difference_study import list_notes
from steadyeye.metrics.label_studies.files import LabelledStudy, StudyRecord
from steadyeye.metrics.label_studies.label_reuse import (
    LabelledPools,
    LabelSample,
    check_classes,
    check_samples,
    count_pools,
    estimate_right,
    name_method,
    read_sample,
)
from steadyeye.metrics.label_studies.question import Question, parse_question
from steadyeye.metrics.label_studies.study import Premise, rank_sets


@dataclass(frozen=True)
class ModelDifference:
    """The share of sets that a model gets right minus that of another, on the same sets.

    `models`: the two. `interval`: in −1…1, of these sets only; its n the number of labels. `sets`:
    number of sets with predictions of both. `differing`: number of sets on which they can differ:
    only one model predicts one class on all frames, or both predict different ones. `next_sets`:
    sets without a counted label, in the order of labelling. `premise`: that of the study. `notes`:
    on sets left out.
    """

    question: Question
    models: tuple[str, str]
    data: str
    interval: Interval
    sets: int
    differing: int
    next_sets: tuple[str, ...]
    premise: Premise | None = None
    notes: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """The method of the interval, and the premise that it assumes."""
        stated = f"; {self.premise}" if self.premise else ""
        return f"{self.interval.method}{stated}"


def compare_models(
    studies: Sequence[LabelledStudy], first: Predictions, second: Predictions, metric: str = ""
) -> ModelDifference:
    """The pm-k of `first` minus that of `second`, from the labels of studies on the same data.

    No set needs a label where both models are inconsistent, or both consistent with one class. Of
    the others, the labels are counted up to the first set without one in the order of the study.
    The interval holds 95 % or more; it is exact where all are labelled. `studies`: one, or one for
    each model. `metric`: as the user writes it, that of the studies where it is empty. Raises
    `UsageError` for studies of another metric or k, that contradict each other, or on other data.
    """
    better_study, worse_study = studies[0], studies[-1]
    record = better_study.record
    question = check_question(record, metric)
    _check_agreement(studies)
    for study, predictions in product(studies, (first, second)):
        check_samples(study.record, predictions)
    sets = find_sets(first, question), find_sets(second, question)
    shared = find_shared_sets(*sets)
    if not shared.names:
        raise UsageError(
            f"{first.model} and {second.model} have no set of {first.data} in common with a "
            "prediction; compare complete runs"
        )
    samples = (
        read_sample(better_study.record, better_study.labels, sets[0], worse_study.labels),
        read_sample(worse_study.record, worse_study.labels, sets[0], better_study.labels),
    )
    better, worse = (_count(shared, samples[model], model) for model in (0, 1))
    rest = set(shared.pools[0]) - better.serving | set(shared.pools[1]) - worse.serving
    labelled = samples[0].list_labelled(better.serving) | samples[1].list_labelled(worse.serving)
    counted = zip(samples, (better, worse), strict=True)
    methods = (name_method(sample, side.pools) for sample, side in counted)
    method = "; ".join(dict.fromkeys(methods))
    return ModelDifference(
        question=question,
        models=(first.model, second.model),
        data=first.data,
        interval=_find_interval((better, worse), len(shared.names), len(labelled), method),
        sets=len(shared.names),
        differing=len(shared.differing),
        next_sets=tuple(rank_sets(rest, record.seed)),
        premise=record.premise,
        notes=list_notes((first, second), sets),
    )


def check_question(record: StudyRecord, metric: str) -> Question:
    """The metric that is compared. Raises `UsageError` where the labels are not about it."""
    question = parse_question(record.question.name)
    if question.metric != METRIC:
        raise UsageError(
            f"the labels were collected for {question}, and a difference needs labels of pm_k; "
            "give those of a study of pm_k"
        )
    if not metric:
        return question
    other = parse_question(metric)
    if other.share is not None:
        raise UsageError(f"--metrics '{metric}' has a number; give '{other.name}' alone")
    if other.metric != METRIC:
        raise UsageError(
            f"the difference in {other} cannot be estimated from few labels; compare pm_k, or "
            "label all sets"
        )
    if other.k not in (None, question.k):
        raise UsageError(
            f"the labels were collected for {question}, not for {other}; give {question}"
        )
    return question


def _check_agreement(studies: Sequence[LabelledStudy]) -> None:
    """Raises `UsageError` where two studies are of another question, premise or class of a set."""
    first, last = studies[0], studies[-1]
    pairs = [(study.record.question.name, study.record.premise) for study in (first, last)]
    for one_side, other_side in zip(*pairs, strict=True):
        if one_side != other_side:
            raise UsageError(
                "the labels were collected for different questions or premises: "
                f"{_describe(first.record)}, and {_describe(last.record)}; give labels of one "
                "question and premise"
            )
    check_classes(first.labels, last.labels)


def _describe(record: StudyRecord) -> str:
    return f"{record.question.name} with {record.premise.name if record.premise else 'no premise'}"


def _count(shared: SharedSets, sample: LabelSample, model: int) -> LabelledPools:
    answers = shared.answers[model]

    def count(name: str) -> tuple[bool, bool]:
        return count_at_least_and_most(METRIC, answers[name], sample.labels[name])

    return count_pools(shared.pools[model], count, sample)


def _find_interval(
    counted: tuple[LabelledPools, LabelledPools], total: int, labels: int, method: str
) -> Interval:
    better, worse = counted
    low, high = bound_difference(better.pools, worse.pools)
    means = estimate_right(better.pools), estimate_right(worse.pools)
    value = None
    if low == high:
        value = low / total
    elif means[0] is not None and means[1] is not None:
        value = (means[0] - means[1]) / total
    return Interval(value, low / total, high / total, labels, method)


def say_difference(difference: ModelDifference) -> str:
    """The difference in one line: value, interval, labels, and how many sets can differ."""
    first, second = difference.models
    share = difference.interval
    low, high = share.ends
    unit = "percentage points"
    ends = f"95 % interval {span(low, high, 'difference')}"
    numbers = f"{span(low, high, 'difference')} {unit} (95 % interval)"
    if low == high:
        numbers = f"exactly {points(share.value)} {unit}"
    elif share.value is not None:
        numbers = f"{points(share.value)} {unit} ({ends})"
    sets = number_of(difference.sets, "set")
    name = difference.question.name
    verdict = f"no clear difference in {name} between {first} and {second}"
    if low > 0 or high < 0:
        better, worse = (first, second) if low > 0 else (second, first)
        verdict = f"{better} has a better {name} than {worse}"
    elif share.low == share.high:
        verdict = f"{first} and {second} have the same {name}"
    return (
        f"{verdict} on these {sets}: {first} less {second} is {numbers}, "
        f"from {number_of(share.n, 'label')}; {difference.differing:,} of the sets can differ, "
        f"{len(difference.next_sets):,} of them have no label that counts"
    )


def say_possible(difference: ModelDifference) -> str:
    """The possible range of a difference before any label, in one line."""
    first, second = difference.models
    share, sets = difference.interval, number_of(difference.sets, "set")
    return (
        f"{first} less {second} in {difference.question.name} of these {sets} is "
        f"{span(share.low, share.high, 'difference')} percentage points, whatever their labels: "
        f"the two can differ on {difference.differing:,} of them"
    )


def say_next_sets(difference: ModelDifference) -> str:
    """The first of the sets to label next; empty if the difference is clear or exact."""
    low, high = difference.interval.ends
    if low > 0 or high < 0 or not difference.next_sets:
        return ""
    return f"to label next, in this order: {list_some(difference.next_sets)}"
