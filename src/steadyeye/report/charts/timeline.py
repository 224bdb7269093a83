"""The chart of a video over time: predictions as coloured bands, confidence below them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import clock, number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Figure
from steadyeye.metrics.sequences.answer_runs import certainty, in_time
from steadyeye.report.charts.specs import chart, colour, layer

COLUMNS = 1_200  # more would be finer than the page shows


@dataclass(frozen=True)
class Stretch:
    """Seconds `start` … `stop` of one prediction; −1: a detector detects nothing."""

    start: float
    stop: float
    answer: int


@dataclass(frozen=True)
class Point:
    """The mean confidence, 0…1 or None, of the frames from `second` on, in the scene `scene`."""

    second: float
    confidence: float | None
    scene: int


@dataclass(frozen=True)
class Strip:
    """One video over time. `frames`: number of frames per point and prediction."""

    stretches: tuple[Stretch, ...]
    points: tuple[Point, ...]
    frames: int


def strip(predictions: Predictions, video: str) -> Strip:
    """The predictions of a video over time, in at most about 1,200 steps.

    A step of several frames has their most frequent prediction (ties: the first class) and their
    mean confidence. Steps do not cross scene cuts.
    """
    rows = in_time(predictions)
    rows = rows[predictions.videos[rows] == video]
    tags = predictions.tags
    frame, seconds = np.asarray(tags["frame"])[rows], np.asarray(tags["seconds"])[rows]
    scene, step = np.asarray(tags["scene"])[rows], np.asarray(tags["step"])[rows]
    period = step / np.asarray(tags["fps"])[rows]
    frames = max(-(-len(rows) // COLUMNS), 1)
    starts = _starts(frame // step, scene, frames)
    stops = np.append(starts[1:], len(rows))
    spans = list(zip(starts, stops, strict=True))
    joined = np.append(_follow(frame, scene, step, stops[:-1]), False)
    until = np.where(joined, np.append(seconds, 0.0)[stops], seconds[stops - 1] + period[stops - 1])
    answers = [_commonest(predictions.own[rows[a:b]]) for a, b in spans]
    sure = certainty(predictions)
    means = [None if sure is None else float(sure[rows[a:b]].mean()) for a, b in spans]
    return Strip(
        _stretches(seconds[starts], until, answers, joined),
        tuple(
            Point(float(seconds[a]), mean, int(scene[a]))
            for a, mean in zip(starts, means, strict=True)
        ),
        frames,
    )


def _starts(
    number: NDArray[np.integer], scene: NDArray[np.integer], frames: int
) -> NDArray[np.intp]:
    """Starts of the steps: every `frames` frames, and at every scene."""
    if not len(number):
        return np.zeros(0, dtype=np.intp)
    new = (np.diff(number // frames) != 0) | (np.diff(scene) != 0)
    return np.append(0, np.flatnonzero(new) + 1)


def _follow(
    frame: NDArray[np.integer],
    scene: NDArray[np.integer],
    step: NDArray[np.integer],
    at: NDArray[np.intp],
) -> NDArray[np.bool_]:
    """Whether the frame at each position directly follows the one before it."""
    near = frame[at] - frame[at - 1] == step[at]
    return np.asarray(near & (scene[at] == scene[at - 1]), dtype=np.bool_)


def _commonest(answers: NDArray[np.integer]) -> int:
    names, times = np.unique(answers, return_counts=True)
    return int(names[times.argmax()])


def _stretches(
    start: NDArray[np.floating],
    until: NDArray[np.floating],
    answers: list[int],
    joined: NDArray[np.bool_],
) -> tuple[Stretch, ...]:
    stretches: list[Stretch] = []
    goes_on = False
    for first, last, answer, next_joined in zip(start, until, answers, joined, strict=True):
        if goes_on and stretches[-1].answer == answer:
            stretches[-1] = Stretch(stretches[-1].start, float(last), answer)
        else:
            stretches.append(Stretch(float(first), float(last), answer))
        goes_on = bool(next_joined)
    return tuple(stretches)


CLASSES = 6  # as many as the palette has colours beside grey
OTHER = "other"
ROW = 96  # pixels of a model: its name, its answers, its confidence
SECONDS = "format(datum.value % 60, datum.value % 1 ? '04.1f' : '02d')"
AXIS = {
    "labelExpr": f"floor(datum.value / 60) + ':' + {SECONDS}",
    "grid": False,
    "labelOverlap": True,
    "labelFlush": True,
    "tickCount": 6,
    "tickMinStep": 0.1,
}
X = {"type": "quantitative", "title": "time (minutes:seconds)", "axis": AXIS}


def bands(tables: Sequence[Predictions], video: str, number: int) -> Figure:
    """The figure of one video, one row per model; `number`: index of the figure, from 0.

    The six predictions with the longest total time have colours, the others are grey.
    """
    strips = [strip(predictions, video) for predictions in tables]
    coloured = _choose_answers(tables, strips)
    layers = [_answers(tables, strips, coloured), *_confidence(strips), *_cuts(tables, video)]
    layers.append(_names(tables))
    frames = max(part.frames for part in strips)
    coarse = (
        f" Each step is the most frequent prediction in {number_of(frames, 'frame')}."
        if frames > 1
        else ""
    )
    return Figure(
        name=f"timeline_{number + 1}",
        caption=f"{video}: predictions, and confidence as a grey area, over time.{coarse}",
        alt=f"Runs of equal predictions in {video} for {', '.join(p.model for p in tables)}; "
        "the table has the numbers.",
        spec=chart(layers, height=ROW * len(tables)),
    )


def _choose_answers(tables: Sequence[Predictions], strips: Sequence[Strip]) -> list[str]:
    """The predictions with a colour: those with the longest total time."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for predictions, part in zip(tables, strips, strict=True):
        for stretch in part.stretches:
            seconds[predictions.own_name(stretch.answer)] += stretch.stop - stretch.start
    return [name for name, _ in sorted(seconds.items(), key=lambda s: (-s[1], s[0]))[:CLASSES]]


