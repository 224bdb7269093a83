"""Integrated gradients of the class score of one detection, with captum."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from captum.attr import IntegratedGradients
from numpy.typing import NDArray
from torch import Tensor

from steadyeye.core.errors import unknown
from steadyeye.core.types import Image
from steadyeye.models.introspection.differentiable import FixedCandidates, choose_candidate
from steadyeye.models.runtimes.torch_module import one_thread

BASELINES = ("black", "grey")
TOLERANCE = 0.01
"""Completeness: the sum of the attributions equals the score difference within this share of it."""
FIRST = 32  # steps, doubled until the attributions are complete
MOST = 1024
ABREAST = 4  # inputs a forward pass, of small ones as many as have so many pixels
PIXELS = 416 * 416


@dataclass(frozen=True, eq=False)
class Attributed:
    """What the pixels contribute to the score of a detection.

    `values`: (h', w') float64 at the network's input, |attribution| summed over the channels.
    `scale`: x and y, input = image × scale; the image ends at (height × y, width × x), what lies
    beyond is padding. `total`: the sum of the signed attributions. `score`, `without`: of the
    detection on the image and on the baseline. `steps`: points on the path between them.
    """

    values: NDArray[np.float64]
    scale: tuple[float, float]
    total: float
    score: float
    without: float
    steps: int

    @property
    def residual(self) -> float:
        """|Σ attribution − score difference| ÷ |score difference|; `inf` where there is none."""
        difference = self.score - self.without
        return abs(self.total - difference) / abs(difference) if difference else float("inf")

    @property
    def complete(self) -> bool:
        """Whether the residual is within 1 %."""
        return self.residual <= TOLERANCE


def attribute_detection(
    view: FixedCandidates,
    detection: tuple[Sequence[float], int, float],
    baseline: str = "black",
    most: int = MOST,
) -> Attributed:
    """Integrated gradients of a detection, (box, own label, score), along the way from a baseline.

    The candidate is the one that gave the detection on the image itself, and stays so. `baseline`:
    "black", or "grey", the mean value of the image in all its pixels; both go through the
    network's own preparation. Sundararajan, Taly and Yan, "Axiomatic Attribution for Deep
    Networks", 2017, equation 1; Gauss–Legendre points, doubled from 32 up to `most` until the
    attributions are complete (their Proposition 1).
    """
    if baseline not in BASELINES:
        raise unknown("baseline", baseline, BASELINES)
    box, label, score = detection
    values = view.prepare(view.image)
    start = view.prepare(_fill_baseline(view.image, baseline))
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
            reached = float(scores[candidate, label])
            total = float(attribution.sum())
            result = Attributed(
                np.abs(attribution).sum(axis=0), view.scale, total, reached, without, steps
            )
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


def _fill_baseline(image: Image, baseline: str) -> Image:
    grey = 0 if baseline == "black" else round(float(image.mean()))
    return np.full_like(image, grey)
