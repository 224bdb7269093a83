"""The least steady seconds, as strips of frames."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.film_frames import say_time, take_turns, video_film
from steadyeye.core.format import clock, number_of, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Exhibit, Picture, Section, Table, Topic
from steadyeye.core.types import Evaluated, needs
from steadyeye.metrics.sequences.answer_runs import Window, certainty, runs, windows

SHOWN = 8
FRAMES = 4  # as many as a strip holds side by side


@needs("group", "scene", "frame", "seconds")
def unstable_clips(evaluated: Sequence[Evaluated]) -> Section | None:
    """The seconds with the most prediction changes, each as a strip of four frames.

    Instability of a second = prediction changes + Σ |Δ confidence| from frame to frame. Seconds do
    not overlap and do not cross scene cuts; at most eight over all models, each model in turn. A
    strip shows the frames just before and just after changes. None without prediction changes.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_video
        >>> print(unstable_clips(example_models(example_video())).title)
        The seconds with the most prediction changes
    """
    tables = [model.predictions for model in evaluated]
    most = -(-SHOWN // len(tables))
    by_model = [windows(predictions, most) for predictions in tables]
    if not any(by_model):
        return None
    pairs = zip(tables, by_model, strict=True)
    chosen = take_turns([[(table, window) for window in own] for table, own in pairs], SHOWN)
    return Section(
        topic=Topic.WHEN,
        place=14,
        title="The seconds with the most prediction changes",
        text=(
            " ".join(_sentence(p, ranked) for p, ranked in zip(tables, by_model, strict=True)),
            "These are the worst seconds, not typical ones, ordered by the number of prediction "
            "changes plus the sum of the changes in confidence (Σ |Δ confidence|). Check what "
            "moves, blurs or enters the picture.",
        ),
        tables=(_table(chosen),),
        exhibits=tuple(_exhibit(predictions, window) for predictions, window in chosen),
    )


def _sentence(predictions: Predictions, ranked: Sequence[Window]) -> str:
    if not ranked:
        return f"{predictions.model} does not change its prediction within a scene of these videos."
    total = int(runs(predictions).ended.sum())
    inside = sum(window.changes for window in ranked)
    worst = ranked[0]
    several = (
        "this second contains" if len(ranked) == 1 else f"the {len(ranked)} seconds shown contain"
    )
    return (
        f"{predictions.model} changes its prediction {number_of(worst.changes, 'time')} in "
        f"{number_of(len(worst.rows), 'frame')} at {say_time(predictions, worst.rows)} "
        f"of {predictions.videos[worst.rows[0]]}; {several} {inside} of its "
        f"{number_of(total, 'change')}."
    )


def _table(chosen: Sequence[tuple[Predictions, Window]]) -> Table:
    body = tuple(
        (
            say_time(predictions, window.rows),
            str(predictions.videos[window.rows[0]]),
            predictions.model,
            f"{window.changes}",
            f"{len(window.rows)}",
            f"{window.jump:.2f}",
        )
        for predictions, window in chosen
    )
    header = ("time", "video", "model", "changes", "frames", "Σ |Δ confidence|")
    return Table("The seconds with the most prediction changes", header, body)


def _exhibit(predictions: Predictions, window: Window) -> Exhibit:
    answers, sure = predictions.own[window.rows], certainty(predictions)
    places = _both_sides(answers, None if sure is None else sure[window.rows])
    return Exhibit(
        title=f"{predictions.videos[window.rows[0]]}, {say_time(predictions, window.rows)}: "
        f"{number_of(window.changes, 'prediction change')} in "
        f"{number_of(len(window.rows), 'frame')}",
        model=predictions.model,
        data=predictions.data,
        pictures=tuple(
            _picture(predictions, int(window.rows[place]), _side(answers, place))
            for place in places
        ),
        wide=True,
        film=video_film(predictions, window.rows.tolist(), int(window.rows[places[0]])),
    )


def _both_sides(answers: NDArray[np.integer], sure: NDArray[np.floating] | None) -> list[int]:
    """The places of up to four frames, in order: both frames of each change that is shown.

    First the change with the highest lower confidence of its two frames (ties: the earlier), then
    those whose frames still fit; the remaining places go to the frames around them.
    """
    changes = np.flatnonzero(np.diff(answers))
    least = np.zeros(len(changes)) if sure is None else np.minimum(sure[changes], sure[changes + 1])
    places: set[int] = set()
    for before in changes[np.argsort(-least, kind="stable")].tolist():
        both = places | {before, before + 1}
        places = both if len(both) <= FRAMES else places
    while len(places) < min(FRAMES, len(answers)):
        first, last = min(places), max(places)
        earlier = first > 0 and (len(answers) - 1 == last or len(places) % 2 == 0)
        places.add(first - 1 if earlier else last + 1)
    return sorted(places)


def _side(answers: NDArray[np.integer], place: int) -> str:
    """On which side of a change a frame lies, as a line of its picture; empty for neither."""
    after = place > 0 and answers[place - 1] != answers[place]
    before = place + 1 < len(answers) and answers[place] != answers[place + 1]
    if before and after:
        return "between two changes"
    return "just before a change" if before else "just after a change" if after else ""


def _picture(predictions: Predictions, row: int, side: str) -> Picture:
    sure = certainty(predictions)
    answer = predictions.own_answer(row)
    when = clock(float(predictions.tags["seconds"][row]))
    return Picture(
        sample=str(predictions.ids[row]),
        title=f"frame {predictions.tags['frame'][row]}",
        lines=(
            f"predicts {answer}" + (f", {percent(float(sure[row]))}" if sure is not None else ""),
            f"{when}, {side}" if side else when,
        ),
    )
