"""Where a review stands: its stages, its people, and the numbers of the papers' Table 1."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, func, select

from steadyeye.footage.set_folder import SetFolder
from steadyeye.review import auditing, evidence, quality, queue, shortcut
from steadyeye.review.people import Reviewer
from steadyeye.review.plan import Plan
from steadyeye.review.schema import assignments, items
from steadyeye.review.stages import STAGES, Outcome
from steadyeye.review.standing import outcomes
from steadyeye.review.table_one import table_one


def progress(
    connection: Connection, plan: Plan, reviewer: Reviewer | None = None
) -> Sequence[Mapping[str, Any]]:
    """Each stage with how many of its items are waiting, open and done.

    Of a reviewer: `mine`, what they answered, and `left`, what waits for them.
    """
    rows = connection.execute(
        select(items.c.stage, items.c.state, func.count()).group_by(items.c.stage, items.c.state)
    )
    counts = {(stage, state): count for stage, state, count in rows}
    mine: dict[str, int] = {}
    left: dict[str, int] = {}
    if reviewer:
        left = {name: queue.left(connection, plan, reviewer, name) for name in plan.votes}
        answered = connection.execute(
            select(items.c.stage, func.count())
            .join(assignments, assignments.c.item == items.c.id)
            .where(assignments.c.reviewer == reviewer.id, assignments.c.answered)
            .group_by(items.c.stage)
        )
        mine = {row[0]: row[1] for row in answered}
    return [
        {
            "stage": name,
            "title": STAGES[name].title,
            "votes": votes,
            **{state: counts.get((name, state), 0) for state in ("waiting", "open", "done")},
            **({"mine": mine.get(name, 0), "left": left[name]} if reviewer else {}),
        }
        for name, votes in plan.votes.items()
    ]


def status(connection: Connection, folder: SetFolder, plan: Plan) -> Mapping[str, Any]:
    """Everything the dashboard and `steadyeye review-status` show."""
    agreements = [quality.agreement(connection, name) for name in plan.votes]
    return {
        "set": folder.name,
        "stages": progress(connection, plan),
        "reviewers": [asdict(pace) for pace in quality.paces(connection)],
        "agreement": [
            {
                "stage": each.stage,
                "alpha": each.alpha,
                "n": each.n,
                "kappa": [
                    {"reviewers": list(pair), "kappa": value, "n": n}
                    for pair, (value, n) in each.kappa.items()
                ],
            }
            for each in agreements
        ],
        "table": table(connection, folder, plan),
        "table_one": [asdict(line) for line in table_one(connection, folder, plan)],
        **(_spared(connection) if plan.shortcut else {}),
    }


def _spared(connection: Connection) -> Mapping[str, Any]:
    told = {"spared": shortcut.counts(connection), "holds": evidence.holds(connection)}
    return {"shortcut": {**told, "audits": auditing.told(connection)}}


def table(connection: Connection, folder: SetFolder, plan: Plan) -> Sequence[Mapping[str, Any]]:
    """Reviewed, accepted, updated and why not, of each stage: Table 1 of Shankar et al.

    What was accepted in bulk nobody reviewed, and is not counted.
    """
    found = []
    for name in plan.votes:
        bulk = _in_bulk(connection) if name == "pairs" else frozenset()
        known = {
            key: each
            for key, each in outcomes(connection, name).items()
            if each is not None and key not in bulk
        }
        settled = known.values()
        reasons = Counter(each.reason for each in settled if each.accepted is False)
        found.append(
            {
                "stage": name,
                "reviewed": len(settled),
                "accepted": sum(each.accepted is True for each in settled),
                "reasons": dict(reasons.most_common()),
                **({"updated": _updated(folder, known)} if name == "anchors" else {}),
            }
        )
    return found


def _in_bulk(connection: Connection) -> frozenset[str]:
    states = shortcut.states(connection)
    return frozenset(key for key, state in states.items() if state == "bulk")


def _updated(folder: SetFolder, known: Mapping[str, Outcome]) -> int:
    """Accepted anchors whose labels the review changed."""
    names = folder.classes.names if folder.classes else ()
    given = {
        row["group"]: [names[label] for label in row["labels"]]
        for row in folder.frames.to_pylist()
        if row["offset"] == 0
    }
    accepted = {key: each for key, each in known.items() if each.accepted}
    return sum(each.answer["labels"] != given[key] for key, each in accepted.items())
