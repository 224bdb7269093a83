"""What the labels so far show: interval, verdict, and how many more it takes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from steadyeye.core.errors import UsageError
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.label_budget import (
    RequiredShare,
    bound_without_labels,
    count_ends,
    count_ends_any_time,
)
from steadyeye.metrics.label_studies.answered_sets import counts_as, fold_name
from steadyeye.metrics.label_studies.study import LabelStudy

Labels = Mapping[str, Sequence[str]]
"""Set, or set of a scene → the classes that all its frames show; none: nobody could tell."""

LEAST = 10
"""So many labels at least, before a narrow interval ends a study."""


@dataclass(frozen=True)
class Counts:
    """Labels counted: `right` of `labelled` candidates count, `unknown` could not be labelled.

    `sets_open`: of scenes, sets that may still count. `later`: labels that are not used, since a
    set before them in the order has none, or since it was enough before them.
    """

    right: int
    labelled: int
    unknown: int
    sets_open: int
    later: int


@dataclass(frozen=True)
class StudyResult:
    """What a study shows after some labels.

    `interval`: of the share of these sets; of a question with a number it holds at every look.
    `bound`: the share without any label. `holds`: whether what the question requires holds, None:
    open, or nothing is required. `evidence`: for and against it, decided from 40 on. `enough`:
    whether no further label is asked for. `more`: how many more labels it takes at least to decide,
    None where nothing is required.
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
        """How many labels it stands on."""
        return self.counts.labelled


def judge(study: LabelStudy, labels: Labels) -> StudyResult:
    """What labels show of the question of a study; the same in whichever order they came.

    Only the labels up to the first candidate without one count, since those after it were chosen
    by somebody. Raises `UsageError` for labels of sets that the data do not have, and for two
    different labels in one scene.
    """
    _check_known(study, labels)
    counts = _count_scenes(study, labels) if study.scenes else _count(study, labels)
    total = len(study.sets)
    bound = bound_without_labels(study.countable, total)
    if study.question.share is None:
        interval = _interval(study, counts, any_time=False)
        return StudyResult(
            interval, bound, None, (0.0, 0.0), counts, _is_enough(study, counts, interval), None
        )
    passes, evidence, more = _decide(study, counts)
    interval = _interval(study, counts, any_time=True)
    # where few sets are to count, reaching the number is failing
    many = study.question.wants_many
    holds = passes if many or passes is None else not passes
    evidence = evidence if many else (evidence[1], evidence[0])
    spent = study.stop.budget is not None and counts.labelled >= study.stop.budget
    enough = holds is not None or spent
    return StudyResult(interval, bound, holds, evidence, counts, enough, more)


def next_sets(study: LabelStudy, labels: Labels, most: int = 1) -> tuple[str, ...]:
    """The candidates to ask about next, in order; none where it is enough."""
    if judge(study, labels).enough:
        return ()
    return tuple(name for name in study.candidates if _of(study, labels, name) is None)[:most]


def _check_known(study: LabelStudy, labels: Labels) -> None:
    strangers = sorted(set(labels) - set(study.sets))
    if strangers:
        raise UsageError(
            f"{len(strangers):,} of {len(labels):,} labels are of sets that {study.data} does not "
            f"have, first '{strangers[0]}'; give the labels of this data"
        )


def _of(study: LabelStudy, labels: Labels, name: str) -> Sequence[str] | None:
    """The labels of a candidate, of a scene those of any of its sets; None where it has none."""
    if not study.scenes:
        return labels.get(name)
    several = [(s, labels[s]) for s in (name, *study.scenes[name]) if s in labels]
    if len({frozenset(map(fold_name, classes)) for _, classes in several}) > 1:
        first, *_, last = several
        raise UsageError(
            f"'{first[0]}' and '{last[0]}' are of one scene and have different labels: "
            "the premise scene-class does not hold; use constant-class"
        )
    return several[0][1] if several else None


