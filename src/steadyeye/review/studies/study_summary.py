"""The summary of a label study of one or of two models, for its page, its JSON and the terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import ceil, floor
from typing import Any

from sqlalchemy import Connection

from steadyeye.core.format import interval, number_of, percent, points, span
from steadyeye.core.stats.intervals import Interval, clopper_pearson
from steadyeye.metrics.label_studies.difference_study import DifferenceStudy
from steadyeye.metrics.label_studies.judge import Labels, StudyResult
from steadyeye.metrics.label_studies.judge_difference import DifferenceResult
from steadyeye.metrics.label_studies.model_difference import say_difference
from steadyeye.metrics.label_studies.sentences import (
    say_advice,
    say_bound,
    say_checks,
    say_earlier,
    say_result,
)
from steadyeye.metrics.label_studies.study import LabelStudy, StopRule
from steadyeye.metrics.label_studies.video_share import find_video_share, say_videos
from steadyeye.review.studies.live_study import LabelCounts, LiveStudy, count_labels, judge_study

POINTS = 40  # of the picture, at most about so many: each takes a tenth of a second once
ROOM = 1.25  # of the labels so far, which the picture has place for


def describe_study(connection: Connection, live: LiveStudy) -> Mapping[str, Any]:
    """The current result of a study, for people and programs.

    `state`: holds, fails, enough (for a study without a decision), or open. `sentences`, `numbers`
    (name, text) and `remarks`: for people. `picture`: `trace`, the ends of the interval after fewer
    labels, (labels, low, high); `required`: the share that is required, or None; `horizon`: labels
    that the picture has place for.
    """
    study, labels = live.study, live.read_labels(connection)
    result = live.judge(connection)
    assert isinstance(study, LabelStudy), "a study of two models has a summary of its own"
    assert isinstance(result, StudyResult), "a study of one model"
    people = count_labels(connection, live.items.gold)
    videos = find_video_share(study, labels, result)
    unclear_as = "counted or not" if study.question.of_images else "right or wrong"
    return {
        "question": str(study.question),
        "model": study.model,
        "data": study.data,
        "state": _name_state(result),
        "asks": live.go_on or not result.enough,
        "sentences": {"headline": say_result(study, result), "caption": _word_caption(study)},
        "numbers": _list_numbers(study, result, people),
        "remarks": [
            *([say_bound(study)] if result.counts.total else []),
            *([say_earlier(study)] if study.earlier else []),
            *list_people_remarks(live, people, unclear_as),
            *_word_errors(study, result, people),
            *_list_checks(study, result),
            *filter(None, [say_videos(videos, result)]),
        ],
        "picture": {
            "trace": trace_interval(live, labels, result),
            "required": None if study.question.share is None else float(study.question.share),
            "horizon": find_horizon(result.counts.total, result.more or 0, len(study.order)),
        },
        "result": _describe_result(result),
        "videos": asdict(videos),
        "people": asdict(people),
        "sets": len(study.sets),
        "candidates": len(study.candidates),
        "countable": study.countable,
        "premise": asdict(study.premise) if study.premise else None,
        "seed": study.seed,
        "stop": asdict(study.stop),
        "fingerprint": study.fingerprint,
    }


def _name_state(result: StudyResult) -> str:
    if result.holds is not None:
        return "holds" if result.holds else "fails"
    return "enough" if result.enough else "open"


def _describe_result(result: StudyResult) -> Mapping[str, Any]:
    """The result for JSON: infinite evidence is None."""
    finite = [None if value == float("inf") else value for value in result.evidence]
    return {**asdict(result), "evidence": finite}


def _word_caption(study: LabelStudy) -> str:
    unit = "scene" if study.scenes else "label"
    closes = f"The interval of {study.question.name} narrows with every {unit}"
    if study.question.share is None:
        return f"{closes}. Before the first {unit} it holds every value that the predictions allow."
    return f"{closes}. The study ends once all of it lies on one side of the dashed line."


def _list_numbers(
    study: LabelStudy, result: StudyResult, people: LabelCounts
) -> Sequence[tuple[str, str]]:
    """Names and values for people."""
    share, counts = result.interval, result.counts
    used = f"{counts.labelled:,} of {len(study.candidates):,} that can count"
    why = "of later sets" if study.earlier else "out of order"
    more = f", {counts.later:,} more {why}" if counts.later else ""
    numbers = [
        ("Labels", f"{used}{more}"),
        (study.question.name, percent(share.value)),
        ("95 % interval", interval(share.low, share.high)),
        ("Without any label", f"at most {percent(result.bound.high)}"),
    ]
    if study.question.share is not None:
        required = percent(float(study.question.share))
        numbers.append(("Required", f"{study.question.relation} {required}"))
    if study.checks:
        checked = f"{counts.checks.checked:,} of {number_of(len(study.checks), 'set')}"
        numbers.append(("Checks of the premise", checked))
    if result.more:
        numbers.append(("To a decision", f"at least {number_of(result.more, 'more label')}"))
    return [*numbers, *list_limits(study.stop, share), *list_gold_numbers(people)]


def list_limits(stop: StopRule, share: Interval) -> Sequence[tuple[str, str]]:
    """The stopping rule, and the distance of the interval from it: names and values for people."""
    limits = []
    if stop.budget is not None:
        limits.append(("Budget", number_of(stop.budget, "label")))
    if stop.target is not None:
        width = (share.high or 0.0) - (share.low or 0.0)
        target = f"± {100 * stop.target:g} percentage points"
        limits.append(("Target", f"{target}; now ± {50 * width:.1f}"))
    return limits


def list_gold_numbers(people: LabelCounts) -> Sequence[tuple[str, str]]:
    """The number of wrong answers to gold questions; empty without answers."""
    wrong, answered = people.gold_wrong, people.gold_asked
    return [("Gold questions wrong", f"{wrong:,} of {answered:,}")] if answered else []


def _list_checks(study: LabelStudy, result: StudyResult) -> Sequence[str]:
    """Sentences on the checks of the premise, or on what checks would show."""
    about = say_checks(study, result) if study.checks else say_advice(study)
    return [f"{about[0].upper()}{about[1:]}."] if about else []


def list_people_remarks(live: LiveStudy, people: LabelCounts, unclear_as: str) -> Sequence[str]:
    """Remarks on the numbers: wrong labels, the premise, sets left out.

    `unclear_as`: the outcomes that the interval allows for a set whose class nobody could tell.
    """
    study = live.study
    remarks = [_word_gold(people)]
    if study.premise and people.labelled and not study.checks:
        remarks.append(_word_premise(people))
    if people.unclear:
        unclear = number_of(people.unclear, "image" if study.question.of_images else "set")
        remarks.append(
            f"For {unclear} nobody could tell the class, or people disagreed: the interval "
            f"allows each to be {unclear_as}."
        )
    if live.items.faults:
        lost = number_of(len(live.items.faults), "image" if study.question.of_images else "set")
        remarks.append(
            f"No picture can be made of {lost} (see the terminal), so that nobody is asked: the "
            f"interval allows each to be {unclear_as}."
        )
    return [*remarks, *(f"{note[0].upper()}{note[1:]}." for note in study.notes)]


def _word_gold(people: LabelCounts) -> str:
    if not people.gold_asked:
        return (
            "The interval assumes that every label is right; no gold question was answered, so "
            "that the share of wrong labels is not known."
        )
    wrong, answered = people.gold_wrong, people.gold_asked
    ends = interval(*clopper_pearson(wrong, answered))
    return (
        f"The interval assumes that every label is right; {wrong:,} of "
        f"{number_of(answered, 'label')} of gold questions were wrong (95 % interval {ends})."
    )


def _word_errors(study: LabelStudy, result: StudyResult, people: LabelCounts) -> Sequence[str]:
    """The interval with as many wrong labels as the gold questions allow."""
    # a wrong label of a scene is one of all its sets
    if not people.gold_asked or not result.labels or study.scenes:
        return []
    _, most = clopper_pearson(people.gold_wrong, people.gold_asked)
    # a wrong label of a check is one of a set that may count all the same
    countable = study.countable + (study.exempt if study.checks else 0)
    ends = widen_for_errors(result.interval, most, countable, len(study.sets))
    return [
        f"If up to {percent(most)} of all labels are wrong, the interval of "
        f"{study.question.name} is {interval(*ends)}."
    ]


def _word_premise(people: LabelCounts) -> str:
    sets = number_of(people.labelled, "labelled set")
    unsure = f"; people were not sure about {people.unsure:,}" if people.unsure else ""
    if not people.changing:
        return f"As the study assumes, the class is on all frames of {sets}{unsure}."
    return (
        f"The class is not on all frames of {people.changing:,} of {sets}{unsure}. The study "
        "assumes one class per set; do not rely on it if more than 1 in 100 change."
    )


def find_horizon(labels: int, more: int, candidates: int) -> int:
    """The number of labels on the axis of the chart: at least until the earliest decision.

    `more`: the least number of labels to a decision, after `labels`.
    """
    least = max(ROOM * labels, labels + more, 10)
    rooms = (n for n in (10, 20, 30, 40, 60, 80, 100, 150, 200, 300, 400, 600) if n >= least)
    return min(next(rooms, int(least)), max(candidates, 1))


def trace_interval(
    live: LiveStudy, labels: Labels, result: StudyResult | DifferenceResult
) -> Sequence[tuple[int, float, float]]:
    """(labels, low, high) after fewer labels in the order of the study, and now.

    Points that the chart cannot show are left out, and computed points are stored.
    """
    step, count = 1, result.counts.total
    while count // step > POINTS:
        step *= 2
    used: dict[str, Sequence[str]] = {}
    points = [_find_ends(live, used, 0)]
    for name in live.study.order[:count]:
        used[name] = labels.get(name, ())
        if len(used) % step == 0 and len(used) < count:
            points.append(_find_ends(live, used, len(used)))
    if count:
        points.append((count, result.interval.low or 0.0, result.interval.high or 0.0))
    return points


def _find_ends(live: LiveStudy, used: Labels, n: int) -> tuple[int, float, float]:
    key = tuple(used.items())
    if key not in live.ends:
        share = judge_study(live.study, dict(used)).interval
        live.ends[key] = (n, share.low or 0.0, share.high or 0.0)
    return live.ends[key]


def widen_for_errors(
    share: Interval, wrong: float, countable: int, sets: int
) -> tuple[float, float]:
    """The ends of an interval, as shares of all sets, if some labels are wrong.

    The interval is of the share of sets that would count if each of the `countable` ones, of
    `sets`, had its label. A wrong label moves that number by one at most. So if at most a share of
    `wrong` of these labels is wrong, 0…1, the truth is no farther from it than `wrong` ×
    `countable` sets, whichever labels they are. The ends hold as often as those of the interval.
    """
    low, high = share.ends
    farthest, most = wrong * countable / sets, countable / sets
    return max(low - farthest, 0.0), min(high + farthest, most)


def describe_difference(connection: Connection, live: LiveStudy) -> Mapping[str, Any]:
    """The current result of a study of two models, for people and programs.

    The form is that of `describe_study`. `state`: better, worse (the first model), enough, or open.
    In `picture` the numbers are in −1…1, `required` is 0, and `axis` the lowest and highest number
    of the axis, with the text of the dashed line.
    """
    study, result = live.study, live.judge(connection)
    assert isinstance(study, DifferenceStudy), "a study of one model has a summary of its own"
    assert isinstance(result, DifferenceResult), "a study of two models"
    people = count_labels(connection, live.items.gold)
    trace = trace_interval(live, live.read_labels(connection), result)
    return {
        "question": f"{study.question} of {study.model} less {study.against}",
        "model": f"{study.model} and {study.against}",
        "data": study.data,
        "state": _name_difference_state(result),
        "asks": live.go_on or not result.enough,
        "sentences": {
            "headline": say_difference(result.difference),
            "caption": _word_difference_caption(study),
        },
        "numbers": _list_difference_numbers(study, result, people),
        "remarks": [
            *_list_difference_remarks(result),
            *list_people_remarks(live, people, "right or wrong for either model"),
        ],
        "picture": {
            "trace": trace,
            "required": 0.0,
            "horizon": find_horizon(result.labels, 0, len(study.candidates)),
            "axis": _find_axis(trace),
        },
        "result": asdict(result),
        "people": asdict(people),
        "sets": len(study.sets),
        "candidates": len(study.candidates),
        "premise": asdict(study.premise) if study.premise else None,
        "seed": study.seed,
        "stop": asdict(study.stop),
        "fingerprint": study.fingerprint,
    }


def _name_difference_state(result: DifferenceResult) -> str:
    if result.better:
        return "better" if result.better == result.difference.models[0] else "worse"
    return "enough" if result.enough else "open"


def _word_difference_caption(study: DifferenceStudy) -> str:
    closes = (
        f"The interval of {study.model} less {study.against}, in percentage points, narrows with "
        "every label"
    )
    if study.stop.target is not None:
        return f"{closes}. Before the first label it holds every value that the predictions allow."
    return f"{closes}. The difference is clear once the interval excludes the dashed line, 0."


def _list_difference_numbers(
    study: DifferenceStudy, result: DifferenceResult, people: LabelCounts
) -> Sequence[tuple[str, str]]:
    """Names and values for people."""
    share, counts = result.interval, result.counts
    used = f"{counts.labelled:,} of {number_of(len(study.candidates), 'set')} that can differ"
    more = f", {counts.later:,} more out of order" if counts.later else ""
    numbers = [
        ("Labels", f"{used}{more}"),
        (f"{study.question} (pp)", points(share.value)),
        ("95 % interval (pp)", span(*share.ends, "difference")),
        (f"Only {study.model} right", number_of(counts.better, "set")),
        (f"Only {study.against} right", number_of(counts.worse, "set")),
    ]
    return [*numbers, *list_limits(study.stop, share), *list_gold_numbers(people)]


def _list_difference_remarks(result: DifferenceResult) -> Sequence[str]:
    difference = result.difference
    alike = number_of(difference.sets - difference.differing, "set")
    return [
        f"No label is needed for {alike}: there the two models cannot differ in "
        f"{difference.question}."
    ]


def _find_axis(trace: Sequence[tuple[int, float, float]]) -> Mapping[str, Any]:
    """The axis of the chart, in tenths, with 0 inside."""
    lowest = min(0.0, *(low for _, low, _ in trace), -0.1)
    highest = max(0.0, *(high for _, _, high in trace), 0.1)
    return {
        "lowest": floor(10 * lowest + 1e-9) / 10,
        "highest": ceil(10 * highest - 1e-9) / 10,
        "dashed": "no difference",
    }
