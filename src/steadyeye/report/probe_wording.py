"""What a probe shows, in sentences and tables: mistakes beside the control."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.claims import Claim, above, below, every, first
from steadyeye.core.format import interval, number_of, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Table
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.types import Evaluated, Tag
from steadyeye.explain.effects import ProbeEffects, difference, effects, mean


@dataclass(frozen=True)
class ProbedModel:
    """A model with what a probe did to its detections."""

    predictions: Predictions
    effects: ProbeEffects

    @property
    def model(self) -> str:
        """The detector."""
        return str(self.predictions.probe["model"])


def measure_changes(evaluated: Sequence[Evaluated], tag: str, original: Tag) -> list[ProbedModel]:
    """The models for which anything could be tried; `original`: the tag of images as they are."""
    told = []
    for one in evaluated:
        plain = np.asarray(one.predictions.tags[tag]) == original
        told.append(ProbedModel(one.predictions, effects(one.predictions, plain)))
    return [each for each in told if len(each.effects.change)]


def number(found: Interval) -> str:
    """A mean change with its interval, `0.21 (0.15–0.28)`."""
    if found.value is None:
        return "—"
    if found.low is None or found.high is None:
        return f"{found.value:.2f} (—)"
    return f"{found.value:.2f} ({found.low:.2f}–{found.high:.2f})"


def format_signed(found: Interval) -> str:
    """A difference with its interval, `−0.12 (−0.20 to −0.04)`."""
    if found.value is None:
        return "—"
    value, low, high = (
        "—" if each is None else f"{each:+.2f}".replace("-", "−")
        for each in (found.value, found.low, found.high)
    )
    return f"{value} ({low} to {high})" if found.low is not None else f"{value} (—)"


def claim(doing: str, told: Sequence[ProbedModel]) -> Claim | None:
    """Whether mistakes change less, or more, than the control for every model, with one's numbers.

    None where that is not shown of all of them.
    """
    found = [difference(each.effects) for each in told]
    by = _by(told[0]) if len(told) == 1 else ""
    texts = [
        f"{doing} changes confident mistakes {way} than correct detections{by}"
        for way in ("less", "more")
    ]
    return first(
        [
            every(texts[0], [below(texts[0], each) for each in found]),
            every(texts[1], [above(texts[1], each) for each in found]),
        ]
    )


def question(doing: str, told: Sequence[ProbedModel]) -> str:
    """The title where nothing is shown of all models: what was asked, for one model with numbers.

    It says where there is no control, and where the mistakes or the control are too few for an
    interval.
    """
    verdicts = {verdict(difference(each.effects)) for each in told}
    if verdicts == {"alone"}:
        return f"{doing}: how much confident mistakes change"
    asked = f"{doing}: do confident mistakes change less than correct detections?"
    if len(told) > 1:
        return asked
    few = f"too few {told[0].effects.of} to compare"
    end = few if verdicts == {"few"} else "no clear difference"
    wrong, right = _changes(told[0])
    return f"{asked} Mistakes by {wrong:.2f}, correct detections by {right:.2f}: {end}"


def _by(one: ProbedModel) -> str:
    wrong, right = _changes(one)
    return f": by {wrong:.2f} and {right:.2f}"


def _changes(one: ProbedModel) -> tuple[float, float]:
    """The mean change of mistakes and of correct detections."""
    effects = one.effects
    wrong, right = (mean(effects, of).value or 0.0 for of in (effects.mistake, ~effects.mistake))
    return wrong, right


def verdict(found: Interval) -> str:
    """Whether mistakes change "less" or "more" than the control, or it is "open"; or "alone".

    "few" where so few images or videos were seen that there is no interval.
    """
    if found.value is None:
        return "alone"
    if found.low is None or found.high is None:
        return "few"
    if found.low <= 0 <= found.high:
        return "open"
    return "less" if found.high < 0 else "more"


def sentence(told: ProbedModel) -> str:
    """The numbers of one model, and what they are out of."""
    effects = told.effects
    wrong, right = mean(effects, effects.mistake), mean(effects, ~effects.mistake)
    kept = mean(effects, effects.mistake, effects.kept)
    lost = (
        f" {number_of(effects.lost, 'detection is', 'detections are')} left out because of errors."
        if effects.lost
        else ""
    )
    if wrong.value is None:
        return f"{told.model}: no mistake could be tested.{lost}"
    against = (
        f", and of {right.n:,} correct detections by {number(right)}; the difference is "
        f"{format_signed(difference(effects)).replace('(—)', '(no interval)')}"
        if right.value is not None
        else "; there is no correct detection for comparison"
    )
    return (
        f"{told.model}: the probability of {wrong.n:,} confident mistakes changes by "
        f"{number(wrong)} on average{against}. In {percent(kept.value)} of the changed images "
        f"the mistake remains with a score above {told.predictions.probe['score']:g}.{lost}"
    )


def by_cause(told: ProbedModel) -> Table:
    """Mistakes, each of their causes, and the control."""
    effects = told.effects
    rows = [("mistakes", effects.mistake)]
    rows += [
        (cause, effects.cause == cause) for cause in sorted(set(effects.cause.tolist()) - {""})
    ]
    rows += [("correct detections (control)", ~effects.mistake)]
    body = [_row(effects, name, which) for name, which in rows]
    found = difference(effects)
    body.append(
        ("difference", str(found.n), "—", format_signed(found), "—", "—", "—", found.method)
    )
    above = f"score still above {told.predictions.probe['score']:g}"
    header = ("", "n", effects.of, "mean |Δ|", "median", above, "no longer detected", "interval")
    return Table(f"{told.model}: |Δ probability|", header, tuple(body), open=True)


def by_class(told: ProbedModel) -> Table:
    """Every class of the detector: its mistakes beside its correct detections."""
    effects, names = told.effects, told.predictions.model_classes
    body = []
    for label in order_classes(effects):
        cells = [names[label]]
        for kind in (effects.mistake, ~effects.mistake):
            found = mean(effects, kind & (effects.label == label))
            cells += [f"{found.n:,}", number(found)]
        body.append(tuple(cells))
    header = ("class", "mistakes", "mean |Δ|, mistakes", "correct", "mean |Δ|, correct")
    return Table(f"{told.model}: by class", header, tuple(body))


def order_classes(effects: ProbeEffects) -> list[int]:
    """The classes, those with most mistakes first, then those with most correct detections."""
    labels = np.unique(effects.label).tolist()

    def rank(label: int) -> tuple[int, int, int]:
        here = effects.label == label
        return -int((here & effects.mistake).sum()), -int(here.sum()), label

    return sorted(labels, key=rank)


def _row(effects: ProbeEffects, name: str, which: NDArray[np.bool_]) -> tuple[str, ...]:
    found = mean(effects, which)
    if found.value is None:
        return (name, "0", "0", "—", "—", "—", "—", found.method)
    kept, gone = (mean(effects, which, each) for each in (effects.kept, effects.vanished))
    return (
        name,
        f"{found.n:,}",
        f"{len(np.unique(effects.cluster[which])):,}",
        number(found),
        f"{np.median(effects.change[which]):.2f}",
        *(f"{percent(each.value)} ({interval(each.low, each.high)})" for each in (kept, gone)),
        found.method,
    )
