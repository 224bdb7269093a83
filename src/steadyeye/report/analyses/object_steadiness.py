"""Objects lost between their first and last detection, by class and in pictures."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable
from steadyeye.core.film_frames import name_lead, take_turns
from steadyeye.core.format import clock, interval, number_of, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import (
    Exhibit,
    Film,
    FilmFrame,
    Mark,
    Picture,
    Section,
    Table,
    Topic,
)
from steadyeye.core.result_lookup import find, limit, read_score
from steadyeye.core.types import Evaluated, Result, needs
from steadyeye.metrics.sequences.object_steadiness import (
    find_blinks,
    find_jitter,
    find_lengths,
    find_pairs,
    measure,
    select_steady,
)
from steadyeye.metrics.sequences.tracklets import (
    DETECTED,
    DIP,
    GAP,
    MISS,
    SCORE,
    UNSURE,
    WEAK,
    Tracklets,
    link,
)

SHOWN = 8
ROWS = 15
FILM = 10
"""Frames on each side of a blink in its film."""
WORDS = {DETECTED: "found", DIP: "below the threshold", MISS: "not found", UNSURE: "not known"}


@dataclass(frozen=True, eq=False)
class _Followed:
    """The objects of a model at the threshold that its `blink_rate` was measured at."""

    predictions: Predictions
    raw: BoxTable
    objects: Tracklets
    score: float
    rate: Result


@needs("group", "scene", "frame", "seconds")
def object_steadiness(evaluated: Sequence[Evaluated]) -> Section | None:
    """Blink rate by class, and the blinks around which the detector is most confident.

    None where no model has `blink_rate`, or no object has 5 detections.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_tracks
        >>> print(object_steadiness(example_models(example_tracks())).title)
        Objects lost between their first and last detection
    """
    followed = [model for model in map(_follow, evaluated) if model is not None]
    if not followed:
        return None
    exhibits = take_turns([_blinks(model) for model in followed])
    return Section(
        topic=Topic.WHEN,
        place=12,
        title="Objects lost between their first and last detection",
        text=(
            " ".join(_describe(model) for model in followed),
            "No labels are needed: an object is a detection that is followed from frame to frame. "
            "In the pictures, the box on a frame without the object marks its expected place.",
        ),
        tables=(_table(followed), _table_of_objects(followed)),
        exhibits=tuple(exhibits[:SHOWN]),
        lead=name_lead(exhibits, "The clearest lost object"),
        method=_method(followed),
    )


def _follow(model: Evaluated) -> _Followed | None:
    rate, raw = find(model.results, "blink_rate"), model.predictions.raw_detections
    if rate is None or raw is None or not rate.n:
        return None
    score = read_score(rate, SCORE)
    return _Followed(model.predictions, raw, link(model.predictions, score), score, rate)


def _describe(model: _Followed) -> str:
    rate, parts = model.rate, {cell.name: cell for cell in model.rate.cells}
    ends, within = interval(rate.low, rate.high), limit(rate.interval)
    certainty = ", ".join(filter(None, (f"95\u202f% interval {ends}", within)))
    return (
        f"{model.predictions.model} misses an object in {percent(rate.value)} of "
        f"{number_of(rate.n, 'frame')} between that object's first and last detection "
        f"({certainty}). The object's score is below {model.score:g} in "
        f"{percent(parts['below the threshold'].value)} of the frames; the object is not found at "
        f"all in {percent(parts['not found'].value)}."
    )


def _method(followed: Sequence[_Followed]) -> tuple[str, ...]:
    first = followed[0]
    counts = " ".join(f"{model.predictions.model}: {model.rate.notes[0]}." for model in followed)
    return (
        f"Detections with a score of {first.score:g} or more are linked from frame to frame by the "
        f"overlap of their boxes; an object may be gone for {GAP:g} second. Each frame of a gap "
        f"is compared with all detections above {WEAK:g}. A gap does not count where a detection "
        f"with a score of {first.score:g} or more lies at the object's place, because the link may "
        "be wrong, or where another object covers that place, because the object may be hidden. "
        f"An object hidden by something that the detector does not know counts as lost. {counts}",
    )


def _table(followed: Sequence[_Followed]) -> Table:
    """One row per model and class, the most frames first."""
    rows = [row for model in followed for row in _rows(model)]
    rows.sort(key=lambda row: row[0], reverse=True)
    left = f", the {ROWS} with most frames of {len(rows)}" if len(rows) > ROWS else ""
    header = ("class", "model", "objects", "frames", "blink rate", "95 % interval", "class changes")
    return Table(f"Steadiness by class{left}", header, tuple(row for _, row in rows[:ROWS]))


def _rows(model: _Followed) -> list[tuple[int, tuple[str, ...]]]:
    predictions, objects = model.predictions, model.objects
    label = _classes_of(model)
    steady = select_steady(objects)
    sure = steady & (objects.state != UNSURE)
    pairs = find_pairs(objects, DETECTED)
    changed = np.diff(model.raw.label[objects.detection[pairs]], axis=1)[:, 0] != 0
    rows: list[tuple[int, tuple[str, ...]]] = []
    for name in np.unique(label[objects.track[steady]]):
        own = sure & (label[objects.track] == name)
        share = measure(predictions, objects.row[own], objects.state[own] != DETECTED)
        changes = changed[label[objects.track[pairs[:, 0]]] == name]
        row = (
            predictions.model_classes[name],
            predictions.model,
            f"{len(np.unique(objects.track[own])):,}",
            f"{share.n:,}",
            percent(share.value),
            f"{interval(share.low, share.high)} {limit(share.method)}".strip(),
            f"{int(changes.sum()):,} of {len(changes):,}",
        )
        rows.append((share.n, row))
    return rows


def _table_of_objects(followed: Sequence[_Followed]) -> Table:
    """One row per object, the largest share of missed frames first."""
    rows = [row for model in followed for row in _object_rows(model)]
    rows.sort(key=lambda row: row[0], reverse=True)
    header = (
        *("object", "video", "model", "from", "frames", "blink rate", "95 % interval"),
        *("class changes", "jitter", "jitter (px)", "confidence swing"),
    )
    left = f", the {ROWS} that blink most of {len(rows)}" if len(rows) > ROWS else ""
    title = f"Steadiness by object{left}; an interval holds within its video only"
    return Table(title, header, tuple(row for _, row in rows[:ROWS]))


def _object_rows(model: _Followed) -> list[tuple[float, tuple[str, ...]]]:
    """The share of frames without each object, and its row."""
    predictions, objects, label = model.predictions, model.objects, _classes_of(model)
    steady = select_steady(objects)
    jitter = find_jitter(objects, np.asarray(predictions.tags["seconds"], dtype=np.float64))
    changes, swings = (find_pairs(objects, *states) for states in ((DETECTED,), (DETECTED, DIP)))
    rows: list[tuple[float, tuple[str, ...]]] = []
    for track in np.unique(objects.track[steady]):
        own = (objects.track == track) & (objects.state != UNSURE)
        share = measure(predictions, objects.row[own], objects.state[own] != DETECTED)
        pairs, moves = (p[objects.track[p[:, 0]] == track] for p in (changes, swings))
        changed = np.diff(model.raw.label[objects.detection[pairs]], axis=1) != 0
        scores = model.raw.score[objects.detection[moves]]
        own_jitter = objects.track[jitter[0]] == track
        length = find_lengths(objects.boxes[jitter[0][own_jitter]])
        first = int(objects.row[np.flatnonzero(objects.track == track)[0]])
        row = (
            f"{predictions.model_classes[label[track]]} {track + 1}",
            str(predictions.videos[first]),
            predictions.model,
            clock(float(predictions.tags["seconds"][first])),
            f"{share.n:,}",
            percent(share.value),
            interval(share.low, share.high),
            f"{int(changed.sum()):,} of {len(pairs):,}",
            percent(_average(jitter[1][own_jitter])),
            f"{_average(jitter[1][own_jitter] * length) or 0:.1f}" if own_jitter.any() else "—",
            percent(_average(np.abs(np.diff(scores, axis=1)))),
        )
        rows.append((share.value or 0.0, row))
    return rows


def _average(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if values.size else None


def _classes_of(model: _Followed) -> NDArray[np.int64]:
    """(t,) the most frequent class of each object; ties go to the lower number."""
    objects = model.objects
    detected = objects.state == DETECTED
    votes = np.zeros((len(objects), len(model.predictions.model_classes)), dtype=np.int64)
    np.add.at(votes, (objects.track[detected], model.raw.label[objects.detection[detected]]), 1)
    return np.asarray(votes.argmax(axis=1), dtype=np.int64)


def _blinks(model: _Followed) -> list[Exhibit]:
    """One blink per object, those between the most confident detections first."""
    objects, blinks = model.objects, find_blinks(model.objects)
    steady = select_steady(objects)[blinks.first] & (blinks.state != UNSURE)
    first, last = blinks.first[steady], blinks.last[steady]
    around = model.raw.score[objects.detection[np.stack([first - 1, last + 1])]].min(axis=0)
    exhibits, tracks = [], set()
    for place in np.argsort(-around, kind="stable"):
        track = int(objects.track[first[place]])
        if track not in tracks:
            tracks.add(track)
            exhibits.append(_exhibit(model, int(first[place]), int(last[place])))
        if len(exhibits) == SHOWN:
            break
    return exhibits


def _exhibit(model: _Followed, first: int, last: int) -> Exhibit:
    objects, predictions = model.objects, model.predictions
    middle = (first + last) // 2
    name = predictions.model_classes[_classes_of(model)[objects.track[first]]]
    when = clock(float(predictions.tags["seconds"][objects.row[first]]))
    video = str(predictions.videos[objects.row[first]])
    length = number_of(last - first + 1, "frame")
    places = ((first - 1, "before"), (middle, "in between"), (last + 1, "after"))
    return Exhibit(
        title=f"{name} lost for {length} at {when} of {video}",
        model=predictions.model,
        data=predictions.data,
        pictures=tuple(_picture(model, at, title) for at, title in places),
        wide=True,
        film=_film(model, first, last, middle),
        labels=(name,),
        kinds=(WORDS[int(objects.state[middle])],),
    )


def _film(model: _Followed, first: int, last: int, start: int) -> Film:
    same = np.flatnonzero(model.objects.track == model.objects.track[first])
    low, high = max(first - FILM, int(same[0])), min(last + FILM, int(same[-1]))
    frames = tuple(_frame(model, at) for at in range(low, high + 1))
    verdicts = ("detected", "lost or below the threshold")
    return Film(frames, start=start - low, bar="score", verdicts=verdicts)


def _frame(model: _Followed, at: int) -> FilmFrame:
    row, state = int(model.objects.row[at]), int(model.objects.state[at])
    detection = int(model.objects.detection[at])
    return FilmFrame(
        sample=str(model.predictions.ids[row]),
        at=clock(float(model.predictions.tags["seconds"][row])),
        line=_line(model, at),
        score=round(float(model.raw.score[detection]), 3) if detection >= 0 else 0.0,
        right=None if state == UNSURE else state == DETECTED,
        marks=(_mark(model, at),),
        answer=WORDS[state],
    )


def _picture(model: _Followed, at: int, title: str) -> Picture:
    sample = str(model.predictions.ids[model.objects.row[at]])
    return Picture(
        sample,
        title,
        (_line(model, at), sample),
        right=bool(model.objects.state[at] == DETECTED),
        marks=(_mark(model, at),),
    )


def _line(model: _Followed, at: int) -> str:
    state, detection = int(model.objects.state[at]), int(model.objects.detection[at])
    if detection < 0:
        return WORDS[state]
    name = model.predictions.model_classes[model.raw.label[detection]]
    return f"{WORDS[state]}: {name} {model.raw.score[detection]:.2f}"


def _mark(model: _Followed, at: int) -> Mark:
    detected = model.objects.state[at] == DETECTED
    box = tuple(float(side) for side in model.objects.boxes[at])
    return Mark("right" if detected else "wrong", box, "")
