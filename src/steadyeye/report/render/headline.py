"""The first sentence of a report for each model and source."""

from collections.abc import Sequence

import numpy as np

from steadyeye.core.format import duration, number_of, percent, span
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.result_lookup import find, limit, read_k
from steadyeye.core.stats.intervals import Interval, proportion
from steadyeye.core.types import Classes, Evaluated, Result
from steadyeye.data.classes.class_map import of_destinations
from steadyeye.data.classes.class_mapping import describe_unmatched
from steadyeye.degradation.curves import format_operator_name, harm, operators
from steadyeye.report.comparison.metric_wording import name_metric


def headline(evaluated: Sequence[Evaluated]) -> tuple[str, ...]:
    """One sentence per model and source: how often it is right, and how often right anchors break.

    Probes have none, because their images are chosen or changed to cause mistakes.
    """
    plain = [model for model in evaluated if not model.predictions.probe]
    several = len({model.predictions.data for model in plain}) > 1
    return tuple(_sentence(model, several) for model in plain)


def _sentence(model: Evaluated, several: bool) -> str:
    name = model.predictions.model + (f" on {model.predictions.data}" if several else "")
    sentences = (tell(name, model) for tell in TELLERS)
    text = next(filter(None, sentences), _run(name, model.predictions))
    names = ("degraded_accuracy", "failure_points")
    as_classifier = any(find(model.results, name) for name in names)
    if as_classifier and model.predictions.raw_detections is not None:
        text = f"{text} Right means the class of its most confident box: this is a detector."
    lost, warning = _partnerless(model.predictions), model.predictions.warning
    remarks = (f"{remark[0].upper()}{remark[1:]}." for remark in (warning, lost) if remark)
    return " ".join([text, *remarks])


def _run(name: str, table: Predictions) -> str:
    """The sentence for a model without values."""
    text = f"{name} was run on {number_of(len(table), 'sample')}"
    alone = table.truth.any() and table.competing < 2
    return f"{text}; only one class competes, so there is no accuracy." if alone else f"{text}."


def _partnerless(table: Predictions) -> str | None:
    """The classes in the data that the model does not have, in words."""
    if table.model_to_data_class is None:
        return None
    occurs = np.asarray(table.truth.any(axis=0))
    present = [name for name, some in zip(table.classes, occurs, strict=True) if some]
    to = {own: int(label) for own, label in enumerate(table.model_to_data_class) if label >= 0}
    summary = of_destinations(Classes(table.model_classes), Classes(table.classes), to, "")
    return describe_unmatched(summary, present)


def _steady(name: str, model: Evaluated) -> str | None:
    """How often it is right, and how many of its right anchors break."""
    original, perturbed = find(model.results, "accuracy"), find(model.results, "pm_k")
    if original is None or original.value is None:
        return None
    begin = f"{name} is right on {percent(original.value)} of"
    if perturbed is None or perturbed.value is None:
        return f"{begin} {number_of(original.n, 'image')}{_among(original)}{_ends(original)}."
    k = read_k(perturbed)
    return (
        f"{begin} {number_of(original.n, 'anchor')}{_among(original)}{_ends(original)}; "
        f"{_state_broken(model, k)}."
    )


def _state_detection(name: str, model: Evaluated) -> str | None:
    """The mAP of anchors and of the worst frames."""
    plain, worst = find(model.results, "map"), find(model.results, "pm_k_map")
    if plain is None or plain.value is None:
        return None
    title, of_worst = name_metric(plain.name), name_metric(worst.name) if worst else ""
    begin = f"{name} has an {title} of {percent(plain.value)} on"
    # what is in brackets: another IoU, or the objects of one size
    is_alike = title.partition(" (")[2] == of_worst.partition(" (")[2]
    if worst is None or worst.value is None or not is_alike:
        return f"{begin} {number_of(plain.n, 'image')}{_ends(plain)}."
    return (
        f"{begin} {number_of(plain.n, 'anchor')}{_ends(plain)}, and of "
        f"{percent(worst.value)}{_ends(worst, False)} on the worst frame within "
        f"±{read_k(worst)} of each anchor."
    )


