"""The files of a leaderboard: a page, a card for each model, and all numbers."""

import json
import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from markupsafe import Markup

from steadyeye.core.errors import UsageError
from steadyeye.core.format import clean_xml, number_of
from steadyeye.core.report_types import Topic
from steadyeye.core.result_lookup import limit
from steadyeye.core.storage.files import Place, write_output
from steadyeye.core.storage.run_lock import check_out
from steadyeye.core.storage.text_files import encode_csv
from steadyeye.core.types import Evaluated
from steadyeye.report import build
from steadyeye.report.comparison.leaderboards import Boards, Standing, rank
from steadyeye.report.comparison.metric_wording import name_metric
from steadyeye.report.leaderboard_sections import (
    build_correlations,
    build_costs,
    build_matrix,
    build_own_line,
)
from steadyeye.report.leaderboard_site import LeaderboardSite
from steadyeye.report.render.document import Document, interval_of, value_of
from steadyeye.report.render.formats import HEADER, flatten_results, render_json
from steadyeye.report.render.html import open_templates, read_static
from steadyeye.runner.collect import record

ROWS = 4
"""Most data sets on a card."""

WIDTHS = {" fijlrtI.,:;'!|()[]-": 0.5, "+=<>~#&": 0.85, "mwMW@%": 1.1}
"""Widths in DejaVu Sans Bold, the widest of the card's fonts, as shares of the letters' size."""
CAPITAL, WIDE, OTHER = 0.85, 1.1, 0.72
"""Widths of capital letters, of letters as wide as high, and of all others."""


@dataclass(frozen=True)
class CardRow:
    """A number of a card, as text; `bar`: value, low and high as shares, None for other units."""

    data: str
    metric: str
    value: str
    details: str
    rank: str
    models: int
    bar: tuple[float, float, float] | None


@dataclass(frozen=True)
class Card:
    """The content of a model's card; `title`: a sentence, `origin`: date, version and commit."""

    model: str
    title: str
    subtitle: str
    rows: tuple[CardRow, ...]
    note: str
    origin: str


def render_picture(card: Card) -> str:
    """The card as a self-contained SVG, 800 wide; same input, same bytes.

    A character that SVG cannot hold, such as a control character in a name, is replaced by U+FFFD.
    """
    environment = open_templates()
    environment.filters["fit"] = fit_size
    template = environment.get_template("card.svg")
    text: str = template.render(card=card, height=178 + 104 * len(card.rows))
    return clean_xml(text) + "\n"


def fit_size(text: str, size: float, room: float) -> float:
    """The size of letters in pixels, `size` or less, at which a text stays within `room` pixels.

    Estimated from its letters, because a self-contained SVG cannot measure a text.
    """
    width = sum(map(_width, text))
    return round(min(size, room / width), 1) if width else size


def _width(letter: str) -> float:
    for letters, width in WIDTHS.items():
        if letter in letters:
            return width
    if unicodedata.east_asian_width(letter) in "WF":
        return WIDE
    return CAPITAL if letter.isupper() else OTHER


def render_card(card: Card, picture: str, name: str) -> str:
    """The page of a card with the picture of `render_picture`.

    `name`: of its files, without a suffix.
    """
    template = open_templates().get_template("card.html")
    markup = Markup(picture)  # noqa: S704 - escaped where it was rendered
    script = Markup(read_static("card.js"))  # noqa: S704 - our own file
    text: str = template.render(card=card, picture=markup, name=name, script=script)
    return text + "\n"


FILES = ("results.json", "index.html", "results.csv")
RANKED_BY = (
    "1 + the number of clearly better models; in brackets: ranks that the data leave open, for "
    "all models at once"
)


def build_document(site: LeaderboardSite, out: Place | None = None) -> Document:
    """The page of a leaderboard; `out`: the folder that its command names, None: the default."""
    together = [
        model
        for models, boards in zip(site.models, site.rankings, strict=True)
        for model in _sort_by_rank(models, boards)
    ]
    content = build.build_report(site.runs, together, ("comparison",))
    own = [
        build_matrix(site.rankings),
        build_correlations(site.correlations, len(site.rankings)),
        *map(build_own_line, site.lines),
        build_costs(site.costs, len(site.tables)),
    ]
    sections = [*content.sections, *(section for section in own if section is not None)]
    tables = {"All numbers as CSV": "results.csv", "All numbers as JSON": "results.json"}
    cards = {f"Card of {name}": f"cards/{file}.html" for name, file in name_files(site).items()}
    options = {"metrics": site.metrics, "out": None if out is None else str(out)}
    command = build.command_over("leaderboard", site.runs, options)
    counts = number_of(len(site.names), "model"), number_of(len(site.rankings), "data set")
    return replace(
        content,
        title=f"Leaderboard of {counts[0]} on {counts[1]}",
        headline=site.findings,
        sections=tuple(sorted(sections, key=lambda section: section.order)),
        commands=(*content.commands, command),
        leading=Topic.COMPARED,
        files={"Numbers as files": tables, "Cards": cards},
    )


