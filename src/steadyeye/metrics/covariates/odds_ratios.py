"""Which measured changes go with breaking: odds a standard deviation, alone and together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.intervals import LEVEL
from steadyeye.core.stats.logistic import Fit, inflation, logistic
from steadyeye.core.stats.multiple_testing import holm
from steadyeye.metrics.covariates.breakage import Outcomes
from steadyeye.metrics.covariates.measures import PAIR, Measure

EVENTS = 10  # broken and kept neighbours a coefficient, at least
CLUSTERS = 5  # videos or sets with a broken neighbour, at least
INFLATION = 10.0  # variance inflation above which a measure says what the others say
MISSING = 0.1  # share of neighbours without a measure above which it is not judged jointly

B_FRAME = Measure("b_frame", "B-frame")
MEASURES = (*PAIR, B_FRAME)


@dataclass(frozen=True)
class Odds:
    """An odds ratio with its 95 % interval."""

    ratio: float
    low: float
    high: float

    def text(self, inverse: bool = False) -> str:
        """`2.1 (1.6–2.9)`; `inverse`: of a standard deviation less."""
        ends = (self.ratio, self.low, self.high)
        value, low, high = (1 / self.ratio, 1 / self.high, 1 / self.low) if inverse else ends
        return f"{value:.2g} ({low:.2g}–{high:.2g})"


@dataclass(frozen=True)
class Effect:
    """How a measure goes with breaking, over n neighbours of which `broken` broke.

    `deviation`: one standard deviation of it. `gap`: mean of the broken minus that of the kept, in
    standard deviations. `alone`, `joint`: odds ratio of breaking a standard deviation more, by
    itself and with the other measures held. `p`: of `alone`, adjusted by Holm over the measures of
    the model; NaN where there is no fit, and then `note` says why.
    """

    measure: Measure
    n: int
    broken: int
    deviation: float
    gap: float
    alone: Odds | None
    joint: Odds | None
    p: float
    note: str = ""

    @property
    def rises(self) -> bool:
        """Whether more of it breaks; less does otherwise."""
        return self.alone is not None and self.alone.ratio > 1

    @property
    def stands_out(self) -> bool:
        """Whether it goes with breaking beyond chance, all measures considered."""
        return self.alone is not None and self.p < 1 - LEVEL


@dataclass(frozen=True)
class Effects:
    """The effects of all measures; `joint`: what is in the joint model, or why there is none."""

    each: tuple[Effect, ...]
    joint: str

    @property
    def strongest(self) -> Effect | None:
        """The surest of the effects that stand out."""
        found = [effect for effect in self.each if effect.stands_out]
        return min(found, key=lambda effect: effect.p) if found else None


def effects(predictions: Predictions, found: Outcomes) -> Effects:
    """The effect of every measured change on breaking.

    A measure is fitted with at least 10 broken and 10 kept neighbours, the broken ones from at
    least 5 videos (or sets); the joint model holds as many measures, in the order of `MEASURES`, as
    have 10 of each to themselves. One that the others give (variance inflation above 10) is left
    out of it, the most inflated first.
    """
    there = [measure for measure in MEASURES if _there(predictions, measure)]
    columns = [column(predictions, measure, found.rows) for measure in there]
    pairs = [_alone(m, c, found) for m, c in zip(there, columns, strict=True)]
    adjusted = holm(np.array([p for _, p in pairs]))
    alone = [replace(e, p=float(p)) for (e, _), p in zip(pairs, adjusted, strict=True)]
    fitted = [i for i, effect in enumerate(alone) if effect.alone]
    if not fitted:
        return Effects(tuple(alone), "")
    return _joint(alone, [columns[i] for i in fitted], fitted, found)


def _there(predictions: Predictions, measure: Measure) -> bool:
    return ("frame_type" if measure is B_FRAME else measure.name) in predictions.tags


def column(
    predictions: Predictions, measure: Measure, rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """(n,) a measure of some rows, NaN where it is not known."""
    if measure is B_FRAME:
        kind = predictions.tags["frame_type"][rows]
        return np.where(kind == "?", np.nan, kind == "B")
    return np.asarray(predictions.tags[measure.name][rows], dtype=np.float64)


def _alone(measure: Measure, column: NDArray[np.float64], found: Outcomes) -> tuple[Effect, float]:
    """The effect of a measure by itself and its p-value, not adjusted."""
    known = np.isfinite(column)
    values, broken, clusters = column[known], found.broken[known], found.clusters[known]
    deviation = float(values.std()) if len(values) else 0.0
    none = Effect(measure, len(values), int(broken.sum()), deviation, np.nan, None, None, np.nan)
    if min(broken.sum(), (~broken).sum()) < EVENTS:
        return replace(none, note=f"fewer than {EVENTS} broken or not broken"), np.nan
    if len(np.unique(clusters[broken])) < CLUSTERS:
        return replace(none, note=f"broken in fewer than {CLUSTERS}"), np.nan
    if deviation < 1e-9:
        return replace(none, note="the same value everywhere"), np.nan
    standard = (values - values.mean()) / deviation
    effect = replace(none, gap=float(standard[broken].mean() - standard[~broken].mean()))
    fit = logistic(standard[:, None], broken, clusters)
    if fit is None:
        return replace(
            effect, note="separates broken from not broken (nearly) without error"
        ), np.nan
    return replace(effect, alone=_odds(fit, 0)), float(fit.p[0])


def _joint(
    alone: list[Effect],
    columns: Sequence[NDArray[np.float64]],
    which: Sequence[int],
    found: Outcomes,
) -> Effects:
    kept = [i for i, c in enumerate(columns) if np.mean(~np.isfinite(c)) <= MISSING]
    events = int(min(found.broken.sum(), (~found.broken).sum()))
    # as they are listed, not as they fit: choosing by the outcome would spoil the intervals
    kept = kept[: events // EVENTS]
    if len(kept) < 2:
        return Effects(tuple(alone), "too few broken neighbours for a joint model")
    known = np.isfinite(np.stack([columns[i] for i in kept])).all(axis=0)
    values, kept = _distinct(np.column_stack([columns[i][known] for i in kept]), kept)
    deviation = np.array([alone[which[i]].deviation for i in kept])
    standard = (values - values.mean(axis=0)) / deviation
    fit = logistic(standard, found.broken[known], found.clusters[known])
    if fit is None:
        text = "no joint model: the measures together separate broken from not broken without error"
        return Effects(tuple(alone), text)
    for place, i in enumerate(kept):
        alone[which[i]] = replace(alone[which[i]], joint=_odds(fit, place))
    words = ", ".join(alone[which[i]].measure.words for i in kept)
    return Effects(tuple(alone), f"jointly {words} ({int(known.sum()):,} neighbours)")


def _distinct(
    values: NDArray[np.float64], kept: list[int]
) -> tuple[NDArray[np.float64], list[int]]:
    """The columns that the others do not give."""
    while len(kept) > 1:
        factors = inflation(values)
        if not factors.max() > INFLATION:
            break
        worst = int(factors.argmax())
        values, kept = np.delete(values, worst, axis=1), [*kept[:worst], *kept[worst + 1 :]]
    return values, kept


def _odds(fit: Fit, which: int) -> Odds:
    return Odds(*(float(np.exp(each[which])) for each in (fit.slope, fit.low, fit.high)))
