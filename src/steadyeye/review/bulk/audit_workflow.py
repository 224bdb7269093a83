"""The audit of a review: drawn, asked among all else, and what may be accepted in bulk after it.

What is counted are neighbours, each on its own: at most a share `most` of all that are accepted,
by people or in bulk, is wrong; that is, people asked would not have accepted it.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from steadyeye import __version__
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import stream
from steadyeye.review.bulk import skip_pairs
from steadyeye.review.bulk.audit import ROUNDS, most_wrong, sizes, verdict, worth
from steadyeye.review.db.schema import audits, decisions, items
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.protocol.stages import outcomes


@dataclass(frozen=True)
class AuditProgress:
    """What an audit has found so far.

    `decided`, `wrong`: of the `drawn`. `accepted`: neighbours accepted now, by people or in bulk.
    `left`: how many wrong ones there can be among what was not drawn.
    """

    drawn: int
    decided: int
    wrong: int
    accepted: int
    left: int

    @property
    def share(self) -> float:
        """The share of the accepted that can be wrong, at most."""
        return self.left / self.accepted if self.accepted else 0.0


@dataclass(frozen=True)
class JudgedPair:
    """A pair: what people said of it or of its twin (None: nothing yet), and of its anchor."""

    similar: bool | None
    anchor: bool

    @property
    def accepted(self) -> bool:
        """Whether the neighbour is accepted."""
        return self.anchor and self.similar is True


def latest(connection: Connection) -> Any:
    """The last audit, or None."""
    return connection.execute(select(audits).order_by(audits.c.id.desc()).limit(1)).first()


def found_by(connection: Connection, row: Any) -> AuditProgress:
    """What an audit finds as the decisions stand now."""
    drawn = row.pool[: row.sizes[row.step]]
    known = pairs(connection)
    said = [known[item].similar for item in drawn]
    wrong = sum(each is False for each in said)
    left = most_wrong(wrong, len(drawn), len(row.pool), row.risk / len(row.sizes))
    decided = sum(each is not None for each in said)
    return AuditProgress(len(drawn), decided, wrong, count_accepted(known), left)


def holds(connection: Connection) -> bool:
    """Whether what was accepted in bulk may be so: its audit passed, and would pass still."""
    row = latest(connection)
    if row is None or row.state != "passed":
        return False
    found = found_by(connection, row)
    return found.decided == found.drawn and found.left <= row.most * found.accepted


def count_accepted(known: Mapping[int, JudgedPair]) -> int:
    """How many neighbours are accepted."""
    return sum(each.accepted for each in known.values())


def pairs(connection: Connection) -> Mapping[int, JudgedPair]:
    """Item → pair, of every pair of the review."""
    asked, said = skip_pairs.deciders(connection), outcomes(connection, "pairs")
    joint, anchors = outcomes(connection, "joint"), outcomes(connection, "anchors")
    found = {}
    query = select(items.c.id, items.c.key, items.c.unit).where(items.c.stage == "pairs")
    for row in connection.execute(query):
        key = asked.get(row.key, row.key)
        pair = said.get(key)
        if pair is not None and pair.accepted is None:
            pair = joint.get(key)
        anchor = anchors.get(row.unit)
        good = bool(anchor and anchor.accepted) if anchors else True
        found[row.id] = JudgedPair(pair.accepted if pair else None, good)
    return found


YES = {"correct": "yes", "similar": "yes", "reasons": []}


def audit(connection: Connection, plan: ReviewPlan, most: float, seed: int) -> str:
    """Takes the audit one step further, and returns in words what was found and what comes next.

    Raises `UsageError` where pairs are not spared, or for a `most` that is not that of the audits
    before.
    """
    if not plan.shortcut:
        raise UsageError(
            'every pair of this set is reviewed; put "shortcut": true under "review" in '
            "set.json before the review begins"
        )
    if not 0 < most < 1:
        raise UsageError(f"most={most} is not a share; give one between 0 and 1")
    skip_pairs.begin(connection, plan)
    last = latest(connection)
    if last is not None and last.most != most:
        raise UsageError(
            f"this review is audited for a share of {last.most:g}; use --most {last.most:g}"
        )
    if last is not None and last.state == "open":
        return _look(connection, plan, last)
    if last is not None and last.state == "passed":
        return _told_passed(connection, last)
    return _draw(connection, plan, most, seed)


def accept(connection: Connection, row: Any) -> int:
    """Accepts in bulk what an audit has bounded; returns how many.

    Raises `UsageError` where the audit has not passed.
    """
    if row is None or row.state != "passed":
        raise UsageError("nothing is accepted in bulk before an audit has passed; run review-audit")
    who = reviewers.nobody(connection)
    rest = row.pool[row.sizes[row.step] :]
    spared = _in_state(connection, rest, "implied")
    said = [
        {
            "item": item,
            "reviewer": who,
            "key": f"bulk-{row.id}-{item}",
            "kind": "bulk",
            "answer": YES,
            "comment": f"audit {row.id}",
            "seconds": 0.0,
            "version": f"steadyeye {__version__}",
            "made_at": time.time(),
        }
        for item in spared
    ]
    if said:
        connection.execute(insert(decisions), said)
    _set(connection, spared, {"state": "bulk", "needed": 1, "decided": 1})
    return len(said)


def list_audits(connection: Connection) -> Sequence[Mapping[str, Any]]:
    """Every audit, in the order in which they were made."""
    wanted = ("id", "state", "seed", "most", "wrong")
    return [
        {**{key: getattr(row, key) for key in wanted}, "drawn": row.sizes[row.step]}
        for row in connection.execute(select(audits).order_by(audits.c.id))
    ]


def _draw(connection: Connection, plan: ReviewPlan, most: float, seed: int) -> str:
    waits = _describe_unsettled(connection)
    if waits:
        return f"not yet: {waits}; run again once they are decided"
    implied = (items.c.stage == "pairs") & (items.c.state == "implied")
    query = select(items.c.id).where(implied).order_by(items.c.key)
    pool = list(connection.execute(query).scalars())
    if not pool:
        return "everything is decided; nothing is left to accept in bulk"
    number = connection.execute(select(func.count()).select_from(audits)).scalar_one()
    risk = ROUNDS[number][1]
    order = stream(seed, "audit", str(number)).permutation(len(pool))
    by_people = count_accepted(pairs(connection))
    planned = sizes(len(pool), by_people, most, risk)
    useful = worth(planned[0], len(pool))
    row = {
        "state": "open" if useful else "useless",
        "seed": seed,
        "most": most,
        "risk": risk,
        "accepted": by_people,
        "pool": [pool[n] for n in order],
        "sizes": list(planned),
        "step": 0,
        "made_at": time.time(),
    }
    connection.execute(insert(audits).values(row))
    if not useful:
        skip_pairs.begin(connection, plan)
        return (
            f"an audit would need {planned[0]:,} of {number_of(len(pool), 'pair')}, which saves "
            "too little; all of them are reviewed"
        )
    return _ask(connection, latest(connection))


def _ask(connection: Connection, row: Any) -> str:
    drawn = row.pool[: row.sizes[row.step]]
    skip_pairs.ask(connection, _in_state(connection, drawn, "implied"))
    return (
        f"audit {row.id}, step {row.step + 1}: {len(drawn):,} of "
        f"{number_of(len(row.pool), 'pair')}, drawn at random, were added to the review; run again "
        "once they are decided"
    )


def _look(connection: Connection, plan: ReviewPlan, row: Any) -> str:
    found = found_by(connection, row)
    if found.decided < found.drawn:
        return (
            f"audit {row.id} waits: {found.decided:,} of {found.drawn:,} are decided; "
            f"{_describe_unsettled(connection)}; run again once all are"
        )
    says = verdict(found.wrong, row.step, row.sizes, len(row.pool))
    if says == "pass" and found.left > row.most * (found.accepted + len(row.pool) - found.drawn):
        says = "fail"  # decisions were changed since it was drawn
    here = update(audits).where(audits.c.id == row.id)
    if says == "more":
        connection.execute(here.values(step=row.step + 1, wrong=found.wrong))
        return f"{found.wrong} of {found.drawn:,} were wrong; " + _ask(
            connection, latest(connection)
        )
    state = f"{says}ed"
    connection.execute(here.values(state=state, wrong=found.wrong))
    if state == "passed":
        done = accept(connection, latest(connection))
        skip_pairs.begin(connection, plan)
        return f"{number_of(done, 'pair is', 'pairs are')} accepted in bulk. " + _told_passed(
            connection, latest(connection)
        )
    skip_pairs.begin(connection, plan)
    return (
        f"audit {row.id} failed: {found.wrong} of {found.drawn:,} were wrong; nothing is "
        "accepted in bulk, and more pairs are reviewed; run again once they are decided"
    )


def _told_passed(connection: Connection, row: Any) -> str:
    found = found_by(connection, row)
    bound = (
        f"{found.wrong} of {found.drawn:,} were wrong, so at most {found.left:,} "
        f"({100 * found.share:.2f} %) of the {found.accepted:,} accepted neighbours are wrong, "
        "with 95 % confidence"
    )
    if holds(connection):
        return f"audit {row.id} passed: {bound}"
    return (
        f"audit {row.id} is no longer valid, because decisions were changed: {bound}; pairs "
        "accepted in bulk count as undecided until the changes are undone"
    )


def _describe_unsettled(connection: Connection) -> str:
    """What is still to be decided before an audit can be drawn or judged; empty: nothing."""
    query = select(items.c.stage, func.count()).where(
        items.c.state == "open", items.c.gold.is_(None), items.c.stage.in_(_STAGES)
    )
    rows = connection.execute(query.group_by(items.c.stage)).all()
    counts = {row[0]: row[1] for row in rows}
    return ", ".join(f"{counts[name]:,} open in {name}" for name in _STAGES if name in counts)


_STAGES = ("anchors", "pairs", "joint")


def _in_state(connection: Connection, wanted: Sequence[int], state: str) -> list[int]:
    query = select(items.c.id).where(items.c.stage == "pairs", items.c.state == state)
    here = set(connection.execute(query).scalars())
    return [item for item in wanted if item in here]


def _set(connection: Connection, wanted: Sequence[int], values: Mapping[str, Any]) -> None:
    for start in range(0, len(wanted), 500):
        here = items.c.id.in_(wanted[start : start + 500])
        connection.execute(update(items).where(here).values(**values))
