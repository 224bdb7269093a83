"""The content of a report, independent of its format."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steadyeye.core.errors import list_texts
from steadyeye.core.format import WITHIN, format_metric, format_metric_ends, number_of
from steadyeye.core.report_types import Section, Topic
from steadyeye.core.result_lookup import find, limit
from steadyeye.core.types import Evaluated, Result
from steadyeye.report.comparison.metric_wording import name_metric
from steadyeye.report.render.number_meanings import READING

MAIN = (
    *("confident_mistakes", "misclassification", "out_of_distribution", "background"),
    *("map", "pm_k_map", "map_drop", "localization", "mar"),
    *("degraded_accuracy", "degraded_probability", "degraded_rank"),
    *("accuracy", "pm_k", "drop"),
    *("blink_rate", "flicker_rate", "class_change_rate", "box_jitter"),
    *("flip_rate", "self_consistency", "dwell_time", "confidence_jump"),
)
"""The numbers that a first screen may show, the most important first."""

COLUMNS = 4
"""Numbers per model that fit side by side on a phone."""

NARROW = 12
"""Characters of a head that fit in a line on a phone."""

SENTENCES = 4
"""Sentences on the first screen; further ones are folded."""


@dataclass(frozen=True)
class GridRow:
    """A model's numbers, one per column; `limit`: the limit of all their intervals, "" if none."""

    entry: Evaluated
    results: tuple[Result, ...]
    limit: str


@dataclass(frozen=True)
class Grid:
    """Models as rows, their main numbers as columns; `heads`: `pm-10`, or `pm-k` for several k."""

    heads: tuple[str, ...]
    rows: tuple[GridRow, ...]

    def is_mixed(self, column: int) -> bool:
        """Whether the numbers of a column have different distances k, so that each shows it."""
        return len({name_metric(row.results[column].name) for row in self.rows}) > 1

    @property
    def tall(self) -> bool:
        """Whether a head takes several lines in a narrow column."""
        return any(len(name) > NARROW for name in self.heads)


def grids(evaluated: Sequence[Evaluated]) -> tuple[Grid, ...]:
    """The main numbers of all models; models with other numbers are in a separate grid.

    Without probes and models that have none of these numbers.
    """
    by_kinds: dict[tuple[str, ...], list[GridRow]] = {}
    for model in evaluated:
        results = () if model.predictions.probe else tuple(_main(model))[:COLUMNS]
        if results:
            kinds = tuple(map(_kind, results))
            limits = {limit(result.interval) for result in results}
            row = GridRow(model, results, limits.pop() if len(limits) == 1 else "")
            by_kinds.setdefault(kinds, []).append(row)
    return tuple(Grid(_heads(kinds, rows), tuple(rows)) for kinds, rows in by_kinds.items())


def _kind(result: Result) -> str:
    """The head of the numbers of one metric whatever their k: `pm-k`, `self-consistency ±k`."""
    return re.sub(r"(pm-|±)\d+", r"\1k", name_metric(result.name))


def _heads(kinds: Sequence[str], rows: Sequence[GridRow]) -> tuple[str, ...]:
    """The heads that all rows share; for numbers of several k that of their kind."""
    columns = zip(*(row.results for row in rows), strict=True)
    heads = [{name_metric(result.name) for result in column} for column in columns]
    return tuple(
        names.pop() if len(names) == 1 else kind for kind, names in zip(kinds, heads, strict=True)
    )


def _main(model: Evaluated) -> Iterator[Result]:
    for name in MAIN:
        result = find(model.results, name)
        if result is not None and (result.value is not None or not result.cells):
            yield result


ANY = (
    ("n", "how many cases a number is computed from."),
    (
        "classes",
        "the number of classes that the model chooses among. A random guess is right once in that "
        "many.",
    ),
    (
        "95\u202f% interval",
        "a range that contains the true value for 95 of 100 samples of this kind; the grey bar, on "
        "a scale from 0 to 100\u202f%.",
    ),
)
"""(term, what it means) for all numbers."""

ONE_VIDEO = (
    "Where all frames come from one video, an interval holds within that video only. It says "
    "nothing about other footage."
)

TITLES = (
    ("operator", "How steady are the predictions under degradation?"),
    ("offset", "How steady are the predictions?"),
    ("frame", "How steady are the predictions?"),
    ("detections", "How good are the detections?"),
)
"""(column of the predictions, title of their report); the first that all predictions have."""


