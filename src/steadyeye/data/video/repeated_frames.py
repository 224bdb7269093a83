"""Frames that repeat the picture before them, as after conversion to a higher frame rate.

An encoder stores a repeated picture with slight differences. So a frame counts as a repeat if far
fewer of its pixels change than is usual around it. Where nothing moves nobody can tell: encoders
repeat the picture of a still camera, too.
"""

from collections.abc import Mapping, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import number_of, percent

CHANGE = 16
"""Difference in brightness, of 255, up to which a pixel has not changed: noise and coding."""
MOVES = 0.005
"""Share of changed pixels that is usual where something moves."""
AROUND = 4
"""Frames before and after that say what is usual."""
USUAL = 0.75
"""Their quantile that does: where two of three frames are repeats, the third still counts."""
LESS = 0.3
"""Share of the usual change below which a frame is a repeat.

Of five videos, doubled by nine encoders at usual qualities and at 300 kbit/s, and of the same as
filmed: see `tests/data/video/test_repeated_frames.py`.
"""
LEAST = 40
"""Frames with motion on which a share of repeats stands at least."""
NOTED = 0.1
"""Share of repeats from which a note tells of them: pulldown from 24 to 30 frames/s has 0.2."""
ADVICE = (
    "repeat the picture before them, as after conversion to a higher frame rate; predictions "
    "hardly change there, so there are fewer flips per frame"
)


def share_changed(image: NDArray[np.uint8], before: NDArray[np.uint8]) -> float:
    """The share of pixels, 0…1, that change from one image to the next.

    `image`, `before`: (h, w) brightness, at most a few hundred pixels wide, so that noise of single
    pixels is averaged.
    """
    _, changed = cv2.threshold(cv2.absdiff(image, before), CHANGE, 1, cv2.THRESH_BINARY)
    return cv2.countNonZero(changed) / changed.size


def find_repeats(
    changes: Sequence[float], steps: Sequence[int] | None = None
) -> NDArray[np.float64]:
    """Which frames repeat the one before: 1 or 0, NaN where nothing moves; from the second on.

    `changes`: (frames - 1,) of `share_changed`. `steps`: (frames - 1,) how many frames of the video
    there are from one to the next, all the same unless said: more changes over more frames, so a
    frame is compared with those after no more. Returns (frames - 1,).
    """
    values = np.asarray(changes, dtype=np.float64)
    if len(values) <= AROUND:
        return np.full(len(values), np.nan)
    step = np.ones(len(values)) if steps is None else np.asarray(steps, dtype=np.float64)
    comparable = _around(step) <= step[:, None]
    # np.nanquantile takes 0.1 s for 30 s of video
    near = np.sort(np.where(comparable, _around(values), np.inf), axis=1)
    place = USUAL * (comparable.sum(axis=1, keepdims=True) - 1)
    low, high = (
        np.take_along_axis(near, rounded(place).astype(np.intp), axis=1)[:, 0]
        for rounded in (np.floor, np.ceil)
    )
    usual = low + (place % 1)[:, 0] * (high - low)
    return np.where(usual < MOVES, np.nan, values < LESS * usual)


def _around(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 9) each value with those around it."""
    padded = np.pad(values, AROUND, mode="reflect")
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * AROUND + 1)


def share_of_repeats(repeats: NDArray[np.float64], step: int = 1) -> float | None:
    """The share of the read frames with motion, 0…1, that repeat the read frame before.

    `repeats`: of `find_repeats`. `step`: of reading. None where less than `LEAST` frames show
    motion.
    """
    pairs = len(repeats) // step
    # of the frames between two read ones one that is new is enough
    read = np.fmin.reduce(repeats[: pairs * step].reshape(pairs, step), axis=1)
    known = read[~np.isnan(read)]
    return float(known.mean()) if len(known) >= LEAST else None


def repeat_notes(shares: Mapping[str, float | None]) -> tuple[str, ...]:
    """A note if a tenth or more of the frames of a video are repeats; `shares`: by video."""
    many = {name: share for name, share in shares.items() if share and share >= NOTED}
    if not many:
        return ()
    most = max(many, key=lambda name: many[name])
    return (
        f"{len(many):,} of {number_of(len(shares), 'video')} with repeated frames: "
        f"{percent(many[most])} of the frames with motion of '{most}' {ADVICE}, and ±k frames "
        "show fewer pictures; remove repeats with FFmpeg's mpdecimate",
    )
