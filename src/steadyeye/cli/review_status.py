"""Where a review stands, as tables."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from steadyeye.cli.review_work import installed, opened
from steadyeye.cli.work import console
from steadyeye.core.errors import UsageError, unknown

FORMS = ("table", "json")


def status(root: Path, runs: Sequence[Path], database: str | None, form: str) -> None:
    """`steadyeye review-status`."""
    if form not in FORMS:
        raise unknown("format", form, FORMS)
    installed()
    from steadyeye.review.status import status as told

    folder, plan, data = opened(root, database)
    with data.reading() as connection:
        found = {**told(connection, folder, plan)}
        if runs:
            found["impact"] = _impact(connection, folder, plan, runs)
    if form == "json":
        console.print_json(json.dumps(found))
        return
    console.print(f"{found['set']}: where its review stands", markup=False)
    for table in _tables(found):
        if table.row_count:
            console.print()
            console.print(table)


def _impact(connection: Any, folder: Any, plan: Any, runs: Sequence[Path]) -> list[dict[str, Any]]:
    from steadyeye.predictions.read import cells, read
    from steadyeye.review.impact import impact
    from steadyeye.review.verdicts import verdicts

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


def _tables(found: Mapping[str, Any]) -> Sequence[Table]:
    reasons = _table("stage", "not accepted because", n="n")
    for stage in found["table"]:
        for reason, count in stage["reasons"].items():
            reasons.add_row(stage["stage"], escape(reason) or "—", f"{count:,}")
    return [
        _stages(found["stages"]),
        _table_one(found["table_one"]),
        reasons,
        _people(found["reviewers"]),
        _agreement(found["agreement"]),
        _changes(found.get("impact", ())),
    ]


def _stages(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("stage", votes="votes", waiting="waiting", open="open", done="done")
    for row in rows:
        votes = str(row["votes"] or "all")
        table.add_row(row["title"], votes, *(f"{row[s]:,}" for s in ("waiting", "open", "done")))
    return table


def _table_one(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("item", n="reviewed", m="accepted", share="share", interval="95 % interval")
    for row in rows:
        reviewed, accepted = row["reviewed"], row["accepted"]
        if reviewed:
            share = f"{accepted / reviewed:.1%}", f"{row['low']:.1%} – {row['high']:.1%}"
        else:
            share = "—", "—"
        told = "—" if reviewed is None else f"{reviewed:,}"
        table.add_row(row["item"], told, f"{accepted:,}", *share)
    return table


def _people(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("reviewer", n="decisions", undone="undone", gold="gold", s="median s")
    table.add_column("paused")
    for row in rows:
        right, asked = row["gold"]
        took = "—" if row["median_seconds"] is None else f"{row['median_seconds']:.1f}"
        gold = f"{right} of {asked}" if asked else "—"
        told = f"{row['decisions']:,}", f"{row['undone']:,}", gold, took
        table.add_row(escape(row["name"]), *told, escape(row["paused"]))
    return table


def _agreement(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("agreement in", "of", measure="", n="items")
    for row in rows:
        if row["n"]:
            alpha = "undefined" if row["alpha"] is None else f"{row['alpha']:.2f}"
            table.add_row(row["stage"], "all, Krippendorff's alpha", alpha, f"{row['n']:,}")
        for pair in row["kappa"]:
            who = f"{' and '.join(pair['reviewers'])}, Cohen's kappa"
            table.add_row(row["stage"], escape(who), f"{pair['kappa']:.2f}", f"{pair['n']:,}")
    return table


def _changes(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("model", "review", "number", value="value", interval="95 % interval", n="n")
    for row in rows:
        review = row["review"].removesuffix(" review")
        named = {"accuracy": "original", f"pm-{row['k']}": "perturbed", "drop": "drop"}
        for name, key in named.items():
            found = row[key]
            value, interval = "—", "—"
            if found["value"] is not None:
                value = f"{found['value']:.1%}"
                interval = f"{found['low']:.1%} – {found['high']:.1%}"
            table.add_row(escape(row["model"]), review, name, value, interval, f"{found['n']:,}")
    return table


def _table(*words: str, **numbers: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for word in words:
        table.add_column(word)
    for number in numbers.values():
        table.add_column(number, justify="right", no_wrap=True)
    return table