@dataclass(frozen=True)
class Document:
    """A report: `headline` is one sentence a model and source, `commands` repeat the runs.

    `provenance`: run folder → its record (job, versions, commit). `left_out`: one line on the
    sections whose packages are not installed, or "". `leading`: the topic that comes first.
    `files`: linked files next to the page, heading → text of each link → relative path.
    """

    title: str
    headline: tuple[str, ...]
    evaluated: Sequence[Evaluated]
    sections: Sequence[Section]
    provenance: Mapping[str, Mapping[str, Any]]
    commands: tuple[str, ...]
    left_out: str = ""
    leading: Topic = Topic.TRAINING
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def has_numbers(self) -> bool:
        """Whether any result is one number; a search for failure points has none."""
        return any(numbers(model) for model in self.evaluated)

    @property
    def reading(self) -> tuple[tuple[str, str], ...]:
        """The terms of the numbers in the report, with their meanings."""
        names = {
            result.name.partition("(")[0] for model in self.evaluated for result in numbers(model)
        }
        terms = tuple((term, meaning) for metric, term, meaning in READING if metric in names)
        return (*terms, *ANY) if terms else ()

    @property
    def numbers_title(self) -> str:
        """The heading of all numbers, or of the notes if there are no numbers."""
        if self.has_numbers:
            return "All numbers"
        measured = any(model.results for model in self.evaluated)
        return "How the numbers were computed" if measured else "Notes on the data"

    @property
    def several_data(self) -> bool:
        """Whether the models were run on more than one source; probes are of a source too."""
        plain = [model.predictions for model in self.evaluated if not model.predictions.probe]
        return len({table.data for table in plain}) > 1

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The main numbers of each model, for the first screen."""
        return grids(self.evaluated)

    @property
    def dense(self) -> bool:
        """Whether the first screen has so many models that it needs small spacing."""
        return sum(len(grid.rows) for grid in self.grids) > 3

    @property
    def topics(self) -> tuple[tuple[Topic, tuple[Section, ...]], ...]:
        """The sections by the question they answer; the numbers are of `Topic.SURE`."""
        filled_topics = []
        for topic in sorted(Topic, key=lambda topic: topic is not self.leading):
            filled = tuple(s for s in self.sections if s.topic is topic and not s.empty)
            if filled or (topic is Topic.SURE and self.methods):
                filled_topics.append((topic, filled))
        return tuple(filled_topics)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings above the numbers: samples without a prediction."""
        return tuple(
            f"{table.model}: {len(errors):,} of {number_of(len(table), 'sample')} of {table.data} "
            f"not predicted and left out; the first: {errors[0]}."
            for table in (model.predictions for model in self.evaluated)
            if len(errors := table.errors[~table.valid])
        )

    @property
    def caveats(self) -> tuple[str, ...]:
        """Caveats next to the numbers, which are not folded."""
        limits = {limit(r.interval) for model in self.evaluated for r in model.results.values()}
        return (ONE_VIDEO,) if WITHIN in limits else ()

    @property
    def methods(self) -> tuple[str, ...]:
        """One line per number on the method of its interval, and lines on samples left out.

        A line that is the same for several models on the same data stands once.
        """
        models: dict[str, list[str]] = {}
        sharing: dict[tuple[str, str], list[str]] = {}
        for model in self.evaluated:
            name, data = model.predictions.model, model.predictions.data
            models.setdefault(data, []).append(name)
            for result in model.results.values():
                text = "; ".join((f"{result.name}: {result.interval}", *result.notes))
                sharing.setdefault((data, text), []).append(name)
        lines = [
            f"{'all models' if 1 < len(names) == len(models[data]) else list_texts(names)}, "
            f"{data}, {text}"
            for (data, text), names in sharing.items()
        ]
        notes = ((model.predictions.data, model.predictions.notes) for model in self.evaluated)
        lines += [f"{data}: {note}" for data, several in notes for note in several]
        return tuple(dict.fromkeys(lines))


def title(evaluated: Sequence[Evaluated]) -> str:
    """The question that a report answers, by the kind of its predictions."""
    plain = [model.predictions for model in evaluated if not model.predictions.probe]
    for column, question in TITLES:
        if plain and all(column in table.columns for table in plain):
            return question
    # a sweep beside a run on videos, or nothing but still images
    steady = any({"offset", "frame"} & set(table.columns) for table in plain)
    return "How steady are the predictions?" if steady else "How often are the predictions right?"


def value_of(result: Result) -> str:
    """The value of a result in its unit, differences of shares in percentage points."""
    return format_metric(result.name, result.value, result.unit)


def interval_of(result: Result) -> str:
    """The 95 % interval of a result in its unit, or `—`."""
    return format_metric_ends(result.name, result.low, result.high, result.unit)


def numbers(model: Evaluated) -> tuple[Result, ...]:
    """The results that are one number each; the others have their own sections."""
    return tuple(r for r in model.results.values() if r.value is not None or not r.cells)
