"""Robustness at a distance compared with robustness over the whole set."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from steadyeye.core.format import format_share, list_some, number_of, percent
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.result_lookup import find
from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.core.types import Evaluated, Result, needs
from steadyeye.report.charts.specs import (
    WHOLE,
    chart,
    choose_drawn,
    describe_omitted,
    draw_bands,
    draw_crossed,
    fields_of,
    line_colour,
    quantity,
    shares,
)

MEASURES = ("frames exactly d away", "all frames within d")


@dataclass(frozen=True)
class _Curve:
    """The curves of one model by distance 1 … k: single frames and whole sets of right anchors.

    `broken`: right anchors with a wrong frame within k; `hidden`: those among them whose frames
    exactly k away are all right.
    """

    model: str
    accuracy: float | None
    single: tuple[Result | Interval, ...]
    whole: tuple[Result | Interval, ...]
    broken: int
    hidden: int


@needs("truth", "group", "offset")
def conditional_robustness(evaluated: Sequence[Evaluated]) -> Section | None:
    """Conditional robustness compared with pm-k of right anchors, by distance.

    None where no model has the metric. Gu et al., "Using Videos to Evaluate Image Model
    Robustness", 2019; Shankar et al., Figures 8 and 9.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_predictions
        >>> print(conditional_robustness(example_models(example_predictions(margin=0.5))).title)
        3 of 8 sets that break within ±2 are right on the frames exactly 2 away
    """
    curves = [curve for model in evaluated if (curve := _curve(model))]
    if not curves:
        return None
    parts = [
        f"{c.model} is right on {percent(c.single[-1].value)} of the frames exactly "
        f"{len(c.single)} away, and on every frame of {percent(c.whole[-1].value)} of the sets"
        for c in curves
    ]
    return Section(
        topic=Topic.WHEN,
        place=11,
        title=_title(curves),
        text=(
            f"Sets whose anchor is right: {list_some(parts)}. Testing frames at one distance only "
            "misses the mistakes on other frames of the same set.",
        ),
        figures=(_figure(curves),),
        tables=(_table(curves),),
    )


def _title(curves: Sequence[_Curve]) -> str:
    """The title: how many of the broken sets frames exactly k away would miss."""
    k = max(len(curve.single) for curve in curves)
    if len(curves) > 1:
        return f"One frame exactly {k} away, and all frames within ±{k}"
    single = curves[0]
    if not single.broken:
        return (
            f"None of the {number_of(single.whole[-1].n, 'set')} with a right anchor breaks within "
            f"±{k}"
        )
    broken = number_of(single.broken, "set that breaks", "sets that break")
    verb = "is" if single.hidden == 1 else "are"
    return f"{single.hidden:,} of {broken} within ±{k} {verb} right on the frames exactly {k} away"


def _curve(model: Evaluated) -> _Curve | None:
    result = find(model.results, "conditional_robustness")
    if result is None or result.value is None:
        return None
    sets = pm_sets(model.predictions)
    right, k = sets.breaks_at > 0, len(result.cells)
    broken = right & (sets.breaks_at <= k)
    far = (sets.set_of >= 0) & (abs(sets.offsets) == k)
    fails_far = np.zeros(len(sets), dtype=np.bool_)
    fails_far[sets.set_of[far & ~model.predictions.right]] = True
    whole = tuple(
        proportion(sets.breaks_at[right] > d, sets.videos[right]) for d in range(1, k + 1)
    )
    counts = int(broken.sum()), int((broken & ~fails_far).sum())
    return _Curve(model.predictions.model, float(right.mean()), result.cells, whole, *counts)


def _figure(curves: Sequence[_Curve]) -> Figure:
    accuracies = {curve.model: curve.accuracy for curve in curves}
    models = choose_drawn(accuracies)
    values = [
        {"model": c.model, "d": d, "measure": name, **fields_of(f)}
        for c in curves
        if c.model in models
        for name, cells in zip(MEASURES, (c.single, c.whole), strict=True)
        for d, f in enumerate(cells, start=1)
    ]
    x = quantity("d", "distance d from the anchor (frames)", axis=WHOLE)
    title = "share right, if the anchor is right"
    hue, detail = line_colour(models, "model"), {"field": "measure"}
    low = shares("low", title)
    band = draw_bands(2 * len(models), x=x, y=low, color=hue, detail=detail)
    crossed = draw_crossed(models, "measure", MEASURES, {"x": x, "y": shares("value", title)})
    looks = ("circles", "triangles") if len(models) > 1 else ("solid", "dashed")
    return Figure(
        name="conditional_robustness",
        caption="Sets with a right anchor: share of frames exactly d away that are right "
        f"({looks[0]}), and share of sets right on all frames within d ({looks[1]}), with 95 % "
        "intervals." + describe_omitted(accuracies),
        alt=f"Both shares by distance for {', '.join(models)}; the table has the values.",
        spec=chart([band, *crossed], values=values),
    )


def _table(curves: Sequence[_Curve]) -> Table:
    body = tuple(
        (
            f"{d}",
            c.model,
            f"{single.n:,}",
            format_share(single),
            f"{whole.n:,}",
            format_share(whole),
        )
        for c in curves
        for d, (single, whole) in enumerate(zip(c.single, c.whole, strict=True), start=1)
    )
    header = ("d", "model", "frames", f"right, {MEASURES[0]}", "anchors", f"right, {MEASURES[1]}")
    return Table("Share right if the anchor is right, with 95 % intervals", header, body)