def _count(study: LabelStudy, labels: Labels) -> Counts:
    """The candidates counted up to the first without a label, or up to where it was enough."""
    right = unknown = labelled = 0
    every = sum(name in labels for name in study.candidates)
    for name, classes in _in_order(study, labels):
        if study.stop.budget is not None and labelled == study.stop.budget:
            break
        right += counts_as(study.question.metric, study.answers[name], tuple(classes))
        unknown += not classes and not study.question.of_images
        labelled += 1
        counts = Counts(right, labelled, unknown, 0, every - labelled)
        if study.question.share is None and _is_narrow(study, counts):
            return counts
    return Counts(right, labelled, unknown, 0, every - labelled)


def _in_order(study: LabelStudy, labels: Labels) -> Iterator[tuple[str, Sequence[str]]]:
    names = takewhile(lambda name: name in labels, study.candidates)
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
        metric = study.question.metric
        right += sum(counts_as(metric, study.answers[s], tuple(classes)) for s in members)
    return Counts(right, labelled, unknown, still_open, 0)


def _decide(
    study: LabelStudy, counts: Counts
) -> tuple[bool | None, tuple[float, float], int | None]:
    total = len(study.sets)
    needed = study.question.count_needed(total)
    if study.scenes:
        passes = True if counts.right >= needed else None
        passes = False if counts.right + counts.sets_open < needed else passes
        return passes, (0.0, 0.0), _least_scenes(study, counts, needed, passes)
    required = RequiredShare(needed, study.countable, total)
    # a set that nobody could label is wrong where it is to pass, right where it is to fail
    above = required.decide(counts.right, counts.labelled)
    below = required.decide(counts.right + counts.unknown, counts.labelled)
    passes = True if above.passes is True else False if below.passes is False else None
    more = required.least_more(counts.right, counts.labelled, counts.unknown)
    return passes, (above.evidence[0], below.evidence[1]), 0 if passes is not None else more


def _least_scenes(study: LabelStudy, counts: Counts, needed: int, passes: bool | None) -> int:
    """How many more scenes decide it at least; what is open may all be right or all be wrong."""
    if passes is not None:
        return 0
    sizes = sorted(map(len, study.scenes.values()), reverse=True)[counts.labelled :]
    to_pass, to_fail = needed - counts.right, counts.right + counts.sets_open - needed + 1
    for more, _ in enumerate(sizes, start=1):
        if sum(sizes[:more]) >= min(to_pass, to_fail):
            return more
    return len(sizes)


def _interval(study: LabelStudy, counts: Counts, *, any_time: bool) -> Interval:
    total, countable = len(study.sets), study.countable
    if study.scenes:
        low, high = counts.right, counts.right + counts.sets_open
        value = counts.right / total if low == high else None
        return Interval(value, low / total, high / total, counts.labelled, "counted, by scene")
    ends = count_ends_any_time if any_time else count_ends
    low, _ = ends(counts.right, counts.labelled, countable)
    _, high = ends(counts.right + counts.unknown, counts.labelled, countable)
    known = counts.labelled - counts.unknown
    value = counts.right / known * countable / total if known else None if countable else 0.0
    method = "prior-posterior ratio, at every look" if any_time else "hypergeometric"
    method = f"{method}, of these sets only"
    return Interval(value, low / total, high / total, counts.labelled, method)


def _is_narrow(study: LabelStudy, counts: Counts) -> bool:
    if study.stop.target is None or counts.labelled < min(LEAST, study.countable):
        return False
    interval = _interval(study, counts, any_time=False)
    assert interval.low is not None, "a count has an interval"
    assert interval.high is not None, "a count has an interval"
    return (interval.high - interval.low) / 2 <= study.stop.target


def _is_enough(study: LabelStudy, counts: Counts, interval: Interval) -> bool:
    if study.stop.budget is not None and counts.labelled >= study.stop.budget:
        return True
    if counts.labelled == len(study.candidates):
        return True
    if study.scenes:
        assert interval.low is not None, "a count has an interval"
        assert interval.high is not None, "a count has an interval"
        width = (interval.high - interval.low) / 2
        return study.stop.target is not None and width <= study.stop.target
    return _is_narrow(study, counts)
