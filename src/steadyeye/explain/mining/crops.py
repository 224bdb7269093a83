"""Crops of boxes, described by vectors, and their distances.

A descriptor is any vector per picture; distances are Euclidean.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Box
from steadyeye.core.errors import SampleError
from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Image, Sample, Source

SIDE = 8

ALIKE = 3 / 255
"""A mean difference of three grey levels: two pictures of a class that differ less show the same,
as in the sampling of a review."""

Embed: TypeAlias = Callable[[Sequence[Image]], NDArray[np.float64]]
"""Crops, (h, w, 3) uint8 each → (n, d) vectors, whose Euclidean distances measure differences."""


def thumbnails(crops: Sequence[Image]) -> NDArray[np.float64]:
    """(n, 192) the default descriptor: the crop as 8 × 8 RGB pixels.

    Scaled so that the distance of two is the root mean square difference of their pixels, 0…1. It
    represents colour and coarse layout, not meaning: two bears of different colours are far apart.
    """
    small = [cv2.resize(crop, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for crop in crops]
    flat = np.array(small, dtype=np.float64).reshape(len(small), SIDE * SIDE * 3)
    return np.asarray(flat / 255 / np.sqrt(SIDE * SIDE * 3), dtype=np.float64)


def novelty(vectors: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the distance of each to the nearest of `known` and of those before it.

    `vectors`: (n, d), in the order of the ranking; `known`: (m, d). NaN without anything to compare
    with.
    """
    nearest = _nearest(vectors, known)
    for i in range(len(vectors)):
        if i:
            nearest[i] = min(nearest[i], _distances(vectors[i], vectors[:i]).min())
    return np.where(np.isfinite(nearest), nearest, np.nan)


def farthest_first(
    vectors: NDArray[np.float64],
    known: NDArray[np.float64],
    kinds: NDArray[np.int64],
    most: int,
) -> NDArray[np.intp]:
    """The order in which each next one is the farthest from `known` and from all before it.

    `kinds`: (n,) at most `most` of each kind are taken. Ties go to the earlier, and so does the
    first one if `known` is empty. Gonzalez, "Clustering to minimize the maximum intercluster
    distance", 1985.
    """
    nearest = _nearest(vectors, known)
    left = np.full(int(kinds.max(initial=-1)) + 1, most)
    rows, order = np.arange(len(vectors)), []
    remaining, lengths = vectors, np.einsum("ij,ij->i", vectors, vectors)
    while len(rows):
        at = int(nearest.argmax())
        best, length, vector = int(rows[at]), lengths[at], remaining[at]
        order.append(best)
        left[kinds[best]] -= 1
        # a product of a matrix and a vector: computing the differences takes ten times as long
        square = lengths + length - 2 * (remaining @ vector)
        nearest = np.minimum(nearest, np.sqrt(np.maximum(square, 0)))
        nearest[at] = -1.0
        if left[kinds[best]] == 0 or not (nearest >= 0).any():
            open_ = (nearest >= 0) & (left[kinds[rows]] > 0)
            rows, nearest, remaining, lengths = (
                x[open_] for x in (rows, nearest, remaining, lengths)
            )
    return np.array(order, dtype=np.intp)


def find_first_alike(vectors: NDArray[np.float64], kinds: NDArray[np.int64]) -> NDArray[np.intp]:
    """(n,) the first of its kind that looks the same; itself if there is none before it."""
    first = np.arange(len(vectors))
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        for i, row in enumerate(rows):
            firsts = rows[:i][first[rows[:i]] == rows[:i]]
            near = np.flatnonzero(_distances(vectors[row], vectors[firsts]) < ALIKE)
            if len(near):
                first[row] = firsts[near[0]]
    return first


def _nearest(vectors: NDArray[np.float64], known: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) the distance to the nearest of `known`; infinite if there are none."""
    nearest = np.full(len(vectors), np.inf)
    for vector in known:
        nearest = np.minimum(nearest, _distances(vector, vectors))
    return nearest


def _distances(vector: NDArray[np.float64], vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(
        np.sqrt(np.einsum("ij,ij->i", vectors - vector, vectors - vector)), dtype=np.float64
    )


@dataclass(frozen=True)
class Place:
    """A box in an image of a table: row and corners in pixels."""

    predictions: Predictions
    row: int
    box: Box


@dataclass(frozen=True, eq=False)
class MistakeCrop:
    """The crop of a place. `box`: clipped to the image; `size`: width and height of the image.

    `look`: its thumbnail; `vector`: the output of `Embed`.
    """

    box: Box
    size: tuple[int, int]
    look: NDArray[np.float64]
    vector: NDArray[np.float64]


def crops(
    places: Sequence[Place],
    sources: Mapping[str, Source],
    embed: Embed,
    advance: Callable[[int], None],
) -> list[MistakeCrop | str]:
    """The crop of each place, or why it failed; `sources`: fingerprint → source."""
    results: list[MistakeCrop | str] = [""] * len(places)
    of_image: dict[tuple[str, str], list[int]] = {}
    for i, place in enumerate(places):
        key = (place.predictions.fingerprint, str(place.predictions.ids[place.row]))
        of_image.setdefault(key, []).append(i)
    for (mark, _), members in of_image.items():
        first = places[members[0]]
        try:
            image = sample(first.predictions, sources[mark], first.row).image()
        except SampleError as error:
            for i in members:
                results[i] = str(error)
            continue
        finally:
            advance(1)
        cut = [clip_box(places[i].box, image.shape[1], image.shape[0]) for i in members]
        clipped = [(i, box) for i, box in zip(members, cut, strict=True) if box is not None]
        pixels = [_cut(image, box) for _, box in clipped]
        if not clipped:
            continue
        looks = thumbnails(pixels)
        vectors = looks if embed is thumbnails else np.asarray(embed(pixels), dtype=np.float64)
        for (i, box), look, vector in zip(clipped, looks, vectors, strict=True):
            results[i] = MistakeCrop(box, (image.shape[1], image.shape[0]), look, vector)
    return results


def sample(predictions: Predictions, source: Source, row: int) -> Sample:
    """The sample of a row, also of a reviewed table, whose source has the rejected rows too."""
    whole = predictions.candidates
    if whole is None:
        return source[row]
    return source[int(np.flatnonzero(whole.ids == predictions.ids[row])[0])]


def clip_box(box: Box, width: int, height: int) -> Box | None:
    """The part of a box inside its image; None if it is empty."""
    x0, y0 = max(box[0], 0.0), max(box[1], 0.0)
    x1, y1 = min(box[2], float(width)), min(box[3], float(height))
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def _cut(image: Image, box: Box) -> Image:
    """The pixels of a box, one at least."""
    x0, y0 = min(int(box[0]), image.shape[1] - 1), min(int(box[1]), image.shape[0] - 1)
    return image[y0 : max(int(np.ceil(box[3])), y0 + 1), x0 : max(int(np.ceil(box[2])), x0 + 1)]
