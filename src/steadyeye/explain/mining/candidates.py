"""Candidates: confident mistakes for review, each of them once.

A mistake of several models, or on consecutive frames of a video, counts once.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.disk_columns import read_entries
from steadyeye.core.film_frames import away, set_rows
from steadyeye.core.format import clock
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Film, FilmFrame, Mark
from steadyeye.explain.mining.causes import CAUSES, MISTAKES, RIGHT, Judged
from steadyeye.explain.mining.mistakes import Mistakes, list_mistakes
from steadyeye.metrics.detection.matching import share_of

SAME = 0.5  # IoU above which two boxes of a class are one mistake, as NAO matches boxes
GAP = 10  # frames of the data for which a mistake may be gone and is then still the same
FAINT = 0.3
"""The frames of a film show detections with a score above this: a mistake's score may fall."""

AROUND = 5
"""Frames of a video that a film shows on either side of a mistake."""


def tracks(
    key: NDArray[np.int64],
    frame: NDArray[np.int64],
    boxes: NDArray[np.float64],
    score: NDArray[np.float64],
) -> NDArray[np.int64]:
    """(n,) the number of the mistake of each of n detections, from 0.

    `key`: the properties that must be equal, such as video and class. `frame`: the index of the
    image in its video; images outside videos have their own keys. `boxes`: (n, 4). In rising order
    of frames, within a frame by falling score, each detection joins the mistake of its key whose
    last box it overlaps most, at an IoU above `SAME`, if that is at most `GAP` frames ago;
    otherwise it starts a new mistake.
    """
    order = np.lexsort((np.arange(len(key)), -score, frame, key))
    numbers = np.empty(len(key), dtype=np.int64)
    numbers[order] = _follow_boxes(key[order], frame[order], np.ascontiguousarray(boxes[order]))
    return numbers


@njit(nogil=True, cache=True)
def _follow_boxes(
    key: NDArray[np.int64], frame: NDArray[np.int64], boxes: NDArray[np.float64]
) -> NDArray[np.int64]:
    n = len(key)
    number = np.empty(n, dtype=np.int64)
    live = np.empty(n, dtype=np.int64)  # the last detection of each mistake that may continue
    alive = total = 0
    for i in range(n):
        if i > 0 and key[i] != key[i - 1]:
            alive = 0
        survivors = 0
        best, place = SAME, -1
        for j in range(alive):
            last = live[j]
            if frame[i] - frame[last] > GAP:
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
        # in a frame the most confident comes first and stays the one for comparison
        if frame[live[place]] != frame[i]:
            live[place] = i
    return number


def candidates(
    tables: Sequence[Predictions], verdicts: Sequence[Judged], causes: Sequence[str] = MISTAKES
) -> Mistakes:
    """The mistakes of models on the same or on other data, by falling score.

    `verdicts`: the judged confident detections of each table. Detections of several models in one
    image are one mistake if their class has the same name and their boxes have an IoU above 0.5;
    the same holds along the frames of a video (`explain.mining.candidates`). Ties go to the earlier
    table, then row.
    """
    numbers = [CAUSES.index(cause) for cause in causes]
    picked = [np.flatnonzero(np.isin(verdict.cause, numbers)) for verdict in verdicts]
    table = np.repeat(np.arange(len(tables), dtype=np.int32), [len(rows) for rows in picked])
    if not len(table):
        return list_mistakes(tables, verdicts, [np.zeros(0, dtype=np.int32)] * 4, ())
    place = np.concatenate(picked).astype(np.int32)
    image, kind, boxes, score = (
        np.concatenate(parts)
        for parts in zip(*map(_columns, tables, verdicts, picked), strict=True)
    )
    video, frame = _find_frames(tables, table, image)
    first = np.cumsum([0, *(len(predictions.model_classes) for predictions in tables)])
    names = [name for predictions in tables for name in predictions.model_classes]
    # equal names have equal numbers
    class_names = np.unique(names, return_inverse=True)[1].astype(np.int64)
    kind = class_names[first[table] + kind]
    mistake = tracks(video * (class_names.max() + 1) + kind, frame, boxes, score)
    order = np.lexsort((place, table, -score, mistake))
    bounds = np.flatnonzero(np.diff(mistake[order], prepend=-1, append=-1))
    best, times = order[bounds[:-1]], np.diff(bounds).astype(np.int32)
    makers, models = _list_models(tables, mistake, table)
    ranked = np.lexsort((place[best], table[best], -score[best]))
    best = best[ranked]
    own = table[best], place[best], times[ranked], makers[ranked]
    return list_mistakes(tables, verdicts, own, models)


