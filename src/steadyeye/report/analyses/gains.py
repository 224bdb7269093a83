"""Accuracy, pm-k and drop before and after training further."""

from collections.abc import Sequence
from dataclasses import replace

from steadyeye.core.report_types import Section, Topic
from steadyeye.core.types import BoundMetric, Evaluated, needs
from steadyeye.report.comparison.before_after import (
    READING,
    Gain,
    Step,
    TrainingGains,
    adjust_gains,
    augmentation,
    caveats,
    changes,
    dumbbells,
    from_scratch,
    gain,
    numbers,
    steps,
    tables,
)
from steadyeye.report.comparison.leaderboards import common, name_metric

OF_LABELS = ("accuracy", "pm_k", "drop")
OF_BOXES = ("map", "pm_k_map", "map_drop")


@needs()
def gains(evaluated: Sequence[Evaluated]) -> Section | None:
    """Models that were trained further beside what they were: original, perturbed and drop.

    Paired, on the same samples: those that one of the two did not predict are left out for both.
    None where no model was trained from another one that is there.
    """
    found = [(step, each) for step in steps(evaluated) if (each := _measure_gains(step)).gains]
    if not found:
        return None
    told = [each for _, each in found]
    return Section(
        topic=Topic.TRAINING,
        place=2,
        title=_title(told),
        text=(
            *(line for step, each in found for line in (_sentence(step, each), _meaning(each))),
            *dict.fromkeys(line for step, _ in found for line in caveats(step)),
        ),
        method=(f"Both models are compared on the same samples. {READING}",),
        tables=tables("Before and after", told),
        figures=(dumbbells("gains", told),),
    )


def _measure_gains(step: Step) -> TrainingGains:
    pair = [step.before, step.after]
    tables = common([one.predictions for one in pair])
    before, after = (replace(one, predictions=p) for one, p in zip(pair, tables, strict=True))
    names = OF_BOXES if "detections" in after.predictions.columns else OF_LABELS
    found = []
    for name in names:
        asked = _both(before, after, name)
        if asked is not None and asked[1].outcomes is not None:
            outcomes = asked[1].outcomes
            what = _what(asked[0])
            found.append(gain(what, *(outcomes(one.predictions) for one in (before, after))))
    return TrainingGains(
        *step.names, adjust_gains([each for each in found if each.difference is not None])
    )


def _both(before: Evaluated, after: Evaluated, name: str) -> tuple[str, BoundMetric] | None:
    """A metric that both were asked for, whatever its parameters."""
    for key, asked in after.bound_metrics.items():
        if (key == name or key.startswith(f"{name}(")) and key in before.bound_metrics:
            return key, asked
    return None


def _what(metric: str) -> str:
    return "drop in mAP" if metric.startswith("map_drop") else name_metric(metric).partition("(")[0]


def _title(told: Sequence[TrainingGains]) -> str:
    first = f"{told[0].after} compared with {told[0].before}: {changes(told[0].gains)}"
    return first if len(told) == 1 else f"{first}; {len(told) - 1} more below"


def _sentence(step: Step, told: TrainingGains) -> str:
    """What each number was and is."""
    operators = ", ".join(augmentation(step.after.predictions))
    anew = from_scratch(step.after.predictions)
    if step.augmented:
        start = (
            f"from new random weights, as {told.before} was,"
            if anew
            else "from the same base model"
        )
        begin = (
            f"{told.after} was trained {start} and on the same images as {told.before}, augmented "
            f"with {operators}"
        )
    else:
        how = f", on images augmented with {operators}" if operators else ""
        start = (
            f"from scratch, with the architecture of {told.before} and none of its weights"
            if anew
            else f"from {told.before}"
        )
        begin = f"{told.after} was trained {start}{how}"
    return f"{begin}: {numbers(told.gains)}."


def _meaning(told: TrainingGains) -> str:
    """What the training bought, as far as it can be told."""
    plain, *_, drop = told.gains
    if len(told.gains) < 3:
        return "Without sets of neighbouring frames its steadiness cannot be measured."
    bought = _direction(
        plain,
        "Accuracy is higher",
        "Accuracy is lower",
        "There is no clear difference in accuracy",
    )
    steady = _direction(
        drop,
        "the drop is larger than before",
        "the drop is smaller than before",
        "there is no clear difference in the drop",
    )
    return f"{bought}, and {steady}."


def _direction(found: Gain, more: str, less: str, same: str) -> str:
    if not found.apart or found.difference is None:
        return same
    return more if found.difference.value > 0 else less
