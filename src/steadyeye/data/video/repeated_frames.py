"""Frames that repeat the picture before them, as after conversion to a higher frame rate.

An encoder stores a repeated picture with slight differences, and pictures of a still scene hardly
differ either. So a frame counts as a repeat if it differs from the one before far less than is
usual around it, or not at all.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of, percent

AROUND = 4
"""Differences before and after that say what is usual."""
USUAL = 75
"""Their percentile that does: where two of three frames are repeats, the third still counts."""
LESS = 0.3
"""Share of the usual difference below which a frame is a repeat.

Two videos, doubled by seven encoders at usual qualities: 38 to 50 % of the frames are. Of the same
videos as filmed, encoded twice and of ten sequences of DAVIS: at most 1.3 %.
"""
NOTHING = 0.02
"""Mean difference, of 255, of pictures that are the same."""
NOTED = 0.1
"""Share of repeats from which a note tells of them: pulldown from 24 to 30 frames/s has 0.2."""


def find_repeats(differences: Sequence[float]) -> NDArray[np.bool_]:
    """Which frames repeat the one before them: (frames - 1,), from the second frame on.

    `differences`: (frames - 1,) mean absolute difference of each frame from the one before, 0…255.
    """
    values = np.asarray(differences, dtype=np.float64)
    if len(values) <= AROUND:
        return values < NOTHING
    window = np.lib.stride_tricks.sliding_window_view(
        np.pad(values, AROUND, mode="reflect"), 2 * AROUND + 1
    )
    usual = np.percentile(window, USUAL, axis=1)
    return np.asarray((values < LESS * usual) | (values < NOTHING))


def share_of_repeats(repeats: NDArray[np.bool_], step: int = 1) -> float:
    """The share of the read frames, 0…1, that repeat the read frame before; `step`: of reading."""
    pairs = len(repeats) // step
    return float(repeats[: pairs * step].reshape(pairs, step).all(axis=1).mean()) if pairs else 0.0


def repeat_notes(shares: Mapping[str, float]) -> tuple[str, ...]:
    """A note if a tenth or more of the frames of a video are repeats; `shares`: by video."""
    many = [name for name, share in shares.items() if share >= NOTED]
    if not many:
        return ()
    most = max(many, key=lambda name: shares[name])
    return (
        f"{len(many):,} of {number_of(len(shares), 'video')} with repeated frames: "
        f"{percent(shares[most])} of '{most}' repeat the picture before them, as after "
        "conversion to a higher frame rate; predictions hardly change there, so there are fewer "
        "flips per frame, and ±k frames show fewer pictures; remove repeats with FFmpeg's "
        "mpdecimate",
    )
