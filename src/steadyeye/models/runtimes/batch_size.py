"""How many images go into a pass on a GPU."""

from collections.abc import Callable

MOST = 64
"""Images a pass at most. A page of them, 224 × 224, takes 64 MB of locked memory a thread."""

PASSES = 2
"""Passes a GPU is given at a time: it computes one while the input of the next is copied."""


def largest(fits: Callable[[int], bool]) -> int:
    """Images a pass: the largest power of two up to `MOST` that `fits`, 1 where none does."""
    images = MOST
    while images > 1 and not fits(images):
        images //= 2
    return images
