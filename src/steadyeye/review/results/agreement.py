"""Agreement between reviewers; for a large review a thread measures it."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

import krippendorff
import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, String, Text, cast, func, select, type_coerce

from steadyeye.review.bulk import audit
from steadyeye.review.database import decisions, items
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.stages import ReviewPlan
from steadyeye.review.protocol.votes import STANDS
from steadyeye.review.transactions import Database, UnavailableError, read_json
from steadyeye.review.workflow.quality import fold_answer

FEWEST = 5  # items two reviewers must share for a kappa of theirs
SMALL = 2_000  # decisions, up to which nobody notices the time that it takes
PAUSE = 60.0  # seconds from one measurement in the background to the next


Answers: TypeAlias = Sequence[tuple[int, int, str]]
"""(item, reviewer, answer as JSON) of each decision of a stage."""


@dataclass(frozen=True)
class Agreement:
    """The agreement of reviewers in a stage.

    `alpha`: Krippendorff's, nominal; None where it is undefined. `n`: items with two answers or
    more. `kappa`: Cohen's and the items shared, of each two reviewers who share enough, where it is
    defined.
    """

    stage: str
    alpha: float | None
    n: int
    kappa: Mapping[tuple[str, str], tuple[float, int]]


def measure_agreement(connection: Connection, stages: Iterable[str]) -> Sequence[Agreement]:
    """The agreement of reviewers in each stage, over the standing decisions.

    Whole answers are compared, as `fold_answer` words them: of an object its class and the four
    criteria together, of drawn boxes only their number.

    Gold questions are left out: they are chosen to be clear and everybody gets them, so that all
    agree on them.
    """
    names = {person.id: person.name for person in reviewers.list_reviewers(connection)}
    answers = _read_answers(connection)
    return [_measure_stage(stage, answers.get(stage, ()), names) for stage in stages]


def _measure_stage(stage: str, answers: Answers, names: Mapping[int, str]) -> Agreement:
    verdicts, words = _number_verdicts(stage, answers, names)
    shared = verdicts[:, (verdicts >= 0).sum(axis=0) > 1]
    alpha = None
    if len(np.unique(shared[shared >= 0])) > 1:
        counts = np.stack([(shared == word).sum(axis=0) for word in range(words)], axis=1)
        alpha = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
    people = sorted((name, number) for number, name in enumerate(names.values()))
    kappa, n = measure_kappa(shared, words)
    pairs = {
        (first, second): (float(kappa[i, j]), int(n[i, j]))
        for place, (first, i) in enumerate(people)
        for second, j in people[place + 1 :]
        if n[i, j] >= FEWEST and np.isfinite(kappa[i, j])
    }
    return Agreement(stage, None if alpha is None else float(alpha), shared.shape[1], pairs)


def measure_kappa(
    verdicts: NDArray[np.int32], words: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cohen's kappa of each two reviewers, and the items that both decided, both (r, r).

    `verdicts`: (r, items) from 0 to `words` - 1, or -1: none. Cohen, "A Coefficient of Agreement
    for Nominal Scales", 1960; all pairs at once, where `sklearn.metrics.cohen_kappa_score` takes
    seconds for fifty reviewers. NaN where they share nothing, or both give one verdict to
    everything: chance agrees as far, and 0 of 0 is left, as for Krippendorff's alpha.
    """
    present = (verdicts >= 0).astype(float)
    n = present @ present.T
    agreed, expected = np.zeros_like(n), np.zeros_like(n)
    for word in range(words):
        chosen = (verdicts == word).astype(float)
        agreed += chosen @ chosen.T
        shares = chosen @ present.T
        expected += shares * shares.T
    with np.errstate(invalid="ignore", divide="ignore"):
        agreed, expected = agreed / n, expected / n**2
        return (agreed - expected) / (1 - expected), n


def _read_answers(connection: Connection) -> Mapping[str, Answers]:
    """Stage → its standing decisions without gold questions, read in one statement."""
    # as text: most answers are alike, and need not be read twice
    answer = type_coerce(cast(decisions.c.answer, Text), String)
    query = (
        select(items.c.stage, decisions.c.item, decisions.c.reviewer, answer)
        .join(items, items.c.id == decisions.c.item)
        .where(~items.c.known, STANDS)
    )
    answers: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for stage, *facts in connection.execute(query):
        answers[stage].append(tuple(facts))
    return answers


def _number_verdicts(
    stage: str, answers: Answers, names: Mapping[int, str]
) -> tuple[NDArray[np.int32], int]:
    """(reviewers, items): the verdicts of a stage as numbers, -1 for none; and how many differ."""
    people = {number: place for place, number in enumerate(names)}
    columns: dict[int, int] = {}
    codes: dict[str, int] = {}
    numbers: dict[str, int] = {}
    places = []
    for item, reviewer, text in answers:
        if reviewer in people:
            if text not in codes:
                word = fold_answer(stage, read_json(text))
                codes[text] = numbers.setdefault(word, len(numbers))
            places.append((people[reviewer], columns.setdefault(item, len(columns)), codes[text]))
    verdicts = np.full((len(people), len(columns)), -1, np.int32)
    if places:
        coder, column, code = np.array(places).T
        verdicts[coder, column] = code
    return verdicts, len(numbers)


@dataclass(frozen=True)
class Measurement:
    """Values that take too long for a page. `made_at`: time, seconds since 1970, or None.

    `last`: the last decision included. `holds`: whether the bulk acceptance is valid.
    """

    agreement: Sequence[Agreement]
    last: int
    made_at: float | None
    holds: bool = False


def measure(connection: Connection, plan: ReviewPlan) -> Measurement:
    """The agreement in each stage of the plan, and whether the audit holds now."""
    last, now = _find_last(connection), time.time()
    agreement = measure_agreement(connection, plan.votes)
    return Measurement(agreement, last, now, plan.shortcut and audit.holds(connection))


def _find_last(connection: Connection) -> int:
    return int(connection.execute(select(func.max(decisions.c.id))).scalar() or 0)


@dataclass(eq=False)
class BackgroundMeasurement:
    """The measurement of a review that is served.

    For a small review it is always current; for a large one it is the last, while a thread makes
    the next.
    """

    database: Database
    plan: ReviewPlan
    latest: Measurement = Measurement((), -1, None)
    running: threading.Lock = field(default_factory=threading.Lock)

    def read(self, connection: Connection) -> Measurement:
        """The latest measurement; starts a new one if decisions were made since."""
        last, latest = _find_last(connection), self.latest
        if last == latest.last:
            return latest
        if last <= SMALL:
            self.latest = latest = measure(connection, self.plan)
        elif abs(time.time() - (self.latest.made_at or 0.0)) > PAUSE and self.running.acquire(
            blocking=False
        ):
            threading.Thread(target=self._measure, daemon=True).start()
        return latest

    def _measure(self) -> None:
        try:
            # a database that cannot be read now is asked again by the next request
            with suppress(UnavailableError), self.database.reading() as connection:
                self.latest = measure(connection, self.plan)
        finally:
            self.running.release()
