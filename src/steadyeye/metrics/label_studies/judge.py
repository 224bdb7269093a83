"""The result of the labels so far: interval, verdict, and the number of further labels."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, takewhile

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.label_budget import (
    RequiredShare,
    StratumCounts,
    bound_without_labels,
    count_ends,
    count_ends_any_time,
    count_ends_of_strata,
    estimate_share_of_strata,
)
from steadyeye.metrics.label_studies.answered_sets import count_at_least_and_most, fold_name
from steadyeye.metrics.label_studies.difference_study import DifferenceStudy
from steadyeye.metrics.label_studies.premise_checks import (
    NO_CHECKS,
    Allowance,
    CheckCounts,
    is_doubtful,
)
from steadyeye.metrics.label_studies.study import LabelStudy

Labels = Mapping[str, Sequence[str]]
"""Set, or set of a scene → the classes that all its frames show; none: nobody could tell."""

LEAST = 10
"""Least number of labels before a narrow interval ends a study."""


@dataclass(frozen=True)
class Counts:
    """Labels counted: `right` of `labelled` candidates count, `unknown` may or may not.

    `sets_open`: of scenes, sets that may still count. `later`: labels that are not used, since a
    set before them in the order has none, or since it was enough before them. `strata`: of a study
    with strata, the counts of each. `checks`: sets that need no label if the premise holds.
    """

    right: int
    labelled: int
    unknown: int
    sets_open: int
    later: int
    strata: tuple[StratumCounts, ...] = ()
    checks: CheckCounts = NO_CHECKS

    @property
    def total(self) -> int:
        """The number of labelled sets that count, checks included."""
        return self.labelled + self.checks.checked


@dataclass(frozen=True)
class StudyResult:
    """The result of a study after some labels.

    `interval`: of the share of these sets; it holds at every look for a question with a required
    value, and for an open one with earlier labels. `bound`: the share without any label. `holds`:
    whether the requirement holds, None if it is open or there is none. `evidence`: for and against
    it, decided from 40 on. `enough`: whether no further label is needed. `more`: the least number
    of further labels for a decision, None without a requirement.
    """

    interval: Interval
    bound: Interval
    holds: bool | None
    evidence: tuple[float, float]
    counts: Counts
    enough: bool
    more: int | None

    @property
    def labels(self) -> int:
        """The number of labels that were used."""
        return self.counts.labelled


def judge(study: LabelStudy, labels: Labels) -> StudyResult:
    """The result of labels for a study's question, independent of the order in which they came.

    Labels count up to the first set of the order without one, since later ones are no random
    sample, and up to the first decision: a label given after it does not change the decision. If
    all of the order are labelled, all labels count. If the premise is checked, the exempt sets that
    may count raise the upper end of the interval, and a verdict that depends on this end uses the
    raised one. Raises `UsageError` for labels of sets that the data do not have, and for two
    different labels in one scene.
    """
    check_known(study, labels)
    counts = _count_scenes(study, labels) if study.scenes else _count(study, labels)
    total = len(study.sets)
    exempt = study.exempt if study.checks else 0
    bound = bound_without_labels(study.countable + exempt, total)
    if study.question.share is None:
        interval = _interval(study, counts, any_time=False)
        enough = _is_enough(study, counts, interval)
        if study.earlier and not enough:
            # how many labels count so far depends on what they showed of another model
            interval = _interval(study, counts, any_time=True)
        return StudyResult(interval, bound, None, (0.0, 0.0), counts, enough, None)
    passes, evidence, more = _decide(study, counts, labels)
    interval = _interval(study, counts, any_time=True)
    # where few sets are to count, reaching the number is failing
    many = study.question.wants_many
    holds = passes if many or passes is None else not passes
    evidence = evidence if many else (evidence[1], evidence[0])
    spent = study.stop.budget is not None and counts.total >= study.stop.budget
    enough = holds is not None or spent
    return StudyResult(interval, bound, holds, evidence, counts, enough, more)


def check_known(study: LabelStudy | DifferenceStudy, labels: Labels) -> None:
    """Raises `UsageError` for labels of sets that the data do not have."""
    strangers = sorted(set(labels) - set(study.sets))
    if strangers:
        raise UsageError(
            f"{study.data} does not have the sets of {len(strangers):,} of "
            f"{number_of(len(labels), 'label')}, first '{strangers[0]}'; give the labels of "
            "this data"
        )


def _of(study: LabelStudy, labels: Labels, name: str) -> Sequence[str] | None:
    """The labels of a candidate, or of any set of its scene; None without labels."""
    if not study.scenes:
        return labels.get(name)
    several = [(s, labels[s]) for s in (name, *study.scenes[name]) if s in labels]
    if len({frozenset(map(fold_name, classes)) for _, classes in several}) > 1:
        first, *_, last = several
        raise UsageError(
            f"'{first[0]}' and '{last[0]}' are from one scene and have different labels: "
            "the premise scene-class does not hold; use constant-class"
        )
    return several[0][1] if several else None


def _count(study: LabelStudy, labels: Labels) -> Counts:
    """The labels counted up to the first set without one, or up to where it was enough."""
    every = sum(name in labels for name in study.order)
    sizes = Counter(study.strata.values())
    strata = {name: StratumCounts(0, 0, 0, sizes[name]) for name in sorted(sizes)}
    checks = CheckCounts(study.exempt, len(study.checks))
    counts = Counts(0, 0, 0, 0, every, tuple(strata.values()), checks)
    planned = frozenset(study.checks)
    for name, classes in _in_order(study, labels):
        if counts.total == study.stop.budget or _is_settled(study, counts, every):
            break
        if name in planned:
            may_count = is_doubtful(study.question.metric, study.answers[name], classes)
            counts = replace(counts, checks=counts.checks.add(name, may_count))
        else:
            counts = _add_label(study, counts, strata, (name, classes))
    return replace(counts, later=every - counts.total)


def _add_label(
    study: LabelStudy,
    counts: Counts,
    strata: dict[str, StratumCounts],
    label: tuple[str, Sequence[str]],
) -> Counts:
    """With the label of one more candidate; its stratum among `strata` is counted on."""
    name, classes = label
    metric, answers = study.question.metric, study.answers[name]
    least, most = count_at_least_and_most(metric, answers, classes)
    if strata:
        strata[study.strata[name]] = strata[study.strata[name]].add(least, most and not least)
    right, labelled = counts.right + least, counts.labelled + 1
    unknown = counts.unknown + (most and not least)
    of_strata = tuple(strata.values())
    return Counts(right, labelled, unknown, 0, counts.later, of_strata, counts.checks)


def _is_settled(study: LabelStudy, counts: Counts, every: int) -> bool:
    """Whether no later label counts; `every`: number of labelled sets of the order."""
    if study.question.share is None:
        return _is_narrow(study, counts)
    if every == len(study.order) and study.stop.budget is None:
        return False
    required = _require(study, counts.checks.allow(any_time=True))
    return _find_verdict(required, counts.right, counts.unknown, counts.labelled) is not None


def _require(study: LabelStudy, allowance: Allowance) -> RequiredShare:
    sets, error = allowance.sets, allowance.error
    return RequiredShare(study.threshold, study.countable, len(study.sets), sets, error)


# every vote is judged anew, from the first label on
@lru_cache(maxsize=100_000)
def _find_verdict(required: RequiredShare, right: int, unknown: int, labelled: int) -> bool | None:
    """Whether the requirement holds after a number of labels; None if it is open."""
    # a set that nobody could label is wrong where it is to pass, right where it is to fail
    if required.decide(right, labelled).passes is True:
        return True
    return False if required.decide(right + unknown, labelled).passes is False else None


def _in_order(study: LabelStudy, labels: Labels) -> Iterator[tuple[str, Sequence[str]]]:
    names = takewhile(lambda name: name in labels, study.order)
    return ((name, labels[name]) for name in names)


def _count_scenes(study: LabelStudy, labels: Labels) -> Counts:
    right = labelled = unknown = still_open = 0
    for name, members in study.scenes.items():
        classes = _of(study, labels, name)
        labelled += classes is not None
        if not classes:
            still_open += len(members)
            unknown += classes is not None
            continue
        metric, answers = study.question.metric, study.answers
        for member in members:
            least, most = count_at_least_and_most(metric, answers[member], classes)
            right += least
            still_open += most and not least
    return Counts(right, labelled, unknown, still_open, 0)


def _decide(
    study: LabelStudy, counts: Counts, labels: Labels
) -> tuple[bool | None, tuple[float, float], int | None]:
    required = _require(study, counts.checks.allow(any_time=True))
    if study.scenes:
        to_pass = required.needed - counts.right
        to_fail = counts.right + counts.sets_open - required.needed + 1
        passes = True if to_pass <= 0 else False if to_fail <= 0 else None
        least = 0 if passes is not None else _least_scenes(study, labels, min(to_pass, to_fail))
        return passes, (0.0, 0.0), least
    above = required.decide(counts.right, counts.labelled)
    below = required.decide(counts.right + counts.unknown, counts.labelled)
    passes = _find_verdict(required, counts.right, counts.unknown, counts.labelled)
    at_best = _require(study, counts.checks.allow_at_best())
    more = at_best.least_more(counts.right, counts.labelled, counts.unknown)
    more = max(more, int(not counts.checks.is_complete))
    return passes, (above.evidence[0], below.evidence[1]), 0 if passes is not None else more


def _least_scenes(study: LabelStudy, labels: Labels, sets: int) -> int:
    """The least number of unlabelled scenes with a number of sets, the largest first."""
    names = (name for name in study.scenes if _of(study, labels, name) is None)
    sizes = sorted((len(study.scenes[name]) for name in names), reverse=True)
    enough = (n for n, sum_ in enumerate(accumulate(sizes), start=1) if sum_ >= sets)
    return next(enough, len(sizes))


def _interval(study: LabelStudy, counts: Counts, *, any_time: bool) -> Interval:
    total, countable = len(study.sets), study.countable
    if study.scenes:
        low, high = counts.right, counts.right + counts.sets_open
        value = counts.right / total if low == high else None
        return Interval(value, low / total, high / total, counts.labelled, "counted, by scene")
    if counts.strata:
        return _interval_of_strata(study, counts)
    ends = count_ends_any_time if any_time else count_ends
    # a narrow interval ends a study, so that the number of checks is not fixed beforehand
    by_width = study.stop.target is not None
    allowance = counts.checks.allow(any_time=any_time or by_width)
    low, _ = ends(counts.right, counts.labelled, countable)
    many = counts.right + counts.unknown
    high = ends(many, counts.labelled, countable, allowance.error)[1] + allowance.sets
    known = counts.labelled - counts.unknown
    value = counts.right / known * countable / total if known else None if countable else 0.0
    method = "prior-posterior ratio, at every look" if any_time else "hypergeometric"
    method = f"{method}, of these sets only"
    return Interval(value, low / total, high / total, counts.labelled, method)


def _interval_of_strata(study: LabelStudy, counts: Counts) -> Interval:
    total = len(study.sets)
    low, high = count_ends_of_strata(counts.strata)
    share = estimate_share_of_strata(counts.strata)
    value = None if share is None else share * study.countable / total
    method = "Korn–Graubard over strata, of these sets only"
    return Interval(value, low / total, high / total, counts.labelled, method)


def _is_narrow(study: LabelStudy, counts: Counts) -> bool:
    if study.stop.target is None or counts.labelled < min(LEAST, study.countable):
        return False
    low, high = _interval(study, counts, any_time=False).ends
    return (high - low) / 2 <= study.stop.target


def _is_enough(study: LabelStudy, counts: Counts, interval: Interval) -> bool:
    if study.stop.budget is not None and counts.total >= study.stop.budget:
        return True
    if counts.total == len(study.order):
        return True
    if study.scenes:
        low, high = interval.ends
        return study.stop.target is not None and (high - low) / 2 <= study.stop.target
    return _is_narrow(study, counts)
