"""Models and the models that they were trained from: the pairs, and their differences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import list_texts
from steadyeye.core.format import (
    UNITS,
    format_metric,
    format_metric_ends,
    number_of,
    points,
    probability,
)
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Figure, Table
from steadyeye.core.result_lookup import select_same_samples
from steadyeye.core.stats.intervals import proportion
from steadyeye.core.stats.multiple_testing import holm
from steadyeye.core.stats.paired import Difference, difference, prepare_outcomes
from steadyeye.core.stats.trials import Outcomes, Trials
from steadyeye.core.types import Evaluated, Result
from steadyeye.report.charts.specs import (
    GREY,
    chart,
    colour,
    dot,
    fields_of,
    layer,
    rows_of,
    shares,
)
from steadyeye.report.comparison.leaderboards import ALPHA


@dataclass(frozen=True, eq=False)
class Step:
    """A model before and after: fine-tuned, or trained on augmented images instead of plain ones.

    `augmented`: whether it is the latter; both are then trained from the same model on the same
    data.
    """

    before: Evaluated
    after: Evaluated
    augmented: bool = False

    @property
    def names(self) -> tuple[str, str]:
        """The names of both models."""
        return self.before.predictions.model, self.after.predictions.model


def steps(evaluated: Sequence[Evaluated]) -> list[Step]:
    """Every model with its base model, then models with and without augmentation.

    Pairs are matched by fingerprints, on the same samples; models without a partner are left out.
    """
    pairs: list[Step] = []
    for augmented, is_before in ((False, _is_base), (True, _is_plain_twin)):
        for after in evaluated:
            others = select_same_samples([after, *evaluated])[1:]
            pairs += [
                Step(before, after, augmented) for before in others if is_before(before, after)
            ][:1]
    return pairs


def find_shared(before: Evaluated, after: Evaluated, name: str) -> str:
    """The name, with its parameters, of a metric that both models have; empty if there is none."""
    for key in after.bound_metrics:
        if key.partition("(")[0] == name and key in before.bound_metrics:
            return key
    return ""


def augmentation(predictions: Predictions) -> tuple[str, ...]:
    """The operators that augmented the training images of a model."""
    operators: Sequence[Mapping[str, Any]] = predictions.recipe.get("augmentation") or ()
    return tuple(operator["operator"] for operator in operators if operator["operator"] != "plain")


def from_scratch(predictions: Predictions) -> bool:
    """Whether a model was trained from random weights, by the record of its training."""
    return bool(predictions.recipe.get("from scratch"))


def caveats(step: Step) -> tuple[str, ...]:
    """What must be known to read the differences of a step."""
    return tuple(filter(None, (_answers(step), _overlap(step), _one_training(step))))


def _base(model: Evaluated) -> str:
    return str((model.predictions.recipe.get("base") or {}).get("fingerprint", ""))


def _is_base(before: Evaluated, after: Evaluated) -> bool:
    return bool(before.predictions.model_mark) and before.predictions.model_mark == _base(after)


def _is_plain_twin(before: Evaluated, after: Evaluated) -> bool:
    """Whether two models differ only in the augmentation of the latter's training images."""
    both = before.predictions, after.predictions
    if not _base(after) or _base(before) != _base(after) or len({*map(from_scratch, both)}) > 1:
        return False
    data = {table.recipe.get("trained on", {}).get("fingerprint") for table in both}
    plain, augmented = map(augmentation, both)
    return len(data) == 1 and not plain and bool(augmented)


def _answers(step: Step) -> str:
    """A sentence on the classes that each of the models predicts."""
    before, after = (model.predictions for model in (step.before, step.after))
    labels = before.model_to_data_class
    if before.model_classes in (after.model_classes, before.classes) or labels is None:
        return ""
    standing = int((labels >= 0).sum())
    none = len(before.classes) - len(np.unique(labels[labels >= 0]))
    lost = f", none of them to {none} of the data's classes" if none else ""
    chosen = (
        f"a prediction of one of the other {len(before.others):,} is wrong"
        if len(before.others)
        else "it chooses among these by its class map"
    )
    own = "the classes of the data" if after.model_classes == after.classes else "its own classes"
    return (
        f"{before.model} predicts {number_of(len(before.model_classes), 'class')} of its own. "
        f"{standing:,} of them map to the {len(before.classes):,} classes of the data{lost}; "
        f"{chosen}. {after.model} predicts {own}. Part of a gain may come from the different "
        "classes."
    )


