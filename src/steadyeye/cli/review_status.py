"""Where a review stands, as tables."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steadyeye.cli.review_work import check_installed, open_set
from steadyeye.cli.terminal import console, show, show_table
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import interval, percent

FORMS = ("table", "json")


@dataclass(frozen=True)
class StatusTable:
    """Rows under the titles of their columns, of which the first `numbers` are of numbers."""

    columns: tuple[str, ...]
    numbers: int
    rows: Sequence[tuple[str, ...]]


def status(root: Path, runs: Sequence[Path], database: str | None, form: str) -> None:
    """`steadyeye review-status`."""
    if form not in FORMS:
        raise unknown("format", form, FORMS)
    check_installed()
    from steadyeye.review.results.status import status as told

    folder, plan, data = open_set(root, database)
    with data.reading() as connection:
        found = {**told(connection, folder, plan)}
        if runs:
            found["impact"] = _impact(connection, folder, plan, runs)
    if form == "json":
        console.print_json(json.dumps(found))
        return
    show(f"{found['set']}: where its review stands")
    for table in _tables(found):
        if table.rows:
            show("")
            show_table(table.columns, table.rows, table.numbers)


def _impact(connection: Any, folder: Any, plan: Any, runs: Sequence[Path]) -> list[dict[str, Any]]:
    from steadyeye.predictions.read import cells, read
    from steadyeye.review.results.impact import impact
    from steadyeye.review.results.verdicts import verdicts

    if folder.content.get("kind") == "boxes":
        raise UsageError(
            "the review's impact is told of frames; export the boxes and evaluate them"
        )
    found = verdicts(connection, folder, plan)
    return [
        asdict(each)
        for run in runs
        for cell in cells(run)
        for each in impact(read(*cell), folder, plan, found)
    ]


def _tables(found: Mapping[str, Any]) -> Sequence[StatusTable]:
    return [
        _stages(found["stages"]),
        _table_one(found["table_one"]),
        _reasons(found["table"]),
        _people(found["reviewers"]),
        _agreement(found["agreement"]),
        _changes(found.get("impact", ())),
    ]


def _stages(stages: Sequence[Mapping[str, Any]]) -> StatusTable:
    rows = [
        (
            *(f"{row[s]:,}" for s in ("waiting", "open", "done")),
            str(row["votes"] or "all"),
            row["title"],
        )
        for row in stages
    ]
    return StatusTable(("waiting", "open", "done", "votes", "stage"), 4, rows)


def _table_one(items: Sequence[Mapping[str, Any]]) -> StatusTable:
    rows = []
    for row in items:
        reviewed, accepted = row["reviewed"], row["accepted"]
        share = percent(accepted / reviewed) if reviewed else "—"
        ends = interval(row["low"], row["high"]) if reviewed else "—"
        told = "—" if reviewed is None else f"{reviewed:,}"
        rows.append((share, ends, f"{accepted:,}", told, row["item"]))
    return StatusTable(("share", "95 % interval", "accepted", "reviewed", "item"), 4, rows)


def _reasons(stages: Sequence[Mapping[str, Any]]) -> StatusTable:
    rows = [
        (f"{count:,}", stage["stage"], reason or "—")
        for stage in stages
        for reason, count in stage["reasons"].items()
    ]
    return StatusTable(("n", "stage", "not accepted because"), 1, rows)


def _people(people: Sequence[Mapping[str, Any]]) -> StatusTable:
    rows = []
    for row in people:
        right, asked = row["gold"]
        took = "—" if row["median_seconds"] is None else f"{row['median_seconds']:.1f}"
        gold = f"{right} of {asked}" if asked else "—"
        told = f"{row['decisions']:,}", f"{row['undone']:,}", gold, took
        rows.append((*told, row["name"], row["paused"]))
    return StatusTable(("decisions", "undone", "gold", "median s", "reviewer", "paused"), 4, rows)


def _agreement(stages: Sequence[Mapping[str, Any]]) -> StatusTable:
    rows = []
    for row in stages:
        if row["n"]:
            alpha = "undefined" if row["alpha"] is None else f"{row['alpha']:.2f}"
            rows.append((alpha, f"{row['n']:,}", row["stage"], "all, Krippendorff's alpha"))
        for pair in row["kappa"]:
            who = f"{' and '.join(pair['reviewers'])}, Cohen's kappa"
            rows.append((f"{pair['kappa']:.2f}", f"{pair['n']:,}", row["stage"], who))
    return StatusTable(("agreement", "items", "stage", "of"), 2, rows)


def _changes(impacts: Sequence[Mapping[str, Any]]) -> StatusTable:
    rows = []
    for row in impacts:
        review = row["review"].removesuffix(" review")
        named = {"accuracy": "original", f"pm-{row['k']}": "perturbed", "drop": "drop"}
        for name, key in named.items():
            found = row[key]
            ends = interval(found["low"], found["high"])
            told = percent(found["value"]), ends, f"{found['n']:,}"
            rows.append((*told, name, review, row["model"]))
    return StatusTable(("value", "95 % interval", "n", "number", "review", "model"), 3, rows)
