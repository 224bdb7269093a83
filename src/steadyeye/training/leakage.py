"""What both sides of a split must not share: videos, and frames that are nearly the same."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.format import number_of
from steadyeye.training.image_similarity import BITS, NEAR, bits, near
from steadyeye.training.protocol import Example, Examples

MOST = 10_000
"""Examples of a side that are compared, evenly spaced where it has more."""


def check(train: Examples, held: Examples, in_time: bool = False) -> tuple[str, ...]:
    """What was compared, as notes. Raises `UsageError` where held examples leak into training.

    That is where both sides have the same video, and where an image of one side is nearly one of
    the other (`steadyeye.training.image_similarity`), with the first of them and how many there
    are. `in_time`: sides of the same videos, with a gap between; what is nearly the same over it is
    then told in a note. Every compared image is decoded once.
    """
    if not in_time:
        shared = sorted(_list_videos(train.items) & _list_videos(held.items))
        if shared:
            raise UsageError(
                f"training and held-out data share {number_of(len(shared), 'video')}: "
                f"{list_texts(shared)}; frames of one video are nearly the same, so hold out whole "
                "videos"
            )
    sides = [_space_frames(side.items) for side in (train, held)]
    marks = [_marks(side) for side in sides]
    pairs = near(*([mark for mark in side if mark is not None] for side in marks))
    found = _names(sides, marks, pairs)
    hit = len({second for _, second in found})
    if found and not in_time:
        raise UsageError(
            f"{hit:,} of {len(sides[1]):,} held-out images are nearly the same as training "
            f"images (at most {NEAR} of {BITS} bits of their hashes differ): "
            f"{list_texts([f'{b} and {a}' for a, b in found])}; keep them on one side"
        )
    flat = sum(mark is None for side in marks for mark in side)
    notes = [_compare_sides(train, held, sides)]
    notes[0] += f"; {flat:,} show too little to be compared" if flat else ""
    if in_time:
        notes.append(
            f"{hit:,} of {len(sides[1]):,} held-out frames are nearly the same as a training "
            "frame, across the gap"
            + (f": {list_texts([f'{b} and {a}' for a, b in found])}" if hit else "")
        )
    return tuple(notes)


def _compare_sides(train: Examples, held: Examples, sides: Sequence[Sequence[Example]]) -> str:
    counts = [
        f"{len(some):,}{'' if len(some) == len(side.items) else f' of {len(side.items):,}'}"
        for some, side in zip(sides, (train, held), strict=True)
    ]
    return (
        f"{counts[0]} training and {counts[1]} held-out images compared by a perceptual hash: "
        f"nearly the same if at most {NEAR} of {BITS} bits differ"
    )


def _list_videos(items: Sequence[Example]) -> set[str]:
    """The videos; single pictures, which are named as their files are, are told by pixels alone."""
    return {one.video for one in items if one.video != one.id}


def _space_frames(items: Sequence[Example]) -> list[Example]:
    if len(items) <= MOST:
        return list(items)
    return [items[i] for i in np.linspace(0, len(items) - 1, MOST).round().astype(int)]


def _marks(items: Sequence[Example]) -> list[NDArray[np.bool_] | None]:
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda one: bits(one.image()), items))


def _names(
    sides: Sequence[Sequence[Example]],
    marks: Sequence[Sequence[NDArray[np.bool_] | None]],
    pairs: NDArray[np.int64],
) -> list[tuple[str, str]]:
    """The ids of the pairs, by those of the held side, each with its first in training."""
    left, right = (
        [one.id for one, mark in zip(side, found, strict=True) if mark is not None]
        for side, found in zip(sides, marks, strict=True)
    )
    first: dict[str, str] = {}
    for a, b in pairs:
        first.setdefault(right[b], left[a])
    return [(a, b) for b, a in first.items()]