def _overlap(step: Step) -> str:
    """A sentence on the overlap of the data with the training data."""
    after = step.after.predictions
    known: Mapping[str, Any] = after.recipe.get("trained on", {})
    videos: Mapping[str, Any] | None = known.get("videos")
    if videos is None:
        return (
            f"The videos in the training data of {after.model} are not recorded, so an overlap "
            "with this data cannot be checked."
            if known
            else ""
        )
    names, number = after.clusters
    places = [i for i, name in enumerate(names.tolist()) if name in videos]
    if not places:
        return ""
    frames, first = np.unique(_frames(after), return_index=True)
    inside = int(_find_trained(after, videos, number)[first].sum())
    told_frames = "none of these frames was trained on"
    if inside:
        several = number_of(len(frames), "frame")
        told_frames = f"{inside:,} of {several} are between the first and the last frame trained on"
    listing = list_texts(names[places].tolist())
    return (
        f"The training data of {after.model} include {len(places):,} of the "
        f"{number_of(len(names), 'video')} ({listing}); {told_frames}. "
        "A gain on them says little about other footage."
    )


def _frames(after: Predictions) -> NDArray[np.str_]:
    """(n,) the frame of each row, which may be in several sets or levels."""
    if "frame" not in after.tags:
        return np.asarray(after.tags.get("image", after.ids), dtype=np.str_)
    pairs = zip(after.videos.tolist(), after.tags["frame"], strict=True)
    return np.array([f"{video}/{frame}" for video, frame in pairs], dtype=np.str_)


