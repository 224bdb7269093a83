"""Checks that both sides of a split share no videos and no near duplicates.

Near duplicates are detected by a hash that recoding and resizing hardly change: the signs of the
255 lowest frequencies of a grey 64 × 64 view, but the mean, against their median (Zauner,
"Implementation and Benchmarking of Perceptual Image Hash Functions", 2010, with 16 × 16 frequencies
for his 8 × 8). Measured on ten DAVIS sequences, bikes.mp4, a second video and forty photos: of
copies recoded at JPEG quality 10 to 50 and resized to as little as 15 %, at most 32 bits differ; of
frames of different videos, at least 86. Copies that are cropped or mirrored are not found.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.format import number_of
from steadyeye.core.types import Image
from steadyeye.training.protocol import Example, Examples

MOST = 10_000
"""The most examples of a side that are compared, evenly spaced if it has more."""

SIDE = 64
LOWEST = 16
BITS = LOWEST * LOWEST - 1

NEAR = 48
"""Most different bits of `BITS` of two near duplicates."""

FLAT = 4.0
"""Grey levels: the least standard deviation of a view for a comparison."""

BLOCK = 2048  # images compared at a time


def check_leakage(train: Examples, validation: Examples, in_time: bool = False) -> tuple[str, ...]:
    """Notes on the comparison. Raises `UsageError` if held-out data leak into training.

    That is if both sides have the same video, or near duplicates (`steadyeye.training.leakage`);
    the error has the first ones and their number. `in_time`: sides of the same videos, with a gap
    between; near duplicates across it are then reported in a note. Every compared image is decoded
    once.
    """
    if not in_time:
        shared = sorted(_list_videos(train.items) & _list_videos(validation.items))
        if shared:
            raise UsageError(
                f"training and held-out data share {number_of(len(shared), 'video')}: "
                f"{list_texts(shared)}; frames of one video are nearly the same, so hold out whole "
                "videos"
            )
    sides = [_space_frames(side.items) for side in (train, validation)]
    with ThreadPoolExecutor() as pool:
        marks = [list(pool.map(_hash_example, side)) for side in sides]
    pairs = find_near_duplicates(*([mark for mark in side if mark is not None] for side in marks))
    shared_videos = _names(sides, marks, pairs)
    hit = len({second for _, second in shared_videos})
    if shared_videos and not in_time:
        raise UsageError(
            f"{hit:,} of {len(sides[1]):,} held-out images are nearly the same as training "
            f"images (at most {NEAR} of {BITS} bits of their hashes differ): "
            f"{list_texts([f'{b} and {a}' for a, b in shared_videos])}; keep them on one side"
        )
    flat = sum(mark is None for side in marks for mark in side)
    notes = [_compare_sides(train, validation, sides)]
    notes[0] += f"; {flat:,} not compared: too little contrast" if flat else ""
    if in_time:
        notes.append(
            f"{hit:,} of {len(sides[1]):,} held-out frames are nearly the same as a training "
            "frame, across the gap"
            + (f": {list_texts([f'{b} and {a}' for a, b in shared_videos])}" if hit else "")
        )
    return tuple(notes)


def _compare_sides(
    train: Examples, validation: Examples, sides: Sequence[Sequence[Example]]
) -> str:
    counts = [
        f"{len(some):,}{'' if len(some) == len(side.items) else f' of {len(side.items):,}'}"
        for some, side in zip(sides, (train, validation), strict=True)
    ]
    return (
        f"{counts[0]} training and {counts[1]} held-out images compared by a perceptual hash: "
        f"nearly the same if at most {NEAR} of {BITS} bits differ"
    )


def _list_videos(items: Sequence[Example]) -> set[str]:
    """The videos; single images, which are named by their files, are compared by pixels only."""
    return {example.video for example in items if example.video != example.id}


def _space_frames(items: Sequence[Example]) -> list[Example]:
    if len(items) <= MOST:
        return list(items)
    return [items[i] for i in np.linspace(0, len(items) - 1, MOST).round().astype(int)]


def _hash_example(example: Example) -> NDArray[np.bool_] | None:
    return hash_image(example.image())


def _names(
    sides: Sequence[Sequence[Example]],
    marks: Sequence[Sequence[NDArray[np.bool_] | None]],
    pairs: NDArray[np.int64],
) -> list[tuple[str, str]]:
    """The ids of the pairs: each held-out id with its first duplicate in training."""
    left, right = (
        [example.id for example, mark in zip(side, marks_of_side, strict=True) if mark is not None]
        for side, marks_of_side in zip(sides, marks, strict=True)
    )
    first: dict[str, str] = {}
    for a, b in pairs:
        first.setdefault(right[b], left[a])
    return [(a, b) for b, a in first.items()]


def hash_image(image: Image) -> NDArray[np.bool_] | None:
    """(`BITS`,) the hash of an image, (h, w, 3) uint8; None with too little contrast."""
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    view = cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    if float(view.std()) < FLAT:
        return None
    low = np.asarray(cv2.dct(view))[:LOWEST, :LOWEST].ravel()[1:]
    return np.asarray(low > np.median(low), dtype=np.bool_)


def find_near_duplicates(
    left_hashes: Sequence[NDArray[np.bool_]], right_hashes: Sequence[NDArray[np.bool_]]
) -> NDArray[np.int64]:
    """(m, 2) positions on the left and on the right whose hashes differ in at most `NEAR` bits."""
    if not len(left_hashes) or not len(right_hashes):
        return np.zeros((0, 2), dtype=np.int64)
    # the product of ±1 is the number of equal bits minus that of different ones
    right = np.stack(right_hashes).T * np.float32(2) - np.float32(1)
    pairs = []
    for start in range(0, len(left_hashes), BLOCK):
        left = np.stack(left_hashes[start : start + BLOCK]) * np.float32(2) - np.float32(1)
        rows, columns = np.nonzero(BITS - left @ right <= 2 * NEAR)
        pairs.append(np.stack([rows + start, columns], axis=1))
    return np.concatenate(pairs).astype(np.int64)
