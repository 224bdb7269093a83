"""A leaderboard of many models on many data sets as a folder: a page, cards and all numbers."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Topic
from steadyeye.core.result_lookup import find, limit, read_k
from steadyeye.core.storage.files import Place, write_output
from steadyeye.core.storage.text_files import encode_csv
from steadyeye.core.types import Evaluated
from steadyeye.metrics.testbed.published_models import (
    beside,
    find_released_set,
    read_published,
    why_not,
)
from steadyeye.predictions.read import cells
from steadyeye.report import build, compare
from steadyeye.report.comparison.leaderboards import (
    FIRST,
    Boards,
    Standing,
    common,
    finding,
    name_metric,
    rank,
)
from steadyeye.report.comparison.own_line import AnchorOutcomes, fit_own_lines
from steadyeye.report.comparison.set_correlation import (
    SetCorrelation,
    correlate_sets,
    measure_set,
)
from steadyeye.report.leaderboard_sections import (
    DataLines,
    build_correlations,
    build_costs,
    build_matrix,
    build_own_line,
    describe_main,
)
from steadyeye.report.render.cards import ROWS, Card, CardRow, render_card, render_picture
from steadyeye.report.render.document import Document, interval_of, value_of
from steadyeye.report.render.formats import HEADER, flatten_results, render_json
from steadyeye.report.run_costs import ModelCost, read_costs
from steadyeye.report.run_index import read_last_time
from steadyeye.runner.collect import record

CORRELATED = (*FIRST, "flip_rate")
"""The metrics whose order of models is compared between data sets."""


@dataclass(frozen=True, eq=False)
class LeaderboardSite:
    """All that a leaderboard says. `models`: those of each data set; `rankings`: as they rank.

    `left_out`: how many results have no other model on the same samples. `date`: when the last of
    the runs ended, seconds since 1970, None where no run has a log.
    """

    runs: tuple[Place, ...]
    models: tuple[tuple[Evaluated, ...], ...]
    rankings: tuple[Boards, ...]
    lines: tuple[DataLines, ...]
    correlations: tuple[SetCorrelation, ...]
    costs: tuple[ModelCost, ...]
    left_out: int
    date: float | None

    @property
    def names(self) -> tuple[str, ...]:
        """The models, each once."""
        every = (table.model for table in self.tables)
        return tuple(dict.fromkeys(every))

    @property
    def tables(self) -> tuple[Predictions, ...]:
        """The predictions of all models on all data sets."""
        return tuple(model.predictions for models in self.models for model in models)

    @property
    def findings(self) -> tuple[str, ...]:
        """What the leaderboard says, a sentence or two each, the ranks first."""
        ranks = [f"{item.data}: {finding(item.boards[0])}" for item in self.rankings]
        lost = (
            f"{number_of(self.left_out, 'result')} left out: no other model was run on the same "
            "samples."
        )
        parts = [*ranks, *describe_main(self.correlations)]
        return tuple([*parts, lost] if self.left_out else parts)


def build_site(runs: Sequence[Place], metrics: str | None = None) -> LeaderboardSite:
    """The leaderboard of runs. `metrics`: a list of specs, None: those of each job.

    Raises `UsageError` as `compare.group_shared` and `compare.rank_models` do: where a run shares
    its samples with no other model, or models have no metric in common.
    """
    pairs = compare.rank_groups(unify_names(compare.group_shared(runs, metrics)))
    models = tuple(tuple(models) for models, _ in pairs)
    rankings = tuple(ranked for _, ranked in pairs)
    dates = [date for date in map(read_last_time, runs) if date is not None]
    return LeaderboardSite(
        runs=tuple(runs),
        models=models,
        rankings=rankings,
        lines=tuple(filter(None, map(fit_lines, models))),
        correlations=tuple(correlate_data(models, rankings)),
        costs=tuple(read_costs(runs)),
        left_out=sum(len(cells(run)) for run in runs) - sum(map(len, models)),
        date=max(dates, default=None),
    )


def unify_names(groups: Sequence[Sequence[Evaluated]]) -> list[list[Evaluated]]:
    """The models with one name for each fingerprint on all data sets, and one fingerprint a name.

    A model that was run on one data set twice keeps the names that tell its runs from each other.
    """
    names: dict[str, str] = {}
    for models in groups:
        marks = [model.predictions.model_mark for model in models]
        for model, mark in zip(models, marks, strict=True):
            if mark and marks.count(mark) == 1:
                names.setdefault(mark, model.predictions.model)
    shared = {name for name in names.values() if list(names.values()).count(name) > 1}

    def rename(model: Evaluated, marks: Sequence[str]) -> Evaluated:
        table = model.predictions
        mark = table.model_mark
        name = names[mark] if mark and marks.count(mark) == 1 else table.model
        name = f"{name} [{mark[:6]}]" if name in shared else name
        return replace(model, predictions=replace(table, model=name))

    return [
        [rename(model, [other.predictions.model_mark for other in models]) for model in models]
        for models in groups
    ]


def fit_lines(models: Sequence[Evaluated]) -> DataLines | None:
    """The models of one data set around their own line; None without labelled pm-sets."""
    results = [(model, find(model.results, "pm_k")) for model in models]
    measured = [(model, result) for model, result in results if result is not None]
    if not measured:
        return None
    k = read_k(measured[0][1])
    same_k = [model for model, result in measured if read_k(result) == k]
    tables = common([model.predictions for model in same_k])
    every = [pm_sets(table) for table in tables]
    anchors = tuple(
        AnchorOutcomes(table.model, sets.breaks_at > 0, sets.breaks_at > k)
        for table, sets in zip(tables, every, strict=True)
    )
    left_out = why_not(tables[0], k) or ""
    published = None if left_out else read_published(beside(tables[0]) or "")
    videos = np.asarray(every[0].videos)
    own = fit_own_lines(anchors, videos)
    is_same_set = find_released_set(tables[0]) is not None
    return DataLines(tables[0].data, k, anchors, videos, own, published, left_out, is_same_set)


def correlate_data(
    models: Sequence[Sequence[Evaluated]], rankings: Sequence[Boards]
) -> list[SetCorrelation]:
    """The rank correlations of every pair of data sets, the most telling metric first."""
    sets = []
    for place, (several, ranked) in enumerate(zip(models, rankings, strict=True)):
        tables = common([model.predictions for model in several])
        for board in ranked.boards:
            if board.metric.partition("(")[0] not in CORRELATED:
                continue
            values = {standing.model: standing.result.value for standing in board.standings}
            parts = []
            for model, table in zip(several, tables, strict=True):
                bound, value = model.bound_metrics.get(board.metric), values.get(table.model)
                if bound is not None and bound.outcomes is not None and value is not None:
                    parts.append((table.model, value, bound.outcomes(table)))
            sets.append(measure_set(ranked.data, board.metric, parts, seed=place))
    order = {name: place for place, name in enumerate(CORRELATED)}
    return sorted(correlate_sets(sets), key=lambda pair: order[pair.metric.partition("(")[0]])


def build_document(site: LeaderboardSite) -> Document:
    """The page of a leaderboard."""
    together = [model for several in site.models for model in several]
    content = build.build_report(site.runs, together, ("comparison",))
    names = {table.model_mark: table.model for table in site.tables if table.model_mark}
    own = [
        build_matrix(site.rankings),
        build_correlations(site.correlations, len(site.rankings)),
        *map(build_own_line, site.lines),
        build_costs(site.costs, names, len(site.tables)),
    ]
    sections = [*content.sections, *(section for section in own if section is not None)]
    files = {"All numbers as CSV": "results.csv", "All numbers as JSON": "results.json"}
    files |= {f"Card of {name}": f"cards/{file}.html" for name, file in name_files(site).items()}
    counts = number_of(len(site.names), "model"), number_of(len(site.rankings), "data set")
    return replace(
        content,
        title=f"Leaderboard of {counts[0]} on {counts[1]}",
        headline=site.findings,
        sections=tuple(sorted(sections, key=lambda section: section.order)),
        leading=Topic.COMPARED,
        files=files,
    )


def name_files(site: LeaderboardSite) -> dict[str, str]:
    """The name of each model → that of the files of its card, without a suffix; no two alike."""
    files: dict[str, str] = {}
    for name in site.names:
        plain = "".join(c if c.isascii() and (c.isalnum() or c in "_.") else "-" for c in name)
        plain = plain.strip("-.")[:80] or "model"
        lower = {file.lower() for file in files.values()}
        number = 1
        while (plain if number == 1 else f"{plain}-{number}").lower() in lower:
            number += 1
        files[name] = plain if number == 1 else f"{plain}-{number}"
    return files


def describe_origin(site: LeaderboardSite) -> str:
    """The day of the last run, and the version and commit that the runs were made with."""
    provenances = [record(run)["provenance"] for run in site.runs]
    versions = [
        f"steadyeye {entry['steadyeye']}, commit {entry['commit']}" for entry in provenances
    ]
    version = versions[0] if len(set(versions)) == 1 else f"{versions[0]} and other versions"
    day = "" if site.date is None else f"{datetime.fromtimestamp(site.date, UTC):%Y-%m-%d}, "
    return f"{day}{version}"


def build_card(site: LeaderboardSite, name: str, origin: str) -> Card:
    """The card of a model: its main number on the first data sets, with interval and rank.

    `origin`: as `describe_origin` says it.
    """
    rows = []
    for item in site.rankings:
        board = item.boards[0]
        for place, standing in enumerate(board.standings):
            if standing.model == name:
                rows.append(
                    _build_row(item.data, standing, rank(board, place), len(board.standings))
                )
    more = len(rows) - ROWS
    notes = ["Rank = 1 + the number of models that are clearly better on the same samples"]
    notes += [f"{number_of(more, 'more data set')} on the leaderboard"] if more > 0 else []
    number = number_of(len(rows), "data set")
    title = "; ".join(f"{row.metric} {row.value} on {row.data}" for row in rows[:ROWS])
    return Card(
        model=name,
        title=f"{name}: {title}",
        subtitle=f"{number}, 95 % intervals in brackets",
        rows=tuple(rows[:ROWS]),
        note="; ".join(notes),
        origin=origin,
    )


def _build_row(data: str, standing: Standing, place: str, models: int) -> CardRow:
    result = standing.result
    value, low, high = result.value, result.low, result.high
    bar = None
    if result.unit == "share" and value is not None and low is not None and high is not None:
        bar = value, low, high
    details = [f"({interval_of(result)})", f"n = {result.n:,}"]
    details += [f"{result.classes:,} classes"] if result.classes else []
    details += [limit(result.interval)] if limit(result.interval) else []
    return CardRow(
        data=data,
        metric=name_metric(result.name),
        value=value_of(result),
        details=", ".join(details),
        rank=place,
        models=models,
        bar=bar,
    )


def write_site(site: LeaderboardSite, out: Place) -> list[Place]:
    """Writes index.html, results.json, results.csv and a card for each model to a folder."""
    content = build_document(site)
    build.save(content, site.runs, [out / "index.html"])
    write_output(out / "results.json", encode_site(site, content).encode())
    write_output(out / "results.csv", encode_csv([HEADER, *_list_rows(site, content)]).encode())
    origin = describe_origin(site)
    for name, file in name_files(site).items():
        card = build_card(site, name, origin)
        picture = render_picture(card)
        write_output(out / "cards" / f"{file}.svg", picture.encode())
        write_output(out / "cards" / f"{file}.html", render_card(card, picture, file).encode())
    return [out / name for name in ("index.html", "results.json", "results.csv", "cards")]


def encode_site(site: LeaderboardSite, content: Document) -> str:
    """All numbers as JSON: those of a report, and under "leaderboard" what compares models."""
    ranks = [
        {"data": item.data, "metric": board.metric, "model": s.model, "rank": s.rank,
         "no clear difference from": list(s.tied)}
        for item in site.rankings for board in item.boards for s in board.standings
    ]  # fmt: skip
    lines = [
        {"data": lines.data, "k": lines.k, "space": own.line.space.name, "slope": own.line.slope,
         "slope interval": own.slope, "intercept": own.line.intercept, "r2": own.line.r2,
         "moved": own.moved, "method": own.method, "models": [asdict(d) for d in own.distances]}
        for lines in site.lines for own in lines.own
    ]  # fmt: skip
    costs = [
        {**asdict(cost), "ms per image": cost.per_image, "images per second": cost.rate}
        for cost in site.costs
    ]
    report = json.loads(render_json(content))
    report["leaderboard"] = {
        "ranks": ranks,
        "lines": lines,
        "rank correlations": [asdict(pair) for pair in site.correlations],
        "costs": costs,
    }
    return json.dumps(_finite(report), indent=1, ensure_ascii=False) + "\n"


def _finite(value: Any) -> Any:
    """Plain values with None in place of what is no number, which JSON has no word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, np.generic):
        return _finite(value.item())
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def _list_rows(site: LeaderboardSite, content: Document) -> Iterator[tuple[object, ...]]:
    """The rows of the CSV file: every number, then ranks, correlations and distances."""
    yield from flatten_results(content)
    for item in site.rankings:
        for board in item.boards:
            for s in board.standings:
                method = "1 + the number of clearly better models"
                n = len(board.standings)
                name = f"{board.metric}, rank"
                yield (s.model, item.data, name, s.rank, None, None, n, method, None)
    for lines in site.lines:
        for own in lines.own:
            name = f"pm_k(k={lines.k}), distance from the own line ({own.line.space.name})"
            for d in own.distances:
                yield (d.model, lines.data, name, d.value, d.low, d.high, d.n, own.method, None)
    for p in site.correlations:
        data, n = f"{p.first} and {p.second}", len(p.models)
        name = f"{p.metric}, Kendall's tau-b"
        yield (f"{n} models", data, name, p.value, p.low, p.high, n, p.method, None)
