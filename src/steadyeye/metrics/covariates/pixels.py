"""What the pixels of one frame say, and how those of a frame differ from those of another."""

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.types import Image

Luma = NDArray[np.uint8]
"""(h, w) luma 0…255: 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601), rounded."""

# the noise of rounding to whole grey values, uniform with variance 1/12; below it nothing is told
# apart. In the Laplacian, whose weights are 1, 1, 1, 1 and −4, it is 20/12.
CONTRAST_FLOOR = (1 / 12) ** 0.5
SHARPNESS_FLOOR = 20 / 12


def luma(image: Image) -> Luma:
    """(h, w) the luma of an image."""
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), dtype=np.uint8)


def frame(grey: Luma) -> dict[str, float]:
    """What is measured of a frame on its own.

    `brightness`: mean luma, 0…255. `contrast`: its standard deviation, grey values. `sharpness`:
    variance of its Laplacian (4 neighbours, edges mirrored), squared grey values; it depends on
    the decoded size, so compare it between frames of one video only.
    """
    mean, deviation = cv2.meanStdDev(grey)
    _, edges = cv2.meanStdDev(cv2.Laplacian(grey, cv2.CV_16S))
    return {
        "brightness": float(mean[0, 0]),
        "contrast": float(deviation[0, 0]),
        "sharpness": float(edges[0, 0] ** 2),
    }


def distances(anchor: Image, neighbour: Image) -> dict[str, float]:
    """How far two frames of one size are apart, pixels in 0…1 at the decoded size.

    `linf`: the largest difference of any channel of any pixel, a multiple of 1/255. `difference`:
    the mean over all of them. Shankar et al., Figure 10.
    """
    apart = cv2.absdiff(anchor, neighbour)
    return {
        "linf": float(apart.max()) / 255,
        "difference": float(np.mean(cv2.mean(apart)[:3])) / 255,
    }


def changes(anchor: dict[str, float], neighbour: dict[str, float]) -> dict[str, float]:
    """How what was measured of a frame differs from its anchor's; above 0: the frame has more.

    `brightness_change`: grey values. `contrast_change`, `sharpness_change`: natural logarithm of
    the ratio, each at least the noise of rounding.
    """
    return {
        "brightness_change": neighbour["brightness"] - anchor["brightness"],
        "contrast_change": _log_ratio(anchor["contrast"], neighbour["contrast"], CONTRAST_FLOOR),
        "sharpness_change": _log_ratio(
            anchor["sharpness"], neighbour["sharpness"], SHARPNESS_FLOOR
        ),
    }


def _log_ratio(before: float, after: float, floor: float) -> float:
    return float(np.log(max(after, floor) / max(before, floor)))
