"""A detector seen from within: the scores of all its candidates as a function of its input.

What `AtInput.gradient` is to classifiers. A detector that can be differentiated has a method
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
"""By how much the score of a candidate may differ from what the detector said."""


@dataclass(frozen=True, eq=False)
class FixedCandidates:
    """One image in the eyes of a detection network, whose candidates are fixed.

    A candidate is what one detection is made of: a query, an anchor, a cell, a proposal; those of
    this image stay the same whatever input they are asked about. `image`: (h, w, 3) uint8.
    `prepare`: image → (1, c, h', w') float32, the input of the network. `scale`: x and y, input =
    image × scale; padding lies to the right and below. `boxes`: (n, 1, 4) or, where each class has
    a box of its own, (n, classes, 4), x0 y0 x1 y1 in pixels of the image. `scores`: (b, c, h', w')
    → (b, n, classes), differentiable, over the detector's own classes.
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
    """The candidate that a detection is made of: the right score, then the nearest box.

    `scores`: (n, classes) of the image itself. Raises `UsageError` where none has its score.
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
