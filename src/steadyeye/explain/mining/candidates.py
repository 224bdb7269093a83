"""Candidates: confident mistakes to be looked at, each of them once.

Said by several models, or frame after frame of a video, a mistake is the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD
from steadyeye.core.disk_columns import read_entries
from steadyeye.core.film_frames import away, set_rows
from steadyeye.core.format import clock
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Film, FilmFrame, Mark
from steadyeye.data.annotations import coco_file
from steadyeye.explain.mining.causes import CAUSES, MISTAKES, RIGHT, Judged
from steadyeye.metrics.detection.matching import share_of

SAME = 0.5  # IoU above which two boxes of a class are one mistake, as NAO matches boxes
GAP = 10  # frames of the data for which a mistake may be gone and is then still the same
OUTSIDE = "OOD object"

FAINT = 0.3
"""The frames of a film show detections with a score above this: a mistake may fade."""

ON_OBJECT = (CAUSES.index("misclassification"), CAUSES.index("out_of_distribution"))
"""Causes of mistakes that meet a true box."""

NO_OBJECT = OOD - 1
"""Stands for the class of a true box where a mistake meets none."""

AROUND = 5
"""Frames of a video that a film shows on either side of a mistake."""


def tracks(
    key: NDArray[np.int64],
    frame: NDArray[np.int64],
    boxes: NDArray[np.float64],
    score: NDArray[np.float64],
) -> NDArray[np.int64]:
    """(n,) which mistake each of n detections is of, numbered from 0.

    `key`: what must be the same, such as video and class. `frame`: the place of the image in its
    video; images that follow nothing have keys of their own. `boxes`: (n, 4). In rising order of
    frames, in a frame by falling score, each joins the mistake of its key whose last box it
    overlaps most, at an IoU above `SAME`, if that was seen at most `GAP` frames ago; else it
    begins another.
    """
    order = np.lexsort((np.arange(len(key)), -score, frame, key))
    numbers = np.empty(len(key), dtype=np.int64)
    numbers[order] = _follow_boxes(
        key[order], frame[order], np.ascontiguousarray(boxes[order]), (SAME, GAP)
    )
    return numbers


@njit(nogil=True, cache=True)
def _follow_boxes(
    key: NDArray[np.int64], frame: NDArray[np.int64], boxes: NDArray[np.float64], how: Any
) -> NDArray[np.int64]:
    same, gap = how
    n = len(key)
    number = np.empty(n, dtype=np.int64)
    live = np.empty(n, dtype=np.int64)  # the last detection of each mistake that may go on
    alive = total = 0
    for i in range(n):
        if i > 0 and key[i] != key[i - 1]:
            alive = 0
        survivors = 0
        best, place = same, -1
        for j in range(alive):
            last = live[j]
            if frame[i] - frame[last] > gap:
                continue
            live[survivors] = last
            share = share_of(boxes, i, boxes, last, False)
            if share > best:
                best, place = share, survivors
            survivors += 1
        alive = survivors
        if place < 0:
            number[i] = total
            total += 1
            live[alive] = i
            alive += 1
            continue
        number[i] = number[live[place]]
        # of one frame the most confident came first and stays what others are held against
        if frame[live[place]] != frame[i]:
            live[place] = i
    return number


# of a run over many images there are very many
@dataclass(frozen=True, slots=True)
class Mistake:
    """A confident mistake, shown by its most confident detection.

    `table`: which of the tables that is of; `row`: its image there; `detection`: its row in
    `raw_detections`; `object`: the row in `boxes` of the true box it overlaps most, −1: none.
    `box`: x0 y0 x1 y1 in pixels. `predicted`: the detector's own class; `truth`: what the object
    is, empty where no box is met; `annotated`: the same, in the detector's own word where one class
    of its own stands for it. `models`: all that make the mistake, in the order of the tables;
    `times`: how many detections it stands for, over models and frames.
    """

    table: int
    row: int
    detection: int
    object: int
    sample: str
    box: tuple[float, float, float, float]
    predicted: str
    truth: str
    annotated: str
    score: float
    iou: float
    cause: str
    models: tuple[str, ...]
    times: int


def candidates(
    tables: Sequence[Predictions], verdicts: Sequence[Judged], causes: Sequence[str] = MISTAKES
) -> tuple[Mistake, ...]:
    """The mistakes of models on the same or on other data, by falling score.

    `verdicts`: what the confident detections of each table are. What several models say of one
    image is one mistake where the class has the same name and the boxes an IoU above 0.5, and so it
    is along the frames of a video (`explain.mining.candidates`); ties go to the earlier table,
    then row.
    """
    numbers = [CAUSES.index(cause) for cause in causes]
    picked = [np.flatnonzero(np.isin(verdict.cause, numbers)) for verdict in verdicts]
    table = np.repeat(np.arange(len(tables)), [len(rows) for rows in picked])
    place = np.concatenate([np.zeros(0, dtype=np.int64), *picked])
    if not len(place):
        return ()
    image, label, boxes, score = (
        np.concatenate(parts)
        for parts in zip(*map(_columns, tables, verdicts, picked), strict=True)
    )
    video, frame = _frames(tables)
    class_names = _names(tables)
    offsets = np.cumsum([0, *map(len, tables)])
    at = offsets[table] + image
    names = np.cumsum([0, *(len(predictions.model_classes) for predictions in tables)])
    kind = class_names[names[table] + label]
    mistake = tracks(video[at] * (class_names.max() + 1) + kind, frame[at], boxes, score)
    order = np.lexsort((place, table, -score, mistake))
    bounds = np.flatnonzero(np.diff(mistake[order], prepend=-1, append=-1))
    best, times = order[bounds[:-1]], np.diff(bounds)
    models = _list_models(tables, np.repeat(np.arange(len(best)), times), table[order])
    mistakes: list[Mistake] = []
    for number in range(len(tables)):
        own = np.flatnonzero(table[best] == number)
        same = [models[i] for i in own.tolist()]
        detections = place[best[own]]
        pairs = zip(same, times[own].tolist(), strict=True)
        mistakes += _describe(tables[number], verdicts[number], number, detections, pairs)
    return tuple(
        sorted(mistakes, key=lambda ranked: (-ranked.score, ranked.table, ranked.detection))
    )


def _list_models(
    tables: Sequence[Predictions], mistake: NDArray[np.int64], table: NDArray[np.int64]
) -> list[tuple[str, ...]]:
    """The models that make each mistake; `mistake`, `table`: (n,) of each detection."""
    pairs = np.unique(mistake * len(tables) + table)
    models: list[tuple[str, ...]] = [()] * (int(mistake.max()) + 1)
    for pair in pairs.tolist():
        place, number = divmod(pair, len(tables))
        models[place] = (*models[place], tables[number].model)
    return models


def _columns(
    predictions: Predictions, verdict: Judged, picked: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    raw = predictions.raw_detections
    assert raw is not None, "judged"
    rows = verdict.detection[picked]
    columns = raw.image, raw.label, raw.boxes, raw.score
    image, label, boxes, score = (read_entries(column, rows) for column in columns)
    return image, label, boxes, score


def _frames(tables: Sequence[Predictions]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every image of every table its video, and its place among the frames of that video.

    A video is known by the tag `video`, or is what a pm-set is of; else every image is its own.
    """
    videos, frames = [], []
    for predictions in tables:
        alone = np.zeros(len(predictions), dtype=np.int64)
        if "video" in predictions.tags and "frame" in predictions.tags:
            names, frame = predictions.tags["video"], predictions.tags["frame"]
        elif "offset" in predictions.tags:
            names, frame = predictions.groups, predictions.tags["offset"]
        else:
            names, frame = predictions.ids, alone
        videos.append(
            np.array([f"{predictions.data}\0{name}" for name in names.tolist()], dtype=np.str_)
        )
        frames.append(np.asarray(frame, dtype=np.int64))
    _, video = np.unique(np.concatenate(videos), return_inverse=True)
    pairs = np.stack([video, np.concatenate(frames)], axis=1)
    distinct, place = np.unique(pairs, axis=0, return_inverse=True)
    place = place.reshape(-1)  # numpy 2.0 alone gives it another shape
    first = np.searchsorted(distinct[:, 0], np.arange(int(video.max(initial=-1)) + 1))
    return video.astype(np.int64), np.asarray(place - first[video], dtype=np.int64)


