"""The masks of COCO's annotations, read only once somebody asks for one."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.storage.files import Place
from steadyeye.data.annotations.coco_file import distinct, key_entry
from steadyeye.data.annotations.coco_geometry import run_lengths
from steadyeye.data.classes.loading import tree


def masks(path: Place, image: Any, size: tuple[int, int]) -> NDArray[np.bool_]:
    """(n, h, w) bool, the masks of an image's annotations in the order of the file.

    `size`: height and width. A polygon holds the pixels on its edge; run lengths are exact. All
    False for an annotation without a mask.
    """
    planes = [_mask(segmentation, size) for segmentation in _segmentations(path).get(image, ())]
    return np.stack(planes) if planes else np.zeros((0, *size), dtype=np.bool_)


# one file at a time: that of COCO's training images takes gigabytes
@lru_cache(maxsize=1)
def _segmentations(path: Place) -> Mapping[Any, Sequence[Any]]:
    """Image id → what stands under `segmentation` in each of its annotations."""
    of_image: dict[Any, list[Any]] = defaultdict(list)
    for annotation in tree(path, "annotations")["annotations"]:
        entry = key_entry(annotation, "image_id")
        of_image[entry["image_id"]].append(entry)
    # the same ones as the boxes are of
    return {
        image: [e.get("segmentation") for e in distinct(own)] for image, own in of_image.items()
    }


def _mask(segmentation: Any, size: tuple[int, int]) -> NDArray[np.bool_]:
    if isinstance(segmentation, Mapping):
        return run_lengths(segmentation)
    plane = np.zeros(size, dtype=np.uint8)
    for polygon in segmentation or ():
        points = np.asarray(polygon, dtype=np.float64).reshape(-1, 2)
        # a corner at 3.0 is the edge between the pixels 2 and 3, OpenCV's 3 the middle of pixel 3
        cv2.fillPoly(plane, [np.round((points - 0.5) * 256).astype(np.int32)], (1,), shift=8)
    return plane > 0
