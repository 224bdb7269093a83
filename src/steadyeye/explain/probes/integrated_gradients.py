"""What the pixels contribute to the score of a detection, measured inside the detector."""

from collections.abc import Mapping

import numpy as np

from steadyeye.core.abilities import Explainable
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.types import Image, Tag
from steadyeye.explain.attributions import INSIDE, sizes
from steadyeye.explain.context import Probe, ProbeError, ProbeGrid, Step, Subject
from steadyeye.explain.saliency import share, sum_cells
from steadyeye.explain.targets import Target
from steadyeye.models.introspection.integrated_gradients import (
    BASELINES,
    FIRST,
    MOST,
    attribute_detection,
)

PACKAGES = ("torch", "captum")
EXTRA = "explain"


def integrated_gradients(subject: Subject, baseline: str = "black", steps: int = MOST) -> Probe:
    """Unchanged images, with the integrated gradients of each target's class score.

    For detectors that can be opened: torchvision's, those of transformers, and functions that say
    how (`steadyeye.models.introspection.differentiable`). `baseline`: "black", or "grey", the
    image's mean value. `steps`: points on the path from it, at most; doubled from 32 until the sum
    of the attributions is the score difference within 1 %. Raises `ProbeError` for a detector
    without gradients. Sundararajan et al. 2017; as in Lau et al. 2021.

    Example: `attribution(probe='integrated_gradients', baseline='grey')`
    """
    if baseline not in BASELINES:
        raise unknown("baseline", baseline, BASELINES)
    if steps < FIRST:
        raise UsageError(f"integrated_gradients(steps={steps}): give at least {FIRST}")
    fix_candidates = (
        subject.model.fix_candidates if isinstance(subject.model, Explainable) else None
    )
    if fix_candidates is None:
        raise ProbeError(
            f"{subject.model.name} has no gradients; use attribution(probe='rise') or "
            "attribution(probe='occlusion'), which need its outputs alone"
        )

    def measure(image: Image, target: Target, step: Step) -> Mapping[str, Tag]:
        detection = (target.box, target.own_label, target.score)
        attribution = attribute_detection(fix_candidates(image), detection, baseline, steps)
        wide, tall = attribution.scale
        height, width = image.shape[:2]
        inside = attribution.values[: round(height * tall), : round(width * wide)]
        x0, y0, x1, y1 = target.box
        return {
            **sizes(image, target, step),
            "inside": share(inside, (x0 * wide, y0 * tall, x1 * wide, y1 * tall)),
            "without": attribution.without,
            "residual": attribution.residual,
            "steps": float(attribution.steps),
            "map": sum_cells(inside, *inside.shape).astype(np.float32).ravel(),
        }

    settings = {"baseline": baseline, "steps": steps}
    once: list[Step] = [{"attribution": "integrated_gradients", "mask": 0}]
    grid = ProbeGrid(
        subject, "integrated_gradients", once, _same, settings, measure=measure, unmeasured=INSIDE
    )
    # a target takes a hundred passes there and back
    return Probe(grid, shard=1)


def _same(image: Image, target: Target, step: Step) -> Image:
    return image
