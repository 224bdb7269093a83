"""Where the answer changes from one frame to the next."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steadyeye.charts.style import interval, percent
from steadyeye.core.pm_sets import consecutive
from steadyeye.core.sections import Exhibit, Picture, Section, Table
from steadyeye.core.table import Predictions
from steadyeye.core.types import Evaluated, needs
from steadyeye.sequences.changes import flip_share, flipped

SHOWN = 9
ROWS = 30


@needs("group", "frame")
def flips(evaluated: Sequence[Evaluated]) -> Section | None:
    """Flip rate a video, and the most confident changes of mind in pictures; no labels needed.

    A flip's confidence is the lower of its two frames'. None where no two frames are consecutive.
    """
    pairs = [(one.predictions, consecutive(one.predictions)) for one in evaluated]
    if not any(len(rows) for _, rows in pairs):
        return None
    shown = [_flips(predictions, rows) for predictions, rows in pairs]
    exhibits = tuple(exhibit for each in shown for exhibit in each[: -(-SHOWN // len(shown))])
    return Section(
        place=50,
        title="Changes of mind",
        text=(
            "From one frame to the next a scene hardly changes. These numbers need no labels. The "
            "pictures show the flips of which the model was surest on both sides.",
        ),
        tables=(_table(pairs),),
        exhibits=exhibits,
    )


def _table(pairs: Sequence[tuple[Predictions, NDArray[np.intp]]]) -> Table:
    rows = []
    total = 0
    for predictions, found in pairs:
        flipped = predictions.predicted[found[:, 0]] != predictions.predicted[found[:, 1]]
        every, of = predictions.filmed
        there, video = np.unique(of[found[:, 0]], return_inverse=True)
        names = every[there]
        rates = np.bincount(video, flipped) / np.bincount(video)
        total += len(names)
        # none beyond the first rows of a model can be among the first rows of all
        for which in np.lexsort((names, -rates))[:ROWS]:
            share = flip_share(predictions, found[video == which])
            rows.append((float(-rates[which]), str(names[which]), predictions.model, share))
    rows.sort(key=lambda row: row[:3])
    left = f", the {ROWS} highest of {total}" if total > ROWS else ""
    body = tuple(
        (name, model, f"{share.n:,}", percent(share.value), interval(share.low, share.high))
        for _, name, model, share in rows[:ROWS]
    )
    header = ("video", "model", "frame pairs", "flip rate", "95 % interval")
    return Table(f"Flip rate by video{left}", header, body)


def _flips(predictions: Predictions, pairs: NDArray[np.intp]) -> list[Exhibit]:
    pairs = pairs[flipped(predictions, pairs)]
    sure = predictions.confidence[pairs].min(axis=1)
    order = np.argsort(-sure, kind="stable")
    return [_exhibit(predictions, int(a), int(b)) for a, b in pairs[order][:SHOWN]]


def _exhibit(predictions: Predictions, before: int, after: int) -> Exhibit:
    names = [predictions.answer(row) for row in (before, after)]
    return Exhibit(
        title=f"{names[0]} → {names[1]}",
        model=predictions.model,
        data=predictions.data,
        pictures=(
            _picture(predictions, before, "a frame"),
            _picture(predictions, after, "the next"),
        ),
    )


def _picture(predictions: Predictions, row: int, title: str) -> Picture:
    said = predictions.answer(row)
    line = f"says {said}, {percent(float(predictions.confidence[row]))}"
    return Picture(str(predictions.ids[row]), title, (line, str(predictions.ids[row])))
