"""The least steady seconds of videos."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.pm_sets import consecutive
from steadyeye.core.predictions import Predictions
from steadyeye.metrics.sequences.flips import flipped, jumps

SECOND = 1.0


@dataclass(frozen=True, eq=False)
class Window:
    """One second of a scene, or the whole of a shorter one.

    `rows`: its frames in order. `changes`: of answer between them. `jump`: Σ |Δ confidence|.
    `instability` = changes + jump.
    """

    rows: NDArray[np.intp]
    changes: int
    jump: float

    @property
    def instability(self) -> float:
        """What windows are ranked by."""
        return self.changes + self.jump


def windows(predictions: Predictions, most: int) -> list[Window]:
    """The `most` least steady seconds in which the answer changes, none overlapping another.

    The least steady one first (ties: the earlier in the source), then the least steady that shares
    no frame with it, and so on. Without probabilities the changes alone count.
    """
    pairs = consecutive(predictions)
    changed = flipped(predictions, pairs)
    moved = jumps(predictions, pairs)
    jump = np.zeros(len(pairs)) if moved is None else moved
    stops = _stops(predictions, pairs)
    changes = _sums(changed.astype(np.float64), stops)
    sums = _sums(jump, stops)
    free = changes > 0
    begins, ends = pairs[:, 0], pairs[stops - 1, 1]
    found: list[Window] = []
    while len(found) < most and free.any():
        first = int(np.where(free, changes + sums, -np.inf).argmax())
        stop = int(stops[first])
        rows = np.append(pairs[first:stop, 0], pairs[stop - 1, 1])
        found.append(Window(rows, round(float(changes[first])), float(sums[first])))
        # neither what begins within it or on its last frame, nor what reaches into it
        free[first:stop] = False
        free &= (begins != ends[first]) & (ends != begins[first])
        free[:first] &= stops[:first] <= first
    return found


def _stops(predictions: Predictions, pairs: NDArray[np.intp]) -> NDArray[np.intp]:
    """For the window that begins with each pair, the pair after its last.

    Both frames of a pair lie within a second of the first frame, and all are of one scene.
    """
    groups, seconds = predictions.groups, np.asarray(predictions.tags["seconds"])
    frame = np.asarray(predictions.tags["frame"])
    breaks = np.flatnonzero(
        (groups[pairs[1:, 0]] != groups[pairs[:-1, 1]])
        | (frame[pairs[1:, 0]] != frame[pairs[:-1, 1]])
    )
    stops = np.zeros(len(pairs), dtype=np.intp)
    for start, stop in zip([0, *(breaks + 1)], [*(breaks + 1), len(pairs)], strict=True):
        begins, ends = seconds[pairs[start:stop, 0]], seconds[pairs[start:stop, 1]]
        # half a millisecond less, so that 25 frames are a second whatever 1/25 is rounded to
        near = np.searchsorted(ends, begins + SECOND - 0.0005, side="left")
        stops[start:stop] = start + np.maximum(near, np.arange(stop - start) + 1)
    return stops


def _sums(values: NDArray[np.floating], stops: NDArray[np.intp]) -> NDArray[np.float64]:
    """The sum of the values from each place to its stop."""
    upto = np.append(0.0, np.cumsum(values))
    return np.asarray(upto[stops] - upto[:-1], dtype=np.float64)
