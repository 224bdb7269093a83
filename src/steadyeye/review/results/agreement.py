"""Agreement between reviewers and accepted shares, with intervals over the videos of the items.

Pairs of one pm-set are alike, and so are sets of one video: a blurred anchor spoils all its pairs.
Clopper and Pearson's interval of single pairs holds the truth in as little as 47 % of simulated
reviews (`docs/explanation/coverage.md`). The interval of agreement is a Bayesian bootstrap with one
further video that nobody has seen, as in `core.stats.bounded_means`. For the lower end reviewers
agree on that video no more than by chance, for the upper end always.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Integer, String, Text, cast, func, select, type_coerce

from steadyeye.core.format import WITHIN, number_of
from steadyeye.core.stats.bootstrap import ends
from steadyeye.core.stats.intervals import REPLICATES, CellTrials, Interval, proportions
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.bulk import audit
from steadyeye.review.database import decisions, items
from steadyeye.review.protocol import reviewers
from steadyeye.review.protocol.stages import DRAWN, ReviewPlan
from steadyeye.review.protocol.votes import STANDS
from steadyeye.review.transactions import Database, UnavailableError, read_json
from steadyeye.review.workflow.quality import fold_answer
from steadyeye.review.workflow.sequences import find_videos

Videos: TypeAlias = Mapping[str, str]
"""Anchor or image → its video; empty if the images are no frames, and for a label study."""

UnitCount: TypeAlias = tuple[str, int, int]
"""An anchor or image, the number of its accepted items, and of its reviewed items."""


ALL = slice(None)


def list_videos(folder: SetFolder, plan: ReviewPlan) -> Videos:
    """The video of each anchor, and of each image if the plan says that images are frames."""
    rows = folder.frames.select(["group", "video"]).to_pydict()
    names = folder.boxes.select(["image", "name"]).to_pydict()
    images = dict(zip(names["image"], names["name"], strict=True))
    places = find_videos(images, plan.key_frames)
    frames = dict(zip(rows["group"], rows["video"], strict=True))
    return {**frames, **{image: place.name for image, place in places.items()}}


@dataclass(frozen=True, eq=False)
class ItemClusters:
    """The g clusters of n items. `number`: (n,) that of each, from 0. `size`: g.

    `noun`: what a cluster is. `within`: what their number is followed by.
    """

    number: NDArray[np.intp]
    size: int
    noun: str
    within: str

    def describe(self, size: int) -> str:
        """A number of clusters in words, such as those that hold any of the items."""
        return number_of(size, self.noun) + self.within

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """(replicates, g + 1) random weights of a bootstrap, seeded; the last: one unseen."""
        return np.random.default_rng(0).standard_exponential((REPLICATES, self.size + 1))

    def add_up(
        self, values: NDArray[Any], item: NDArray[np.intp] | slice = ALL
    ) -> NDArray[np.float64]:
        """(g,) sums of values of some items, `item`, over clusters."""
        return np.bincount(self.number[item], values, self.size).astype(np.float64)

    def count_words(
        self, word: NDArray[np.intp], words: int, item: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """(g, words) how often each word, from 0, is said of the items of a cluster."""
        place = self.number[item] * words + word
        counts = np.bincount(place, minlength=self.size * words).astype(np.float64)
        return counts.reshape(self.size, words)


def find_clusters(stage: str, units: Sequence[str], videos: Videos) -> ItemClusters:
    """The clusters of items: their videos; of a single video, or without videos, their units.

    `units`: the anchor or image of each item.
    """
    names = [videos.get(unit, unit) for unit in units]
    is_single = bool(videos) and len(set(names)) == 1
    # an empty list would be of floats
    clusters, number = np.unique(
        np.array(units if is_single else names, dtype=np.str_), return_inverse=True
    )
    unit = "image" if stage in ("classification", *DRAWN) else "set"
    noun = "video" if videos and not is_single else unit
    within = f", {WITHIN}" if is_single else ""
    return ItemClusters(np.asarray(number, dtype=np.intp), len(clusters), noun, within)


def bound_share(stage: str, counts: Iterable[UnitCount], videos: Videos) -> Interval:
    """The accepted share of the reviewed items of a stage, with its interval over clusters.

    Gaffke's bounds (`core.stats.bounded_means`); if each cluster is one item, Clopper–Pearson.
    Value None without a reviewed item.
    """
    rows = [count for count in counts if count[2]]
    clusters = find_clusters(stage, [unit for unit, _, _ in rows], videos)
    accepted, reviewed = (np.array([row[i] for row in rows], dtype=np.int64) for i in (1, 2))
    trials = CellTrials(accepted, reviewed, clusters.number, np.zeros(len(rows), dtype=np.intp))
    (own,) = proportions(trials, 1)
    if own.value is None:
        return own
    single = own.n == clusters.size
    name = "Clopper–Pearson" if single else "Gaffke's bounds"
    return replace(own, method=f"{name} over {clusters.describe(clusters.size)}")


def measure_shares(connection: Connection, videos: Videos) -> Mapping[str, Interval]:
    """Stage → accepted share of its reviewed items; they are defined in `results/status.py`."""
    accepted = func.sum(cast(items.c.verdict == "accepted", Integer))
    query = (
        select(items.c.stage, items.c.unit, accepted, func.count())
        .where(~items.c.known, items.c.state == "done", items.c.parent == "accepted")
        .where(items.c.verdict.in_(("accepted", "rejected")))
        .group_by(items.c.stage, items.c.unit)
        .order_by(items.c.stage, items.c.unit)
    )
    counts: dict[str, list[UnitCount]] = defaultdict(list)
    for stage, unit, right, reviewed in connection.execute(query):
        counts[stage].append((unit, int(right), int(reviewed)))
    return {stage: bound_share(stage, rows, videos) for stage, rows in counts.items()}


FEWEST = 5  # items two reviewers must share for a kappa of theirs
SMALL = 2_000  # decisions, up to which nobody notices the time that it takes
LEAST = 1e-12  # expected disagreement, below which rounding is all there is
PAUSE = 60.0  # seconds from one measurement in the background to the next


Floats: TypeAlias = NDArray[np.float64]
Verdicts: TypeAlias = NDArray[np.int32]
Answers: TypeAlias = Sequence[tuple[int, str, int, str]]
"""(item, its anchor or image, reviewer, answer as JSON) of each decision of a stage."""


@dataclass(frozen=True)
class Agreement:
    """The agreement of reviewers in a stage; the n of an interval counts items.

    `alpha`: Krippendorff's, nominal, over the items with two answers or more. `kappa`: Cohen's over
    the shared items, of each two reviewers who share enough, where it is defined.
    """

    stage: str
    alpha: Interval
    kappa: Mapping[tuple[str, str], Interval]


def measure_agreement(
    connection: Connection, stages: Iterable[str], videos: Videos
) -> Sequence[Agreement]:
    """The agreement of reviewers in each stage, over the standing decisions.

    Whole answers are compared, as `fold_answer` words them: of an object its class and the four
    criteria together, of drawn boxes only their number. `videos`: of `list_videos`.

    Gold questions are left out: they are chosen to be clear and everybody gets them, so that all
    agree on them.
    """
    names = {person.id: person.name for person in reviewers.list_reviewers(connection)}
    answers = _read_answers(connection)
    return [_measure_stage(stage, answers.get(stage, ()), names, videos) for stage in stages]


def _measure_stage(
    stage: str, answers: Answers, names: Mapping[int, str], videos: Videos
) -> Agreement:
    verdicts, units = _number_verdicts(stage, answers, names)
    several = (verdicts >= 0).sum(axis=0) > 1
    shared = verdicts[:, several]
    clusters = find_clusters(stage, units[several].tolist(), videos)
    people = sorted((name, number) for number, name in enumerate(names.values()))
    kappa = {
        (first, second): measure_kappa(shared[[i, j]], clusters)
        for place, (first, i) in enumerate(people)
        for second, j in people[place + 1 :]
        if ((shared[i] >= 0) & (shared[j] >= 0)).sum() >= FEWEST
    }
    defined = {pair: own for pair, own in kappa.items() if own.value is not None}
    return Agreement(stage, measure_alpha(shared, clusters), defined)


def measure_alpha(verdicts: Verdicts, clusters: ItemClusters) -> Interval:
    """Krippendorff's nominal alpha with its interval; value None if all verdicts are the same.

    `verdicts`: (r, items) from 0, or -1: none; each item has two or more. `clusters`: of the items.
    Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011, Section D.
    """
    item, person = np.nonzero(verdicts.T >= 0)
    words, word = np.unique(verdicts[person, item], return_inverse=True)
    answers = np.bincount(item, minlength=verdicts.shape[1])
    pair, times = np.unique([item, word], axis=1, return_counts=True)
    alike = np.bincount(pair[0], times**2, len(answers))
    differing = clusters.add_up((answers**2 - alike) / (answers - 1))
    counts = clusters.count_words(word, len(words), item)
    # no answer is paired with itself
    scale = len(item) / max(len(item) - 1, 1)
    return _bound_agreement(differing, (counts, counts), scale, len(answers), clusters)


def measure_kappa(verdicts: Verdicts, clusters: ItemClusters) -> Interval:
    """Cohen's kappa of two reviewers over the items that both decided, with its interval.

    `verdicts`: (2, items) from 0, or -1: none. `clusters`: of the items. Cohen, "A Coefficient of
    Agreement for Nominal Scales", 1960. Value None where they share nothing, or both give one
    verdict to everything: chance agrees as far, and 0 of 0 is left, as for Krippendorff's alpha.
    """
    item = np.flatnonzero((verdicts >= 0).all(axis=0))
    words, word = np.unique(verdicts[:, item], return_inverse=True)
    first, second = word.reshape(2, -1)
    counts = (
        clusters.count_words(first, len(words), item),
        clusters.count_words(second, len(words), item),
    )
    differing = clusters.add_up(first != second, item)
    return _bound_agreement(differing, counts, 1.0, len(item), clusters)


def _bound_agreement(
    differing: Floats, counts: tuple[Floats, Floats], scale: float, n: int, clusters: ItemClusters
) -> Interval:
    """1 - observed / expected disagreement, of n items, with its interval over g clusters.

    `differing`: (g,) the disagreement of their answers. `counts`: (g, words) how often each word
    is said, by the one and by the other reviewer. `scale`: of the expected disagreement.
    """
    first, second = counts
    size = first.sum(axis=1)
    total = max(size.sum(), 1.0)
    means = first.sum(axis=0) / total, second.sum(axis=0) / total
    expected = scale * (1 - means[0] @ means[1])
    if not n or expected < LEAST:
        return Interval(None, None, None, n, "none: all answers are the same")
    # two of fifty reviewers share items of few clusters; the others would add nothing to any sum
    filled = np.flatnonzero(size)
    weights = clusters.weights[:, filled]
    unseen = clusters.weights[:, -1:] * (size @ size / total)
    answers = weights @ size[filled] + unseen[:, 0]
    shares = [
        (weights @ words[filled] + unseen * mean) / answers[:, None]
        for words, mean in zip(counts, means, strict=True)
    ]
    chance = scale * (1 - (shares[0] * shares[1]).sum(axis=1))

    def compare(further: float) -> Floats:
        """(replicates,) agreement; `further`: the disagreement on the further cluster."""
        observed = (weights @ differing[filled] + further * unseen[:, 0]) / answers
        return np.asarray(1 - observed / chance, dtype=np.float64)

    value = float(1 - differing.sum() / total / expected)
    low, high = ends(compare(expected))[0], ends(compare(0.0))[1]
    how = f"Bayesian bootstrap over {clusters.describe(len(filled))}"
    return Interval(value, min(low, value), max(high, value), n, how)


def _read_answers(connection: Connection) -> Mapping[str, Answers]:
    """Stage → its standing decisions without gold questions, read in one statement."""
    # as text: most answers are alike, and need not be read twice
    answer = type_coerce(cast(decisions.c.answer, Text), String)
    query = (
        select(items.c.stage, decisions.c.item, items.c.unit, decisions.c.reviewer, answer)
        .join(items, items.c.id == decisions.c.item)
        .where(~items.c.known, STANDS)
    )
    answers: dict[str, list[tuple[int, str, int, str]]] = defaultdict(list)
    for stage, *facts in connection.execute(query):
        answers[stage].append(tuple(facts))
    return answers


def _number_verdicts(
    stage: str, answers: Answers, names: Mapping[int, str]
) -> tuple[Verdicts, NDArray[np.str_]]:
    """(reviewers, items): the verdicts of a stage as numbers, -1 for none; (items,) their units."""
    people = {number: place for place, number in enumerate(names)}
    columns: dict[int, int] = {}
    units: list[str] = []
    codes: dict[str, int] = {}
    numbers: dict[str, int] = {}
    places = []
    for item, unit, reviewer, text in answers:
        if reviewer in people:
            if text not in codes:
                word = fold_answer(stage, read_json(text))
                codes[text] = numbers.setdefault(word, len(numbers))
            if item not in columns:
                columns[item] = len(columns)
                units.append(unit)
            places.append((people[reviewer], columns[item], codes[text]))
    verdicts = np.full((len(people), len(columns)), -1, np.int32)
    if places:
        coder, column, code = np.array(places).T
        verdicts[coder, column] = code
    return verdicts, np.array(units, dtype=np.str_)


@dataclass(frozen=True)
class Measurement:
    """Values that take too long for a page. `made_at`: time, seconds since 1970, or None.

    `shares`: stage → accepted share of its items. `last`: the last decision included. `holds`:
    whether the bulk acceptance is valid.
    """

    agreement: Sequence[Agreement]
    shares: Mapping[str, Interval]
    last: int
    made_at: float | None
    holds: bool = False


def measure(connection: Connection, folder: SetFolder, plan: ReviewPlan) -> Measurement:
    """The agreement and the accepted share of each stage, and whether the audit holds now."""
    last, now, videos = _find_last(connection), time.time(), list_videos(folder, plan)
    agreement = measure_agreement(connection, plan.votes, videos)
    shares = measure_shares(connection, videos)
    return Measurement(agreement, shares, last, now, plan.shortcut and audit.holds(connection))


def _find_last(connection: Connection) -> int:
    return int(connection.execute(select(func.max(decisions.c.id))).scalar() or 0)


@dataclass(eq=False)
class BackgroundMeasurement:
    """The measurement of a review that is served.

    For a small review it is always current; for a large one it is the last, while a thread makes
    the next.
    """

    database: Database
    folder: SetFolder
    plan: ReviewPlan
    latest: Measurement = field(default_factory=lambda: Measurement((), {}, -1, None))
    running: threading.Lock = field(default_factory=threading.Lock)

    def read(self, connection: Connection) -> Measurement:
        """The latest measurement; starts a new one if decisions were made since."""
        last, latest = _find_last(connection), self.latest
        if last == latest.last:
            return latest
        if last <= SMALL:
            self.latest = latest = measure(connection, self.folder, self.plan)
        elif abs(time.time() - (self.latest.made_at or 0.0)) > PAUSE and self.running.acquire(
            blocking=False
        ):
            threading.Thread(target=self._measure, daemon=True).start()
        return latest

    def _measure(self) -> None:
        try:
            # a database that cannot be read now is asked again by the next request
            with suppress(UnavailableError), self.database.reading() as connection:
                self.latest = measure(connection, self.folder, self.plan)
        finally:
            self.running.release()
