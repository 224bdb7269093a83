"""Prediction changes from one frame to the next."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import list_texts
from steadyeye.core.film_frames import around, name_lead, video_film
from steadyeye.core.format import interval, percent
from steadyeye.core.pm_sets import consecutive
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Exhibit, Picture, Section, Table, Topic
from steadyeye.core.types import Evaluated, needs
from steadyeye.metrics.sequences.answer_runs import find_flips, flip_share

SHOWN = 9
ROWS = 30


@needs("group", "frame")
def flips(evaluated: Sequence[Evaluated]) -> Section | None:
    """The flip rate of each video, and pictures of the most confident changes; needs no labels.

    A flip's confidence is the lower of its two frames'. None if no two frames are consecutive.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_video
        >>> print(flips(example_models(example_video())).title)
        Prediction changes between consecutive frames
    """
    pairs = [(model.predictions, consecutive(model.predictions)) for model in evaluated]
    if not any(len(rows) for _, rows in pairs):
        return None
    by_model = [_flips(predictions, rows) for predictions, rows in pairs]
    exhibits = tuple(exhibit for some in by_model for exhibit in some[: -(-SHOWN // len(by_model))])
    return Section(
        topic=Topic.WHEN,
        place=50,
        title="Prediction changes between consecutive frames",
        text=(
            "Consecutive frames show nearly the same scene, so the prediction should not "
            "change. No labels are needed. The pictures show the changes with the highest "
            "confidence before and after.",
            *_unlike([predictions for predictions, _ in pairs]),
        ),
        tables=(_table(pairs),),
        exhibits=exhibits,
        lead=name_lead(exhibits, "The most confident change of prediction"),
    )


def _unlike(tables: Sequence[Predictions]) -> tuple[str, ...]:
    """A sentence if the models have different numbers of classes; otherwise empty."""
    classes = {table.model: len(table.model_classes) for table in tables}
    if len(set(classes.values())) < 2:
        return ()
    counts = list_texts([f"{model} {number:,}" for model, number in classes.items()])
    return (
        "The predictions are over all classes of each model, and the models have different "
        f"numbers of classes: {counts}. Flip rates cannot be compared between models with "
        "different numbers of classes.",
    )


def _table(pairs: Sequence[tuple[Predictions, NDArray[np.intp]]]) -> Table:
    rows = []
    total = 0
    for predictions, changes in pairs:
        changed = find_flips(predictions, changes)
        every, of = predictions.clusters
        videos, video = np.unique(of[changes[:, 0]], return_inverse=True)
        names = every[videos]
        rates = np.bincount(video, changed) / np.bincount(video)
        total += len(names)
        # none beyond the first rows of a model can be among the first rows of all
        for place in np.lexsort((names, -rates))[:ROWS]:
            share = flip_share(predictions, changes[video == place])
            rows.append((float(-rates[place]), str(names[place]), predictions.model, share))
    rows.sort(key=lambda row: row[:3])
    left = f", the {ROWS} highest of {total:,}" if total > ROWS else ""
    body = tuple(
        (name, model, f"{share.n:,}", percent(share.value), interval(share.low, share.high))
        for _, name, model, share in rows[:ROWS]
    )
    header = ("video", "model", "frame pairs", "flip rate", "95 % interval")
    return Table(f"Flip rate by video{left}", header, body)


def _flips(predictions: Predictions, pairs: NDArray[np.intp]) -> list[Exhibit]:
    pairs = pairs[find_flips(predictions, pairs)]
    sure = predictions.own_score[pairs].min(axis=1)
    order = np.argsort(-sure, kind="stable")
    return [_exhibit(predictions, int(a), int(b)) for a, b in pairs[order][:SHOWN]]


def _exhibit(predictions: Predictions, before: int, after: int) -> Exhibit:
    names = [predictions.own_answer(row) for row in (before, after)]
    return Exhibit(
        title=f"{names[0]}, then {names[1]}",
        model=predictions.model,
        data=predictions.data,
        pictures=(
            _picture(predictions, before, "frame"),
            _picture(predictions, after, "next frame"),
        ),
        film=video_film(predictions, around(predictions, before, after), after),
        labels=tuple(names),
    )


def _picture(predictions: Predictions, row: int, title: str) -> Picture:
    answer = predictions.own_answer(row)
    line = f"predicts {answer}, {predictions.format_score(float(predictions.own_score[row]))}"
    return Picture(str(predictions.ids[row]), title, (line, str(predictions.ids[row])))
