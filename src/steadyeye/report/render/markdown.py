"""A report as Markdown: text and tables, for a pull request or a wiki."""

from collections.abc import Iterable, Sequence

from steadyeye.core.report_types import Section, Topic
from steadyeye.core.result_lookup import among, limit
from steadyeye.report.render.document import Document, interval_of, numbers, value_of
from steadyeye.report.render.first import Grid, head


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
    lines += ["## Notes", "", *(f"- {_escape(each)}" for each in notes), ""] if notes else []
    lines += ["## How to reproduce it", "", "```", *document.commands, "```", ""]
    return "\n".join(lines)


def _grid(grid: Grid) -> list[str]:
    """The main numbers, models as rows: each with its interval and what limits it."""
    rows = []
    for row in grid.rows:
        predictions = row.one.predictions
        cells = [
            "; ".join(filter(None, (f"{value_of(r)} ({interval_of(r)})", limit(r.interval))))
            + (f"; {head(r)}" if grid.is_mixed(column) else "")
            for column, r in enumerate(row.results)
        ]
        rows.append((predictions.model, predictions.data, *cells))
    return _table(("model", "data", *grid.heads), rows)


def _numbers(document: Document) -> list[str]:
    rows = [
        (
            one.predictions.model,
            one.predictions.data,
            result.name,
            value_of(result),
            interval_of(result),
            f"{result.n:,}",
            among(result),
            result.interval,
        )
        for one in document.evaluated
        for result in numbers(one)
    ]
    return _table(
        ("model", "data", "metric", "value", "95 % interval", "n", "classes", "method"), rows
    )


def _notes(document: Document) -> list[str]:
    """What a reader has to know of the samples of each source, and of each number."""
    found: list[str] = []
    for one in document.evaluated:
        who = f"{one.predictions.model}, {one.predictions.data}"
        found += [f"{who}, {r.name}: {note}" for r in numbers(one) for note in r.notes]
        found += [f"{one.predictions.data}: {note}" for note in one.predictions.notes]
    return list(dict.fromkeys(found))


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
