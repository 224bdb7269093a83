"""Accuracy on one hard frame of each set, the same for all models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.claims import Claim, above, below, first
from steadyeye.core.format import format_share, percent
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.report_types import Figure, Section, Table, Topic
from steadyeye.core.result_lookup import select_same_samples
from steadyeye.core.stats import bootstrap
from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.core.stats.paired import difference, prepare_outcomes
from steadyeye.core.types import Evaluated, needs
from steadyeye.report.charts.specs import BELOW, PALETTE, SCHEMA, dot, fields_of, layer, shares
from steadyeye.report.subsets import distance

MEASURES = (
    "anchors",
    "worst for the other models",
    "worst for all models",
    "worst for this model (pm-k)",
)
SHAPES = ("circle", "diamond", "square", "triangle-down")


@dataclass(frozen=True, eq=False)
class _Neighbours:
    """The neighbours that all models predicted, set by set, the preferred one of a tie first.

    `rows`: (n,) of the table. `starts`: (m,) where each set begins. `anchors`, `videos`: (m,).
    `wrong`: (models, n) bool. `anchor_right`, `survives`: (models, m) bool.
    """

    rows: NDArray[np.intp]
    starts: NDArray[np.intp]
    videos: NDArray[np.str_]
    wrong: NDArray[np.bool_]
    anchor_right: NDArray[np.bool_]
    survives: NDArray[np.bool_]


@needs("truth", "group", "offset")
def static_transfer(evaluated: Sequence[Evaluated]) -> Section | None:
    """All models on a fixed set: for each anchor, the neighbour that most models get wrong.

    Ties go to the smallest |offset|, then to the earlier frame. Also shown: the set chosen by the
    other models only, because a model that takes part in the choice is judged by its own choice;
    the accuracy on the same anchors; and pm-k, for which each model has its own worst frame.
    Anchors without a neighbour are left out. None for fewer than two models on the same samples.
    Shankar et al., Figure 6.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_predictions
        >>> tables = example_predictions(margin=0.5), example_predictions(margin=0.8)
        >>> models = example_models(*tables)
        >>> print(static_transfer(models).title)
        Do models break on the same frames?
    """
    models = select_same_samples(evaluated)
    if len(models) < 2:
        return None
    neighbours = _neighbours(models)
    if not len(neighbours.starts):
        return None
    names = [model.predictions.model for model in models]
    scores = dict(zip(names, _scores(neighbours), strict=True))
    anchors, others, own = (
        float(np.mean([score[i].value or 0.0 for score in scores.values()])) for i in (0, 1, 3)
    )
    claim = _claim(neighbours)
    return Section(
        topic=Topic.COMPARED,
        place=34,
        title=claim.text if claim else "Do models break on the same frames?",
        claim=claim,
        text=(_describe(anchors, others, own, len(names)),),
        figures=(_figure(scores),),
        tables=(_table(scores),),
    )


def _describe(anchors: float, others: float, own: float, models: int) -> str:
    """The shares in words: the mean over the models, in 0…1."""
    rest = min(others, anchors)
    return (
        "For each anchor, take the neighbour that most of the other models get wrong. On average "
        f"over {models} models, a model is right on {percent(others)} of these neighbours, on "
        f"{percent(anchors)} of the anchors, and on every neighbour of {percent(own)} of the "
        "anchors. "
        + (
            f"The models share the drop from {percent(anchors)} to {percent(others)}."
            if others < anchors
            else "Accuracy does not drop on these neighbours."
        )
        + (
            f" The drop from {percent(rest)} to {percent(own)} is on frames specific to each "
            "model, which a fixed test set of hard frames misses."
            if own < rest
            else ""
        )
    )


def _neighbours(models: Sequence[Evaluated]) -> _Neighbours:
    """The neighbours that every model predicted: a frame without a prediction is left out."""
    tables = [model.predictions for model in models]
    valid = np.logical_and.reduce([table.valid for table in tables])
    sets = pm_sets(tables[0], valid)
    k = min(distance(model, sets) for model in models)
    near = (sets.set_of >= 0) & (sets.offsets != 0) & (abs(sets.offsets) <= k)
    rows = np.flatnonzero(near)
    order = np.lexsort((sets.offsets[rows], abs(sets.offsets[rows]), sets.set_of[rows]))
    rows = rows[order]
    numbers, starts = np.unique(sets.set_of[rows], return_index=True)
    breaks = np.stack([pm_sets(table, valid).breaks_at for table in tables])[:, numbers]
    return _Neighbours(
        rows,
        starts,
        sets.videos[numbers],
        ~np.stack([table.right[rows] for table in tables]),
        breaks > 0,
        breaks > k,
    )


def hardest(counts: NDArray[np.integer], starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """(m,) the place of each set's largest count, the first of equal ones.

    `counts`: (n,) how many models are wrong; `starts`: (m,) where each set begins.
    """
    n = len(counts)
    # the earlier of equal counts has the larger key
    keys = counts.astype(np.int64) * n + (n - 1 - np.arange(n))
    return np.asarray(n - 1 - np.maximum.reduceat(keys, starts) % n, dtype=np.intp)


def _scores(neighbours: _Neighbours) -> list[tuple[Interval, ...]]:
    """The four shares of each model, as in `MEASURES`."""
    counts = neighbours.wrong.sum(axis=0)
    fixed = hardest(counts, neighbours.starts)
    scores = []
    for own, anchor, survives in zip(
        neighbours.wrong, neighbours.anchor_right, neighbours.survives, strict=True
    ):
        others = hardest(counts - own, neighbours.starts)
        right = (anchor, ~own[others], ~own[fixed], survives)
        scores.append(tuple(proportion(hit, neighbours.videos) for hit in right))
    return scores


def _claim(neighbours: _Neighbours) -> Claim | None:
    """The claim whether most of the drop is on frames that break other models too."""
    counts = neighbours.wrong.sum(axis=0)
    on_others = [~own[hardest(counts - own, neighbours.starts)] for own in neighbours.wrong]
    # an anchor that is wrong cannot break: it takes no part on either side
    anchor = neighbours.anchor_right.astype(np.float64)
    both = anchor * np.stack(on_others)
    shared, alone = (anchor - both).mean(axis=0), (both - neighbours.survives).mean(axis=0)
    gap = difference(
        *(
            prepare_outcomes(bootstrap.mean_statistic(part, neighbours.videos, (-1, 1)))
            for part in (shared, alone)
        )
    )
    if gap is None:
        return None
    words = "Most of the drop is on frames"
    return first(
        [
            above(f"{words} that break other models too", gap, p=gap.p),
            below(f"{words} that break one model only", gap, p=gap.p),
        ]
    )


def _figure(scores: dict[str, tuple[Interval, ...]]) -> Figure:
    names = sorted(scores, key=lambda name: -(scores[name][0].value or 0.0))
    values: list[dict[str, Any]] = [
        {"model": name, "frames": measure, **fields_of(share)}
        for name in names
        for measure, share in zip(MEASURES, scores[name], strict=True)
    ]
    return Figure(
        name="static_transfer",
        caption="Share right on the anchors, on the neighbour that most models get wrong, and "
        "on every neighbour, with 95 % intervals.",
        alt=f"Four shares each for {', '.join(names)}; the table has the values.",
        spec={
            "$schema": SCHEMA,
            "width": "container",
            "height": (9 * len(MEASURES) + 10) * len(names),
            "data": {"values": values},
            "layer": _layers(names),
        },
    )


def _layers(names: list[str]) -> list[dict[str, Any]]:
    domain = list(MEASURES)
    measure = {"field": "frames", "type": "nominal", "legend": BELOW}
    axis = {"labelLimit": 150}
    channels = {
        "y": {"field": "model", "type": "nominal", "title": None, "sort": names, "axis": axis},
        "yOffset": {"field": "frames", "type": "nominal", "sort": domain},
        "color": {**measure, "scale": {"domain": domain, "range": list(PALETTE[:4])}},
    }
    x = {"x": shares("low", "share right"), "x2": {"field": "high"}}
    shape = {**measure, "scale": {"domain": domain, "range": list(SHAPES)}}
    value = {"x": shares("value", "share right"), "shape": shape}
    return [
        layer("rule", {**channels, **x}, opacity=0.6),
        dot({**channels, **value}, tooltip=True),
    ]


def _table(scores: dict[str, tuple[Interval, ...]]) -> Table:
    body = tuple(
        (
            name,
            f"{pair[0].n:,}",
            *(format_share(share) for share in pair),
        )
        for name, pair in scores.items()
    )
    header = ("model", "n", *MEASURES)
    return Table("Share right, with 95 % intervals", header, body)
