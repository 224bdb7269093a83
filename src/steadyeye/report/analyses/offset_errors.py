"""The error rate by offset from the anchor."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.claims import Claim, above, first, higher
from steadyeye.core.format import format_share, interval, number_of, percent
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.result_lookup import select_same_samples
from steadyeye.core.stats.intervals import CellTrials, Interval, proportions
from steadyeye.core.types import Evaluated, needs
from steadyeye.report.charts.specs import (
    DASHES,
    GREY,
    PALETTE,
    SIGNED,
    chart,
    choose_drawn,
    describe_omitted,
    draw_bands,
    fields_of,
    layer,
    lines,
    quantity,
)
from steadyeye.report.subsets import distance

LEAST = 0.01  # share of wrong frames next to the anchor that is worth a title, at least
UNREVIEWED = "without review"


@dataclass(frozen=True, eq=False)
class _Errors:
    """Per frame, (n,): number of models wrong on it and right on its anchor, and of all models.

    `seen` is 0 for anchors and for frames in no set or beyond k.
    """

    wrong: NDArray[np.int64]
    counted: NDArray[np.int64]
    offsets: NDArray[np.int64]
    videos: NDArray[np.intp]


@dataclass(frozen=True)
class _Line:
    """The share of errors by offset −k … k, None at 0; `accuracy` that of the model's anchors."""

    name: str
    accuracy: float | None
    shares: dict[int, Interval]
    near: Interval
    far: Interval


@needs("truth", "group", "offset")
def offset_errors(evaluated: Sequence[Evaluated]) -> Section | None:
    """The share of wrong frames at each offset from right anchors.

    One line per model and one over all models, in which each frame counts once per model; with a
    review another one over the frames that it did not accept. None if no set has a neighbour.
    Shankar et al., Figure 5.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_predictions
        >>> print(offset_errors(example_models(example_predictions(margin=0.5))).title)
        25.0 % of the neighbours one frame away are wrong although their anchor is right
    """
    k = min(distance(model, pm_sets(model.predictions)) for model in evaluated)
    lines = [_line(model.predictions.model, [model.predictions], k) for model in evaluated]
    if k == 0 or not any(share.n for line in lines for share in line.shares.values()):
        return None
    together = [model.predictions for model in select_same_samples(evaluated)]
    everyone = [_line("all models", together, k)] if len(together) > 1 else []
    before = [table.candidates for table in together if table.candidates is not None]
    if len(before) == len(together):
        name = f"all models, {UNREVIEWED}" if everyone else f"{lines[0].name}, {UNREVIEWED}"
        everyone.append(_line(name, before, k))
    whole = everyone[0] if len(together) > 1 else lines[0]
    claim = first(_claims(whole, k))
    return Section(
        topic=Topic.WHEN,
        place=12,
        title=claim.text if claim else _question(whole, k),
        claim=claim,
        text=(
            f"{format_share(whole.near)} of the neighbours one frame away are wrong although their "
            f"anchor is right, and {format_share(whole.far)} of those {k} frames away"
            + (f", over {number_of(len(together), 'model')}. " if len(together) > 1 else ". ")
            + "A wrong next frame is unlikely to come from a change of the scene.",
        ),
        figures=(_figure(lines, everyone),),
        tables=(_table([*everyone, *lines]),),
    )


def _claims(whole: _Line, k: int) -> list[Claim]:
    """The claims of the title about the frames one away and those farthest away."""
    near, far = whole.near, whole.far
    return [
        higher(
            f"Errors increase with distance: {percent(near.value)} of the neighbours one frame "
            f"away are wrong although their anchor is right, and {percent(far.value)} of those "
            f"{k} frames away",
            far,
            near,
        ),
        above(
            f"{percent(near.value)} of the neighbours one frame away are wrong although their "
            "anchor is right",
            near,
            LEAST,
        ),
    ]


def _question(whole: _Line, k: int) -> str:
    n = whole.near.n + (whole.far.n if k > 1 else 0)
    if n and not whole.near.value and not whole.far.value:
        where = f"one or {k} frames away" if k > 1 else "one frame away"
        return f"None of {number_of(n, 'neighbour')} {where} is wrong while its anchor is right"
    return "How does the error rate change with the distance from the anchor?"


