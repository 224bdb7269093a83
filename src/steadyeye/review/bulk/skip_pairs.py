"""Chooses which pairs people review, and which are spared because similar pairs imply them.

The pairs of a block are asked in rounds; those of other videos come in between, in random order. A
round that is completely answered opens the next, until no pair is uncertain.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, bindparam, func, select, update

from steadyeye.review.database import audits, items
from steadyeye.review.protocol.stages import Outcome, ReviewPlan
from steadyeye.review.protocol.votes import Votes, find_votes, settle_item

Points = NDArray[np.float64]

MEAN = 0.62  # of answers ±1: people accepted 81 % (Shankar et al., Table 1)
VARIANCE = 1 - MEAN**2
NOISE = 0.02  # variance: answers are not quite consistent
LENGTHS = (2.0, 4.0, 8.0)  # frames; the likeliest length scale is taken, video by video
NEAR = 4.0  # frames: no pair is farther from one that was asked, or from a frame and itself
UNLIKELY = 0.1
BATCH = 16
SHARE = 0.1  # of what was asked already: a batch at least
APART = 2  # frames between two pairs of a batch, in the first or in the last frame
ROUNDS = ((0.97, 0.03), (0.99, 0.02))
"""Least predicted probability of audited pairs and risk, of the first audit and of a second audit
if the first fails. After that, people review everything. The bound holds with 95 % confidence."""

_PAIRS = (items.c.stage == "pairs") & (items.c.block == bindparam("block"))
_LOCK_BLOCK = select(items.c.id).where(_PAIRS).order_by(items.c.id).limit(1).with_for_update()
_UNANSWERED = select(func.count()).where(_PAIRS, items.c.state == "open", items.c.gold.is_(None))


@dataclass(frozen=True)
class PairRound:
    """The next round of a video, as numbers of pairs.

    `ask`: pairs to review now. If it is empty, all pairs are settled: `implied` are predicted to be
    similar, `unlikely` are predicted not to be.
    """

    ask: Sequence[int]
    implied: Sequence[int] = ()
    unlikely: Sequence[int] = ()


def plan_round(pairs: Points, similar: Sequence[bool | None], sure: float) -> PairRound:
    """The next pairs of a video to review, or what the answers imply for the rest.

    `pairs`: (n, 2) first and last frame. `similar`: the answer to each; None: not asked. `sure`:
    the least probability of an implied pair; above 1 none is implied. Without pairs, for example if
    all anchors of a video are rejected, there is nothing to review.
    """
    known = np.array([answer is not None for answer in similar], dtype=bool)
    uncovered = _cover(pairs, known)
    if uncovered or known.all():
        return PairRound(uncovered)
    rest = np.flatnonzero(~known)
    answers = np.array([1.0 if answer else -1.0 for answer in similar if answer is not None])
    likely = predict_similarity(pairs[known], answers, pairs[rest])
    unsure = (likely > UNLIKELY) & (likely < sure)
    if unsure.any():
        first = rest[unsure][np.argsort(np.abs(likely[unsure] - 0.5), kind="stable")]
        return PairRound(_spread(pairs, first, max(BATCH, int(SHARE * known.sum()))))
    return PairRound([], rest[likely >= sure].tolist(), rest[likely < sure].tolist())


def predict_similarity(pairs: Points, answers: Points, targets: Points) -> Points:
    """(m,) the probability that each of `targets` (m, 2) is similar, given `answers` ±1 to `pairs`.

    `pairs`: (n, 2). A Gaussian process over first and last frame, its length scale chosen by
    likelihood. A frame is always similar to itself, and counts as answered.
    """
    # a sixth of the time that a server takes to start, and needed by forecasts alone
    from scipy.linalg import cholesky, solve_triangular
    from scipy.special import ndtr

    frames = np.unique(np.concatenate([pairs, targets]))
    points = np.concatenate([np.stack([frames, frames], 1), pairs])
    centred = np.concatenate([np.ones(len(frames)), answers]) - MEAN
    apart = _distances(points, points)
    best: tuple[float, float, Points, Points] | None = None
    for length in LENGTHS:
        covariance = VARIANCE * np.exp(-apart / length) + NOISE * np.eye(len(points))
        lower = cholesky(covariance, lower=True)
        solved = solve_triangular(lower, centred, lower=True)
        likelihood = -0.5 * solved @ solved - np.log(np.diag(lower)).sum()
        if best is None or likelihood > best[0]:
            best = (likelihood, length, lower, solved)
    assert best is not None
    _, length, lower, solved = best
    across = VARIANCE * np.exp(-_distances(points, targets) / length)
    explained = solve_triangular(lower, across, lower=True)
    spread = np.sqrt(np.maximum(VARIANCE - (explained**2).sum(axis=0), 1e-9))
    return np.asarray(ndtr((MEAN + explained.T @ solved) / spread))


def _cover(pairs: Points, known: NDArray[np.bool_]) -> list[int]:
    """Pairs to review so that no pair is far from an answer, chosen farthest first."""
    frames = np.unique(pairs)
    answered = np.concatenate([np.stack([frames, frames], 1), pairs[known]])
    nearest = _distances(pairs, answered).min(axis=1, initial=np.inf)
    chosen = []
    while nearest.max(initial=0.0) > NEAR:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, _distances(pairs, pairs[chosen[-1:]])[:, 0])
    return chosen


def _spread(pairs: Points, ordered: NDArray[np.intp], most: int) -> list[int]:
    """The first of these pairs that are not next to each other, up to `most`."""
    chosen: list[int] = []
    for number in ordered:
        if len(chosen) == most:
            break
        apart = np.abs(pairs[chosen] - pairs[number]).max(axis=1, initial=0.0)
        if apart.min(initial=APART) >= APART:
            chosen.append(int(number))
    return chosen


def _distances(left: Points, right: Points) -> Points:
    return np.asarray(np.sqrt(((left[:, None] - right[None]) ** 2).sum(axis=-1)))


@dataclass(frozen=True, eq=False)
class Twins:
    """The pairs of a block that show the same two frames under the same labels.

    `rows`: their items, in the order in which they would be reviewed. `similar`: the decision about
    any of them; None if there is none yet. A doubted pair is not similar until it is jointly
    verified.
    """

    rows: Sequence[Any]
    similar: bool | None

    @property
    def point(self) -> tuple[float, float]:
        """The first and the last frame."""
        pair = self.rows[0].payload
        first, last = sorted((pair["frame"] - pair["offset"], pair["frame"]))
        return float(first), float(last)


def advance(connection: Connection, block: str, plan: ReviewPlan) -> None:
    """Opens the next round of a block if the last one is answered; otherwise changes nothing.

    Before the first all anchors of the block must be decided. During an audit no further pair is
    spared or opened.
    """
    if not _is_answered(connection, block):
        return
    twins = _group_twins(connection, block, plan)
    if twins is None:
        return
    moved: dict[str, list[Any]] = {state: [] for state in ("open", "mirrored", "implied", "beyond")}
    for pair in twins:
        if pair.similar is not None:
            moved["mirrored"] += pair.rows
    sure = find_sureness(connection)
    if sure is not None:
        cut = [n for n, pair in enumerate(twins) if pair.similar is None and _is_across_cut(pair)]
        points = np.array([pair.point for pair in twins]).reshape(-1, 2)
        step = plan_round(points, [pair.similar for pair in twins], sure)
        for number in dict.fromkeys([*cut, *step.ask]):
            first, *others = twins[number].rows
            moved["open"].append(first)
            moved["mirrored"] += others
        if not moved["open"]:
            moved["implied"] = [row for n in step.implied for row in twins[n].rows]
            moved["beyond"] = [row for n in step.unlikely for row in twins[n].rows]
    for state, rows in moved.items():
        _move_idle(connection, rows, state)


def open_spared(connection: Connection, pairs: Sequence[int]) -> None:
    """Opens spared pairs, but only one of two pairs that show the same frames."""
    query = select(items).where(items.c.stage == "pairs", items.c.state == "implied")
    chosen, grouped = set(pairs), dict[Any, list[Any]]()
    for row in connection.execute(query.order_by(items.c.position)):
        grouped.setdefault((row.block, _describe_sight(row)), []).append(row)
    for rows in grouped.values():
        first = next((row for row in rows if row.id in chosen), None)
        if first is not None:
            _move_idle(connection, [first], "open")
            _move_idle(connection, [row for row in rows if row is not first], "mirrored")


def find_sureness(connection: Connection) -> float | None:
    """The least probability of a spared pair; None during an audit.

    After the last audit it is above 1, so that no pair is spared.
    """
    states = connection.execute(select(audits.c.state).order_by(audits.c.id)).scalars().all()
    if states and states[-1] == "open":
        return None
    if len(states) == len(ROUNDS) or any(state in ("passed", "useless") for state in states):
        return 2.0
    return ROUNDS[len(states)][0]


def advance_all(connection: Connection, plan: ReviewPlan) -> None:
    """Opens the next round of every block."""
    query = select(items.c.block).where(items.c.block.is_not(None)).distinct()
    for block in sorted(connection.execute(query).scalars()):
        advance(connection, block, plan)


def find_twins(connection: Connection) -> Mapping[str, str]:
    """Key of a mirrored pair → key of the pair that is reviewed instead."""
    pairs = (items.c.stage == "pairs") & items.c.block.is_not(None)
    answered: dict[Any, str] = {}
    mirrored = []
    for row in connection.execute(select(items).where(pairs).order_by(items.c.position)):
        if row.state == "mirrored":
            mirrored.append(row)
        elif row.state in ("open", "done"):
            answered.setdefault((row.block, _describe_sight(row)), row.key)
    twins = {row.key: answered.get((row.block, _describe_sight(row))) for row in mirrored}
    return {key: twin for key, twin in twins.items() if twin is not None}


def list_states(connection: Connection) -> Mapping[str, str]:
    """Key → state of the pairs that may be spared."""
    pairs = (items.c.stage == "pairs") & items.c.block.is_not(None)
    rows = connection.execute(select(items.c.key, items.c.state).where(pairs))
    return {row.key: row.state for row in rows}


def _is_answered(connection: Connection, block: str) -> bool:
    """Whether a block is completely answered; locked, so that simultaneous decisions wait."""
    connection.execute(_LOCK_BLOCK, {"block": block})
    return not connection.execute(_UNANSWERED, {"block": block}).scalar_one()


def _group_twins(connection: Connection, block: str, plan: ReviewPlan) -> Sequence[Twins] | None:
    """The pairs of a block under anchors that were accepted; None while one is not decided."""
    votes = find_votes(connection, "block", block)
    outcomes: dict[str, dict[str, Outcome | None]] = {"anchors": {}, "joint": {}}
    pairs = []
    query = select(items).where(items.c.block == block).order_by(items.c.position, items.c.id)
    for row in connection.execute(query):
        if row.stage == "pairs":
            pairs.append(row)
        else:
            outcomes[row.stage][row.key] = settle_item(row, votes.get(row.id, ()))
    if "anchors" in plan.votes:
        accepted = {key: anchor.accepted for key, anchor in outcomes["anchors"].items() if anchor}
        if len(accepted) < len(outcomes["anchors"]):
            return None
        pairs = [row for row in pairs if accepted[row.unit]]
    grouped: dict[Any, list[Any]] = {}
    for row in pairs:
        grouped.setdefault(_describe_sight(row), []).append(row)
    twins = [
        Twins(rows, _find_first_answer(rows, votes, outcomes["joint"])) for rows in grouped.values()
    ]
    # what is asked next must not depend on the random order in which it is shown
    return sorted(twins, key=lambda pair: (pair.point, min(row.key for row in pair.rows)))


def _find_first_answer(
    rows: Sequence[Any], votes: Mapping[int, Votes], joint: Mapping[str, Outcome | None]
) -> bool | None:
    """Whether the first decided pair among these is similar; None if none is decided."""
    answers = (_is_similar(row, votes, joint) for row in rows)
    return next((similar for similar in answers if similar is not None), None)


def _is_similar(
    row: Any, votes: Mapping[int, Votes], joint: Mapping[str, Outcome | None]
) -> bool | None:
    pair = settle_item(row, votes.get(row.id, ()))
    if pair is None:
        return None
    if pair.accepted is None:
        verified = joint.get(row.key)
        return bool(verified and verified.accepted)
    return bool(pair.accepted)


def _describe_sight(row: Any) -> tuple[frozenset[str], tuple[str, ...]]:
    """The images and labels of a pair, whichever frame is the anchor."""
    pair = row.payload
    return frozenset((pair["anchor"], pair["image"])), tuple(pair["labels"])


def _is_across_cut(twins: Twins) -> bool:
    # what is alike before a cut tells nothing of what comes after
    return any(row.payload["across_cut"] for row in twins.rows)


def _move_idle(connection: Connection, rows: Sequence[Any], state: str) -> None:
    """Changes the state of pairs that were assigned to nobody."""
    fixed = (state, "open", "done", "bulk")
    idle = [row.id for row in rows if row.state not in fixed and row.gold is None]
    update_items(connection, idle, {"state": state})


def update_items(connection: Connection, ids: Sequence[int], values: Mapping[str, Any]) -> None:
    """Sets columns of items, 500 per statement: databases limit the number of parameters."""
    for start in range(0, len(ids), 500):
        batch = items.c.id.in_(ids[start : start + 500])
        connection.execute(update(items).where(batch).values(**values))
