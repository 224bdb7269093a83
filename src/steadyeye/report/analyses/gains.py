"""Accuracy, pm-k and drop before and after training further."""

from collections.abc import Sequence
from dataclasses import replace

from steadyeye.core.report_types import Section, Topic
from steadyeye.core.types import Evaluated, needs
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
    find_shared,
    from_scratch,
    gain,
    numbers,
    steps,
    tables,
)
from steadyeye.report.comparison.leaderboards import common
from steadyeye.report.comparison.metric_wording import name_metric

OF_LABELS = ("accuracy", "pm_k", "drop")
OF_BOXES = ("map", "pm_k_map", "map_drop")


@needs()
def gains(evaluated: Sequence[Evaluated]) -> Section | None:
    """Fine-tuned models compared with their base models: accuracy, pm-k and drop.

    Paired, on the same samples: samples that one of the two did not predict are left out for both.
    None if no model was trained from another model of the report.
    """
    measured = [
        (step, gained) for step in steps(evaluated) if (gained := _measure_gains(step)).gains
    ]
    if not measured:
        return None
    several = [gained for _, gained in measured]
    return Section(
        topic=Topic.TRAINING,
        place=2,
        title=f"{several[0].after} compared with {several[0].before}: {changes(several[0].gains)}"
        + (f"; {len(several) - 1} more below" if len(several) > 1 else ""),
        text=(
            *(
                line
                for step, gained in measured
                for line in (_sentence(step, gained), _meaning(gained))
            ),
            *dict.fromkeys(line for step, _ in measured for line in caveats(step)),
        ),
        method=(f"Both models are compared on the same samples. {READING}",),
        tables=tables("Before and after training", several),
        figures=(dumbbells("gains", several),),
    )


def _measure_gains(step: Step) -> TrainingGains:
    pair = [step.before, step.after]
    tables = common([model.predictions for model in pair])
    before, after = (replace(model, predictions=p) for model, p in zip(pair, tables, strict=True))
    names = OF_BOXES if "detections" in after.predictions.columns else OF_LABELS
    compared = []
    for name in names:
        shared = find_shared(before, after, name)
        outcomes = after.bound_metrics[shared].outcomes if shared else None
        if outcomes is not None:
            both = (outcomes(model.predictions) for model in (before, after))
            compared.append(gain(_name_gain(shared), *both))
    return TrainingGains(
        *step.names, adjust_gains([change for change in compared if change.difference is not None])
    )


def _name_gain(metric: str) -> str:
    drops = {"drop": "drop", "map_drop": "drop in mAP"}
    return drops.get(metric.partition("(")[0], name_metric(metric).partition(" (")[0])


def _sentence(step: Step, gained: TrainingGains) -> str:
    """What each number was and is."""
    operators = ", ".join(augmentation(step.after.predictions))
    anew = from_scratch(step.after.predictions)
    if step.augmented:
        start = (
            f"from new random weights, as {gained.before} was,"
            if anew
            else "from the same base model"
        )
        begin = (
            f"{gained.after} was trained {start} and on the same images as {gained.before}, "
            f"augmented with {operators}"
        )
    else:
        how = f", on images augmented with {operators}" if operators else ""
        start = (
            f"from scratch, with the architecture of {gained.before} and none of its weights"
            if anew
            else f"from {gained.before}"
        )
        begin = f"{gained.after} was trained {start}{how}"
    return f"{begin}: {numbers(gained.gains)}."


def _meaning(gained: TrainingGains) -> str:
    """What the training bought, as far as it can be told."""
    plain, *_, drop = gained.gains
    if len(gained.gains) < 3:
        return "Without sets of neighbouring frames its steadiness cannot be measured."
    words = "Accuracy is", "higher", "lower", "There is no clear difference in accuracy"
    bought = _direction(plain, *words)
    words = (
        "the drop is",
        "larger than before",
        "smaller than before",
        "there is no clear difference in the drop",
    )
    return f"{bought}, and {_direction(drop, *words)}."


def _direction(change: Gain, begin: str, more: str, less: str, same: str) -> str:
    if not change.is_clear or change.difference is None:
        return same
    return f"{begin} {more if change.difference.value > 0 else less}"