def _find_trained(
    after: Predictions, videos: Mapping[str, Any], number: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """(n,) frames from the first to the last of their video that was trained on."""
    if "frame" not in after.tags:
        return np.isin(after.clusters[0][number], list(videos))
    frame = np.asarray(after.tags["frame"], dtype=np.int64)
    spans = [videos.get(name) or (1, 0) for name in after.clusters[0].tolist()]
    first, last = np.array(spans, dtype=np.int64).reshape(-1, 2)[number].T
    return np.asarray((frame >= first) & (frame <= last), dtype=np.bool_)


def _one_training(step: Step) -> str:
    videos = len(step.after.predictions.clusters[0])
    kind = "videos" if videos < len(step.after.predictions) else "images"
    others = "other frames of this one video" if videos == 1 else f"other {kind} of this kind"
    return (
        f"The intervals are about {others}. They do not include the variation between "
        "trainings with other seeds."
    )


ROW = 56
POINTS = "percentage points"
STILL = 0.01
"""A number is unchanged if the whole interval of its change is within this share."""
READING = (
    "A change is clear if p ≤ 0.05, adjusted by Holm for the number of metrics. No clear change "
    "does not mean no change. Unchanged: the whole interval is within ±1 percentage point."
)


@dataclass(frozen=True)
class Gain:
    """A number before and after. `difference`: after − before; None if either has no value.

    `adjusted`: its p value adjusted by `adjust_gains`, if several numbers are compared.
    """

    metric: str
    before: Result
    after: Result
    difference: Difference | None
    adjusted: float | None = None

    @property
    def p(self) -> float | None:
        """The p value, adjusted for several numbers if there are several."""
        if self.difference is None or self.adjusted is not None:
            return self.adjusted
        return self.difference.p

    @property
    def is_clear(self) -> bool:
        """Whether the difference is clear."""
        return self.p is not None and self.p <= ALPHA


@dataclass(frozen=True)
class TrainingGains:
    """A step with its gains and the displayed names of its models."""

    before: str
    after: str
    gains: tuple[Gain, ...]


def gain(metric: str, before: Outcomes, after: Outcomes) -> Gain:
    """The gain of outcomes on the same samples, with the interval of each."""
    gap = difference(prepare_outcomes(after), prepare_outcomes(before))
    return Gain(metric, result(metric, before), result(metric, after), gap)


def adjust_gains(gains: Sequence[Gain]) -> tuple[Gain, ...]:
    """The gains of one comparison, their p values adjusted by Holm for how many there are."""
    p = holm([np.nan if item.difference is None else item.difference.p for item in gains])
    return tuple(
        item if item.difference is None else replace(item, adjusted=float(value))
        for item, value in zip(gains, p, strict=True)
    )


def result(metric: str, outcomes: Outcomes) -> Result:
    """A number with its own interval."""
    if isinstance(outcomes, Trials):
        return Result.of(metric, proportion(outcomes.success, outcomes.videos))
    n, value = len(outcomes.videos), outcomes.value
    if np.isnan(value):
        return Result(metric, None, None, None, n, "none: n = 0")
    return replace(Result.of(metric, outcomes.interval()), value=value, n=n)


def changes(gains: Sequence[Gain]) -> str:
    """The changes in words, `accuracy +13.0 pp, drop unchanged`; unclear ones come last."""
    open_ones = [item.metric for item in gains if not item.is_clear and _may_differ(item)]
    parts = []
    for item in (item for item in gains if item.metric not in open_ones):
        gap, same = item.difference, not _may_differ(item)
        size = "unknown" if gap is None else "unchanged" if same else f"{points(gap.value)} pp"
        parts.append(f"{item.metric} {size}")
    if open_ones:
        parts.append(f"no clear change in {list_texts(open_ones)}")
    return ", ".join(parts)


def _may_differ(gained: Gain) -> bool:
    """Whether the interval of a change reaches beyond `STILL`."""
    gap = gained.difference
    return gap is not None and max(abs(gap.low), abs(gap.high)) > STILL


def amount(gained: Gain) -> str:
    """The change with its interval: `+13.0 percentage points (+4.1 to +20.9)`."""
    gap = gained.difference
    if gap is None:
        return "unknown"
    return f"{points(gap.value)} percentage points ({points(gap.low)} to {points(gap.high)})"


def value_of(number: Result) -> str:
    """A number in its unit in words: a percentage, a drop in percentage points."""
    return _format_value(number).replace("\u202fpp", f"\u202f{POINTS}")


def _format_value(number: Result) -> str:
    # a drop may be below 0
    return format_metric(number.name, number.value, number.unit).replace("-", "−")


def tables(caption: str, taken: Sequence[TrainingGains]) -> tuple[Table, ...]:
    """The numbers before and after; drops, in percentage points, are in a separate table."""
    captions = {False: caption, True: f"{caption}: drop (pp)"}
    both = (_table(name, taken, drops) for drops, name in captions.items())
    return tuple(part for part in both if part.rows)


def _table(caption: str, taken: Sequence[TrainingGains], drops: bool) -> Table:
    """Every number before and after and their difference, all with intervals; or every drop."""
    several = len(taken) > 1
    rows = [
        (
            f"{item.metric}, {step.after} after {step.before}" if several else item.metric,
            _cell(item.before),
            _cell(item.after),
            *_difference(item),
        )
        for step in taken
        for item in step.gains
        if (item.before.name in UNITS) == drops
    ]
    header = ("metric", "before", "after", "difference (pp)", "95 % interval", "p (Holm)")
    return Table(caption, (*header, "verdict", "n", "method"), tuple(rows), open=True)


def numbers(gains: Sequence[Gain]) -> str:
    """Each number before and after, and its change, in words."""
    return "; ".join(
        f"{item.metric} {value_of(item.before)} before and "
        f"{value_of(item.after)} after, {amount(item)}"
        for item in gains
    )


def dumbbells(name: str, taken: Sequence[TrainingGains]) -> Figure:
    """A dumbbell chart of every number before and after, with intervals."""
    label = "{}\n{} after {}" if len(taken) > 1 else "{}"
    pairs = [(step, item) for step in taken for item in step.gains]
    values = [
        {
            "number": label.format(item.metric, step.after, step.before),
            "stage": stage,
            "model": step.before if stage == "before" else step.after,
            **fields_of(number),
        }
        for step, item in pairs
        for stage, number in (("before", item.before), ("after", item.after))
        if number.value is not None
    ]
    sentence = "; ".join(
        f"{item.metric}: {value_of(item.before)} before, {value_of(item.after)} after"
        for _, item in pairs
    )
    height = ROW * len({row["number"] for row in values}) + 10
    least = min(0.0, *(row["low"] for row in values if isinstance(row["low"], float)))
    drops = any(item.before.name in UNITS for _, item in pairs)
    spec = chart(_layers(least, drops), height, values=values)
    caption = "Before and after training, with 95 % intervals."
    caption += " The drop is in percentage points." if drops else ""
    return Figure(name, caption, f"{sentence}. The table has the intervals.", spec)


def _layers(least: float, drops: bool) -> list[dict[str, Any]]:
    y = rows_of("number")
    aside = {"field": "stage", "type": "nominal", "sort": ["before", "after"]}
    hue = colour(["before", "after"], "stage", "")
    # a drop may be below 0
    x = {**shares("value", ""), "scale": {"domain": [least, 1]}}
    if drops:
        x["axis"] = {"labelExpr": "round(datum.value * 100)"}
        x["title"] = "%; the drop in percentage points"
    place = {"y": y, "yOffset": aside, "color": hue}
    tips = [{"field": "model"}]
    tips += [{"field": end, "format": ".1%"} for end in ("value", "low", "high")]
    ends = {**place, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    joined = {"y": y, "x": x, "detail": {"field": "number"}, "yOffset": aside}
    return [
        layer("line", joined, strokeWidth=1, strokeDash=[3, 3], color=GREY),
        layer("rule", ends, strokeWidth=3, opacity=0.6),
        dot({**place, "x": x, "tooltip": tips}, size=110),
    ]


def _cell(number: Result) -> str:
    ends = format_metric_ends(number.name, number.low, number.high, number.unit)
    return f"{_format_value(number)} ({ends.replace('-', '−')})"


def _difference(gained: Gain) -> tuple[str, ...]:
    gap, n = gained.difference, f"{gained.after.n:,}"
    if gap is None:
        return "—", "—", "—", "unknown", n, "—"
    verdict = "clear" if gained.is_clear else "not clear"
    ends = f"{points(gap.low)} to {points(gap.high)}"
    p = gap.p if gained.p is None else gained.p
    return points(gap.value), ends, probability(p), verdict, n, gap.method
