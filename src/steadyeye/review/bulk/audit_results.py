"""What an audit has found, as the decisions stand now."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from steadyeye.review.bulk import skip_pairs
from steadyeye.review.bulk.audit import most_wrong
from steadyeye.review.db.schema import audits, items
from steadyeye.review.protocol.votes import outcomes


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
