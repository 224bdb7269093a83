"""The audit of a review: how often a bulk acceptance is wrong, bounded by a random sample of it.

Each neighbour counts on its own: of all neighbours accepted by people or in bulk, at most a share
`most` is wrong. A neighbour is wrong if people who are asked about it would not accept it.

The sample is drawn without replacement, so the errors in it are hypergeometric. It is judged in
steps: the first passes without an error, the second with one at most, and so on. The sizes of the
steps are fixed before the first is drawn, and the steps share the risk of a wrong verdict
(Bonferroni).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import stream
from steadyeye.review.bulk import skip_pairs
from steadyeye.review.database import audits, items
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.stages import ReviewPlan
from steadyeye.review.protocol.votes import add_decisions, settle_pairs, settle_stage

STEPS = 6
SURPLUS = 3  # errors beyond what a step allows, after which no further step is likely to pass
WORTH = 0.7  # of what is audited; an audit of more saves too little


def bound_wrong(errors: int, audited: int, population: int, risk: float) -> int:
    """The upper bound of wrong neighbours among those that were not audited.

    `errors` of the `audited`, drawn without replacement from `population`, were wrong. Exact and
    one-sided: with more wrong ones, so few errors would have a probability below `risk`.
    """
    # a third of the time that a server takes to start, and needed by an audit alone
    from scipy.stats import hypergeom

    low, high = errors, errors + population - audited
    while low < high:
        middle = (low + high + 1) // 2
        if hypergeom.cdf(errors, population, middle, audited) > risk:
            low = middle
        else:
            high = middle - 1
    return low - errors


@cache
def plan_sizes(population: int, accepted: int, most: float, risk: float) -> Sequence[int]:
    """The sample size of each step; step c, from 0, passes with c errors or fewer.

    `accepted`: neighbours accepted by people. If a step passes, at most a share `most` of these and
    of the `population` together is wrong, except with probability `risk` over all steps.
    """
    return tuple(
        _find_size(errors, population, int(most * (accepted + population - errors)), risk / STEPS)
        for errors in range(STEPS)
    )


def _find_size(errors: int, population: int, allowed: int, risk: float) -> int:
    """The smallest sample that with so many errors bounds the wrong ones left by `allowed`."""
    low, high = min(errors + 1, population), population
    while low < high:
        middle = (low + high) // 2
        if bound_wrong(errors, middle, population, risk) <= allowed:
            high = middle
        else:
            low = middle + 1
    return low


def judge_step(errors: int, step: int, planned: Sequence[int], population: int) -> str:
    """The verdict on the `errors` that a `step` found: pass, more (the next step), or fail."""
    if errors <= step:
        return "pass"
    further = step + 1
    hopeless = errors > step + SURPLUS
    if hopeless or further == len(planned) or not is_worth(planned[further], population):
        return "fail"
    return "more"


def is_worth(audited: int, population: int) -> bool:
    """Whether an audit of that size spares people enough decisions."""
    return audited <= WORTH * population


@dataclass(frozen=True)
class AuditProgress:
    """The numbers of an audit so far.

    `size`: pairs in the sample; `decided`, `wrong`: how many of them are. `accepted`: neighbours
    accepted now, by people or in bulk. `left`: upper bound of wrong ones outside the sample.
    """

    size: int
    decided: int
    wrong: int
    accepted: int
    left: int

    @property
    def share(self) -> float:
        """The upper bound of the share of accepted neighbours that are wrong."""
        return self.left / self.accepted if self.accepted else 0.0


@dataclass(frozen=True)
class JudgedPair:
    """A pair: whether people accepted it or its twin (None: not decided), and its anchor."""

    similar: bool | None
    anchor: bool

    @property
    def neighbour(self) -> bool:
        """Whether the neighbour is accepted."""
        return self.anchor and self.similar is True


def find_latest(connection: Connection) -> Any:
    """The last audit, or None."""
    return connection.execute(select(audits).order_by(audits.c.id.desc()).limit(1)).first()


def measure_audit(connection: Connection, row: Any) -> AuditProgress:
    """The numbers of an audit, a row of `audits`, as the decisions stand now."""
    sample = row.pool[: row.sizes[row.step]]
    pairs = judge_pairs(connection)
    answers = [pairs[item].similar for item in sample]
    wrong = sum(similar is False for similar in answers)
    left = bound_wrong(wrong, len(sample), len(row.pool), row.risk / len(row.sizes))
    decided = sum(similar is not None for similar in answers)
    return AuditProgress(len(sample), decided, wrong, count_accepted(pairs), left)


def holds(connection: Connection) -> bool:
    """Whether the bulk acceptance is valid: its audit passed, and would still pass now."""
    row = find_latest(connection)
    if row is None or row.state != "passed":
        return False
    audit = measure_audit(connection, row)
    return audit.decided == audit.size and audit.left <= row.most * audit.accepted


def count_accepted(pairs: Mapping[int, JudgedPair]) -> int:
    """How many neighbours are accepted."""
    return sum(pair.neighbour for pair in pairs.values())


def judge_pairs(connection: Connection) -> Mapping[int, JudgedPair]:
    """Item → pair, of every pair of the review."""
    twins = skip_pairs.find_twins(connection)
    outcomes, anchors = settle_pairs(connection), settle_stage(connection, "anchors")
    pairs = {}
    query = select(items.c.id, items.c.key, items.c.unit).where(items.c.stage == "pairs")
    for row in connection.execute(query):
        pair = outcomes.get(twins.get(row.key, row.key))
        anchor = anchors.get(row.unit)
        good = bool(anchor and anchor.accepted) if anchors else True
        pairs[row.id] = JudgedPair(pair.accepted if pair else None, good)
    return pairs


YES = {"correct": "yes", "similar": "yes", "reasons": []}


def run_audit(connection: Connection, plan: ReviewPlan, most: float, seed: int) -> str:
    """The result of the audit's next step and what to do next, in words.

    Raises `UsageError` if the plan spares no pairs, or if `most` differs from that of earlier
    audits.
    """
    if not plan.shortcut:
        raise UsageError(
            'every pair of this set is reviewed; put "shortcut": true under "review" in '
            "set.json before the review begins"
        )
    if not 0 < most < 1:
        raise UsageError(f"most={most} is not a share; give one between 0 and 1")
    skip_pairs.advance_all(connection, plan)
    last = find_latest(connection)
    if last is not None and last.most != most:
        raise UsageError(
            f"this review is audited for a share of {last.most:g}; use --most {last.most:g}"
        )
    if last is not None and last.state == "open":
        return _judge_sample(connection, plan, last)
    if last is not None and last.state == "passed":
        return _describe_passed(connection, last)
    return _draw_sample(connection, plan, most, seed)


def accept_rest(connection: Connection, row: Any) -> int:
    """Accepts in bulk the pairs outside the sample of a passed audit; returns how many.

    Raises `UsageError` where the audit has not passed.
    """
    if row is None or row.state != "passed":
        raise UsageError("nothing is accepted in bulk before an audit has passed; run review-audit")
    spared = _filter_implied(connection, row.pool[row.sizes[row.step] :])
    common = {"reviewer": reviewers.find_bulk_reviewer(connection), "comment": f"audit {row.id}"}
    rows = [
        {**common, "item": item, "key": f"bulk-{row.id}-{item}", "kind": "bulk", "answer": YES}
        for item in spared
    ]
    add_decisions(connection, rows)
    skip_pairs.update_items(connection, spared, {"state": "bulk", "needed": 1, "decided": 1})
    return len(rows)


def list_audits(connection: Connection) -> Sequence[Mapping[str, Any]]:
    """The record of every audit, in the order in which they were made."""
    keys = ("id", "state", "seed", "most", "wrong")
    return [
        {**{key: getattr(row, key) for key in keys}, "drawn": row.sizes[row.step]}
        for row in connection.execute(select(audits).order_by(audits.c.id))
    ]


def _draw_sample(connection: Connection, plan: ReviewPlan, most: float, seed: int) -> str:
    waits = _describe_unsettled(connection)
    if waits:
        return f"the audit must wait: {waits}; run again once they are decided"
    implied = (items.c.stage == "pairs") & (items.c.state == "implied")
    query = select(items.c.id).where(implied).order_by(items.c.key)
    pool = list(connection.execute(query).scalars())
    if not pool:
        return "everything is decided; nothing is left to accept in bulk"
    number = connection.execute(select(func.count()).select_from(audits)).scalar_one()
    risk = skip_pairs.ROUNDS[number][1]
    order = stream(seed, "audit", str(number)).permutation(len(pool))
    by_people = count_accepted(judge_pairs(connection))
    planned = plan_sizes(len(pool), by_people, most, risk)
    useful = is_worth(planned[0], len(pool))
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
        skip_pairs.advance_all(connection, plan)
        return (
            f"an audit would need {planned[0]:,} of {number_of(len(pool), 'pair')}, which saves "
            "too little; people review all of them"
        )
    return _ask_sample(connection, find_latest(connection))


def _ask_sample(connection: Connection, row: Any) -> str:
    sample = row.pool[: row.sizes[row.step]]
    skip_pairs.open_spared(connection, _filter_implied(connection, sample))
    return (
        f"audit {row.id}, step {row.step + 1}: {len(sample):,} of "
        f"{number_of(len(row.pool), 'pair')}, drawn at random, added to the review; run again "
        "once they are decided"
    )


def _judge_sample(connection: Connection, plan: ReviewPlan, row: Any) -> str:
    audit = measure_audit(connection, row)
    if audit.decided < audit.size:
        return (
            f"audit {row.id} waits: {audit.decided:,} of {audit.size:,} decided; "
            f"{_describe_unsettled(connection)}; run again once all are"
        )
    says = judge_step(audit.wrong, row.step, row.sizes, len(row.pool))
    if says == "pass" and audit.left > row.most * (audit.accepted + len(row.pool) - audit.size):
        says = "fail"  # decisions were changed since it was drawn
    change = update(audits).where(audits.c.id == row.id)
    if says == "more":
        connection.execute(change.values(step=row.step + 1, wrong=audit.wrong))
        return f"{audit.wrong} of {audit.size:,} wrong; " + _ask_sample(
            connection, find_latest(connection)
        )
    state = f"{says}ed"
    connection.execute(change.values(state=state, wrong=audit.wrong))
    if state == "passed":
        count = accept_rest(connection, find_latest(connection))
        skip_pairs.advance_all(connection, plan)
        return f"{number_of(count, 'pair is', 'pairs are')} accepted in bulk. " + _describe_passed(
            connection, find_latest(connection)
        )
    skip_pairs.advance_all(connection, plan)
    return (
        f"audit {row.id} failed: {audit.wrong} of {audit.size:,} wrong; nothing is "
        "accepted in bulk, and more pairs are reviewed; run again once they are decided"
    )


def _describe_passed(connection: Connection, row: Any) -> str:
    audit = measure_audit(connection, row)
    bound = (
        f"{audit.wrong} of {audit.size:,} wrong, so at most {audit.left:,} "
        f"({100 * audit.share:.2f} %) of the {audit.accepted:,} accepted neighbours are wrong, "
        "with 95 % confidence"
    )
    if holds(connection):
        return f"audit {row.id} passed: {bound}"
    return (
        f"audit {row.id} is no longer valid, because decisions were changed: {bound}; pairs "
        "accepted in bulk count as undecided until the changes are undone"
    )


def _describe_unsettled(connection: Connection) -> str:
    """The decisions that an audit still waits for, in words; empty if there are none."""
    query = select(items.c.stage, func.count()).where(
        items.c.state == "open", items.c.gold.is_(None), items.c.stage.in_(_STAGES)
    )
    rows = connection.execute(query.group_by(items.c.stage)).all()
    counts = {row[0]: row[1] for row in rows}
    return ", ".join(f"{counts[name]:,} open in {name}" for name in _STAGES if name in counts)


_STAGES = ("anchors", "pairs", "joint")


def _filter_implied(connection: Connection, pairs: Sequence[int]) -> list[int]:
    """The pairs whose state is still `implied`."""
    query = select(items.c.id).where(items.c.stage == "pairs", items.c.state == "implied")
    implied = set(connection.execute(query).scalars())
    return [item for item in pairs if item in implied]
