"""What a model says along each video."""

from collections.abc import Sequence

import numpy as np

from steadyeye.charts.style import clock, duration, percent
from steadyeye.core.sections import Section, Table
from steadyeye.core.table import Predictions
from steadyeye.core.types import Evaluated, needs
from steadyeye.sequences.bands import bands
from steadyeye.sequences.runs import Runs, between, runs

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
        _sentence(p, each, span)
        for p, each, span in zip(tables, found, spans, strict=True)
        if len(each)
    ]
    more = f" Of {len(videos)} videos the {VIDEOS} least steady are drawn."
    return Section(
        place=12,
        title=_title(spans),
        text=(
            " ".join(told),
            "Each row is a model; a new colour is a new answer, thin lines are scene cuts, and the "
            "area below is the confidence, from 0 to 100 %. A steady model shows long bands within "
            "a scene." + (more if len(videos) > VIDEOS else ""),
        ),
        figures=tuple(bands(tables, video, i) for i, video in enumerate(videos[:VIDEOS])),
        tables=(_table(tables, found),),
    )


def _title(spans: Sequence[float]) -> str:
    finite = [span for span in spans if np.isfinite(span)]
    if not finite:
        return "The answer never changes"
    low, high = duration(min(finite)), duration(max(finite))
    return f"A new answer every {low}" + ("" if low == high else f" to {high}")


def _sentence(predictions: Predictions, found: Runs, span: float) -> str:
    total = float(found.seconds.sum())
    if not found.ended.any():
        return f"{predictions.model} never changes its answer within a scene, in {duration(total)}."
    changes = int(found.ended.sum())
    said = f"{predictions.model} changes its answer every {duration(span)}, {changes:,} times"
    return f"{said} in {duration(total)}{_where(predictions, found)}."


def _where(predictions: Predictions, found: Runs) -> str:
    """Where most changes are, if they are close together: in one video, or in one part of it."""
    videos, times = np.unique(found.videos[found.ended], return_counts=True)
    if len(np.unique(found.videos)) > 1:
        most = int(times.argmax())
        share = times[most] / times.sum()
        return f"; {percent(share, 0)} of the changes are in {videos[most]}" if share > 0.5 else ""
    ends = np.asarray(predictions.tags["seconds"])[found.last[found.ended]]
    needed = int(np.ceil(MOST * len(ends)))
    lengths = ends[needed - 1 :] - ends[: len(ends) - needed + 1]
    best = int(lengths.argmin())
    if needed < 3 or lengths[best] > found.seconds.sum() / 2:
        return ""
    return (
        f"; {needed} of these changes fall between {clock(ends[best])} and "
        f"{clock(ends[best + needed - 1])}"
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


def _table(tables: Sequence[Predictions], found: Sequence[Runs]) -> Table:
    rows = []
    for predictions, each in zip(tables, found, strict=True):
        for video in np.unique(each.videos):
            here = each.videos == video
            seconds, ended = each.seconds[here], each.ended[here]
            span = between(seconds, ended)
            longest = int(seconds.argmax())
            rows.append(
                (
                    str(video),
                    predictions.model,
                    duration(float(seconds.sum())),
                    f"{int(ended.sum()):,}",
                    duration(span) if np.isfinite(span) else "—",
                    f"{duration(float(seconds[longest]))} "
                    f"({predictions.answer(int(each.first[here][longest]))})",
                )
            )
    header = ("video", "model", "length", "changes", "time from change to change", "longest answer")
    return Table("Changes by video", header, tuple(sorted(rows)))
