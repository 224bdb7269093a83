"""What boxes show: the pictures of samples cut out and described, each image decoded once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import SampleError
from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Image, Sample, Source
from steadyeye.explain.mining.novelty import thumbnails

Box: TypeAlias = tuple[float, float, float, float]
Embed: TypeAlias = Callable[[Sequence[Image]], NDArray[np.float64]]
"""Crops, (h, w, 3) uint8 each → (n, d), whose Euclidean distances say how unlike they look."""


@dataclass(frozen=True)
class Place:
    """A box in an image of a table: row and corners in pixels."""

    predictions: Predictions
    row: int
    box: Box


@dataclass(frozen=True, eq=False)
class MistakeCrop:
    """What a place shows. `box`: cut to the image; `size`: width and height of the image.

    `look`: its thumbnail; `vector`: what `Embed` makes of it.
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
    """The crop of each place, or why there is none; `sources`: fingerprint → source."""
    found: list[MistakeCrop | str] = [""] * len(places)
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
                found[i] = str(error)
            continue
        finally:
            advance(1)
        cut = [clip_box(places[i].box, image.shape[1], image.shape[0]) for i in members]
        there = [(i, box) for i, box in zip(members, cut, strict=True) if box is not None]
        shown = [_cut(image, box) for _, box in there]
        if not there:
            continue
        looks = thumbnails(shown)
        vectors = looks if embed is thumbnails else np.asarray(embed(shown), dtype=np.float64)
        for (i, box), look, vector in zip(there, looks, vectors, strict=True):
            found[i] = MistakeCrop(box, (image.shape[1], image.shape[0]), look, vector)
    return found


def sample(predictions: Predictions, source: Source, row: int) -> Sample:
    """The sample of a row; of a reviewed table, whose source has the rows left out too."""
    whole = predictions.candidates
    if whole is None:
        return source[row]
    return source[int(np.flatnonzero(whole.ids == predictions.ids[row])[0])]


def clip_box(box: Box, width: int, height: int) -> Box | None:
    """The part of a box inside its image; None where that is empty."""
    x0, y0 = max(box[0], 0.0), max(box[1], 0.0)
    x1, y1 = min(box[2], float(width)), min(box[3], float(height))
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def _cut(image: Image, box: Box) -> Image:
    """The pixels of a box, one at least."""
    x0, y0 = min(int(box[0]), image.shape[1] - 1), min(int(box[1]), image.shape[0] - 1)
    return image[y0 : max(int(np.ceil(box[3])), y0 + 1), x0 : max(int(np.ceil(box[2])), x0 + 1)]
