"""How often a bulk acceptance is wrong, bounded exactly by a random sample of it.

The sample is drawn without replacement, so the errors in it are hypergeometric. It is looked at
in steps: the first passes without an error, the second with one at most, and so on. The steps
are laid down before the first is drawn, and share the risk of a wrong verdict (Bonferroni).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from scipy.stats import hypergeom
from sqlalchemy import Connection, select

from steadyeye.review.bulk import skip_pairs
from steadyeye.review.db.schema import audits, items
from steadyeye.review.protocol.stages import outcomes

STEPS = 6
SURPLUS = 3  # errors beyond what a step allows, after which no further step is likely to pass
WORTH = 0.7  # of what is audited; an audit of more saves too little
ROUNDS = ((0.97, 0.03), (0.99, 0.02))
"""How sure the forecast must be of what is audited, and the risk, of the first audit and of a
second where the first fails; after that everything is asked. The promise holds with 95 %."""


def most_wrong(errors: int, audited: int, population: int, risk: float) -> int:
    """The most wrong ones there can be among those that were not audited.

    `errors` of the `audited`, drawn without replacement from `population`, were wrong. Exact and
    one-sided: with more wrong ones, so few errors would be rarer than `risk`.
    """
    low, high = errors, errors + population - audited
    while low < high:
        middle = (low + high + 1) // 2
        if hypergeom.cdf(errors, population, middle, audited) > risk:
            low = middle
        else:
            high = middle - 1
    return low - errors


@cache
def sizes(population: int, accepted: int, most: float, risk: float) -> Sequence[int]:
    """How many are audited by each step; step c, from 0, passes with c errors or fewer.

    `accepted`: those accepted by people besides; of them and of the `population` together at most
    a share `most` is then wrong, but for a `risk` that all steps share.
    """
    return tuple(
        _size(errors, population, int(most * (accepted + population - errors)), risk / STEPS)
        for errors in range(STEPS)
    )


def _size(errors: int, population: int, allowed: int, risk: float) -> int:
    """The smallest sample that with so many errors shows no more than `allowed` to be left."""
    low, high = min(errors + 1, population), population
    while low < high:
        middle = (low + high) // 2
        if most_wrong(errors, middle, population, risk) <= allowed:
            high = middle
        else:
            low = middle + 1
    return low


def verdict(errors: int, step: int, planned: Sequence[int], population: int) -> str:
    """What follows from the `errors` found by a `step`: pass, more (the next step), or fail."""
    if errors <= step:
        return "pass"
    further = step + 1
    hopeless = errors > step + SURPLUS
    if hopeless or further == len(planned) or not worth(planned[further], population):
        return "fail"
    return "more"


def worth(audited: int, population: int) -> bool:
    """Whether an audit of that size leaves enough that need not be asked."""
    return audited <= WORTH * population


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