def _errors(predictions: Predictions, k: int) -> _Errors:
    sets = pm_sets(predictions)
    inside = (sets.set_of >= 0) & (sets.offsets != 0) & (abs(sets.offsets) <= k)
    right = np.append(sets.breaks_at > 0, False)[sets.set_of]
    return _Errors(
        (inside & right & ~predictions.right).astype(np.int64),
        inside.astype(np.int64),
        sets.offsets,
        predictions.clusters[1],
    )


def _line(name: str, tables: Sequence[Predictions], k: int) -> _Line:
    errors = [_errors(item, k) for item in tables]
    wrong = reduce(np.add, [item.wrong for item in errors])
    counted = reduce(np.add, [item.counted for item in errors])
    rows = np.flatnonzero(counted)
    offsets, videos = errors[0].offsets[rows], errors[0].videos[rows]
    cells = proportions(CellTrials(wrong[rows], counted[rows], videos, offsets + k), 2 * k + 1)
    away = proportions(CellTrials(wrong[rows], counted[rows], videos, abs(offsets)), k + 1)
    right = [pm_sets(item).breaks_at > 0 for item in tables]
    accuracy = float(np.concatenate(right).mean()) if any(map(len, right)) else None
    shares = {offset: cells[offset + k] for offset in range(-k, k + 1) if offset}
    return _Line(name, accuracy, shares, away[min(1, k)], away[k])


def _figure(lines: Sequence[_Line], everyone: Sequence[_Line]) -> Figure:
    accuracies = {line.name: line.accuracy for line in lines}
    models = choose_drawn(accuracies)
    drawn_lines = [*(line for line in lines if line.name in models), *everyone]
    channels = _channels(models, everyone)
    y = {
        "type": "quantitative",
        "title": "wrong although the anchor is right",
        "axis": {"format": "%"},
        "scale": {"zero": True},
    }
    dash = channels.pop("strokeDash")
    band = draw_bands(len(drawn_lines), **channels, y={**y, "field": "low"})
    place = {**channels, "y": {**y, "field": "value"}, "strokeDash": dash}
    line = layer("line", place, point=True, tooltip=True)
    return Figure(
        name="offset_errors",
        caption="Share of the frames at each offset that are wrong although their anchor is "
        "right, with 95 % intervals." + describe_omitted(accuracies),
        alt="Share of errors by offset for "
        f"{', '.join(curve.name for curve in drawn_lines)}; the table has the values.",
        spec=chart([band, line], values=_values(drawn_lines)),
    )


def _values(lines: Sequence[_Line]) -> list[dict[str, Any]]:
    return [
        {
            "line": line.name,
            # the line breaks at the anchor, which is no neighbour of itself
            "side": "before" if offset < 0 else "after",
            "offset": offset,
            **fields_of(share),
            "frames": share.n,
        }
        for line in lines
        for offset, share in line.shares.items()
        if share.value is not None
    ]


def _channels(models: list[str], everyone: Sequence[_Line]) -> dict[str, Any]:
    names = [*models, *(line.name for line in everyone)]
    colours = [*PALETTE[: len(models)], *(GREY for _ in everyone)]
    # of all models together: grey, solid, and dotted without review
    dashes = [*DASHES[: len(models)]]
    dashes += [(1, 4) if line.name.endswith(UNREVIEWED) else (1, 0) for line in everyone]
    return {
        "x": quantity("offset", "offset from the anchor (frames)", axis=SIGNED),
        **lines(names, "line", colours, dashes),
        "detail": {"field": "side"},
    }


def _table(lines: Sequence[_Line]) -> Table:
    offsets = list(lines[0].shares)
    body = tuple(
        (f"{offset:+d}".replace("-", "−"), line.name, f"{share.n:,}", percent(share.value), ends)
        for offset in offsets
        for line in lines
        for share in (line.shares[offset],)
        for ends in (interval(share.low, share.high),)
    )
    header = ("offset", "model", "frames × models", "wrong", "95 % interval")
    return Table("Frames that are wrong although their anchor is right, by offset", header, body)
