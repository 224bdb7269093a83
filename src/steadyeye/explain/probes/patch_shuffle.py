"""The inside of a box with patches swapped."""

from functools import partial
from math import ceil

from numpy.random import Generator

from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import stream
from steadyeye.core.types import Image
from steadyeye.explain.backgrounds import NOTHING
from steadyeye.explain.context import Probe, ProbeGrid, Step, Subject, cutoff
from steadyeye.explain.targets import Target

LEAST = 2
"""The least side of a box in pixels for a swap."""


def patch_shuffle(
    subject: Subject, repeats: int = 10, swaps: int = 3, share: float = 0.25
) -> Probe:
    """Images in which random equal patches inside the target's box are swapped.

    Each of the `repeats` swaps two patches that do not overlap, `swaps` times in a row; patches
    have `share` of the box's width and height, rounded down to whole pixels, and are wholly in the
    box and in the image. Their places are uniformly random, seeded by (seed, target, repeat).
    Repeat 0 is the unchanged image. Raises `UsageError` for values out of range. Lau et al. 2021: 3
    swaps, 10 repeats; the size of the patches is our choice.

    Example: `patch_shuffle(repeats=5, share=0.2)`
    """
    if repeats < 1 or swaps < 1:
        raise UsageError(
            f"patch_shuffle(repeats={repeats}, swaps={swaps}): give at least one of each"
        )
    if not 0 < share <= 0.5:
        raise UsageError(f"patch_shuffle(share={share:g}): give 0…0.5, so that two patches fit")
    steps = [{"repeat": repeat} for repeat in range(repeats + 1)]
    settings = {"repeats": repeats, "swaps": swaps, "share": share}
    change = partial(_change, subject.seed, swaps, share)
    notes: tuple[str, ...] = ()
    cut = cutoff(subject.model, subject.predictions)
    if cut > NOTHING:
        notes = (
            f"{subject.model.name} gives no score below {cut:.2f}: a detection that falls below "
            "counts as gone, with probability 0, so changes are overestimated",
        )
    return Probe(ProbeGrid(subject, "patch_shuffle", steps, change, settings, notes=notes))


def _change(seed: int, swaps: int, share: float, image: Image, target: Target, step: Step) -> Image:
    repeat = int(step["repeat"])
    if repeat == 0:
        return image
    rng = stream(seed, "patch_shuffle", target.cause, target.id, str(repeat))
    return shuffle_patches(image, target.box, swaps, share, rng)


def shuffle_patches(
    image: Image, box: tuple[float, ...], swaps: int, share: float, rng: Generator
) -> Image:
    """A copy of the image with patches inside the box swapped; unchanged if two do not fit."""
    height, width = image.shape[:2]
    x0, y0 = max(ceil(box[0]), 0), max(ceil(box[1]), 0)
    x1, y1 = min(int(box[2]), width), min(int(box[3]), height)
    out = image.copy()
    if x1 - x0 < LEAST or y1 - y0 < LEAST:
        return out
    sides = max(int(share * (y1 - y0)), 1), max(int(share * (x1 - x0)), 1)
    for _ in range(swaps):
        (r, c), (s, d) = _places(y1 - y0, x1 - x0, sides, rng)
        first = out[y0 + r : y0 + r + sides[0], x0 + c : x0 + c + sides[1]]
        other = out[y0 + s : y0 + s + sides[0], x0 + d : x0 + d + sides[1]]
        patch = first.copy()
        first[:] = other
        other[:] = patch
    return out


def _places(
    height: int, width: int, sides: tuple[int, int], rng: Generator
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Random places of two patches, drawn again until the patches do not overlap."""
    free = (height - sides[0] + 1, width - sides[1] + 1)
    while True:
        r, s = (int(v) for v in rng.integers(0, free[0], 2))
        c, d = (int(v) for v in rng.integers(0, free[1], 2))
        if abs(r - s) >= sides[0] or abs(c - d) >= sides[1]:
            return (r, c), (s, d)