def _y(field: str, models: int) -> dict[str, Any]:
    scale = {"domain": [0, models], "reverse": True, "nice": False}
    return {"field": field, "type": "quantitative", "axis": None, "scale": scale}


def _answers(
    tables: Sequence[Predictions], strips: Sequence[Strip], coloured: list[str]
) -> dict[str, Any]:
    rows = []
    for i, (predictions, part) in enumerate(zip(tables, strips, strict=True)):
        for stretch in part.stretches:
            name = predictions.own_name(stretch.answer)
            names = {"shown": name if name in coloured else OTHER, "answer": name}
            when = {"from": round(stretch.start, 3), "to": round(stretch.stop, 3)}
            clocks = {"starts": clock(stretch.start), "model": predictions.model}
            rows.append({**names, **when, **clocks, "top": i + 0.22, "bottom": i + 0.52})
    colours = colour([*coloured, *([""] * (CLASSES - len(coloured))), OTHER], "shown", "")
    # blanks hold the place of missing classes, so that grey stays the colour of the others
    present = [*coloured, *([OTHER] if any(row["shown"] == OTHER for row in rows) else [])]
    colours["legend"] = {**colours["legend"], "values": present}
    encoding = {
        "x": {**X, "field": "from"},
        "x2": {"field": "to"},
        "y": _y("top", len(tables)),
        "y2": {"field": "bottom"},
        "color": colours,
        "tooltip": [{"field": key, "type": "nominal"} for key in ("answer", "starts", "model")],
    }
    return layer("rect", encoding, rows, tooltip=True)


def _confidence(strips: Sequence[Strip]) -> list[dict[str, Any]]:
    rows = [
        {
            "second": round(point.second, 3),
            "height": round(float(i) + 0.97 - 0.4 * point.confidence, 4),
            "base": i + 0.97,
            "part": f"{i} {point.scene}",
        }
        for i, part in enumerate(strips)
        for point in part.points
        if point.confidence is not None
    ]
    encoding = {
        "x": {**X, "field": "second"},
        "y": _y("height", len(strips)),
        "y2": {"field": "base"},
        "detail": {"field": "part", "type": "nominal"},
    }
    area = layer("area", encoding, rows, color="#8a8f98", opacity=0.45, line=False)
    return [area] if rows else []


def _cuts(tables: Sequence[Predictions], video: str) -> list[dict[str, Any]]:
    tags = tables[0].tags
    inside = np.asarray(tags["video"]) == video
    scenes, seconds = np.asarray(tags["scene"])[inside], np.asarray(tags["seconds"])[inside]
    starts = [float(seconds[scenes == scene].min()) for scene in np.unique(scenes)[1:]]
    rows = [{"second": round(start, 3)} for start in starts]
    rule = layer("rule", {"x": {**X, "field": "second"}}, rows, opacity=0.7, strokeWidth=1)
    # Vega warns of a field without values
    return [rule] if rows else []


def _names(tables: Sequence[Predictions]) -> dict[str, Any]:
    rows = [{"model": p.model, "place": i + 0.11} for i, p in enumerate(tables)]
    text = {"field": "model", "type": "nominal"}
    encoding = {"x": {"value": 2}, "y": _y("place", len(tables)), "text": text}
    return layer("text", encoding, rows, align="left", baseline="middle", fontSize=12)