def _state_degraded_detection(name: str, model: Evaluated) -> str | None:
    """A detector's retained mAP under degradation, or the result of a search."""
    left, points = find(model.results, "rpc"), find(model.results, "map_failure_points")
    if left is not None and left.value is not None:
        # an operator that leaves no object in the image has no value
        known = [(cell.value, cell.name) for cell in left.cells if cell.value is not None]
        value, worst = min(known)
        more = f"; least under {worst}, {percent(value)}" if len(left.cells) > 1 else ""
        return (
            f"{name} keeps {percent(left.value)} of its mAP on {number_of(left.n, 'image')}"
            f"{_ends(left)}, averaged over {_count_operators(left.cells)}{more}."
        )
    if points is None or (left is not None and points.cells):
        return None
    if not points.cells:
        why = points.interval.removeprefix("none: ")
        return f"{name} has no mAP that degradation could lower: {why}."
    below = [
        (point.value, operator.name)
        for operator in points.cells
        for point in _middle(operator)
        if point.value is not None
    ]
    tried = _count_tried(points)
    begin = f"{name}, on {number_of(points.n, 'image')}"
    part = f"{_name_threshold(points)} of its mAP"
    if not below:
        return f"{begin}, keeps at least {part} under all of {tried}."
    level, operator = min(below)
    return f"{begin}, has less than {part} from level {level:.0f} of {operator}; {tried}."


def _state_objects(name: str, model: Evaluated) -> str | None:
    """How often a detector misses an object between its first and last detection."""
    blinks = find(model.results, "blink_rate")
    if blinks is None or blinks.value is None:
        return None
    return (
        f"{name} misses an object in {percent(blinks.value)} of {number_of(blinks.n, 'frame')} "
        f"between that object's first and last detection{_ends(blinks)}."
    )


def _flips(name: str, model: Evaluated) -> str | None:
    """How often the prediction changes, without labels."""
    flips = find(model.results, "flip_rate")
    if flips is None or flips.value is None:
        return None
    return (
        f"{name} changes its prediction in {percent(flips.value)} of {number_of(flips.n, 'pair')} "
        f"of consecutive frames{_among(flips)}{_ends(flips)}."
    )


def _wavers(name: str, model: Evaluated) -> str | None:
    """How long a prediction stays the same along whole videos, and the self-consistency."""
    dwell, same = find(model.results, "dwell_time"), find(model.results, "self_consistency")
    if dwell is None or not dwell.n:
        return None
    (between,) = (cell for cell in dwell.cells if cell.name == "between changes, seconds")
    if between.value is None:
        frames = int(model.predictions.valid.sum())
        return (
            f"{name} does not change its prediction within a scene in "
            f"{number_of(frames, 'frame')}{_among(dwell)}."
        )
    how_long = f"{duration(between.value)}{_among(dwell)}{_ends(between)}"
    text = f"{name} changes its prediction every {how_long}"
    if same is None or same.value is None:
        return f"{text}."
    return (
        f"{text}; {percent(same.value)} of {number_of(same.n, 'frame')}{_ends(same, False)} have "
        f"the same prediction as every frame within ±{read_k(same)}."
    )


def _state_search(name: str, model: Evaluated) -> str | None:
    """The operator under which it fails first, with the interval of the search."""
    points = find(model.results, "failure_points")
    if points is None:
        return None
    every = [
        (point.value, operator.name, point)
        for operator in points.cells
        for point in _middle(operator)
        if point.value is not None
    ]
    images = f"{number_of(points.n, 'image')} that it gets right undegraded{_among(points)}"
    tried = _count_tried(points)
    threshold = _name_threshold(points)
    if not every:
        # an end of None lies beyond the last level; another one the search has not settled
        may = sum(item.low is not None for o in points.cells for item in _middle(o))
        if may:
            begin = f"{name}, on {images}: the search does not find the level at which accuracy"
            return f"{begin} falls below {threshold} for {may} of {tried}."
        return f"{name}, on {images}, falls below {threshold} under none of {tried}."
    level, operator, point = min(every, key=lambda item: item[:2])
    # an end of None lies beyond the last level
    lows = [item.low for o in points.cells if o.name != operator for item in _middle(o)]
    alone = point.high is not None and all(low is None or low > point.high for low in lows)
    others = "All others reach" if alone else "Other operators may reach"
    how_high = "a higher" if alone else "the same or a lower"
    more = f" {others} it at {how_high} level." if len(points.cells) > 1 else ""
    ends = f"(95\u202f% interval {span(point.low, point.high, 'level')})"
    return (
        f"{name}, on {images}, falls below {threshold} accuracy at level {level:.0f} of "
        f"{format_operator_name(operator)} {ends}.{more} Tried: {tried}."
    )