def _list_models(
    tables: Sequence[Predictions], mistake: NDArray[np.int64], table: NDArray[np.int32]
) -> tuple[NDArray[np.int32], list[tuple[str, ...]]]:
    """The models that make each mistake, as an index into all groups of models.

    `mistake`, `table`: (n,) of each detection.
    """
    by_mistake, number = np.divmod(np.unique(mistake * len(tables) + table), len(tables))
    ends = np.flatnonzero(np.diff(by_mistake, append=-1)) + 1
    makers, groups, start = np.empty(len(ends), dtype=np.int32), dict[tuple[int, ...], int](), 0
    for i, end in enumerate(ends.tolist()):
        makers[i] = groups.setdefault(tuple(number[start:end].tolist()), len(groups))
        start = end
    return makers, [tuple(tables[own].model for own in group) for group in groups]


def _columns(
    predictions: Predictions, verdict: Judged, picked: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    raw = predictions.raw_detections
    assert raw is not None, "judged"
    rows = verdict.detection[picked]
    columns = raw.image, raw.label, raw.boxes, raw.score
    image, label, boxes, score = (read_entries(column, rows) for column in columns)
    return image, label, boxes, score


def _find_frames(
    tables: Sequence[Predictions], table: NDArray[np.int32], image: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The video of each detection, and the index of its image among the frames of that video.

    The video is the tag `video` or that of the pm-set; otherwise every image is its own.
    """
    videos, frames, rows = [], [], []
    offsets = np.cumsum([0, *map(len, tables)])
    for number, predictions in enumerate(tables):
        tags, own = predictions.tags, np.arange(len(predictions))
        if "video" in tags and "frame" in tags:
            names, frame = tags["video"], tags["frame"]
        elif "offset" in tags:
            names, frame = predictions.groups, tags["offset"]
        else:
            # an image outside a video needs a name only if it has a mistake
            own = np.unique(image[table == number])
            names, frame = predictions.ids, np.zeros(len(predictions), dtype=np.int64)
        texts = [f"{predictions.data}\0{name}" for name in names[own].tolist()]
        videos.append(np.array(texts, dtype=np.str_))
        frames.append(np.asarray(frame[own], dtype=np.int64))
        rows.append(offsets[number] + own)
    _, video = np.unique(np.concatenate(videos), return_inverse=True)
    pairs = np.stack([video, np.concatenate(frames)], axis=1)
    distinct, place = np.unique(pairs, axis=0, return_inverse=True)
    place = place.reshape(-1)  # numpy 2.0 returns another shape
    first = np.searchsorted(distinct[:, 0], np.arange(int(video.max(initial=-1)) + 1))
    at = np.searchsorted(np.concatenate(rows), offsets[table] + image)
    return video[at].astype(np.int64), np.asarray((place - first[video])[at], dtype=np.int64)


def mistake_film(predictions: Predictions, faint: Judged, detection: int) -> Film | None:
    """The frames around a mistake, all of its set or `AROUND` on each side, with detections.

    `faint`: the judged detections with a score above `FAINT`; `detection`: the mistake, a row of
    `raw_detections`. A frame is right if no detection of that class is wrong; bars show the highest
    score of wrong ones. None if the image is no frame of a video, or too few frames have
    predictions.
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
    """The rows of the frames around one, in time order; empty if it is no frame."""
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
