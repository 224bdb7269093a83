"""The user's models compared with the line through published models."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from steadyeye.core.claims import Claim, above, below, first
from steadyeye.core.format import format_share, number_of, percent, points
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Section, Table, Topic
from steadyeye.core.special import ndtr, ndtri
from steadyeye.core.stats.intervals import LEVEL, proportion
from steadyeye.core.stats.multiple_testing import holm
from steadyeye.core.types import Evaluated, needs
from steadyeye.metrics.testbed.published_models import (
    SOURCE,
    K,
    PublishedModels,
    choose_published_set,
    find_released_set,
    read_published,
    why_not,
)
from steadyeye.metrics.testbed.testbed_fit import (
    PLAIN,
    PROBIT,
    Effective,
    Line,
    coefficients,
    effective_robustness,
    fit,
    strays,
)
from steadyeye.report.comparison.scatter import Cross, figure

SHOWN = 5
VERDICTS = {-1: "less steady", 0: "no clear difference", 1: "steadier", None: "other data"}


@dataclass(frozen=True)
class _Row:
    """A model of the user: its two shares, and its distance from either line.

    `side`: −1, 0 or 1; None if the line is of other data, so that there is no verdict.
    """

    cross: Cross
    probit: Effective
    plain: Effective
    side: int | None


@needs("truth", "group", "offset")
def published_models(evaluated: Sequence[Evaluated]) -> Section | None:
    """Accuracy against pm-10 with 335 published models, their line, and effective robustness.

    The published models are those of the same set for ImageNet-Vid-Robust and YTBB-Robust, else of
    ImageNet-Vid-Robust; title and table say so, and there are no verdicts then. Verdicts on the
    same set are Holm's over the user's models. None for data without anchors, for data that does
    not reach ±10, and for a part or a variant of a released set; `pm_curve` says why then. Taori et
    al., NeurIPS 2020; Shankar et al., Figure 1.
    """
    every = [pm_sets(model.predictions) for model in evaluated]
    if not any(map(len, every)):
        return None
    for model in evaluated:
        if why_not(model.predictions):
            return None
    data = evaluated[0].predictions
    models = read_published(choose_published_set(data) or "")
    lines = [fit(models.original, models.perturbed, s, models.anchors) for s in (PROBIT, PLAIN)]
    filled = [model for model, sets in zip(evaluated, every, strict=True) if len(sets)]
    rows = _rows(filled, lines, judged=find_released_set(data) is not None)
    crosses = [row.cross for row in rows]
    return Section(
        topic=Topic.COMPARED,
        place=30,
        title=_title(rows, models),
        claim=_claim(rows, models),
        text=(_finding(rows), _caveat(rows, models, data)),
        method=(_meaning(models, lines[0]),),
        figures=tuple(figure(models, line, crosses, SOURCE) for line in lines),
        tables=(_table(rows, models), _lines(models, lines), _furthest(models, lines[0])),
    )


def _rows(evaluated: Sequence[Evaluated], lines: Sequence[Line], judged: bool) -> list[_Row]:
    rows = [_row(model, lines) for model in evaluated]
    if not judged:
        return rows
    adjusted = holm(np.array([row.probit.p for row in rows]))
    return [
        replace(row, side=int(np.sign(row.probit.value or 0)) if p <= 1 - LEVEL else 0)
        for row, p in zip(rows, adjusted, strict=True)
    ]


def _row(model: Evaluated, lines: Sequence[Line]) -> _Row:
    sets = pm_sets(model.predictions)
    right, steady = sets.breaks_at > 0, sets.breaks_at > K
    cross = Cross(
        model.predictions.model,
        proportion(right, sets.videos),
        proportion(steady, sets.videos),
    )
    probit, plain = (effective_robustness(right, steady, sets.videos, line) for line in lines)
    return _Row(cross, probit, plain, None)


def _title(rows: Sequence[_Row], models: PublishedModels) -> str:
    above, below = ([row.cross.model for row in rows if row.side == side] for side in (1, -1))
    others = "published models of the same accuracy"
    if rows[0].side is None:
        return f"Compared with published models on {models.title}, which is other data"
    if above and below:
        return f"Steadier or less steady than {others}, model by model"
    if not above and not below:
        return f"Steadier than {others}? No clear difference"
    off = above or below
    who = off[0] if len(off) == 1 else f"{len(off)} of {number_of(len(rows), 'model')}"
    return f"{who}: {'steadier' if above else 'less steady'} than {others}"


def _claim(rows: Sequence[_Row], models: PublishedModels) -> Claim | None:
    """The claim of the title: that a model is off the line; the first of several."""
    text, judged = _title(rows, models), [row for row in rows if row.side]
    return first([(above if row.side == 1 else below)(text, row.probit) for row in judged])


def _finding(rows: Sequence[_Row]) -> str:
    # those off the line first, then the furthest from it
    order = sorted(rows, key=lambda row: (not row.side, -abs(row.probit.value or 0)))
    more = f"; {len(rows) - SHOWN} more in the table" if len(rows) > SHOWN else ""
    parts = [
        f"{row.cross.model} {percent(row.probit.perturbed)}, expected "
        f"{percent(row.probit.expected)}: {_points(row.probit)} percentage points"
        + ("" if row.side is None else f", {VERDICTS[row.side]}")
        for row in order[:SHOWN]
    ]
    text = f"pm-{K} and the value expected from the accuracy: {'; '.join(parts)}{more}."
    if len(rows) > 1 and rows[0].side is not None:
        text += " The verdicts are adjusted for the number of models; the intervals are not."
    return text


def _meaning(models: PublishedModels, line: Line) -> str:
    return (
        f"The expected pm-{K} is the line through {len(models)} published models on "
        f"{models.title}; accuracy alone explains {percent(line.r2)} of the variance between "
        f"them (r², probit space). Effective robustness is pm-{K} minus that expected value."
    )


def _caveat(rows: Sequence[_Row], models: PublishedModels, data: Predictions) -> str:
    if find_released_set(data):
        text = (
            "Your models were measured on the same set. Models make similar mistakes on the "
            "same anchors; the published table has no data on that, so the line's error is "
            "treated as independent, which makes the intervals too wide."
        )
    else:
        text = (
            f"{models.title} has other videos, labels and frame rates than your data, so the "
            "line need not apply to them. Differences between your models are more reliable "
            "than the distance of all of them from the line."
        )
    inside = [row.cross.original.value or 0 for row in rows]
    if max(inside) > models.original.max() or min(inside) < models.original.min():
        text += (
            " No published model has so low or high an accuracy; the line is extrapolated there."
        )
    return text


def _table(rows: Sequence[_Row], models: PublishedModels) -> Table:
    header = (
        "model",
        "effective robustness (pp)",
        "compared with the line",
        "accuracy",
        f"pm-{K}",
        f"expected pm-{K}",
        "distance from the linear-space line (pp)",
        "anchors",
    )
    body = tuple(
        (
            row.cross.model,
            _points(row.probit),
            VERDICTS[row.side],
            *(format_share(share) for share in (row.cross.original, row.cross.perturbed)),
            percent(row.probit.expected),
            _points(row.plain),
            f"{row.probit.n:,}, {row.probit.method}",
        )
        for row in rows
    )
    how = "95 % level, adjusted by Holm for the number of models"
    if rows[0].side is None:
        how = f"the line is from {models.title}, other data: no verdicts"
    return Table(f"Your models compared with the line ({how})", header, body)


def _lines(models: PublishedModels, lines: Sequence[Line]) -> Table:
    header = ("line", "slope", "intercept", "r²", "models above", "models below", "models")
    body = []
    for line in lines:
        intercept, slope = coefficients(line)
        distance, error = strays(models.original, models.perturbed, models.anchors, line)
        sure = holm(2 * ndtr(-abs(distance / error))) <= 1 - LEVEL
        body.append(
            (
                f"{line.space.name} space",
                _coefficient(line.slope, slope),
                _coefficient(line.intercept, intercept),
                f"{line.r2:.3f}",
                f"{np.sum(sure & (distance > 0))}",
                f"{np.sum(sure & (distance < 0))}",
                f"{line.n}",
            )
        )
    more = "and the number of published models clearly off them (Holm)"
    return Table(f"Lines fitted to {models.title}, {more}", header, tuple(body))


def _furthest(models: PublishedModels, line: Line) -> Table:
    distance, error = strays(models.original, models.perturbed, models.anchors, line)
    order = np.argsort(-distance, kind="stable")
    margin = ndtri((1 + LEVEL) / 2) * error
    body = tuple(
        (
            models.models[i],
            percent(models.original[i]),
            percent(models.perturbed[i]),
            f"{points(distance[i])} "
            f"({points(distance[i] - margin[i])} to {points(distance[i] + margin[i])})",
        )
        for i in (*order[:SHOWN], *order[-SHOWN:])
    )
    header = ("published model", "accuracy", f"pm-{K}", "effective robustness (pp)")
    caption = f"Published models farthest above and below the line ({models.title})"
    return Table(caption, header, body)


def _coefficient(value: float, ends: tuple[float, float]) -> str:
    return f"{value:.3f} ({ends[0]:.3f} to {ends[1]:.3f})".replace("-", "−")


def _points(effect: Effective) -> str:
    return f"{points(effect.value)} ({points(effect.low)} to {points(effect.high)})"
