"""The scores of all candidates of a detector as a differentiable function of its input.

For classifiers this is `AtInput.gradient`. A differentiable detector has a method
`fix_candidates(image) -> FixedCandidates`; a function given to `callable_detector` may carry one as
an attribute.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Image

SLACK = 1e-3
"""The largest difference between the score of a candidate and that of the detection."""


@dataclass(frozen=True, eq=False)
class FixedCandidates:
    """One image in a detection network with fixed candidates.

    A candidate is the source of one detection: a query, an anchor, a cell, a proposal; the
    candidates of this image stay the same for any input. `image`: (h, w, 3) uint8. `prepare`: image
    → (1, c, h', w') float32, the input of the network. `scale`: x and y, input = image × scale;
    padding is to the right and below. `boxes`: (n, 1, 4) or, where each class has a box of its own,
    (n, classes, 4), x0 y0 x1 y1 in pixels of the image. `scores`: (b, c, h', w') → (b, n, classes),
    differentiable, over the detector's own classes.
    """

    image: Image
    prepare: Callable[[Image], Tensor]
    scale: tuple[float, float]
    boxes: NDArray[np.float64]
    scores: Callable[[Tensor], Tensor]


def choose_candidate(
    view: FixedCandidates,
    scores: NDArray[np.floating],
    box: Sequence[float],
    label: int,
    score: float,
) -> int:
    """The candidate of a detection: the one with its score, then with the nearest box.

    `scores`: (n, classes) of the image itself. Raises `UsageError` if none has its score.
    """
    near = np.flatnonzero(np.abs(scores[:, label] - score) <= SLACK)
    if not len(near):
        closest = float(scores[np.abs(scores[:, label] - score).argmin(), label])
        raise UsageError(
            f"no candidate of the opened detector scores {score:.4f} for class {label}, the "
            f"nearest {closest:.4f}; `fix_candidates` has to give the scores "
            "that the detector gives"
        )
    corners = view.boxes[near, min(label, view.boxes.shape[1] - 1)]
    away = np.abs(corners - np.asarray(box, dtype=np.float64)).max(axis=1)
    return int(near[away.argmin()])
