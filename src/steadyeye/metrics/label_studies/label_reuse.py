"""Uses the labels of a study for another model on the same data: the class of each set is stored.

The sets that can count for both models were labelled in an order that depends on no model, so that
these labels are a uniform sample of them. The sets that can count only for the other model are a
separate stratum, which nobody was asked to label.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.label_budget import (
    Pool,
    StratumCounts,
    bound_difference,
    bound_without_labels,
)
from steadyeye.metrics.label_studies.answered_sets import (
    AnsweredSets,
    count_at_least_and_most,
    find_sets,
    fold_name,
)
from steadyeye.metrics.label_studies.files import StudyRecord
from steadyeye.metrics.label_studies.judge import Labels
from steadyeye.metrics.label_studies.study import (
    LabelStudy,
    match_samples,
    plan_study,
    rank_sets,
)


@dataclass(frozen=True, eq=False)
class LabelSample:
    """The labels of a study, and the sets that are a uniform sample of its sets.

    `labels`: set → its classes; with one label per scene, for all sets of the scene. `candidates`:
    those of the study. `first`: of these the labelled ones up to the first without a label.
    `any_time`: whether their number may depend on their results; False if it was fixed before the
    first label. `sources`: with one label per scene, set → the labelled set; otherwise None.
    """

    labels: Labels
    candidates: frozenset[str]
    first: frozenset[str]
    any_time: bool
    seed: int
    sources: Mapping[str, str] | None = None

    def list_labelled(self, names: Iterable[str]) -> set[str]:
        """The labelled sets, from which the labels of these sets follow."""
        sources = self.sources
        return set(names) if sources is None else {sources[name] for name in names}


@dataclass(frozen=True)
class LabelledPools:
    """Sets that can count, in pools: those of the study, and the others.

    `serving`: the sets whose labels are counted.
    """

    pools: tuple[Pool, Pool]
    serving: frozenset[str]


@dataclass(frozen=True, eq=False)
class ReuseResult:
    """The result for one model from labels that were collected for another.

    `study`: of this model, as if planned for it. `interval`, `bound`, `holds`: as in `StudyResult`.
    `labels`: number of used labels, of `collected` ones. `sets_outside`: number of sets outside
    that study that can count, `labels_outside` of which have a label. `collected_for`: the model
    that the labels were collected for. `sampled`: of the sets that can count those of which the
    labels are a uniform sample; empty with one label per scene. `serving`: the sets whose labels
    are counted → their classes.
    """

    study: LabelStudy
    interval: Interval
    bound: Interval
    holds: bool | None
    labels: int
    collected: int
    sets_outside: int
    labels_outside: int
    collected_for: str
    sampled: frozenset[str]
    serving: Labels


def judge_other_model(record: StudyRecord, predictions: Predictions, labels: Labels) -> ReuseResult:
    """The result of a study's question for another model on the same data.

    The interval holds 95 % or more, also where the number of labels depends on what they show of
    the first model: exact bounds of each stratum, with the error divided by their sizes. Raises
    `UsageError` for other data, and for labels that are no sample for another model.
    """
    check_samples(record, predictions)
    study = plan_study(predictions, record.question, record.premise, seed=record.seed)
    sets = find_sets(predictions, study.question)
    sample = read_sample(record, labels, sets)
    metric, answers = study.question.metric, dict(zip(sets.ids.tolist(), sets.answers, strict=True))

    def count(name: str) -> tuple[bool, bool]:
        return count_at_least_and_most(metric, answers[name], sample.labels[name])

    names = sets.ids[sets.candidates].tolist()
    counted = count_pools(names, count, sample)
    low, high = bound_difference(counted.pools)
    total = len(sets.ids)
    mean = estimate_right(counted.pools)
    value = low / total if low == high else None if mean is None else mean / total
    number, outside = len(sample.list_labelled(counted.serving)), counted.pools[1].counts
    method = name_method(sample, counted.pools)
    interval = Interval(value, low / total, high / total, number, method)
    return ReuseResult(
        study=study,
        interval=interval,
        bound=bound_without_labels(int(sets.candidates.sum()), total),
        holds=_find_verdict(study, low, high),
        labels=number,
        collected=len(labels),
        sets_outside=outside.consistent if sample.sources is None else 0,
        labels_outside=outside.labelled,
        collected_for=record.model,
        sampled=sample.candidates & set(names) if sample.sources is None else frozenset(),
        serving={name: sample.labels[name] for name in counted.serving},
    )


def _find_verdict(study: LabelStudy, low: int, high: int) -> bool | None:
    """Whether the requirement holds if between `low` and `high` sets count; None if it is open."""
    if study.question.share is None:
        return None
    if low < study.threshold <= high:
        return None
    return (low >= study.threshold) == study.question.wants_many


def check_samples(record: StudyRecord, predictions: Predictions) -> None:
    """Raises `UsageError` where predictions are not of the data that a study was planned on."""
    if not match_samples(record.samples, predictions):
        raise UsageError(
            f"the labels were collected for {record.model} on {record.data}, whose samples are not "
            f"those of {predictions.model} on {predictions.data}; give the run that it was planned "
            "for, or one of another model on the same data"
        )


def read_sample(
    record: StudyRecord, labels: Labels, sets: AnsweredSets, others: Labels | None = None
) -> LabelSample:
    """Which labels of a study are a uniform sample; `sets`: of any model on its data.

    `others`: labels of another study on the same data; they count where the number of labels was
    not fixed beforehand. Raises `UsageError` if the premise was checked for one model, if the order
    depended on its predictions or is not that of the seed, and if two sets of a scene have
    different labels.
    """
    if record.checks:
        raise UsageError(
            f"the labels rest on a premise that was checked for {record.model} alone; give them to "
            "`steadyeye label --labels` with the run of the other model, which checks it for that"
        )
    by_scene = record.premise is not None and record.premise.of_scenes
    joined_labels = {**(others or {}), **labels}
    sources = spread_over_scenes(sets, joined_labels) if by_scene else None
    if record.strata:
        raise UsageError(
            f"the labels were collected in an order by {record.strata} of {record.model}, so they "
            "are no uniform sample for another model; collect them without --strata"
        )
    if not by_scene and record.order != tuple(rank_sets(record.order, record.seed)):
        raise UsageError(
            "study.json is damaged: its order is not that of its seed; take the file that was "
            "written with the labels"
        )
    first = list(takewhile(lambda name: name in labels, record.order))
    budget = record.stop.budget
    is_planned = (
        record.question.share is None
        and not record.against
        and record.stop.target is None
        and budget is not None
        and len(first) == min(budget, len(record.order))
        and not record.earlier
    )
    if not is_planned:
        first = list(takewhile(lambda name: name in joined_labels, record.order))
    if sources is not None:
        joined_labels = {name: joined_labels[source] for name, source in sources.items()}
    return LabelSample(
        labels=joined_labels,
        candidates=frozenset(record.order),
        first=frozenset(first),
        any_time=not is_planned,
        seed=record.seed,
        sources=sources,
    )


def spread_over_scenes(sets: AnsweredSets, labels: Labels) -> dict[str, str]:
    """Each set of a scene with a label → the set of the scene that was labelled.

    Raises `UsageError` where two sets of a scene have different labels.
    """
    scenes = dict(zip(sets.ids.tolist(), sets.scenes.tolist(), strict=True))
    first: dict[str, str] = {}
    for name in sorted(set(labels) & set(scenes)):
        before = first.setdefault(scenes[name], name)
        if set(map(fold_name, labels[before])) != set(map(fold_name, labels[name])):
            raise UsageError(
                f"'{before}' and '{name}' are from one scene and have different labels: the "
                "premise scene-class does not hold; use constant-class"
            )
    return {name: first[scene] for name, scene in scenes.items() if scene in first}


def check_classes(first: Labels, second: Labels) -> None:
    """Raises `UsageError` where a set has one class in the labels of a study, another in those."""
    for name in sorted(set(first) & set(second)):
        if set(map(fold_name, first[name])) != set(map(fold_name, second[name])):
            raise UsageError(
                f"the set '{name}' has different classes in the two studies; correct one"
            )


def count_pools(
    names: Sequence[str], count: Callable[[str], tuple[bool, bool]], sample: LabelSample
) -> LabelledPools:
    """The counts of labels on the sets that can count for a model.

    `names`: these sets. `count`: whether a labelled set certainly counts, and whether it may. For
    sets outside the study, labels count up to the first set without one, in the order of the seed.
    With one label per scene, the first pool holds the labelled sets and the second one the others.
    """
    known = sample.labels
    if sample.sources is not None:
        inside = [name for name in names if name in known]
        outside = [name for name in names if name not in known]
        labelled, others = inside, list[str]()
    else:
        inside = [name for name in names if name in sample.candidates]
        outside = rank_sets(set(names) - set(inside), sample.seed)
        labelled = [name for name in inside if name in sample.first]
        others = list(takewhile(lambda name: name in known, outside))

    def count_pool(labelled: Sequence[str], size: int, any_time: bool) -> Pool:
        worth = [count(name) for name in labelled]
        right, possible = (sum(ends[side] for ends in worth) for side in (0, 1))
        return Pool(StratumCounts(right, possible - right, len(labelled), size), any_time)

    pools = (
        count_pool(labelled, len(inside), sample.any_time),
        count_pool(others, len(outside), any_time=True),
    )
    return LabelledPools(pools, frozenset(labelled) | frozenset(others))


def estimate_right(pools: Sequence[Pool]) -> float | None:
    """The estimated number of right sets of the pools; None if a pool has no label.

    Labels that say "nobody could tell" are left out.
    """
    counts = [pool.counts for pool in pools if pool.counts.consistent]
    if any(c.labelled == c.unknown for c in counts):
        return None
    return sum(c.right / (c.labelled - c.unknown) * c.consistent for c in counts)


def name_method(sample: LabelSample, pools: Sequence[Pool]) -> str:
    """The method of an interval of pools, from the labels of a sample."""
    if sample.sources is not None:
        return "counted, by scene"
    counted = [pool for pool in pools if pool.counts.labelled]
    any_time = any(pool.any_time for pool in counted) if counted else sample.any_time
    ends = "prior-posterior ratio, at every look" if any_time else "hypergeometric"
    return f"{ends}, of these sets only"


def say_reuse(result: ReuseResult) -> str:
    """The number of labels used, and of sets in a separate stratum, in words."""
    serve = f"{result.labels:,} of {number_of(result.collected, 'label')}"
    text = f"{serve} collected for {result.collected_for} are used"
    if not result.sets_outside:
        return text
    lack = result.sets_outside - result.labels_outside
    own = f"{result.labels_outside:,} labelled" if result.labels_outside else "none labelled"
    nouns = "set outside that study is", "sets outside that study are"
    stratum = f"{number_of(result.sets_outside, *nouns)} a new stratum"
    return f"{text}; {stratum}, {own}" if lack else f"{text}; {stratum}, all labelled"