def _count_operators(cells: Sequence[Result]) -> str:
    """The number of operators of a mean with these cells, in words."""
    levels = "its levels" if len(cells) == 1 else "their levels"
    return f"{number_of(len(cells), 'operator')} and all {levels}"


def _count_tried(points: Result) -> str:
    """The number of operators that a search tested, with its cost."""
    notes = f" ({'; '.join(points.notes)})" if points.notes else ""
    return f"{number_of(len(points.cells), 'operator')}{notes}"


def _name_threshold(points: Result) -> str:
    """The threshold of `_middle`, as a percentage."""
    return percent(float(_middle(points.cells[0])[0].name.removeprefix("below ")), 0)


def _middle(operator: Result) -> tuple[Result, ...]:
    """The failure point at the middle one of the requested thresholds."""
    return operator.cells[len(operator.cells) // 2 :][:1]


def _state_degradation(name: str, model: Evaluated) -> str | None:
    """Accuracy under degradation, and the operator with the lowest accuracy."""
    degraded = find(model.results, "degraded_accuracy")
    points = find(model.results, "failure_points")
    if degraded is None or degraded.value is None:
        return None
    every = operators(degraded)
    retained = every[0].cells[0].value == 1
    least = harm(model.predictions, degraded)
    text = (
        f"{name} {'stays' if retained else 'is'} right on {percent(degraded.value)} of "
        f"{number_of(degraded.n, 'image')}{' that it gets right undegraded' if retained else ''}"
        f"{_among(degraded)}{_ends(degraded)}, averaged over {_count_operators(every)}"
    )
    if least.next is not None:
        fewest = f"{percent(least.worst.value)}{_ends(least.worst, False)}"
        operator = format_operator_name(least.worst.name)
        text += f"; lowest under {operator}, {fewest}{least.doubt}"
    return f"{text}{_half(points, least.worst)}."


def _half(points: Result | None, worst: Result) -> str:
    """The level of the 50 % failure point under an operator; empty if there is none."""
    half = [
        point
        for cell in (points.cells if points else ())
        if cell.name == worst.name
        for point in cell.cells
        if point.name == "below 0.5" and point.value is not None
    ]
    if not half:
        return ""
    ends = span(half[0].low, half[0].high, "level")
    return f"; below 50\u202f% from level {half[0].value:.0f} ({ends})"


def _among(result: Result) -> str:
    """The number of classes among which the predictions were chosen."""
    return "" if result.classes is None else f", among {number_of(result.classes, 'class')}"


def _state_broken(model: Evaluated, k: int) -> str:
    """The share of right anchors that break within ±k, with its interval."""
    sets = pm_sets(model.predictions)
    right = sets.breaks_at > 0
    share = proportion(sets.breaks_at[right] <= k, sets.videos[right])
    if share.value is None:
        return "none is right, so none can break"
    if share.n == 1:
        breaks = "breaks" if share.value else "does not break"
        return f"the 1 right one {breaks} within ±{k} frames"
    ones = f"the {number_of(share.n, 'right one')}"
    return f"{percent(share.value)} of {ones}{_ends(share, False)} break within ±{k} frames"


def _ends(number: Result | Interval, first: bool = True) -> str:
    """The interval of a number in brackets; `first`: with "95 % interval", once per sentence."""
    unit = number.unit if isinstance(number, Result) else "share"
    within = limit(number.interval if isinstance(number, Result) else number.method)
    if number.low is None and number.high is None:
        return f" ({within or 'no interval'})" if first else ""
    if not first:
        return f" ({span(number.low, number.high, unit)})"
    only = f", {within}" if within else ""
    return f" (95\u202f% interval {span(number.low, number.high, unit)}{only})"


# the first that has something to say is heard
TELLERS = (
    _state_degraded_detection,
    *(_state_degradation, _state_search, _state_detection, _steady, _state_objects, _wavers),
    _flips,
)
