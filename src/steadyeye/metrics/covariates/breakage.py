"""Which neighbours of right anchors broke, and which measured changes go with it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.bootstrap import ends
from steadyeye.core.stats.intervals import LEVEL, REPLICATES
from steadyeye.core.stats.logistic import Fit, inflation, logistic
from steadyeye.core.stats.multiple_testing import holm
from steadyeye.metrics.covariates.measures import PAIR, Measure

VIDEOS = 10  # fewer videos than this say too little of how videos differ
STEPS = 256  # an ℓ∞ distance of 8-bit pixels is one of 0/255 … 255/255
EVENTS = 10  # broken and kept neighbours a coefficient, at least
CLUSTERS = 5  # videos or sets with a broken neighbour, at least
INFLATION = 10.0  # variance inflation above which a measure says what the others say
MISSING = 0.1  # share of neighbours without a measure above which it is not judged jointly
B_FRAME = Measure("b_frame", "B-frame")
MEASURES = (*PAIR, B_FRAME)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The n labelled neighbours of right anchors.

    `rows`: (n,) rows of the table; `anchors`: (n,) those of their anchors. `broken`: (n,) bool,
    True: wrong. `clusters`: (n,) the video of each, or its pm-set with fewer than ten videos;
    `within` then says that the numbers hold for these videos only.
    """

    rows: NDArray[np.intp]
    anchors: NDArray[np.intp]
    broken: NDArray[np.bool_]
    clusters: NDArray[np.str_]
    within: str

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def breakage_text(self) -> str:
        """How many of them broke, in words."""
        return (
            f"{int(self.broken.sum()):,} of {number_of(len(self), 'neighbour')} of right anchors "
            "are wrong"
        )

    @property
    def unit(self) -> str:
        """The unit of the intervals."""
        return "sets" if self.within else "videos"

    @property
    def over(self) -> str:
        """The units of the intervals, with their number."""
        return f"{len(np.unique(self.clusters)):,} {self.unit}"


def outcomes(predictions: Predictions) -> Outcomes:
    """Every predicted and labelled neighbour whose anchor is right: broken, or kept."""
    sets = pm_sets(predictions)
    anchor = sets.anchor_of
    judged = (anchor >= 0) & (sets.offsets != 0) & predictions.has_label
    rows = np.flatnonzero(judged & predictions.right[np.maximum(anchor, 0)])
    clusters, within = clusters_of(predictions, rows)
    return Outcomes(rows, anchor[rows], ~predictions.right[rows], clusters, within)


def clusters_of(predictions: Predictions, rows: NDArray[np.intp]) -> tuple[NDArray[np.str_], str]:
    """(n,) the video of each row, or its pm-set with fewer than ten videos.

    And, in the second case, words on the number of videos within which the result holds.
    """
    videos = predictions.videos[rows]
    several = len(np.unique(videos))
    if several >= VIDEOS:
        return videos, ""
    return np.asarray(predictions.groups[rows], dtype=np.str_), _within(several)


def _within(videos: int) -> str:
    return "within this one video only" if videos == 1 else f"within these {videos} videos only"


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distances of n pairs, n > 0, multiples of 1/255.

    `within`: (256,) the share of pairs within i/255. `replicates`: (2000, 256) the same of pairs
    in resamples of whole clusters, or (0, 256) where there is one cluster alone.
    """

    n: int
    within: NDArray[np.float64]
    replicates: NDArray[np.float64]

    def quantile(self, share: float) -> tuple[float, float | None, float | None]:
        """The smallest distance within which `share` of the pairs lie, and its 95 % interval."""
        value = float(_first(self.within[None], share)[0])
        if not len(self.replicates):
            return value, None, None
        return (value, *ends(_first(self.replicates, share)))


def distribution(distances: NDArray[np.floating], clusters: NDArray[np.str_]) -> Distribution:
    """The distribution of (n,) distances in 0…1, n > 0; `clusters`: (n,) what is resampled."""
    steps = np.rint(np.asarray(distances) * 255).astype(np.int64)
    names, cluster = np.unique(clusters, return_inverse=True)
    counts = np.zeros((len(names), STEPS))
    np.add.at(counts, (cluster, steps), 1.0)
    counts = counts.cumsum(axis=1)
    total = counts.sum(axis=0)
    replicates = np.zeros((0, STEPS))
    if len(names) > 1:
        even = np.full(len(names), 1 / len(names))
        draws = np.random.default_rng(0).multinomial(len(names), even, size=REPLICATES)
        resampled = draws @ counts
        replicates = resampled / resampled[:, -1:]
    return Distribution(len(steps), total / total[-1], replicates)


def _first(within: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """(m,) the first distance at which each row reaches a share."""
    return np.asarray((within >= share - 1e-12).argmax(axis=1) / 255, dtype=np.float64)


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
    """The relation of a measure to breaking, over n neighbours of which `broken` broke.

    `deviation`: one standard deviation of it. `gap`: mean of the broken minus that of the kept, in
    standard deviations. `alone`, `joint`: odds ratio of breaking a standard deviation more, by
    itself and with the other measures held. `p`: of `alone`, adjusted by Holm over the measures of
    the model; NaN without a fit, for which `note` gives the reason.
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
    """The effects of all measures; `joint`: the joint model's measures, or why there is none."""

    measures: tuple[Effect, ...]
    joint: str

    @property
    def strongest(self) -> Effect | None:
        """The surest of the effects that stand out."""
        surest = [effect for effect in self.measures if effect.stands_out]
        return min(surest, key=lambda effect: effect.p) if surest else None


