"""The predictions of a model along each video."""

from collections.abc import Sequence

import numpy as np

from steadyeye.core.format import clock, duration, format_value, number_of, percent, span
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Section, Table, Topic
from steadyeye.core.result_lookup import find
from steadyeye.core.types import Evaluated, needs
from steadyeye.metrics.sequences.answer_runs import Runs, between, runs
from steadyeye.report.charts.timeline import bands

VIDEOS = 4
MOST = 0.75


@needs("group", "scene", "frame", "seconds")
def timeline(evaluated: Sequence[Evaluated]) -> Section | None:
    """The predictions along each video as coloured segments, with confidence, one row per model.

    Of more than four videos, those with the most changes per second. None without predictions.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_video
        >>> print(timeline(example_models(example_video())).title)
        12 prediction changes in 24.0 s of video
    """
    tables = [model.predictions for model in evaluated]
    sequences = [runs(predictions) for predictions in tables]
    if not any(map(len, sequences)):
        return None
    videos = _least_steady(sequences)
    spans = [between(item.seconds, item.ended) for item in sequences]
    sentences = [
        _sentence(p, item, length)
        for p, item, length in zip(tables, sequences, spans, strict=True)
        if len(item)
    ]
    more = f" Drawn: the {VIDEOS} of {len(videos)} videos with the most changes per second."
    return Section(
        topic=Topic.WHEN,
        place=12,
        title=_title(tables, sequences),
        text=(
            " ".join(sentences),
            "One row per model; each colour is one prediction, thin lines are scene cuts, and "
            "the area below is the confidence, from 0 to 100 %."
            + (more if len(videos) > VIDEOS else ""),
        ),
        figures=tuple(bands(tables, video, i) for i, video in enumerate(videos[:VIDEOS])),
        tables=(*_lengths(evaluated), _table(tables, sequences)),
    )


def _title(tables: Sequence[Predictions], sequences: Sequence[Runs]) -> str:
    """The number of prediction changes in these videos, without inference."""
    changes = [int(item.ended.sum()) for item in sequences]
    seconds = duration(max(float(item.seconds.sum()) for item in sequences))
    low, high = min(changes), max(changes)
    counted = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    if not high:
        counted = "No"
    times = "change" if high == 1 else "changes"
    return f"{counted} prediction {times} in {seconds} of video"


def _sentence(predictions: Predictions, sequence: Runs, length: float) -> str:
    total = float(sequence.seconds.sum())
    if not sequence.ended.any():
        return (
            f"{predictions.model} does not change its prediction within a scene in "
            f"{duration(total)} of video."
        )
    changes = int(sequence.ended.sum())
    text = (
        f"{predictions.model} changes its prediction every {duration(length)} on average, "
        f"{number_of(changes, 'time')}"
    )
    return f"{text} in {duration(total)}{_where(predictions, sequence)}."


def _where(predictions: Predictions, sequence: Runs) -> str:
    """Where most changes are, if they are in one video or in one part of it."""
    videos, times = np.unique(sequence.videos[sequence.ended], return_counts=True)
    if len(np.unique(sequence.videos)) > 1:
        most = int(times.argmax())
        share = times[most] / times.sum()
        return f"; {percent(share, 0)} of the changes are in {videos[most]}" if share > 0.5 else ""
    starts = np.asarray(predictions.tags["seconds"])[sequence.first]
    moments = (starts + sequence.seconds)[sequence.ended]
    needed = int(np.ceil(MOST * len(moments)))
    lengths = moments[needed - 1 :] - moments[: len(moments) - needed + 1]
    best = int(lengths.argmin())
    if needed < 3 or lengths[best] > sequence.seconds.sum() / 2:
        return ""
    return (
        f"; {needed} of these changes are between {clock(moments[best])} and "
        f"{clock(moments[best + needed - 1])}"
    )


def _least_steady(sequences: Sequence[Runs]) -> list[str]:
    """The videos, sorted by the largest number of prediction changes per second of any model."""
    rates: dict[str, float] = {}
    for sequence in sequences:
        for video in np.unique(sequence.videos):
            inside = sequence.videos == video
            rate = sequence.ended[inside].sum() / sequence.seconds[inside].sum()
            rates[str(video)] = max(rates.get(str(video), 0.0), float(rate))
    return sorted(rates, key=lambda video: (-rates[video], video))


def _lengths(evaluated: Sequence[Evaluated]) -> tuple[Table, ...]:
    """Dwell times with intervals; None if the metric was not requested."""
    rows = []
    for model in evaluated:
        dwell = find(model.results, "dwell_time")
        if dwell is None:
            continue
        (changes,) = (cell for cell in dwell.cells if cell.name == "between changes, seconds")
        cells = (
            text
            for result in (changes, dwell)
            for text in (
                format_value(result.value, result.unit),
                span(result.low, result.high, result.unit),
            )
        )
        rows.append((model.predictions.model, f"{dwell.n:,}", *cells))
    header = (
        "model",
        "runs",
        "mean time between changes",
        "95 % interval",
        "median",
        "95 % interval",
    )
    return (Table("Time between prediction changes", header, tuple(rows)),) if rows else ()


def _table(tables: Sequence[Predictions], sequences: Sequence[Runs]) -> Table:
    rows = []
    for predictions, sequence in zip(tables, sequences, strict=True):
        for video in np.unique(sequence.videos):
            inside = sequence.videos == video
            seconds, ended = sequence.seconds[inside], sequence.ended[inside]
            length = between(seconds, ended)
            longest = int(seconds.argmax())
            rows.append(
                (
                    str(video),
                    predictions.model,
                    duration(float(seconds.sum())),
                    f"{int(ended.sum()):,}",
                    duration(length) if np.isfinite(length) else "—",
                    f"{duration(float(seconds[longest]))} "
                    f"({predictions.own_answer(int(sequence.first[inside][longest]))})",
                )
            )
    header = (
        "video",
        "model",
        "length",
        "changes",
        "mean time between changes",
        "longest run of one prediction",
    )
    return Table("Prediction changes by video", header, tuple(sorted(rows)))