def _sort_by_rank(models: Sequence[Evaluated], boards: Boards) -> list[Evaluated]:
    """The models of a data set in the order of its first leaderboard, the best first."""
    order = [standing.model for standing in boards.boards[0].standings]
    return sorted(models, key=lambda model: order.index(model.predictions.model))


def name_files(site: LeaderboardSite) -> dict[str, str]:
    """Model name → unique file name of its card, without a suffix."""
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

    `origin`: of `describe_origin`.
    """
    rows = []
    for item in site.rankings:
        board = item.boards[0]
        for place, standing in enumerate(board.standings):
            if standing.model == name:
                rows.append(
                    _build_row(item.data, standing, rank(board, place), len(board.standings))
                )
    shared = any("=" in row.rank for row in rows[:ROWS])
    note = "Rank: 1 + the number of clearly better models on the same samples"
    number = number_of(len(rows), "data set")
    several = f"{ROWS} of {number}" if len(rows) > ROWS else number
    title = "; ".join(f"{row.metric} {row.value} on {row.data}" for row in rows[:ROWS])
    return Card(
        model=name,
        title=f"{name}: {title}",
        subtitle=f"{several}, 95 % intervals in brackets",
        rows=tuple(rows[:ROWS]),
        note=f"{note}; =: shared" if shared else note,
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


def check_folder(out: Place) -> None:
    """Raises `UsageError` if a leaderboard would replace files of something else.

    Such as the results of a run, or the start page of other documents. And where the folder cannot
    be written.
    """
    check_out(out)
    replaced = [name for name in FILES if (out / name).is_file()]
    if replaced and not _is_leaderboard(out / FILES[0]):
        raise UsageError(
            f"'{out}' holds '{replaced[0]}', which is no file of a leaderboard; choose another "
            "--out"
        )


def _is_leaderboard(file: Place) -> bool:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and "leaderboard" in content


def write_site(site: LeaderboardSite, out: Place) -> list[Place]:
    """Writes index.html, results.json, results.csv and a card for each model to a folder.

    Raises `UsageError` as `check_folder` does, and where the folder cannot be written.
    """
    check_folder(out)
    content = build_document(site, out)
    # the file that tells a leaderboard is there before the others, should this be stopped
    write_output(out / "results.json", encode_site(site, content).encode())
    build.save(content, site.runs, [out / "index.html"])
    write_output(out / "results.csv", encode_csv([HEADER, *_list_rows(site, content)]).encode())
    origin = describe_origin(site)
    for name, file in name_files(site).items():
        card = build_card(site, name, origin)
        picture = render_picture(card)
        write_output(out / "cards" / f"{file}.svg", picture.encode())
        write_output(out / "cards" / f"{file}.html", render_card(card, picture, file).encode())
    return [out / name for name in ("index.html", "results.json", "results.csv", "cards")]


def encode_site(site: LeaderboardSite, content: Document) -> str:
    """All numbers as JSON: those of a report, and under "leaderboard" the comparisons."""
    ranks = [
        {"data": row.data, "metric": row.metric, "model": row.model, "value": row.value,
         "interval": [row.low, row.high], "n": row.n, "rank": row.rank,
         "ranks left open": row.open_ranks, "no clear difference from": row.tied}
        for row in site.rows
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
    """Plain values with None instead of NaN and infinity, which JSON does not have."""
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
    for row in site.rows:
        name, models = f"{row.metric}, rank", row.models
        yield (row.model, row.data, name, row.rank, *row.open_ranks, models, RANKED_BY, None)
    for lines in site.lines:
        for own in lines.own:
            name = f"pm_k(k={lines.k}), distance from the own line ({own.line.space.name})"
            for d in own.distances:
                yield (d.model, lines.data, name, d.value, d.low, d.high, d.n, own.method, None)
    for p in site.correlations:
        data, n = f"{p.first} and {p.second}", len(p.models)
        name = f"{p.metric}, Kendall's tau-b"
        yield (f"{n} models", data, name, p.value, p.low, p.high, n, p.method, None)