def effects(predictions: Predictions, neighbours: Outcomes) -> Effects:
    """The effect of every measured change on breaking.

    A measure is fitted with at least 10 broken and 10 kept neighbours, the broken ones from at
    least 5 videos (or sets); the joint model holds as many measures, in the order of `MEASURES`, as
    have 10 of each to themselves among the neighbours of which all are known. One that the others
    give (variance inflation above 10) is left out of it, the most inflated first.
    """
    measures = [measure for measure in MEASURES if _is_measured(predictions, measure)]
    columns = [column(predictions, measure, neighbours.rows) for measure in measures]
    return fit_effects(measures, columns, neighbours)


def fit_effects(
    measures: Sequence[Measure], columns: Sequence[NDArray[np.float64]], neighbours: Outcomes
) -> Effects:
    """The effects of measures with their values, (n,) each and NaN where not known, on breaking."""
    pairs = [_alone(m, c, neighbours) for m, c in zip(measures, columns, strict=True)]
    adjusted = holm(np.array([p for _, p in pairs]))
    alone = [replace(e, p=float(p)) for (e, _), p in zip(pairs, adjusted, strict=True)]
    fitted = [i for i, effect in enumerate(alone) if effect.alone]
    if not fitted:
        return Effects(tuple(alone), "")
    return _joint(alone, [columns[i] for i in fitted], fitted, neighbours)


def _is_measured(predictions: Predictions, measure: Measure) -> bool:
    return ("frame_type" if measure is B_FRAME else measure.name) in predictions.tags


def column(
    predictions: Predictions, measure: Measure, rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """(n,) a measure of some rows, NaN where it is not known."""
    if measure is B_FRAME:
        kind = predictions.tags["frame_type"][rows]
        return np.where(kind == "?", np.nan, kind == "B")
    return np.asarray(predictions.tags[measure.name][rows], dtype=np.float64)


def _alone(
    measure: Measure, column: NDArray[np.float64], neighbours: Outcomes
) -> tuple[Effect, float]:
    """The effect of a measure by itself and its p-value, not adjusted."""
    known = np.isfinite(column)
    values, broken, clusters = column[known], neighbours.broken[known], neighbours.clusters[known]
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
    if not _varies_without_any(values, clusters):
        return replace(effect, note="the same value in all clusters but one"), np.nan
    fit = logistic(standard[:, None], broken, clusters)
    if fit is None:
        return replace(
            effect, note="separates broken from not broken (nearly) without error"
        ), np.nan
    return replace(effect, alone=_odds(fit, 0)), float(fit.p[0])


def _joint(
    alone: list[Effect],
    columns: Sequence[NDArray[np.float64]],
    measure_of: Sequence[int],
    neighbours: Outcomes,
) -> Effects:
    fitted, known = _select_joint(columns, neighbours)
    if len(fitted) < 2:
        return Effects(tuple(alone), "too few broken neighbours for a joint model")
    values, fitted = _distinct(np.column_stack([columns[i][known] for i in fitted]), fitted)
    deviation = np.array([alone[measure_of[i]].deviation for i in fitted])
    standard = (values - values.mean(axis=0)) / deviation
    fit = logistic(standard, neighbours.broken[known], neighbours.clusters[known])
    if fit is None:
        text = "no joint model: the measures separate broken neighbours, or determine one another"
        return Effects(tuple(alone), text)
    for place, i in enumerate(fitted):
        alone[measure_of[i]] = replace(alone[measure_of[i]], joint=_odds(fit, place))
    words = ", ".join(alone[measure_of[i]].measure.words for i in fitted)
    return Effects(tuple(alone), f"jointly {words} ({int(known.sum()):,} neighbours)")


def _select_joint(
    columns: Sequence[NDArray[np.float64]], neighbours: Outcomes
) -> tuple[list[int], NDArray[np.bool_]]:
    """The columns of the joint model, and (n,) bool the neighbours of which all of them are known.

    In the order of the list, not of the fit: a choice by the outcome would invalidate the
    intervals. Each has to leave enough broken and kept neighbours for all, among which every one
    varies.
    """
    fitted: list[int] = []
    every = np.ones(len(neighbours), dtype=np.bool_)
    for i, own in enumerate(columns):
        known = every & np.isfinite(own)
        broken, clusters = neighbours.broken[known], neighbours.clusters[known]
        if (
            np.mean(~np.isfinite(own)) <= MISSING
            and min(broken.sum(), (~broken).sum()) >= EVENTS * (len(fitted) + 1)
            and all(_varies_without_any(columns[j][known], clusters) for j in [*fitted, i])
        ):
            fitted, every = [*fitted, i], known
    return fitted, every


def _varies_without_any(values: NDArray[np.float64], clusters: NDArray[np.str_]) -> bool:
    """Whether (n,) values differ whichever of the clusters is left out, as the jackknife does."""
    ends = {clusters[values.argmax()], clusters[values.argmin()]}
    rest = [values[clusters != cluster] for cluster in ends]
    return all(len(some) > 0 and np.ptp(some) >= 1e-9 for some in rest)


def _distinct(
    values: NDArray[np.float64], fitted: list[int]
) -> tuple[NDArray[np.float64], list[int]]:
    """The columns that the others do not give."""
    while len(fitted) > 1:
        factors = inflation(values)
        if not factors.max() > INFLATION:
            break
        worst = int(factors.argmax())
        values, fitted = np.delete(values, worst, axis=1), [*fitted[:worst], *fitted[worst + 1 :]]
    return values, fitted


def _odds(fit: Fit, row: int) -> Odds:
    return Odds(*(float(np.exp(estimate[row])) for estimate in (fit.slope, fit.low, fit.high)))
