"""The seconds in which a detector is least steady, as films with a timeline of every object."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable
from steadyeye.core.film_frames import say_time, take_turns
from steadyeye.core.format import clock, number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import (
    Exhibit,
    Film,
    FilmFrame,
    Lane,
    Mark,
    Picture,
    Section,
    Table,
    Topic,
)
from steadyeye.core.result_lookup import find, read_score
from steadyeye.core.types import Evaluated, needs
from steadyeye.metrics.sequences.tracklets import SCORE, Tracklets, link
from steadyeye.metrics.sequences.unsteady_seconds import (
    LOST,
    PRESENT,
    RENAMED,
    UNKNOWN,
    WEAK,
    UnsteadySecond,
    name_states,
    rank_seconds,
)

SHOWN = 6
STRIP = 4
"""Frames of a second on the page and in print."""
LANES = 8
"""Objects of a timeline, those with most faults."""
AROUND = 6
"""Frames on each side of the second in its film."""
WORDS = {
    PRESENT: "detected",
    WEAK: "below the threshold",
    RENAMED: "another class",
    LOST: "lost",
    UNKNOWN: "not known",
}


LABELS = {PRESENT: "", WEAK: "weak", RENAMED: "renamed", LOST: "lost", UNKNOWN: "not known"}
"""Short words for the label of a box; stored pictures of a run contain them."""
VERDICTS = ("no fault", "fault")
"""Words for the frames of a film; without labels nothing is right or wrong."""


@dataclass(frozen=True, eq=False)
class _Model:
    """The objects of a model with their states; `at`: (row, track) → the row of the objects."""

    predictions: Predictions
    raw: BoxTable
    objects: Tracklets
    states: NDArray[np.str_]
    at: dict[tuple[int, int], int]
    seconds: list[UnsteadySecond]


@needs("group", "scene", "frame", "seconds")
def unsteady_objects(evaluated: Sequence[Evaluated]) -> Section | None:
    """The seconds with the most frames in which objects are missed, weak or of another class.

    Each as a strip of four frames with all boxes, and as a film with a timeline of every object;
    they share no frame. None if no model has `blink_rate`, or no object is lost.
    """
    models = [model for model in map(_follow, evaluated) if model is not None and model.seconds]
    if not models:
        return None
    turns = take_turns([[(model, second) for second in model.seconds] for model in models], SHOWN)
    return Section(
        topic=Topic.WHEN,
        place=11,
        title="The seconds in which objects are least steady",
        text=(
            " ".join(map(_describe, models)),
            "These are the worst seconds, not typical ones. In a film, each row of the "
            "timeline is one object, and a cell leads to its frame. The box of a lost object "
            "marks its expected place. Beside a box, weak means below the threshold, and "
            "renamed means of another class than in most frames of the object.",
        ),
        tables=(_table(turns),),
        exhibits=tuple(_exhibit(model, second) for model, second in turns),
    )


def _follow(model: Evaluated) -> _Model | None:
    rate, raw = find(model.results, "blink_rate"), model.predictions.raw_detections
    if rate is None or raw is None or not rate.n:
        return None
    score = read_score(rate, SCORE)
    objects = link(model.predictions, score)
    pairs = zip(objects.row.tolist(), objects.track.tolist(), strict=True)
    return _Model(
        model.predictions,
        raw,
        objects,
        name_states(objects, raw),
        {pair: place for place, pair in enumerate(pairs)},
        rank_seconds(model.predictions, objects, SHOWN),
    )


def _describe(model: _Model) -> str:
    worst, predictions = model.seconds[0], model.predictions
    return (
        f"{predictions.model} is least steady at {say_time(predictions, worst.rows)} of "
        f"{predictions.videos[worst.rows[0]]}: an object is lost, below the threshold or detected "
        f"as another class {number_of(worst.faults, 'time')} in "
        f"{number_of(len(worst.rows), 'frame')}."
    )


def _table(turns: Sequence[tuple[_Model, UnsteadySecond]]) -> Table:
    rows = []
    for model, second in turns:
        objects, predictions = model.objects, model.predictions
        inside = np.isin(objects.row, second.rows) & np.isin(objects.track, second.objects)
        counts = [int((model.states[inside] == state).sum()) for state in (LOST, WEAK, RENAMED)]
        rows.append(
            (
                say_time(predictions, second.rows),
                *(str(predictions.videos[second.rows[0]]), predictions.model),
                *(f"{count:,}" for count in (len(second.rows), len(second.objects), *counts)),
            )
        )
    header = ("time", "video", "model", "frames", "objects", "lost", "below the threshold")
    return Table("The least steady seconds", (*header, "another class"), tuple(rows))


def _exhibit(model: _Model, second: UnsteadySecond) -> Exhibit:
    predictions = model.predictions
    strip = second.rows[np.linspace(0, len(second.rows) - 1, STRIP).round().astype(int)]
    rows = _widen(model, second)
    tracks = second.objects[:LANES]
    frames = tuple(_frame(model, int(row), tracks) for row in rows)
    lanes = tuple(
        Lane(
            f"{_class_of(model, track)} {track + 1}",
            tuple(_state(model, int(row), track) for row in rows),
        )
        for track in tracks
    )
    start = int(np.flatnonzero(rows == second.rows[0])[0])
    part = f"; {LANES} objects are shown" if len(second.objects) > LANES else ""
    return Exhibit(
        title=f"{predictions.videos[second.rows[0]]}, {say_time(predictions, second.rows)}: "
        f"{number_of(len(second.objects), 'object')}, {number_of(second.faults, 'fault')}{part}",
        model=predictions.model,
        data=predictions.data,
        pictures=tuple(_picture(model, int(row), tracks) for row in dict.fromkeys(strip.tolist())),
        wide=True,
        film=Film(frames, start, bar="share of objects detected", lanes=lanes, verdicts=VERDICTS),
        labels=tuple(dict.fromkeys(_class_of(model, track) for track in tracks)),
    )


def _widen(model: _Model, second: UnsteadySecond) -> NDArray[np.intp]:
    """The rows of the second, and those around it in the same scene."""
    predictions = model.predictions
    same = np.flatnonzero(
        (predictions.groups == predictions.groups[second.rows[0]]) & predictions.valid
    )
    same = same[np.argsort(np.asarray(predictions.tags["frame"])[same], kind="stable")]
    first, last = (int(np.flatnonzero(same == row)[0]) for row in second.rows[[0, -1]])
    return np.asarray(same[max(first - AROUND, 0) : last + AROUND + 1])


def _class_of(model: _Model, track: int) -> str:
    own = (model.objects.track == track) & (model.states == PRESENT)
    labels = model.raw.label[model.objects.detection[own]]
    return model.predictions.model_classes[int(np.bincount(labels).argmax())]


def _state(model: _Model, row: int, track: int) -> str:
    place = model.at.get((row, track))
    return "absent" if place is None else str(model.states[place])


def _places(model: _Model, row: int, tracks: Sequence[int]) -> list[int]:
    return [model.at[row, track] for track in tracks if (row, track) in model.at]


def _line(model: _Model, places: Sequence[int]) -> str:
    counts = {state: int(np.sum(model.states[places] == state)) for state in WORDS}
    parts = [f"{count} {WORDS[state]}" for state, count in counts.items() if count]
    return ", ".join(parts) if places else "no object"


def _frame(model: _Model, row: int, tracks: Sequence[int]) -> FilmFrame:
    places = _places(model, row, tracks)
    present = float(np.mean(model.states[places] == PRESENT)) if places else None
    known = [place for place in places if model.states[place] != UNKNOWN]
    return FilmFrame(
        sample=str(model.predictions.ids[row]),
        at=clock(float(model.predictions.tags["seconds"][row])),
        line=_line(model, places),
        score=None if present is None else round(present, 3),
        right=all(model.states[place] == PRESENT for place in known) if known else None,
        marks=_marks(model, places),
    )


def _marks(model: _Model, places: Sequence[int]) -> tuple[Mark, ...]:
    marks = []
    for place in places:
        state, detection = str(model.states[place]), int(model.objects.detection[place])
        box = tuple(float(side) for side in model.objects.boxes[place])
        text = _class_of(model, int(model.objects.track[place]))
        if detection >= 0:
            name = model.predictions.model_classes[model.raw.label[detection]]
            text = f"{name} {model.raw.score[detection]:.2f}"
        kind = "right" if state == PRESENT else "wrong"
        marks.append(Mark(kind, box, f"{text} {LABELS[state]}".strip()))
    return tuple(marks)


def _picture(model: _Model, row: int, tracks: Sequence[int]) -> Picture:
    places = _places(model, row, tracks)
    sample = str(model.predictions.ids[row])
    return Picture(
        sample,
        clock(float(model.predictions.tags["seconds"][row])),
        (_line(model, places), sample),
        marks=_marks(model, places),
    )
