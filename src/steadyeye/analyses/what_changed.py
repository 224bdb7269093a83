"""What had changed in the frames that broke the model, against those it kept."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steadyeye.charts.style import probability
from steadyeye.core.claims import Claim, first
from steadyeye.core.sections import Section, Table, Topic
from steadyeye.core.table import Predictions
from steadyeye.core.types import Evaluated, needs
from steadyeye.measurement.dose import dose, dose_figure, dose_table, edges
from steadyeye.measurement.effects import B_FRAME, CLUSTERS, EVENTS, Effect, Effects, effects
from steadyeye.measurement.forest import forest
from steadyeye.measurement.outcomes import Outcomes, outcomes
from steadyeye.measurement.pairs import pairs

Judged = tuple[Predictions, Outcomes, Effects]


@needs("truth", "group", "offset", "motion")
def what_changed(evaluated: Sequence[Evaluated]) -> Section | None:
    """Odds of breaking by measured change, how they rise with the surest one, and pictures of it.

    Broken: a neighbour that is wrong while its anchor is right; kept: one that is right too. None
    where no model has both.
    """
    judged = [_judge(one.predictions) for one in evaluated]
    judged = [each for each in judged if 0 < each[1].broken.sum() < len(each[1])]
    if not judged:
        return None
    fits = {predictions.model: found for predictions, _, found in judged}
    fitted = any(effect.alone for found in fits.values() for effect in found.each)
    best = [found.strongest for found in fits.values() if found.strongest]
    strongest = min(best, key=lambda effect: effect.p) if best else None
    if strongest is not None and not _claim(judged, strongest):
        strongest = None
    section = Section(
        topic=Topic.WHAT,
        place=22,
        title=f"What changed when it broke: {_finding(judged, strongest)}",
        claim=_claim(judged, strongest),
        text=(" ".join(_sentence(*each) for each in judged),),
        method=(_method(judged),),
        tables=tuple(_table(*each) for each in judged),
        figures=(forest(fits),) if fitted else (),
    )
    return _with_dose(section, judged, strongest) if strongest else section


def _judge(predictions: Predictions) -> Judged:
    found = outcomes(predictions)
    return predictions, found, effects(predictions, found)


def _claim(judged: Sequence[Judged], strongest: Effect | None) -> Claim | None:
    """What the title asserts: that the odds of breaking change with the strongest measure.

    The p value allows for the measures of each model already (Holm), and here for the models.
    """
    if strongest is None or strongest.alone is None:
        return None
    odds, p = strongest.alone, min(strongest.p * len(judged), 1.0)
    text = f"What changed when it broke: {_finding(judged, strongest)}"
    bound = {"above": 1.0} if strongest.rises else {"below": 1.0}
    return first([Claim(text, odds.low, odds.high, **bound, p=p)])


def _finding(judged: Sequence[Judged], strongest: Effect | None) -> str:
    if strongest is None:
        fitted = any(effect.alone for _, _, found in judged for effect in found.each)
        return "no measure shown to go with it" if fitted else "too few broken frames to tell"
    agree = [
        effect
        for _, _, found in judged
        for effect in found.each
        if effect.measure == strongest.measure
        and effect.stands_out
        and effect.rises == strongest.rises
    ]
    found = f"{'more' if strongest.rises else 'less'} {strongest.measure.words}"
    return found if len(agree) == len(judged) else f"{found} ({len(agree)} of {len(judged)} models)"


def _sentence(predictions: Predictions, found: Outcomes, fit: Effects) -> str:
    best = fit.strongest
    if best and best.alone:
        more = "more" if best.rises else "less"
        return (
            f"{predictions.model} breaks {_when(best)}: odds ×{best.alone.text(not best.rises)} a "
            f"standard deviation ({best.measure.shown(best.deviation)}) {more}; {found.counted}."
        )
    if any(each.alone for each in fit.each):
        return (
            f"{predictions.model}: of none of {len(fit.each)} measures is a difference between "
            f"broken and kept neighbours shown; {found.counted}."
        )
    return (
        f"{predictions.model}: {found.counted}; odds are fitted from {EVENTS} broken and {EVENTS} "
        f"kept neighbours on, the broken ones from {CLUSTERS} videos or pm-sets."
    )


def _when(best: Effect) -> str:
    if best.measure == B_FRAME:
        return "on B-frames" if best.rises else "on other frames than B-frames"
    return f"when {best.measure.words} {'rises' if best.rises else 'falls'}"


def _method(judged: Sequence[Judged]) -> str:
    units = " and ".join(dict.fromkeys(found.unit for _, found, _ in judged))
    within = next((f", {found.within}" for _, found, _ in judged if found.within), "")
    return (
        "The odds are those of a neighbour being wrong while its anchor is right (logistic "
        f"regression); the 95 % intervals are a jackknife over {units} with Student's t{within}. "
        "A measure is said to go with breaking where p ≤ 0.05 after Holm's correction for the "
        "number of measures; the title allows for the number of models too. The measures move "
        "together: the joint odds of one hold the others fixed. To go with a mistake is not to "
        "cause it."
    )


def _table(predictions: Predictions, found: Outcomes, fit: Effects) -> Table:
    rows = tuple(
        (
            each.measure.words,
            each.measure.shown(each.deviation),
            "—" if np.isnan(each.gap) else f"{each.gap:+.2f}",
            each.alone.text() if each.alone else f"— ({each.note})",
            each.joint.text() if each.joint else "—",
            "—" if np.isnan(each.p) else probability(each.p),
            f"{each.broken:,} / {each.n - each.broken:,}",
        )
        for each in fit.each
    )
    header = (
        "against the anchor",
        "standard deviation",
        "broken − kept, in deviations",
        "odds ratio a deviation, alone",
        "jointly",
        "p (Holm)",
        "broken / kept",
    )
    caption = f"What goes with breaking {predictions.model}, {found.over}"
    return Table(f"{caption}; {fit.joint}" if fit.joint else caption, header, rows)


def _with_dose(section: Section, judged: Sequence[Judged], strongest: Effect) -> Section:
    """The section with the shares by quintile of the strongest measure, and pictures."""
    measure = strongest.measure
    ends = edges(judged[0][0], measure)
    bins = [each for p, found, _ in judged for each in dose(p, found, measure, ends)]
    standing = [
        (p, found, effect)
        for p, found, fit in judged
        for effect in fit.each
        if effect.measure == measure and effect.stands_out
    ]
    return replace(
        section,
        tables=(*section.tables, dose_table(measure, bins)),
        figures=(*section.figures, dose_figure(measure, bins)),
        exhibits=pairs(standing),
    )
