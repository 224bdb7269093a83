"""Integrated gradients: the contribution of pixels to the score of a detection."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from captum.attr import IntegratedGradients
from numpy.typing import NDArray
from torch import Tensor

from steadyeye.core.abilities import Explainable
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.types import Image, Tag
from steadyeye.explain.attributions import COMPLETE, INSIDE, sizes
from steadyeye.explain.context import Probe, ProbeError, ProbeGrid, Step, Subject
from steadyeye.explain.saliency import share, sum_cells
from steadyeye.explain.targets import Target
from steadyeye.models.introspection.differentiable import FixedCandidates, choose_candidate
from steadyeye.models.runtimes.torch_module import one_thread

PACKAGES = ("torch", "captum")
EXTRA = "explain"


BASELINES = ("black", "grey")
FIRST = 32  # steps, doubled until the attributions are complete
MOST = 1024
ABREAST = 4  # inputs per forward pass; of small ones as many as have so many pixels
PIXELS = 416 * 416


@dataclass(frozen=True, eq=False)
class Attributed:
    """The contribution of pixels to the score of a detection.

    `values`: (h', w') float64 at the network's input, |attribution| summed over the channels.
    `scale`: x and y, input = image × scale; the image ends at (height × y, width × x); the rest is
    padding. `total`: the sum of the signed attributions. `score`, `without`: of the detection on
    the image and on the baseline. `steps`: points on the path between them.
    """

    values: NDArray[np.float64]
    scale: tuple[float, float]
    total: float
    score: float
    without: float
    steps: int

    @property
    def residual(self) -> float:
        """|Σ attribution − score difference| ÷ |score difference|; `inf` without a difference."""
        difference = self.score - self.without
        return abs(self.total - difference) / abs(difference) if difference else float("inf")

    @property
    def complete(self) -> bool:
        """Whether the residual is within 1 %."""
        return self.residual <= COMPLETE


def attribute_detection(
    view: FixedCandidates,
    detection: tuple[Sequence[float], int, float],
    baseline: str = "black",
    most: int = MOST,
) -> Attributed:
    """Integrated gradients of a detection, (box, own label, score), along the way from a baseline.

    The candidate is the one that gave the detection on the image itself, and stays fixed.
    `baseline`: "black", or "grey", the mean value of the image in all its pixels; both go through
    the network's own preparation. Sundararajan, Taly and Yan, "Axiomatic Attribution for Deep
    Networks", 2017, equation 1; Gauss–Legendre points, doubled from 32 up to `most` until the
    attributions are complete (their Proposition 1).
    """
    if baseline not in BASELINES:
        raise unknown("baseline", baseline, BASELINES)
    box, label, score = detection
    values = view.prepare(view.image)
    grey = 0 if baseline == "black" else round(float(view.image.mean()))
    start = view.prepare(np.full_like(view.image, grey))
    with one_thread():
        with torch.no_grad():
            scores = view.scores(values)[0].double().numpy()
            candidate = choose_candidate(view, scores, box, label, score)
            without = float(view.scores(start)[0, candidate, label])

        def forward(inputs: Tensor) -> Tensor:
            return view.scores(inputs)[:, candidate, label]

        steps = FIRST
        while True:
            attribution = _signed_attribution(forward, values, start, steps)
            sums = np.abs(attribution).sum(axis=0), view.scale, float(attribution.sum())
            result = Attributed(*sums, float(scores[candidate, label]), without, steps)
            if result.complete or 2 * steps > most:
                return result
            steps *= 2


def _signed_attribution(
    forward: Callable[[Tensor], Tensor], values: Tensor, start: Tensor, steps: int
) -> NDArray[np.float64]:
    """(c, h', w') the attribution of every value of the input."""
    explain = IntegratedGradients(forward)
    abreast = max(ABREAST, PIXELS // values[0, 0].numel())
    with torch.enable_grad():
        attribution = explain.attribute(
            values, baselines=start, n_steps=steps, internal_batch_size=abreast
        )
    return np.asarray(attribution.detach()[0].double().numpy())


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
    model = subject.model
    fix_candidates = model.fix_candidates if isinstance(model, Explainable) else None
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
        subject,
        "integrated_gradients",
        once,
        lambda image, target, step: image,
        settings,
        measure=measure,
        unmeasured=INSIDE,
    )
    # a target takes a hundred forward and backward passes
    return Probe(grid, shard=1)
