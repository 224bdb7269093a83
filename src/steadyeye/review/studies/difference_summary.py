"""The summary of a label study of two models, for its page and its JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import ceil, floor
from typing import Any

from sqlalchemy import Connection

from steadyeye.core.format import number_of, points, span
from steadyeye.metrics.label_studies.difference_study import DifferenceStudy
from steadyeye.metrics.label_studies.judge_difference import DifferenceResult
from steadyeye.metrics.label_studies.model_difference import say_difference
from steadyeye.review.studies.live_study import LabelCounts, LiveStudy, count_labels
from steadyeye.review.studies.study_summary import (
    find_horizon,
    list_gold_numbers,
    list_limits,
    list_people_remarks,
    trace_interval,
)


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
        "state": _name_state(result),
        "asks": live.go_on or not result.enough,
        "sentences": {
            "headline": say_difference(result.difference),
            "caption": _word_caption(study),
        },
        "numbers": _list_numbers(study, result, people),
        "remarks": [
            *_list_remarks(result),
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


def _name_state(result: DifferenceResult) -> str:
    if result.better:
        return "better" if result.better == result.difference.models[0] else "worse"
    return "enough" if result.enough else "open"


def _word_caption(study: DifferenceStudy) -> str:
    closes = (
        f"The interval of {study.model} less {study.against}, in percentage points, narrows with "
        "every label"
    )
    if study.stop.target is not None:
        return f"{closes}. Before the first label it holds every value that the predictions allow."
    return f"{closes}. The difference is clear once the interval excludes the dashed line, 0."


def _list_numbers(
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


def _list_remarks(result: DifferenceResult) -> Sequence[str]:
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
