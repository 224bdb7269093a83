"""How much steadier a model is than published models of its accuracy."""

import numpy as np

from steadyeye.core.competing_classes import among_competing
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Result, needs
from steadyeye.metrics.testbed.published_models import (
    TITLES,
    K,
    choose_published_set,
    find_altered_set,
    find_released_set,
    read_published,
)
from steadyeye.metrics.testbed.testbed_fit import SPACES, fit
from steadyeye.metrics.testbed.testbed_fit import effective_robustness as against


def _comparable(predictions: Predictions) -> bool:
    return choose_published_set(predictions) is not None


@needs("truth", "group", "offset", largest_offset=10, when=_comparable)  # K, read without import
@among_competing
def effective_robustness(
    predictions: Predictions, line: str | None = None, space: str = "probit"
) -> Result:
    """pm-10 minus the value of the line through 335 published models at the model's accuracy.

    `line`: "imagenet_vid_robust" or "ytbb_robust", the set on which the line was measured; by
    default the data's own, and ImageNet-Vid-Robust's for other data, as a yardstick only. `space`:
    "probit" or "plain", in which the line is straight. The interval covers the sampling of the
    anchors, accuracy and pm-10 together, and the line's own uncertainty. Raises `UsageError` if the
    data do not reach ±10, because the line is for k = 10, and for a part or a variant of a released
    set, on which no published model was measured. Value None on empty input. Taori et al., NeurIPS
    2020, Section 2.

    Example with invented predictions:

        >>> from steadyeye.testing import example_predictions
        >>> result = effective_robustness(example_predictions(margin=0.7, k=10))
        >>> print(f"{result.value:.3f}, n = {result.n}")
        -0.833, n = 12
    """
    if space not in SPACES:
        raise unknown("space", space, SPACES)
    variant = find_altered_set(predictions)
    if variant:
        raise UsageError(
            f"effective_robustness has no line for '{predictions.data}': it is not the whole "
            f"{TITLES[variant]} that the published models were measured on; leave the metric out"
        )
    models = read_published(line or choose_published_set(predictions) or "")
    sets = pm_sets(predictions)
    largest = int(abs(sets.offsets).max(initial=0))
    if len(sets) and largest < K:
        raise UsageError(
            f"effective_robustness compares at k={K}, but the data reach ±{largest}; leave the "
            f"metric out or use sets that reach ±{K}"
        )
    fitted = fit(models.original, models.perturbed, SPACES[space], models.anchors)
    effect = against(sets.breaks_at > 0, sets.breaks_at > K, np.asarray(sets.videos), fitted)
    notes: tuple[str, ...] = (
        f"distance from the line through {len(models)} published models on {models.title}, "
        f"{space} space",
    )
    if find_released_set(predictions) != models.data:
        notes += ("the line is from other data than these",)
    scale = "" if space == "probit" else f", space={space}"
    name = f"effective_robustness(line={models.data}{scale})"
    return Result.of(name, effect, notes=notes, unit="difference")
