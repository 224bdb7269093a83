"""Recall of true objects by class, and measures related to losing them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import format_share, number_of, percent, probability
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Section, Table, Topic
from steadyeye.core.result_lookup import find, read_score
from steadyeye.core.stats import intervals
from steadyeye.core.types import Evaluated, Result, needs
from steadyeye.metrics.covariates.breakage import CLUSTERS, EVENTS, Effects, Outcomes
from steadyeye.metrics.sequences.lost_tracks import fit_losses, list_losses
from steadyeye.metrics.sequences.stability_errors import measure_errors
from steadyeye.metrics.sequences.tracklets import SCORE
from steadyeye.metrics.sequences.true_tracks import TrueTracks, follow


@needs("boxes", "detections", "tracks")
def lost_tracks(evaluated: Sequence[Evaluated]) -> Section | None:
    """Recall and stability errors of true objects by class, and the odds of losing an object.

    None where no model has `object_recall` of an object.
    """
    judged = [item for item in map(_judge, evaluated) if item]
    if not judged:
        return None
    texts, tables = [], []
    for predictions, recall, objects in judged:
        losses = list_losses(predictions, objects)
        fit = fit_losses(predictions, objects, losses)
        texts.append(_describe(predictions, recall, losses, fit))
        tables += [_by_class(predictions, objects), _odds(predictions, losses, fit)]
    return Section(
        topic=Topic.WHEN,
        place=13,
        title="Recall of true objects, and measures related to losing them",
        text=(" ".join(texts),),
        tables=tuple(tables),
        method=(_METHOD,),
    )


_METHOD = (
    "A true object is found where a detection of its class overlaps its box by 0.5 or more "
    "(IoU). Fragment, centre position and scale and ratio error: Zhang and Wang 2016, lower is "
    "steadier. Odds are of not being found in a frame after one in which the object is found "
    "(logistic regression), for one standard deviation more; 95 % intervals by a jackknife over "
    "videos, or over objects where there are fewer than ten videos; p adjusted by Holm for the "
    "number of measures. A measure that is related to losing an object need not be the cause."
)


def _judge(model: Evaluated) -> tuple[Predictions, Result, TrueTracks] | None:
    recall = find(model.results, "object_recall")
    if recall is None or not recall.n:
        return None
    return model.predictions, recall, follow(model.predictions, read_score(recall, SCORE))


def _describe(predictions: Predictions, recall: Result, losses: Outcomes, fit: Effects) -> str:
    lost, total = int(losses.broken.sum()), len(losses.broken)
    text = (
        f"{predictions.model} finds a true object in {format_share(recall)} of its frames, the "
        f"mean over {number_of(recall.n, 'object')}. It loses one in {lost:,} of "
        f"{number_of(total, 'frame')} after a frame in which it is found."
    )
    best = fit.strongest
    if best is not None and best.alone is not None:
        more = "more" if best.rises else "less"
        return (
            f"{text} Losing an object is most clearly related to {more} {best.measure.words}: "
            f"odds ratio {best.alone.text(not best.rises)} for one standard deviation "
            f"({best.measure.format_value(best.deviation)})."
        )
    if any(effect.alone for effect in fit.measures):
        return f"{text} None of {number_of(len(fit.measures), 'measure')} is clearly related to it."
    return (
        f"{text} Odds ratios need at least {EVENTS} frames in which an object is lost, from at "
        f"least {CLUSTERS} videos or objects."
    )


def _by_class(predictions: Predictions, objects: TrueTracks) -> Table:
    assert predictions.boxes is not None, "they were followed"
    first = np.searchsorted(objects.track, np.arange(len(objects)))
    label = predictions.boxes.label[objects.box[first]]
    errors = measure_errors(predictions, objects)
    share = objects.share(objects.is_found)
    rows = []
    for of_class in np.unique(label):
        own = label == of_class
        recall = intervals.mean(share[own], objects.video[own])
        rows.append(
            (
                predictions.classes[of_class],
                f"{int(own.sum()):,}",
                f"{int(objects.lengths[own].sum()):,}",
                format_share(recall),
                *(_mean(part[own]) for part in (errors.fragment, errors.centre, errors.scale)),
            )
        )
    header = (
        *("class", "objects", "frames", "object recall (95 % interval)", "fragment error"),
        *("centre position error", "scale and ratio error"),
    )
    return Table(f"True objects by class, {predictions.model}", header, tuple(rows))


def _mean(values: NDArray[np.float64]) -> str:
    known = values[~np.isnan(values)]
    return percent(float(known.mean())) if len(known) else "—"


def _odds(predictions: Predictions, losses: Outcomes, fit: Effects) -> Table:
    rows = tuple(
        (
            effect.measure.words,
            effect.measure.format_value(effect.deviation),
            effect.alone.text() if effect.alone else "—",
            effect.joint.text() if effect.joint else "—",
            "—" if np.isnan(effect.p) else probability(effect.p),
            f"{effect.broken:,} / {effect.n - effect.broken:,}",
        )
        for effect in fit.measures
    )
    header = (
        *("of the object in the frame", "standard deviation", "odds ratio of losing it, alone"),
        *("jointly", "p (Holm)", "lost / not lost"),
    )
    units = number_of(len(np.unique(losses.clusters)), "object" if losses.within else "video")
    caption = f"Measures related to losing an object, {predictions.model}, {units}"
    return Table(caption, header, rows)
