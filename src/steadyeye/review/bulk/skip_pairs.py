"""Which pairs are asked, and which are spared because those around them make sure of them.

The pairs of a block are asked in rounds; those of other videos come in between, in random order.
A round that is answered to its end opens the next, until nothing is left in doubt.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import ndtr
from sqlalchemy import Connection, func, select, update

from steadyeye.review.bulk.audit import ROUNDS
from steadyeye.review.db.schema import audits, items
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.protocol.stages import outcome, votes

Points = NDArray[np.float64]

MEAN = 0.62  # of answers ±1: people accepted 81 % (Shankar et al., Table 1)
VARIANCE = 1 - MEAN**2
NOISE = 0.02  # variance: answers are not quite consistent
REACHES = (2.0, 4.0, 8.0)  # frames; the likeliest is taken, video by video
NEAR = 4.0  # frames: no pair is farther from one that was asked, or from a frame and itself
UNLIKELY = 0.1
BATCH = 16
SHARE = 0.1  # of what was asked already: a batch at least
APART = 2  # frames between two pairs of a batch, in the first or in the last frame


@dataclass(frozen=True)
class PairRound:
    """What follows from the answers so far, as numbers of pairs.

    `ask`: to be asked now, the others after that. Where it is empty all are settled: `implied` are
    surely similar, `beyond` are hardly so.
    """

    ask: Sequence[int]
    implied: Sequence[int] = ()
    beyond: Sequence[int] = ()


def round_of(pairs: Points, similar: Sequence[bool | None], sure: float) -> PairRound:
    """The next pairs to ask of a video, or what the answers imply of the rest.

    `pairs`: (n, 2) first and last frame. `similar`: the answer to each; None: not asked. `sure`:
    the probability from which a pair is implied; above 1 none ever is.
    """
    known = np.array([each is not None for each in similar], dtype=bool)
    uncovered = _cover(pairs, known)
    if uncovered or known.all():
        return PairRound(uncovered)
    rest = np.flatnonzero(~known)
    answers = np.array([1.0 if each else -1.0 for each in similar if each is not None])
    likely = probability(pairs[known], answers, pairs[rest])
    unsure = (likely > UNLIKELY) & (likely < sure)
    if unsure.any():
        first = rest[unsure][np.argsort(np.abs(likely[unsure] - 0.5), kind="stable")]
        return PairRound(_spread(pairs, first, max(BATCH, int(SHARE * known.sum()))))
    return PairRound([], rest[likely >= sure].tolist(), rest[likely < sure].tolist())


def probability(pairs: Points, answers: Points, wanted: Points) -> Points:
    """How probably each of `wanted` (m, 2) is similar, after `answers` ±1 to `pairs` (n, 2).

    A frame is always similar to itself, and counts as answered.
    """
    frames = np.unique(np.concatenate([pairs, wanted]))
    points = np.concatenate([np.stack([frames, frames], 1), pairs])
    given = np.concatenate([np.ones(len(frames)), answers]) - MEAN
    apart = _distances(points, points)
    best: tuple[float, float, Points, Points] | None = None
    for reach in REACHES:
        covariance = VARIANCE * np.exp(-apart / reach) + NOISE * np.eye(len(points))
        lower = cholesky(covariance, lower=True)
        solved = solve_triangular(lower, given, lower=True)
        likelihood = -0.5 * solved @ solved - np.log(np.diag(lower)).sum()
        if best is None or likelihood > best[0]:
            best = (likelihood, reach, lower, solved)
    assert best is not None
    _, reach, lower, solved = best
    across = VARIANCE * np.exp(-_distances(points, wanted) / reach)
    seen = solve_triangular(lower, across, lower=True)
    spread = np.sqrt(np.maximum(VARIANCE - (seen**2).sum(axis=0), 1e-9))
    return np.asarray(ndtr((MEAN + seen.T @ solved) / spread))


def _cover(pairs: Points, known: NDArray[np.bool_]) -> list[int]:
    """Pairs to ask so that none is far from an answer: each time the farthest one."""
    frames = np.unique(pairs)
    answered = np.concatenate([np.stack([frames, frames], 1), pairs[known]])
    nearest = _distances(pairs, answered).min(axis=1)
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


def _distances(one: Points, other: Points) -> Points:
    return np.asarray(np.sqrt(((one[:, None] - other[None]) ** 2).sum(axis=-1)))


SPARED = ("mirrored", "implied", "beyond", "bulk")


@dataclass(frozen=True, eq=False)
class Twins:
    """The pairs of a block that show the same two frames under the same labels.

    `rows`: their items, in the order in which they would be asked. `similar`: what people said of
    any of them; None: nothing yet. A doubted pair is not similar until it is jointly verified.
    """

    rows: Sequence[Any]
    similar: bool | None

    @property
    def point(self) -> tuple[float, float]:
        """The first and the last frame."""
        shown = self.rows[0].payload
        one, other = sorted((shown["frame"] - shown["offset"], shown["frame"]))
        return float(one), float(other)


def advance(connection: Connection, block: str | None, plan: ReviewPlan) -> None:
    """Opens the next round of a block, if the last one is answered; else changes nothing.

    Before the first all anchors of the block must be decided. While an audit is under way no
    further pair is spared or asked.
    """
    if block is None or not _turn(connection, block):
        return
    found = _twins(connection, block, plan)
    if found is None:
        return
    moved: dict[str, list[Any]] = {state: [] for state in ("open", "mirrored", "implied", "beyond")}
    for each in found:
        if each.similar is not None:
            moved["mirrored"] += each.rows
    sure = sureness(connection)
    if sure is not None:
        cut = [n for n, t in enumerate(found) if t.similar is None and _across_cut(t)]
        points = np.array([each.point for each in found]).reshape(-1, 2)
        step = round_of(points, [each.similar for each in found], sure)
        for number in dict.fromkeys([*cut, *step.ask]):
            first, *others = found[number].rows
            moved["open"].append(first)
            moved["mirrored"] += others
        if not moved["open"]:
            moved["implied"] = [row for n in step.implied for row in found[n].rows]
            moved["beyond"] = [row for n in step.beyond for row in found[n].rows]
    for state, rows in moved.items():
        _move(connection, rows, state)


def ask(connection: Connection, wanted: Sequence[int]) -> None:
    """Opens pairs that were spared; of two that show the same, one."""
    query = select(items).where(items.c.stage == "pairs", items.c.state == "implied")
    chosen, grouped = set(wanted), dict[Any, list[Any]]()
    for row in connection.execute(query.order_by(items.c.position)):
        grouped.setdefault((row.block, _sight(row)), []).append(row)
    for rows in grouped.values():
        first = next((row for row in rows if row.id in chosen), None)
        if first is not None:
            _move(connection, [first], "open")
            _move(connection, [row for row in rows if row is not first], "mirrored")


def sureness(connection: Connection) -> float | None:
    """How sure the forecast must be to spare a pair; None while an audit is under way.

    After the last audit nothing more is: above 1.
    """
    states = connection.execute(select(audits.c.state).order_by(audits.c.id)).scalars().all()
    if states and states[-1] == "open":
        return None
    if len(states) == len(ROUNDS) or any(state in ("passed", "useless") for state in states):
        return 2.0
    return ROUNDS[len(states)][0]


def blocks(connection: Connection) -> Sequence[str]:
    """All blocks of a review, by name."""
    query = select(items.c.block).where(items.c.block.is_not(None)).distinct()
    return sorted(connection.execute(query).scalars())


def begin(connection: Connection, plan: ReviewPlan) -> None:
    """Opens whatever is to be asked next in every block."""
    for block in blocks(connection):
        advance(connection, block, plan)


def deciders(connection: Connection) -> Mapping[str, str]:
    """Key of a mirrored pair → key of the pair that was asked in its place."""
    pairs = (items.c.stage == "pairs") & items.c.block.is_not(None)
    asked: dict[Any, str] = {}
    mirrored = []
    for row in connection.execute(select(items).where(pairs).order_by(items.c.position)):
        if row.state == "mirrored":
            mirrored.append(row)
        elif row.state in ("open", "done"):
            asked.setdefault((row.block, _sight(row)), row.key)
    found = {row.key: asked.get((row.block, _sight(row))) for row in mirrored}
    return {key: twin for key, twin in found.items() if twin is not None}


def states(connection: Connection) -> Mapping[str, str]:
    """Key → state of the pairs that may be spared."""
    pairs = (items.c.stage == "pairs") & items.c.block.is_not(None)
    rows = connection.execute(select(items.c.key, items.c.state).where(pairs))
    return {row.key: row.state for row in rows}


def counts(connection: Connection) -> Mapping[str, int]:
    """How many pairs were spared, and how."""
    found = Counter(states(connection).values())
    return {state: found[state] for state in SPARED}


def _turn(connection: Connection, block: str) -> bool:
    """Whether nothing of a block is left to be answered; two decisions at once take turns."""
    pairs = (items.c.stage == "pairs") & (items.c.block == block)
    first = select(items.c.id).where(pairs).order_by(items.c.id).limit(1).with_for_update()
    connection.execute(first)
    still = pairs & (items.c.state == "open") & items.c.gold.is_(None)
    return not connection.execute(select(func.count()).where(still)).scalar_one()


def _twins(connection: Connection, block: str, plan: ReviewPlan) -> Sequence[Twins] | None:
    """The pairs of a block under anchors that were accepted; None while one is not decided."""
    said = votes(connection, block=block)
    found: dict[str, dict[str, Any]] = {"anchors": {}, "joint": {}}
    pairs = []
    query = select(items).where(items.c.block == block).order_by(items.c.position, items.c.id)
    for row in connection.execute(query):
        if row.stage == "pairs":
            pairs.append(row)
        else:
            found[row.stage][row.key] = outcome(row, said.get(row.id, ()))
    if "anchors" in plan.votes:
        if not all(found["anchors"].values()):
            return None
        pairs = [row for row in pairs if found["anchors"][row.unit].accepted]
    grouped: dict[Any, list[Any]] = {}
    for row in pairs:
        grouped.setdefault(_sight(row), []).append(row)
    made = [Twins(rows, _first(rows, said, found["joint"])) for rows in grouped.values()]
    # what is asked next must not depend on the random order in which it is shown
    return sorted(made, key=lambda each: (each.point, min(row.key for row in each.rows)))


def _first(rows: Sequence[Any], said: Mapping[int, Any], joint: Mapping[str, Any]) -> bool | None:
    """What people said of the first of these pairs that was answered."""
    heard = (_similar(row, said, joint) for row in rows)
    return next((similar for similar in heard if similar is not None), None)


def _similar(row: Any, said: Mapping[int, Any], joint: Mapping[str, Any]) -> bool | None:
    pair = outcome(row, said.get(row.id, ()))
    if pair is None:
        return None
    if pair.accepted is None:
        verified = joint.get(row.key)
        return bool(verified and verified.accepted)
    return bool(pair.accepted)


def _sight(row: Any) -> tuple[frozenset[str], tuple[str, ...]]:
    """What is seen in a pair, whichever frame is the anchor."""
    shown = row.payload
    return frozenset((shown["anchor"], shown["image"])), tuple(shown["labels"])


def _across_cut(twins: Twins) -> bool:
    # what is alike before a cut tells nothing of what comes after
    return any(row.payload["across_cut"] for row in twins.rows)


def _move(connection: Connection, rows: Sequence[Any], state: str) -> None:
    """Moves pairs that nobody was asked about to a state."""
    kept = (state, "open", "done", "bulk")
    idle = [row.id for row in rows if row.state not in kept and row.gold is None]
    for start in range(0, len(idle), 500):
        here = items.c.id.in_(idle[start : start + 500])
        connection.execute(update(items).where(here).values(state=state))
