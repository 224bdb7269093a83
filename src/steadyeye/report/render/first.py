"""The first screen of a report: the main numbers of each model, and the pictures of one break."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steadyeye.core.report_types import Exhibit, Section
from steadyeye.core.result_lookup import find, limit, read_k
from steadyeye.core.types import Evaluated, Result
from steadyeye.report.comparison.wording import name_metric

MAIN = (
    *("confident_mistakes", "misclassification", "out_of_distribution", "background"),
    *("map", "pm_k_map", "map_drop", "localization", "mar"),
    *("degraded_accuracy", "degraded_probability", "degraded_rank"),
    *("accuracy", "pm_k", "drop"),
    *("flip_rate", "self_consistency", "dwell_time", "confidence_jump"),
)
"""The numbers that a first screen may show, the most telling first."""

COLUMNS = 4
"""Numbers a model: as many stand side by side on a phone."""

NARROW = 12
"""Characters of a head that fit in a line on a phone."""

SENTENCES = 4
"""Sentences on the first screen; more are folded."""


@dataclass(frozen=True)
class GridRow:
    """A model's numbers, one a column; `limit`: what limits every interval of them, "" if none."""

    one: Evaluated
    results: tuple[Result, ...]
    limit: str


@dataclass(frozen=True)
class Grid:
    """Models as rows, their main numbers as columns; `heads`: `pm-10`, or `pm-k` for several k."""

    heads: tuple[str, ...]
    rows: tuple[GridRow, ...]

    def is_mixed(self, column: int) -> bool:
        """Whether the numbers of a column are of several distances k: each says its own."""
        return len({head(row.results[column]) for row in self.rows}) > 1

    @property
    def tall(self) -> bool:
        """Whether a head takes several lines in a narrow column."""
        return any(len(each) > NARROW for each in self.heads)


def grids(evaluated: Sequence[Evaluated]) -> tuple[Grid, ...]:
    """The main numbers of all models; models of which other numbers are known stand in another.

    Nothing of probes, nor of models without any of these numbers.
    """
    by_kinds: dict[tuple[str, ...], list[GridRow]] = {}
    for one in evaluated:
        found = () if one.predictions.probe else tuple(_main(one))[:COLUMNS]
        if found:
            kinds = tuple(_kind(result) for result in found)
            by_kinds.setdefault(kinds, []).append(_row(one, found))
    return tuple(Grid(_heads(kinds, rows), tuple(rows)) for kinds, rows in by_kinds.items())


def _kind(result: Result) -> str:
    """The head of the numbers of one metric whatever their k: `pm-k`, `self-consistency ±k`."""
    return re.sub(r"(pm-|±)\d+", r"\1k", head(result))


def _heads(kinds: Sequence[str], rows: Sequence[GridRow]) -> tuple[str, ...]:
    """The heads that all rows share; for numbers of several k that of their kind."""
    columns = zip(*(row.results for row in rows), strict=True)
    heads = [{head(result) for result in column} for column in columns]
    return tuple(
        found.pop() if len(found) == 1 else kind for kind, found in zip(kinds, heads, strict=True)
    )


def head(result: Result) -> str:
    """A number as a column is headed: `pm-10`, `flip rate`, `self-consistency ±10`."""
    name = result.name.partition("(")[0]
    if name == "self_consistency":
        return f"self-consistency ±{read_k(result)}"
    if name == "map_drop":
        return "mAP drop"
    return name_metric(result.name).replace("_", " ")


def leads(sections: Sequence[Section]) -> Iterator[tuple[Section, Exhibit]]:
    """The pictures that a first screen may show with their sections, the best first."""
    for section in sections:
        if section.lead is not None:
            yield section, section.lead


def _main(one: Evaluated) -> Iterator[Result]:
    for name in MAIN:
        result = find(one.results, name)
        if result is not None and (result.value is not None or not result.cells):
            yield result


def _row(one: Evaluated, results: tuple[Result, ...]) -> GridRow:
    limits = {limit(result.interval) for result in results}
    return GridRow(one, results, limits.pop() if len(limits) == 1 else "")
