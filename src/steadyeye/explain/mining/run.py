"""Mining sealed detections: the confident mistakes of models, each once, ranked and limited."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Box
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.seeds import stream
from steadyeye.core.storage.files import Place as Folder
from steadyeye.core.types import Source
from steadyeye.explain.mining.candidates import candidates
from steadyeye.explain.mining.causes import CAUSES, MISTAKES, RIGHT, SCORE, Judged, judge_detections
from steadyeye.explain.mining.crops import (
    Embed,
    MistakeCrop,
    Place,
    clip_box,
    crops,
    farthest_first,
    find_first_alike,
    novelty,
    sample,
    thumbnails,
)
from steadyeye.explain.mining.mistakes import Mistake, Mistakes
from steadyeye.predictions.read import cells
from steadyeye.predictions.shard_store import open_cell
from steadyeye.runner import data_changes
from steadyeye.runner.collect import tables as read_tables
from steadyeye.runner.measure import rebuilt

RANKS = ("confidence", "novelty")
POOL = 4  # candidates of a class to examine, as a multiple of its limit
KNOWN = 200  # correct detections that a novel mistake is to be unlike


@dataclass(frozen=True)
class MiningSettings:
    """The settings of mining. `score`: to be exceeded. `limit`: most candidates per class."""

    score: float = SCORE
    causes: tuple[str, ...] = MISTAKES
    rank: str = RANKS[0]
    limit: int = 50

    def __post_init__(self) -> None:
        if not 0 <= self.score < 1:
            raise UsageError(f"--score {self.score:g}: give a score in 0…1, such as 0.8")
        if self.limit < 1:
            raise UsageError(f"--limit {self.limit}: give at least 1")
        for cause in self.causes:
            if cause not in CAUSES:
                raise unknown("cause", cause, CAUSES)
        if self.rank not in RANKS:
            raise unknown("ranking", self.rank, RANKS)


@dataclass(frozen=True, eq=False)
class RankedMistake:
    """A ranked candidate. `box`: clipped to the image; `size`: (width, height), or None.

    `novelty`: the distance to the nearest candidate ranked before it or correct detection; None
    without pictures, or without anything to compare with.
    """

    candidate: Mistake
    box: Box
    size: tuple[int, int] | None
    novelty: float | None


@dataclass(frozen=True, eq=False)
class Mined:
    """The ranked candidates of tables. `judged`: of each table.

    `mistakes`: number of distinct mistakes before any limit. `pictured`: whether the images are
    available. `notes`: what was left out, and why.
    """

    settings: MiningSettings
    tables: Sequence[Predictions]
    sources: Mapping[str, Source]
    judged: Sequence[Judged]
    ranked: Sequence[RankedMistake]
    mistakes: int
    pictured: bool
    notes: Sequence[str]


def mine(
    runs: Sequence[Folder],
    settings: MiningSettings,
    begin: Callable[[str, int], Callable[[int], None]],
    sources: Sequence[Source] = (),
    embed: Embed = thumbnails,
) -> Mined:
    """The candidates in the detections of finished runs, of one or several models.

    `begin`: receives the progress over pictures. `sources`: open sources; the others are built from
    the specs in the runs. `embed`: function that makes vectors of crops, for the ranking by
    novelty. Crops of a class that differ by less than three grey levels are one candidate. Raises
    `UsageError` for runs without a detector on data with boxes.
    """
    tables = [t for _, t in read_tables(runs) if {"boxes", "detections"} <= set(t.columns)]
    tables = [table for table in tables if not table.sweep and not table.probe]
    if not tables:
        raise UsageError("nothing to mine: give a detector, and data with true boxes")
    reopened = _open_sources(runs, sources, {table.fingerprint for table in tables})
    verdicts = [judge_detections(table, settings.score) for table in tables]
    mistakes = candidates(tables, verdicts, settings.causes)
    absent = [file for source in reopened.values() for file in source.missing()]
    mined = Mined(settings, tables, reopened, verdicts, (), len(mistakes), not absent, ())
    if absent:
        return _rank_without_pictures(mined, mistakes, absent)
    pool = mistakes.build(_limit_classes(mistakes.predicted, POOL * settings.limit))
    return _rank_with_pictures(mined, pool, embed, begin)


def _open_sources(
    runs: Sequence[Folder], sources: Sequence[Source], marks: set[str]
) -> Mapping[str, Source]:
    """The sources of tables, by fingerprint."""
    by_fingerprint = {source.fingerprint: source for source in sources}
    for run in runs:
        for folders in cells(run):
            data = open_cell(folders[0]).identity["data"]
            if data["fingerprint"] in marks and data["fingerprint"] not in by_fingerprint:
                data_changes.refuse_changed(run, data)
                by_fingerprint[data["fingerprint"]] = rebuilt(run, data)
    return {mark: by_fingerprint[mark] for mark in by_fingerprint if mark in marks}


def _limit_classes(predicted: NDArray[Any], most: int) -> NDArray[np.intp]:
    """The indices of the first `most` of each class, rising; `predicted`: (n,) the classes."""
    first = [np.flatnonzero(predicted == own)[:most] for own in np.unique(predicted)]
    return np.sort(np.concatenate([np.zeros(0, dtype=np.intp), *first]))


def _rank_without_pictures(mined: Mined, mistakes: Mistakes, absent: Sequence[str]) -> Mined:
    """Candidates ranked by confidence alone, clipped to the annotated image sizes."""
    if mined.settings.rank != RANKS[0]:
        raise UsageError(f"--rank novelty needs the images, and there is no '{absent[0]}'")
    ranked = []
    limit = mined.settings.limit
    for mistake in mistakes.build(_limit_classes(mistakes.predicted, limit)):
        table = mined.tables[mistake.table]
        size = sample(table, mined.sources[table.fingerprint], mistake.row).size
        box = clip_box(mistake.box, size[1], size[0]) if size else mistake.box
        if box is not None:
            ranked.append(RankedMistake(mistake, box, (size[1], size[0]) if size else None, None))
    note = (
        f"{number_of(len(absent), 'image is', 'images are')} missing, first '{absent[0]}'; needed "
        "for the review"
    )
    return replace(mined, ranked=tuple(ranked), notes=(note,))


def _rank_with_pictures(
    mined: Mined,
    pool: Sequence[Mistake],
    embed: Embed,
    begin: Callable[[str, int], Callable[[int], None]],
) -> Mined:
    """Candidates with pictures: duplicates are merged, then ranked."""
    correct = _draw_correct(mined.tables, mined.judged)
    places = [Place(mined.tables[m.table], m.row, m.box) for m in pool] + correct
    images = {(place.predictions.fingerprint, place.predictions.ids[place.row]) for place in places}
    cut = crops(places, mined.sources, embed, begin("reading images", len(images)))
    pairs = zip(pool, cut, strict=False)
    with_crops = [(mistake, crop) for mistake, crop in pairs if isinstance(crop, MistakeCrop)]
    likened = _join_duplicates(with_crops)
    vectors = np.array([crop.vector for _, crop in likened])
    before = [crop.vector for crop in cut[len(pool) :] if isinstance(crop, MistakeCrop)]
    of = np.array(before).reshape(len(before), -1 if before else vectors.shape[-1])
    order = _order(mined.settings, likened, vectors, of) if likened else []
    distance = novelty(vectors[order], of) if likened else np.zeros(0)
    ranked = [
        RankedMistake(mistake, crop.box, crop.size, round(far, 4) if np.isfinite(far) else None)
        for (mistake, crop), far in zip([likened[i] for i in order], distance.tolist(), strict=True)
    ]
    errors = [why for why in cut[: len(pool)] if isinstance(why, str)]
    notes = _notes(errors, len(with_crops) - len(likened))
    return replace(mined, ranked=tuple(ranked), notes=notes)


def _order(
    settings: MiningSettings,
    likened: Sequence[tuple[Mistake, MistakeCrop]],
    vectors: NDArray[np.float64],
    correct: NDArray[np.float64],
) -> list[int]:
    kinds = np.unique([mistake.predicted for mistake, _ in likened], return_inverse=True)[1]
    if settings.rank == "novelty":
        return [int(i) for i in farthest_first(vectors, correct, kinds, settings.limit)]
    return [int(i) for i in _limit_classes(kinds, settings.limit)]


def _join_duplicates(
    with_crops: Sequence[tuple[Mistake, MistakeCrop]],
) -> list[tuple[Mistake, MistakeCrop]]:
    """Merges the candidates of a class that show the same; keeps the most confident."""
    if not with_crops:
        return []
    kinds = np.unique([mistake.predicted for mistake, _ in with_crops], return_inverse=True)[1]
    first = find_first_alike(np.array([crop.look for _, crop in with_crops]), kinds)
    joined = []
    for i in np.unique(first):
        members = [mistake for (mistake, _), to in zip(with_crops, first, strict=True) if to == i]
        models = tuple(dict.fromkeys(model for mistake in members for model in mistake.models))
        times = sum(mistake.times for mistake in members)
        joined.append((replace(members[0], models=models, times=times), with_crops[i][1]))
    return joined


def _draw_correct(tables: Sequence[Predictions], verdicts: Sequence[Judged]) -> list[Place]:
    """A random sample of correct confident detections, as known examples for novelty."""
    every = [
        (table, int(row))
        for table, verdict in zip(tables, verdicts, strict=True)
        for row in verdict.detection[verdict.cause == RIGHT]
    ]
    draw = stream(0, "mining", *sorted({table.fingerprint for table in tables}))
    picked = draw.permutation(len(every))[:KNOWN]
    places = []
    for i in sorted(picked.tolist()):
        table, row = every[i]
        assert table.raw_detections is not None, "judged"
        x0, y0, x1, y1 = (float(value) for value in table.raw_detections.boxes[row])
        places.append(Place(table, int(table.raw_detections.image[row]), (x0, y0, x1, y1)))
    return places


def _notes(errors: Sequence[str], same: int) -> tuple[str, ...]:
    """Notes on detections that are no candidates of their own."""
    unread = [why for why in errors if why]
    outside = len(errors) - len(unread)
    return tuple(
        note
        for n, note in (
            (same, f"{same:,} merged with others of their class that look the same"),
            (outside, f"{outside:,} left out: their boxes lie outside the image or have no area"),
            (len(unread), f"{len(unread):,} left out, first: {next(iter(unread), '')}"),
        )
        if n
    )