def _names(tables: Sequence[Predictions]) -> NDArray[np.int64]:
    """A number for each class of each table's model, one after the other, the same for a name."""
    names = [name for predictions in tables for name in predictions.model_classes]
    return np.asarray(np.unique(names, return_inverse=True)[1], dtype=np.int64)


def _describe(
    predictions: Predictions,
    judged: Judged,
    table: int,
    best: NDArray[np.int64],
    models: Iterable[tuple[tuple[str, ...], int]],
) -> Iterator[Mistake]:
    """The mistakes whose most confident detections are those of a table at `best`.

    `models`: of each mistake all models that make it, and how many detections it stands for.
    """
    raw, truth = predictions.raw_detections, predictions.boxes
    assert raw is not None, "judged"
    assert truth is not None, "judged"
    detection, objects, cause_of = judged.detection[best], judged.object[best], judged.cause[best]
    on_object = np.isin(cause_of, ON_OBJECT)
    labels = np.full(len(best), NO_OBJECT, dtype=np.int64)
    labels[on_object] = truth.label[objects[on_object]]
    names = {
        label: (name_of(predictions, label), _name_as_detector(predictions, label))
        for label in np.unique(labels[on_object]).tolist()
    }
    image, boxes, own, score = (
        read_entries(column, detection) for column in (raw.image, raw.boxes, raw.label, raw.score)
    )
    columns = (
        *(detection, objects, image, predictions.ids[image], boxes, own, labels, score),
        *(judged.iou[best], cause_of),
    )
    rows = zip(*(values.tolist() for values in columns), models, strict=True)
    for row, item, image, sample, box, label, true, score, iou, cause, (makers, times) in rows:
        name, own_name = names.get(true, ("", ""))
        where = table, image, row, item, sample, tuple(box)
        classes = predictions.model_classes[label], name, own_name
        yield Mistake(*where, *classes, score, iou, CAUSES[cause], makers, times)


