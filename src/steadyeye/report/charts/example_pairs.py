"""Broken pairs in which a measure is farthest in the direction that breaks, in pictures."""

from collections.abc import Sequence

import numpy as np

from steadyeye.core.film_frames import away, set_film
from steadyeye.core.format import percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Exhibit, Picture
from steadyeye.metrics.covariates.breakage import Effect, Outcomes, column
from steadyeye.metrics.covariates.measures import PAIR, Measure

SHOWN = 3
LINES = ("motion", "linf", "brightness_change", "contrast_change", "sharpness_change")

Judged = tuple[Predictions, Outcomes, Effect]


def pairs(judged: Sequence[Judged]) -> tuple[Exhibit, ...]:
    """Up to three anchors with the frame that broke them, the farthest first.

    `judged`: each model's table, outcomes and effect of the same measure. No two are of one video,
    or of one pm-set where there is one video; ties go to the earlier model, then row.
    """
    found = []
    for order, (predictions, of, effect) in enumerate(judged):
        values = column(predictions, effect.measure, of.rows) * (1 if effect.rises else -1)
        found += [
            (-float(values[i]), order, int(of.rows[i]), int(of.anchors[i]))
            for i in np.flatnonzero(of.broken & np.isfinite(values))
        ]
    distinct: dict[str, Exhibit] = {}
    for _, order, row, anchor in sorted(found):
        predictions, _, effect = judged[order]
        place = _place(predictions, row)
        if place not in distinct:
            distinct[place] = _exhibit(predictions, effect, anchor, row)
        if len(distinct) == SHOWN:
            break
    return tuple(distinct.values())


def _place(predictions: Predictions, row: int) -> str:
    """What no two pictures may share."""
    videos = predictions.tags.get("video", predictions.groups)
    return str(predictions.groups[row] if len(np.unique(videos)) == 1 else videos[row])


def _exhibit(predictions: Predictions, effect: Effect, anchor: int, row: int) -> Exhibit:
    offset = int(predictions.tags["offset"][row])
    value = float(column(predictions, effect.measure, np.array([row]))[0])
    measure = effect.measure
    return Exhibit(
        title=f"{measure.words}: {measure.format_value(value, _sign(measure))}",
        model=predictions.model,
        data=predictions.data,
        pictures=(
            _picture(predictions, anchor, "anchor", ()),
            _picture(predictions, row, away(offset), _list_changes(predictions, row)),
        ),
        film=set_film(predictions, anchor, row),
        labels=tuple(predictions.classes[i] for i in np.flatnonzero(predictions.truth[anchor])),
    )


def _picture(predictions: Predictions, row: int, title: str, more: tuple[str, ...]) -> Picture:
    said = f"predicts {predictions.answer(row)}, {percent(float(predictions.confidence[row]))}"
    return Picture(
        sample=str(predictions.ids[row]),
        title=title,
        lines=(said, *more),
        right=bool(predictions.right[row]),
    )


def _list_changes(predictions: Predictions, row: int) -> tuple[str, ...]:
    """The measured changes of a pair, a line each."""
    known = [m for m in PAIR if m.name in LINES and np.isfinite(predictions.tags[m.name][row])]
    return tuple(
        f"{each.words} {each.format_value(float(predictions.tags[each.name][row]), _sign(each))}"
        for each in known
    )


def _sign(measure: Measure) -> str:
    return "+" if measure.signed else ""
