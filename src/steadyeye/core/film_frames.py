"""Pictures and films of an exhibit: frames of a set, and frames around a place of a video.

And which exhibits are shown: of each model in turn, the first of them on the first screen.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import clock
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Exhibit, Film, FilmFrame, Picture

AROUND = 10  # frames on either side of a place of a video

Item = TypeVar("Item")

ShowFrame = Callable[[int, str], FilmFrame]
"""`(row, its place in words) -> frame`."""


def set_rows(predictions: Predictions, anchor: int, k: int | None = None) -> NDArray[np.intp]:
    """The predicted rows of an anchor's set, in time order.

    Those within ±k of it; all if k is None.
    """
    _, group = predictions.distinct_groups
    offsets = np.asarray(predictions.tags["offset"])
    rows = np.flatnonzero((group == group[anchor]) & predictions.valid)
    rows = rows if k is None else rows[abs(offsets[rows]) <= k]
    return np.asarray(rows[np.argsort(offsets[rows], kind="stable")], dtype=np.intp)


def set_film(
    predictions: Predictions,
    anchor: int,
    worst: int,
    k: int | None = None,
    show_frame: ShowFrame | None = None,
) -> Film | None:
    """The film of a set within ±k of its anchor, which stays visible; it starts at the worst frame.

    `show_frame`: makes a frame; by default with the best class and its probability. None without
    further frames.
    """
    rows = set_rows(predictions, anchor, k)
    if len(rows) < 3:
        return None
    show_frame = show_frame or (lambda row, at: answer_frame(predictions, row, at))
    offsets = predictions.tags["offset"]
    frames = tuple(show_frame(int(row), away(int(offsets[row]))) for row in rows)
    return Film(frames, start=rows.tolist().index(worst), fixed=1)


def away(offset: int) -> str:
    """The place of a frame in a set, `anchor` or `3 frames later`."""
    if offset == 0:
        return "anchor"
    frames = "frame" if abs(offset) == 1 else "frames"
    return f"{abs(offset)} {frames} {'later' if offset > 0 else 'earlier'}"


def answer_frame(predictions: Predictions, row: int, at: str) -> FilmFrame:
    """A frame with the best class, its probability, and whether it is right."""
    return FilmFrame(
        sample=str(predictions.ids[row]),
        at=at,
        line=describe_answer(predictions, row),
        score=predictions.find_share(float(predictions.confidence[row])),
        right=bool(predictions.right[row]) if predictions.has_label[row] else None,
        answer=predictions.answer(row),
    )


def answer_picture(
    predictions: Predictions, row: int, title: str, more: Iterable[str] = ()
) -> Picture:
    """A sample with the best class, and whether it is right; `more`: further lines."""
    return Picture(
        sample=str(predictions.ids[row]),
        title=title,
        lines=(describe_answer(predictions, row), *more),
        right=bool(predictions.right[row]),
    )


def describe_answer(predictions: Predictions, row: int) -> str:
    """The best class with its score, `predicts cat, 84.8 %`."""
    score = predictions.format_score(float(predictions.confidence[row]))
    return f"predicts {predictions.answer(row)}, {score}"


def list_labels(predictions: Predictions, row: int) -> tuple[str, ...]:
    """The names of the labels of a sample."""
    return tuple(predictions.classes[i] for i in np.flatnonzero(predictions.truth[row]))


def video_film(predictions: Predictions, rows: Sequence[int], start: int) -> Film | None:
    """The frames of `rows` of one scene in their order, with the model's own best class.

    `start`: the row that is shown first. None for fewer than three frames.
    """
    if len(rows) < 3:
        return None
    frames = tuple(_own_frame(predictions, row) for row in rows)
    return Film(frames, start=list(rows).index(start))


def around(predictions: Predictions, before: int, after: int) -> list[int]:
    """Rows of the frames around two consecutive ones of a scene or set, in time order."""
    _, group = predictions.distinct_groups
    frame = np.asarray(predictions.tags["frame"], dtype=np.int64)
    step = max(int(frame[after] - frame[before]), 1)
    near = abs(frame - frame[before]) <= AROUND * step
    rows = np.flatnonzero((group == group[before]) & near & predictions.valid)
    return [int(row) for row in rows[np.argsort(frame[rows], kind="stable")]]


def say_time(predictions: Predictions, rows: NDArray[np.intp]) -> str:
    """The time in the video from the first to the last of some rows, `0:01–0:02`."""
    first, last = np.asarray(predictions.tags["seconds"])[rows[[0, -1]]].tolist()
    return f"{clock(first)}–{clock(last)}"


def _own_frame(predictions: Predictions, row: int) -> FilmFrame:
    tags = predictions.tags
    at = clock(float(tags["seconds"][row])) if "seconds" in tags else f"frame {tags['frame'][row]}"
    answer, score = predictions.own_answer(row), float(predictions.own_score[row])
    line = f"predicts {answer}, {predictions.format_score(score)}"
    share = predictions.find_share(score)
    return FilmFrame(str(predictions.ids[row]), at, line, share, answer=answer)


def take_turns(lists: Sequence[Sequence[Item]], most: int | None = None) -> list[Item]:
    """The first of each list, the second of each, and so on; at most `most`, None: all."""
    longest = max(map(len, lists), default=0)
    return [items[i] for i in range(longest) for items in lists if i < len(items)][:most]


def name_lead(exhibits: Sequence[Exhibit], words: str) -> Exhibit | None:
    """The first of some exhibits with `words` before its title; None without any."""
    return replace(exhibits[0], title=f"{words}: {exhibits[0].title}") if exhibits else None
