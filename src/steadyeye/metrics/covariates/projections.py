"""Projections of a frame: the means of its columns and rows, from which shifts are found.

They are measured while a frame is decoded, of each frame by itself, in any order.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.predictions import BINS, PROJECTIONS
from steadyeye.core.types import Image, Sample, Tag

EVERY = 4
"""Of so many rows, or columns, one is averaged."""
STEPS = 8
"""Steps of a grey level to which means are rounded."""


def measure_projections(image: Image) -> NDArray[np.float32]:
    """(2 · `BINS` + 2,) of an image, (height, width, 3) of 0…255: the projections of its green."""
    pixels = np.ascontiguousarray(image)
    columns = cv2.reduce(pixels[::EVERY], 0, cv2.REDUCE_AVG, dtype=cv2.CV_32F)[..., 1]
    green = np.ascontiguousarray(pixels[:, ::EVERY, 1])
    rows = cv2.reduce(green, 1, cv2.REDUCE_AVG, dtype=cv2.CV_32F)
    means = [
        cv2.resize(line.reshape(1, -1), (BINS, 1), interpolation=cv2.INTER_AREA)[0]
        for line in (columns, rows)
    ]
    size = np.array(image.shape[1::-1])
    rounded = np.round(np.concatenate(means) * STEPS) / STEPS
    return np.concatenate([rounded, size]).astype(np.float32)


def add_projections(sample: Sample) -> Sample:
    """The sample with its projections measured too, while it is decoded."""
    return replace(sample, measure=partial(_measure, sample.measure))


def _measure(
    measure: Callable[[Image], Mapping[str, Tag]] | None, image: Image
) -> Mapping[str, Tag]:
    own = measure(image) if measure else {}
    return {**own, PROJECTIONS: measure_projections(image)}
