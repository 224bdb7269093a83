"""The results of a probe in sentences and tables: mistakes and the control."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.claims import Claim, above, below, every, first
from steadyeye.core.format import format_share, number_of, percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Table
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.types import Evaluated, Tag
from steadyeye.explain.effects import ProbeEffects, difference, effects, mean


@dataclass(frozen=True)
class ProbedModel:
    """A model with the changes of its detections under a probe."""

    predictions: Predictions
    effects: ProbeEffects

    @property
    def model(self) -> str:
        """The detector."""
        return str(self.predictions.probe["model"])


def measure_changes(evaluated: Sequence[Evaluated], tag: str, original: Tag) -> list[ProbedModel]:
    """The models with tested detections; `original`: the tag of unchanged images."""
    models = []
    for model in evaluated:
        plain = np.asarray(model.predictions.tags[tag]) == original
        models.append(ProbedModel(model.predictions, effects(model.predictions, plain)))
    return [item for item in models if len(item.effects.change)]


def number(change: Interval) -> str:
    """A mean change with its interval, `0.21 (0.15–0.28)`."""
    if change.value is None:
        return "—"
    if change.low is None or change.high is None:
        return f"{change.value:.2f} (—)"
    return f"{change.value:.2f} ({change.low:.2f}–{change.high:.2f})"


def format_signed(gap: Interval) -> str:
    """A difference with its interval, `−0.12 (−0.20 to −0.04)`."""
    if gap.value is None:
        return "—"
    ends = "—" if gap.low is None else f"{gap.low:+.2f} to {gap.high:+.2f}"
    return f"{gap.value:+.2f} ({ends})".replace("-", "−")


def claim(doing: str, models: Sequence[ProbedModel]) -> Claim | None:
    """The claim that mistakes change less, or more, than the control for every model.

    None if it is not clear for all of them. It has the numbers of one model.
    """
    gaps = [difference(item.effects) for item in models]
    by = ""
    if len(models) == 1:
        wrong, right = _changes(models[0])
        by = f": by {wrong:.2f} and {right:.2f}"
    claims = []
    for way, make in (("less", below), ("more", above)):
        text = f"{doing} changes confident mistakes {way} than correct detections{by}"
        claims.append(every(text, [make(text, gap) for gap in gaps]))
    return first(claims)


def question(doing: str, models: Sequence[ProbedModel]) -> str:
    """The title without a claim: a question, for one model with its numbers.

    It says if there is no control, and if the mistakes or the control are too few for an interval.
    """
    verdicts = {verdict(difference(model.effects)) for model in models}
    if verdicts == {"alone"}:
        return f"{doing}: how much confident mistakes change"
    text = f"{doing}: do confident mistakes change less than correct detections?"
    if len(models) > 1:
        return text
    few = f"too few {models[0].effects.of} to compare"
    end = few if verdicts == {"few"} else "no clear difference"
    wrong, right = _changes(models[0])
    return f"{text} Mistakes by {wrong:.2f}, correct detections by {right:.2f}: {end}"


def _changes(model: ProbedModel) -> tuple[float, float]:
    """The mean change of mistakes and of correct detections."""
    effects = model.effects
    wrong, right = (mean(effects, of).value or 0.0 for of in (effects.mistake, ~effects.mistake))
    return wrong, right


def verdict(gap: Interval) -> str:
    """Whether mistakes change "less" or "more" than the control, or it is "open"; or "alone".

    "few" with too few images or videos for an interval.
    """
    if gap.value is None:
        return "alone"
    if gap.low is None or gap.high is None:
        return "few"
    if gap.low <= 0 <= gap.high:
        return "open"
    return "less" if gap.high < 0 else "more"


def sentence(model: ProbedModel) -> str:
    """The numbers of one model, with their n, in words."""
    effects = model.effects
    wrong, right = mean(effects, effects.mistake), mean(effects, ~effects.mistake)
    remains = mean(effects, effects.mistake, effects.confident)
    lost = (
        f" {number_of(effects.lost, 'detection is', 'detections are')} left out because of errors."
        if effects.lost
        else ""
    )
    if wrong.value is None:
        return f"{model.model}: no mistake could be tested.{lost}"
    against = (
        f", and of {right.n:,} correct detections by {number(right)}; the difference is "
        f"{format_signed(difference(effects)).replace('(—)', '(no interval)')}"
        if right.value is not None
        else "; there is no correct detection for comparison"
    )
    return (
        f"{model.model}: the probability of {wrong.n:,} confident mistakes changes by "
        f"{number(wrong)} on average{against}. In {percent(remains.value)} of the changed images "
        f"the mistake remains with a score above {model.predictions.probe['score']:g}.{lost}"
    )


def by_cause(model: ProbedModel) -> Table:
    """Mistakes, each of their causes, and the control."""
    effects = model.effects
    causes = sorted(set(effects.cause.tolist()) - {""})
    rows = [
        ("mistakes", effects.mistake),
        *((cause, effects.cause == cause) for cause in causes),
        ("correct detections (control)", ~effects.mistake),
    ]
    body = [_row(effects, name, mask) for name, mask in rows]
    gap = difference(effects)
    body.append(("difference", str(gap.n), "—", format_signed(gap), "—", "—", "—", gap.method))
    above = f"score still above {model.predictions.probe['score']:g}"
    header = ("", "n", effects.of, "mean |Δ|", "median", above, "no longer detected", "interval")
    return Table(f"{model.model}: |Δ probability|", header, tuple(body), open=True)


def by_class(model: ProbedModel) -> Table:
    """Every class of the detector: its mistakes and its correct detections."""
    effects, names = model.effects, model.predictions.model_classes
    body = []
    for label in order_classes(effects):
        cells = [names[label]]
        for kind in (effects.mistake, ~effects.mistake):
            change = mean(effects, kind & (effects.label == label))
            cells += [f"{change.n:,}", number(change)]
        body.append(tuple(cells))
    header = ("class", "mistakes", "mean |Δ|, mistakes", "correct", "mean |Δ|, correct")
    return Table(f"{model.model}: by class", header, tuple(body))


def order_classes(effects: ProbeEffects) -> list[int]:
    """The classes, those with most mistakes first, then those with most correct detections."""
    labels = np.unique(effects.label).tolist()

    def rank(label: int) -> tuple[int, int, int]:
        own = effects.label == label
        return -int((own & effects.mistake).sum()), -int(own.sum()), label

    return sorted(labels, key=rank)


def _row(effects: ProbeEffects, name: str, mask: NDArray[np.bool_]) -> tuple[str, ...]:
    change = mean(effects, mask)
    if change.value is None:
        return (name, "0", "0", "—", "—", "—", "—", change.method)
    remains, gone = (mean(effects, mask, part) for part in (effects.confident, effects.vanished))
    return (
        name,
        f"{change.n:,}",
        f"{len(np.unique(effects.cluster[mask])):,}",
        number(change),
        f"{np.median(effects.change[mask]):.2f}",
        *(format_share(part) for part in (remains, gone)),
        change.method,
    )
