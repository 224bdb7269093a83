"""The progress of a review, as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadyeye.core.format import format_agreement_ends, interval, percent

LOWEST = 10  # pairs of reviewers that are shown, those who agree least


@dataclass(frozen=True)
class StatusTable:
    """Rows and the titles of their columns; the first `numbers` columns hold numbers."""

    columns: tuple[str, ...]
    numbers: int
    rows: Sequence[tuple[str, ...]]


def build_tables(summary: Mapping[str, Any]) -> Sequence[StatusTable]:
    """The tables of the summary of a review; some may have no rows."""
    return [
        _stages(summary["stages"]),
        _table_one(summary["table_one"]),
        _reasons(summary["table"]),
        _shortcut(summary.get("shortcut")),
        _audits(summary.get("shortcut")),
        _people(summary["reviewers"]),
        _agreement(summary["agreement"]),
        _comments(summary["comments"]["latest"]),
        _changes(summary.get("impact", ())),
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
        ends = interval(row["low"], row["high"])
        count = "—" if reviewed is None else f"{reviewed:,}"
        rows.append((share, ends, f"{accepted:,}", count, row["item"], row["method"]))
    return StatusTable(
        ("share", "95 % interval", "accepted", "reviewed", "item", "method"), 4, rows
    )


def _reasons(stages: Sequence[Mapping[str, Any]]) -> StatusTable:
    rows = [
        (f"{count:,}", stage["stage"], reason or "—")
        for stage in stages
        for reason, count in stage["reasons"].items()
    ]
    return StatusTable(("n", "stage", "reason (items may have several)"), 1, rows)


SPARED = {
    "mirrored": "reviewed as another pair of the same two frames",
    "implied": "measured as similar; accepted in bulk once an audit passes",
    "beyond": "measured as not similar; left out",
    "bulk": "accepted in bulk after an audit",
}
"""State of spared pairs → the reason why nobody is asked about them."""
LAPSED = "no longer valid, because decisions were changed"


def _shortcut(shortcut: Mapping[str, Any] | None) -> StatusTable:
    counts = shortcut["spared"] if shortcut else {}
    rows = [(f"{n:,}", state, SPARED[state]) for state, n in counts.items() if n]
    return StatusTable(("pairs", "spared", "because"), 1, rows)


def _audits(shortcut: Mapping[str, Any] | None) -> StatusTable:
    columns = ("audit", "sample", "wrong", "wrong at most", "state")
    if shortcut is None:
        return StatusTable(columns, 4, ())
    states = {} if shortcut["holds"] else {"passed": LAPSED}
    rows = [
        (
            str(row["id"]),
            f"{row['drawn']:,}",
            "—" if row["wrong"] is None else f"{row['wrong']:,}",
            f"{100 * row['most']:g}\u202f%",
            states.get(row["state"], row["state"]),
        )
        for row in shortcut["audits"]
    ]
    return StatusTable(columns, 4, rows)


def _people(people: Sequence[Mapping[str, Any]]) -> StatusTable:
    rows = []
    for row in people:
        right, total = row["gold"]
        seconds = "—" if row["median_seconds"] is None else f"{row['median_seconds']:.1f}"
        gold = f"{right} of {total}" if total else "—"
        numbers = f"{row['decisions']:,}", f"{row['undone']:,}", gold, seconds
        notes = row["paused"], "" if row["has_link"] else "no link", "too fast" * row["hasty"]
        rows.append((*numbers, row["name"], "; ".join(filter(None, notes))))
    return StatusTable(("decisions", "undone", "gold", "median s", "reviewer", "note"), 4, rows)


def _agreement(stages: Sequence[Mapping[str, Any]]) -> StatusTable:
    rows = []
    for row in stages:
        if row["n"]:
            rows.append(_agree(row, row["alpha"], row["stage"], "all, Krippendorff's alpha"))
        # of fifty reviewers there are 1,225 pairs; JSON has them all
        for pair in sorted(row["kappa"], key=lambda pair: float(pair["kappa"]))[:LOWEST]:
            who = f"{' and '.join(pair['reviewers'])}, Cohen's kappa"
            rows.append(_agree(pair, pair["kappa"], row["stage"], who))
    return StatusTable(("agreement", "95 % interval", "items", "stage", "of", "method"), 3, rows)


def _agree(row: Mapping[str, Any], value: float | None, stage: str, who: str) -> tuple[str, ...]:
    agreement = "undefined" if value is None else f"{value:.2f}"
    ends = format_agreement_ends(row["low"], row["high"])
    return agreement, ends, f"{row['n']:,}", stage, who, row["method"]


def _comments(comments: Sequence[Mapping[str, Any]]) -> StatusTable:
    names = ("stage", "item", "reviewer", "answer", "comment")
    rows = [
        # on one line, without control characters of terminals
        tuple("".join(c if c.isprintable() else " " for c in row[name]) for name in names)
        for row in comments
    ]
    return StatusTable(names, 0, rows)


def _changes(impacts: Sequence[Mapping[str, Any]]) -> StatusTable:
    rows = []
    for row in impacts:
        review = row["review"].removesuffix(" review")
        titles = {"accuracy": "original", f"pm-{row['k']}": "perturbed", "drop": "drop"}
        for name, key in titles.items():
            result = row[key]
            ends = interval(result["low"], result["high"])
            numbers = percent(result["value"]), ends, f"{result['n']:,}"
            rows.append((*numbers, name, review, row["model"]))
    return StatusTable(("value", "95 % interval", "n", "number", "review", "model"), 3, rows)
