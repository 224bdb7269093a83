"""Measured changes in frames that break a model, compared with those that do not."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steadyeye.core.claims import Claim, first
from steadyeye.core.format import number_of, probability
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Section, Table, Topic
from steadyeye.core.types import Evaluated, needs
from steadyeye.metrics.covariates.breakage import (
    B_FRAME,
    CLUSTERS,
    EVENTS,
    Effect,
    Effects,
    Outcomes,
    effects,
    outcomes,
)
from steadyeye.report.charts.changes import dose, dose_figure, dose_table, edges, forest, pairs

Judged = tuple[Predictions, Outcomes, Effects]


@needs("truth", "group", "offset", "motion")
def what_changed(evaluated: Sequence[Evaluated]) -> Section | None:
    """Odds of breaking by measured change, a dose curve of the strongest one, and pictures of it.

    Broken: a neighbour that is wrong while its anchor is right; kept: one that is right too. None
    if no model has both.
    """
    judged = [
        (model.predictions, neighbours, effects(model.predictions, neighbours))
        for model in evaluated
        for neighbours in (outcomes(model.predictions),)
        if 0 < neighbours.broken.sum() < len(neighbours)
    ]
    if not judged:
        return None
    fits = {predictions.model: outcome for predictions, _, outcome in judged}
    fitted = any(map(_is_fitted, fits.values()))
    best = [outcome.strongest for outcome in fits.values() if outcome.strongest]
    strongest = min(best, key=lambda effect: effect.p) if best else None
    if strongest is not None and not _claim(judged, strongest):
        strongest = None
    section = Section(
        topic=Topic.WHAT,
        place=22,
        title=_title(judged, strongest),
        claim=_claim(judged, strongest),
        text=(" ".join([*(_sentence(*item) for item in judged), *_too_few(judged)]),),
        method=(_method(judged),) if fitted else (),
        # a table of an unfitted model would hold nothing but dashes
        tables=tuple(_table(*item) for item in judged if _is_fitted(item[2])),
        figures=(forest(fits),) if fitted else (),
    )
    return _with_dose(section, judged, strongest) if strongest else section


def _is_fitted(fit: Effects) -> bool:
    """Whether any measure has an odds ratio."""
    return any(effect.alone for effect in fit.measures)


def _claim(judged: Sequence[Judged], strongest: Effect | None) -> Claim | None:
    """The claim of the title: that the odds of breaking change with the strongest measure.

    The p value is already adjusted by Holm for the measures of each model, and here for the models.
    """
    if strongest is None or strongest.alone is None:
        return None
    odds, p = strongest.alone, min(strongest.p * len(judged), 1.0)
    text = _title(judged, strongest)
    bound = {"above": 1.0} if strongest.rises else {"below": 1.0}
    return first([Claim(text, odds.low, odds.high, **bound, p=p)])


def _title(judged: Sequence[Judged], strongest: Effect | None) -> str:
    begin = "What changed on the frames that break a model:"
    if strongest is None:
        fitted = any(_is_fitted(fit) for _, _, fit in judged)
        return f"{begin} {'no measure is clearly related' if fitted else 'too few broken frames'}"
    agree = [
        effect
        for _, _, fit in judged
        for effect in fit.measures
        if effect.measure == strongest.measure
        and effect.stands_out
        and effect.rises == strongest.rises
    ]
    text = f"{begin} {'more' if strongest.rises else 'less'} {strongest.measure.words}"
    several = f" ({len(agree)} of {number_of(len(judged), 'model')})"
    return text if len(agree) == len(judged) else f"{text}{several}"


def _sentence(predictions: Predictions, outcome: Outcomes, fit: Effects) -> str:
    best = fit.strongest
    if best and best.alone:
        more = "more" if best.rises else "less"
        return (
            f"{predictions.model} breaks more often {_when(best)}: odds ratio "
            f"{best.alone.text(not best.rises)} for one standard deviation "
            f"({best.measure.format_value(best.deviation)}) {more}; {outcome.breakage_text}."
        )
    if _is_fitted(fit):
        return (
            f"{predictions.model}: none of {number_of(len(fit.measures), 'measure')} differs "
            "clearly between neighbours that break and neighbours that do not; "
            f"{outcome.breakage_text}."
        )
    return f"{predictions.model}: {outcome.breakage_text}."


def _too_few(judged: Sequence[Judged]) -> tuple[str, ...]:
    """What odds ratios need, if a model has none."""
    if all(_is_fitted(fit) for _, _, fit in judged):
        return ()
    return (
        f"Odds ratios need at least {EVENTS} neighbours that break and {EVENTS} that do not, the "
        f"former from at least {CLUSTERS} videos or sets.",
    )


def _when(best: Effect) -> str:
    if best.measure == B_FRAME:
        return "on B-frames" if best.rises else "on frames other than B-frames"
    return f"when {best.measure.words} {'rises' if best.rises else 'falls'}"


def _method(judged: Sequence[Judged]) -> str:
    units = " and ".join(dict.fromkeys(outcome.unit for _, outcome, _ in judged))
    within = next((f", {outcome.within}" for _, outcome, _ in judged if outcome.within), "")
    return (
        "Odds of a neighbour being wrong although its anchor is right (logistic regression); 95 "
        f"% intervals by a jackknife over {units} with Student's t{within}. A measure is "
        "clearly related if p ≤ 0.05, adjusted by Holm for the number of measures; the title "
        "also for the number of models. The measures are correlated: the joint odds ratio of "
        "one holds the others fixed. A related measure need not be the cause."
    )


def _table(predictions: Predictions, outcome: Outcomes, fit: Effects) -> Table:
    rows = tuple(
        (
            effect.measure.words,
            effect.measure.format_value(effect.deviation),
            "—" if np.isnan(effect.gap) else f"{effect.gap:+.2f}".replace("-", "−"),
            effect.alone.text() if effect.alone else f"— ({effect.note})",
            effect.joint.text() if effect.joint else "—",
            "—" if np.isnan(effect.p) else probability(effect.p),
            f"{effect.broken:,} / {effect.n - effect.broken:,}",
        )
        for effect in fit.measures
    )
    header = (
        "value, compared with the anchor",
        "standard deviation",
        "difference broken − not broken (standard deviations)",
        "odds ratio per standard deviation, alone",
        "jointly",
        "p (Holm)",
        "broken / not broken",
    )
    caption = f"Changes from the anchor and breaks of {predictions.model}, {outcome.over}"
    return Table(f"{caption}; {fit.joint}" if fit.joint else caption, header, rows)


def _with_dose(section: Section, judged: Sequence[Judged], strongest: Effect) -> Section:
    """The section with the shares by quintile of the strongest measure, and pictures."""
    measure = strongest.measure
    ends = edges(judged[0][0], measure)
    bins = [quintile for p, outcome, _ in judged for quintile in dose(p, outcome, measure, ends)]
    standing = [
        (p, outcome, effect)
        for p, outcome, fit in judged
        for effect in fit.measures
        if effect.measure == measure and effect.stands_out
    ]
    return replace(
        section,
        tables=(*section.tables, dose_table(measure, bins)),
        figures=(*section.figures, dose_figure(measure, bins)),
        exhibits=pairs(standing),
    )
