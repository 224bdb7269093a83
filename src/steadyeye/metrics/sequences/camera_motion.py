"""Motion of the camera: the shift of the picture from one frame of a scene to the next.

The shift is the one at which the projections of two frames, the means of their columns and of
their rows, agree best. Crawford et al., "Gradient based dominant motion estimation with integral
projections for real time video stabilisation", 2004. Rotation and zoom are not measured.
"""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from steadyeye.core.predictions import BINS, PROJECTIONS, Predictions

REACH = 19
"""The largest shift that is looked for, in bins: 15 % of a side."""
AT_ONCE = 256
"""Frames that are compared at a time, for the memory."""
NOISE = 0.25
"""Grey levels: a shift that makes two frames agree better by less is one of noise. In a frame whose
neighbouring means mostly differ by less, an object on a plain background would be followed."""


def find_shifts(projections: NDArray[np.floating]) -> NDArray[np.float64]:
    """(n, 2) pixels by which the picture of n frames moves from the frame before, x and y.

    `projections`: (n, 2 · `BINS` + 2), in the order of time. 0 for the first frame, after a frame
    of another size, and where no shift explains the difference.
    """
    sizes = projections[:, 2 * BINS :]
    lines = np.asarray(projections[:, : 2 * BINS], dtype=np.float64).reshape(-1, 2, BINS)
    shifts = np.zeros((len(lines), 2))
    for start in range(0, len(lines) - 1, AT_ONCE):
        part = lines[start : start + AT_ONCE + 1]
        moved = _match(part[:-1].reshape(-1, BINS), part[1:].reshape(-1, BINS))
        shifts[start + 1 : start + len(part)] = moved.reshape(-1, 2)
    shifts *= sizes / BINS
    shifts[1:][(sizes[1:] != sizes[:-1]).any(axis=1)] = 0.0
    return np.nan_to_num(shifts)


def find_positions(
    predictions: Predictions, scenes: Sequence[NDArray[np.intp]]
) -> NDArray[np.float64]:
    """(n, 2) pixels by which the picture has moved since the first frame of each row's scene.

    `scenes`: the rows of each, in the order of time. 0 where no projections were measured.
    """
    positions = np.zeros((len(predictions), 2))
    if PROJECTIONS in predictions.tags:
        projections = predictions.tags[PROJECTIONS]
        for rows in scenes:
            positions[rows] = np.cumsum(find_shifts(projections[rows]), axis=0)
    return positions


def _match(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the shift in bins at which n projections agree best with those before them.

    The middle of the projection before is laid over each place of that after it; a change of
    brightness does not count.
    """
    inner = BINS - 2 * REACH
    apart = sliding_window_view(after, inner, axis=1) - before[:, None, REACH : REACH + inner]
    apart -= apart.mean(axis=2, keepdims=True)
    cost = np.abs(apart).mean(axis=2)
    frames = np.arange(len(cost))
    best = cost.argmin(axis=1)
    is_better = cost[:, REACH] - cost[frames, best] >= NOISE
    is_plain = 2 * (np.abs(np.diff(before, axis=1)) < NOISE).sum(axis=1) > BINS - 1
    best = np.where(is_better, best, REACH)
    near = np.clip(best, 1, 2 * REACH - 1)
    left, middle, right = (cost[frames, near + step] for step in (-1, 0, 1))
    # the difference rises by the same amount per bin on both sides
    rise = np.maximum(np.maximum(left, right) - middle, NOISE)
    shift = best - REACH + np.where(near == best, 0.5 * (left - right) / rise, 0.0)
    return np.where(is_plain, 0.0, shift)
