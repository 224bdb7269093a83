"""JPEG compression at the five qualities of ImageNet-C."""

import numpy as np
import simplejpeg

from steadyeye.core.types import Image
from steadyeye.degradation.corruptions import severities
from steadyeye.degradation.operator import Operator

KIND = ("deterministic", "global")
QUALITY = (25, 18, 15, 10, 7)
"""The quality at each severity: as released for ImageNet-C."""


def jpeg_compression() -> Operator:
    """The image as JPEG of quality 25 … 7, with chroma at half the resolution.

    By the encoder of `jpeg`, which is nearly Pillow's: see there. Deterministic. Severities 1 … 5.
    Hendrycks and Dietterich 2019.

    Example:
        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(jpeg_compression(), level=3))
        100 % of pixels changed, mean 127 → 127

    """
    return severities("jpeg_compression", _encode_and_decode)


def _encode_and_decode(image: Image, severity: int, _: np.uint64) -> Image:
    grey = image.shape[2] == 1
    space, sampling = ("GRAY", "Gray") if grey else ("RGB", "420")
    data = simplejpeg.encode_jpeg(image, QUALITY[severity - 1], space, sampling)
    return simplejpeg.decode_jpeg(data, space)  # type: ignore[no-any-return]
