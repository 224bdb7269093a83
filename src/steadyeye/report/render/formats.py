"""A report as Markdown, JSON and CSV."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from steadyeye.core.report_types import Section, Topic
from steadyeye.core.result_lookup import among, limit
from steadyeye.core.storage.text_files import encode_csv
from steadyeye.core.types import Result
from steadyeye.report.comparison.metric_wording import name_metric
from steadyeye.report.render.document import Document, Grid, interval_of, numbers, value_of


def render_markdown(document: Document) -> str:
    """The report as Markdown; charts and pictures are left to the page."""
    lines = [f"# {document.title}", "", *(f"- {_escape(s)}" for s in document.headline), ""]
    for warning in document.warnings:
        lines += [_escape(warning), ""]
    for grid in document.grids:
        lines += [*_grid(grid), ""]
    for topic, sections in document.topics:
        lines += [f"## {topic.value}", ""]
        if topic is Topic.SURE and document.has_numbers:
            lines += ["### All numbers", "", *_numbers(document), ""]
            lines += [line for caveat in document.caveats for line in (_escape(caveat), "")]
        for section in sections:
            lines += _section(section)
    lines += [_escape(document.left_out), ""] if document.left_out else []
    notes = _notes(document)
    lines += ["## Notes", "", *(f"- {_escape(note)}" for note in notes), ""] if notes else []
    lines += ["## How to reproduce the report", "", "```", *document.commands, "```", ""]
    return "\n".join(lines)


def _grid(grid: Grid) -> list[str]:
    """The main numbers, models as rows: each with its interval and the interval's limit."""
    rows = []
    for row in grid.rows:
        predictions = row.entry.predictions
        cells = [
            "; ".join(filter(None, (f"{value_of(r)} ({interval_of(r)})", limit(r.interval))))
            + (f"; {name_metric(r.name)}" if grid.is_mixed(column) else "")
            for column, r in enumerate(row.results)
        ]
        rows.append((predictions.model, predictions.data, *cells))
    return _table(("model", "data", *grid.heads), rows)


def _numbers(document: Document) -> list[str]:
    rows = [
        (
            model.predictions.model,
            model.predictions.data,
            result.name,
            value_of(result),
            interval_of(result),
            f"{result.n:,}",
            among(result),
            result.interval,
        )
        for model in document.evaluated
        for result in numbers(model)
    ]
    return _table(
        ("model", "data", "metric", "value", "95 % interval", "n", "classes", "method"), rows
    )


def _notes(document: Document) -> list[str]:
    """Notes on the samples of each source, and on each number."""
    lines: list[str] = []
    for model in document.evaluated:
        who = f"{model.predictions.model}, {model.predictions.data}"
        lines += [f"{who}, {r.name}: {note}" for r in numbers(model) for note in r.notes]
        lines += [f"{model.predictions.data}: {note}" for note in model.predictions.notes]
    return list(dict.fromkeys(lines))


def _section(section: Section) -> list[str]:
    lines = [f"### {_escape(section.title)}", ""]
    for paragraph in section.text:
        lines += [_escape(paragraph), ""]
    for table in section.tables:
        lines += [f"**{_escape(table.caption)}**", "", *_table(table.header, table.rows), ""]
    for paragraph in section.method:
        lines += [_escape(paragraph), ""]
    group = ""
    for exhibit in section.exhibits:
        if exhibit.group != group:
            group = exhibit.group
            lines += ["", f"**{_escape(group)}**", ""]
        frames = "; ".join(f"{p.title}: {', '.join(p.lines)}" for p in exhibit.pictures)
        lines.append(f"- {_escape(exhibit.model)}: {_escape(exhibit.title)} — {_escape(frames)}")
    return [*lines, ""] if section.exhibits else lines


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [f"| {' | '.join(map(_escape, row))} |" for row in rows]
    return [f"| {' | '.join(map(_escape, header))} |", f"|{'---|' * len(header)}", *body]


def _escape(text: str) -> str:
    for sign in "\\|<>*_`":
        text = text.replace(sign, f"\\{sign}")
    return text


HEADER = ("model", "data", "metric", "value", "low", "high", "n", "interval", "classes")


def render_json(document: Document) -> str:
    """The headline, every result with its cells and notes, and the record of each run."""
    content = {
        "headline": list(document.headline),
        "results": [
            {
                "model": model.predictions.model,
                "data": model.predictions.data,
                "notes": list(model.predictions.notes),
                "metrics": {name: asdict(result) for name, result in model.results.items()},
            }
            for model in document.evaluated
        ],
        "runs": document.provenance,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def render_csv(document: Document) -> str:
    """One row per number, also for cells of cells, under `HEADER`.

    Shares are 0…1. `classes`: number of classes among which the predictions were chosen.
    """
    return encode_csv([HEADER, *flatten_results(document)])


def flatten_results(document: Document) -> Iterator[tuple[object, ...]]:
    """The rows of the CSV file below its `HEADER`."""
    for model in document.evaluated:
        for result in model.results.values():
            for name, number in _flat(result.name, result):
                ends = (number.value, number.low, number.high, number.n, number.interval)
                # the cells of a number are about the same answers
                yield model.predictions.model, model.predictions.data, name, *ends, result.classes


def _flat(name: str, result: Result) -> Iterator[tuple[str, Result]]:
    yield name, result
    for cell in result.cells:
        yield from _flat(f"{name}, {cell.name}", cell)
