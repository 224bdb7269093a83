"""What a model says along each video."""

from collections.abc import Sequence

import numpy as np

from steadyeye.core.format import clock, duration, format_value, percent, span
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
    """The answers along each video as coloured runs, confidence below them, a row a model.

    Of more than four videos those with the most changes a second. None where nothing was predicted.
    """
    tables = [one.predictions for one in evaluated]
    found = [runs(predictions) for predictions in tables]
    if not any(map(len, found)):
        return None
    videos = _least_steady(found)
    spans = [between(each.seconds, each.ended) for each in found]
    told = [
        _sentence(p, each, length)
        for p, each, length in zip(tables, found, spans, strict=True)
        if len(each)
    ]
    more = f" Drawn: the {VIDEOS} of {len(videos)} videos with the most changes per second."
    return Section(
        topic=Topic.WHEN,
        place=12,
        title=_title(tables, found),
        text=(
            " ".join(told),
            "One row per model; each colour is one prediction, thin lines are scene cuts, and "
            "the area below is the confidence, from 0 to 100 %."
            + (more if len(videos) > VIDEOS else ""),
        ),
        figures=tuple(bands(tables, video, i) for i, video in enumerate(videos[:VIDEOS])),
        tables=(*_lengths(evaluated), _table(tables, found)),
    )


def _title(tables: Sequence[Predictions], found: Sequence[Runs]) -> str:
    """How often the answer changes in these videos: a count, of which nothing is inferred."""
    changes = [int(each.ended.sum()) for each in found]
    seconds = duration(max(float(each.seconds.sum()) for each in found))
    low, high = min(changes), max(changes)
    counted = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    if not high:
        counted = "No"
    times = "change" if high == 1 else "changes"
    return f"{counted} prediction {times} in {seconds} of video"


def _sentence(predictions: Predictions, found: Runs, length: float) -> str:
    total = float(found.seconds.sum())
    if not found.ended.any():
        return (
            f"{predictions.model} does not change its prediction within a scene in "
            f"{duration(total)} of video."
        )
    changes = int(found.ended.sum())
    said = (
        f"{predictions.model} changes its prediction every {duration(length)} on average, "
        f"{changes:,} times"
    )
    return f"{said} in {duration(total)}{_where(predictions, found)}."


def _where(predictions: Predictions, found: Runs) -> str:
    """Where most changes are, if they are close together: in one video, or in one part of it."""
    videos, times = np.unique(found.videos[found.ended], return_counts=True)
    if len(np.unique(found.videos)) > 1:
        most = int(times.argmax())
        share = times[most] / times.sum()
        return f"; {percent(share, 0)} of the changes are in {videos[most]}" if share > 0.5 else ""
    starts = np.asarray(predictions.tags["seconds"])[found.first]
    moments = (starts + found.seconds)[found.ended]
    needed = int(np.ceil(MOST * len(moments)))
    lengths = moments[needed - 1 :] - moments[: len(moments) - needed + 1]
    best = int(lengths.argmin())
    if needed < 3 or lengths[best] > found.seconds.sum() / 2:
        return ""
    return (
        f"; {needed} of these changes are between {clock(moments[best])} and "
        f"{clock(moments[best + needed - 1])}"
    )


def _least_steady(found: Sequence[Runs]) -> list[str]:
    """The videos, those first in which some model changes its answer the most often a second."""
    rates: dict[str, float] = {}
    for each in found:
        for video in np.unique(each.videos):
            here = each.videos == video
            rate = each.ended[here].sum() / each.seconds[here].sum()
            rates[str(video)] = max(rates.get(str(video), 0.0), float(rate))
    return sorted(rates, key=lambda video: (-rates[video], video))


def _lengths(evaluated: Sequence[Evaluated]) -> tuple[Table, ...]:
    """How long answers hold, with intervals; nothing where dwell times were not asked for."""
    rows = []
    for one in evaluated:
        dwell = find(one.results, "dwell_time")
        if dwell is None:
            continue
        (changes,) = (cell for cell in dwell.cells if cell.name == "between changes, seconds")
        told = (
            text
            for each in (changes, dwell)
            for text in (format_value(each.value, each.unit), span(each.low, each.high, each.unit))
        )
        rows.append((one.predictions.model, f"{dwell.n:,}", *told))
    header = (
        "model",
        "runs",
        "mean time between changes",
        "95 % interval",
        "median",
        "95 % interval",
    )
    return (Table("Time between prediction changes", header, tuple(rows)),) if rows else ()


def _table(tables: Sequence[Predictions], found: Sequence[Runs]) -> Table:
    rows = []
    for predictions, each in zip(tables, found, strict=True):
        for video in np.unique(each.videos):
            here = each.videos == video
            seconds, ended = each.seconds[here], each.ended[here]
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
                    f"({predictions.own_answer(int(each.first[here][longest]))})",
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