def name_of(predictions: Predictions, label: int) -> str:
    """What a true box is of."""
    return OUTSIDE if label == OOD else predictions.classes[label]


def _name_as_detector(predictions: Predictions, label: int) -> str:
    """What a true box is of, in the detector's word where one class of its own stands for it."""
    own = predictions.model_to_data_class
    if label == OOD:
        return coco_file.OUTSIDE
    same = [] if own is None else np.flatnonzero(own == label).tolist()
    return predictions.model_classes[same[0]] if len(same) == 1 else name_of(predictions, label)


def mistake_film(predictions: Predictions, faint: Judged, detection: int) -> Film | None:
    """The frames around a mistake, all of its set or `AROUND` each way, with what is detected.

    `faint`: the detections with a score above `FAINT`, judged; `detection`: the mistake, a row of
    `raw_detections`. A frame is right where no detection of that class is wrong; bars are the
    highest score of those that are. None where the image is no frame of a video, or too few were
    predicted.
    """
    raw = predictions.raw_detections
    assert raw is not None, "judged"
    row = int(raw.image[detection])
    rows = _near(predictions, row)
    if len(rows) < 3:
        return None
    frame_of = partial(_frame, predictions, faint, int(raw.label[detection]))
    name = predictions.model_classes[raw.label[detection]]
    return Film(tuple(map(frame_of, rows)), start=rows.index(row), bar=f"score of the false {name}")


def _near(predictions: Predictions, row: int) -> list[int]:
    """The rows of the frames around one, in the order of time; none where it is no frame."""
    tags = predictions.tags
    if "offset" in tags:
        return [int(near_row) for near_row in set_rows(predictions, row)]
    if not {"video", "frame"} <= set(tags) or not predictions.valid[row]:
        return []
    rows = np.flatnonzero((tags["video"] == tags["video"][row]) & predictions.valid)
    rows = rows[np.argsort(tags["frame"][rows], kind="stable")]
    place = int(np.flatnonzero(rows == row)[0])
    return [int(near_row) for near_row in rows[max(place - AROUND, 0) : place + AROUND + 1]]


def _frame(predictions: Predictions, faint: Judged, label: int, row: int) -> FilmFrame:
    """One frame: its true boxes, its detections, and whether one of `label` is wrong."""
    raw, truth, tags = predictions.raw_detections, predictions.boxes, predictions.tags
    assert raw is not None, "judged"
    assert truth is not None, "judged"
    true_boxes = truth.boxes[(truth.image == row) & ~truth.crowd].tolist()
    marks = [Mark("truth", tuple(box), "") for box in true_boxes]
    most = 0.0
    for place in np.flatnonzero(raw.image[faint.detection] == row):
        at, cause = int(faint.detection[place]), int(faint.cause[place])
        wrong = 0 <= cause < len(MISTAKES)
        if not wrong and cause != RIGHT:
            continue
        score = float(raw.score[at])
        text = f"{predictions.model_classes[raw.label[at]]} {score:.2f}"
        marks.append(Mark("wrong" if wrong else "right", tuple(raw.boxes[at].tolist()), text))
        most = max(most, score if wrong and raw.label[at] == label else 0.0)
    name = predictions.model_classes[label]
    line = f"false {name}, score {most:.2f}" if most else f"no false {name} above {FAINT:g}"
    if "offset" in tags:
        when = away(int(tags["offset"][row]))
    else:
        number = f"frame {tags['frame'][row]}"
        when = clock(float(tags["seconds"][row])) if "seconds" in tags else number
    return FilmFrame(
        sample=str(predictions.ids[row]),
        at=when,
        line=line,
        score=round(most, 3),
        right=not most,
        marks=tuple(marks),
    )
