"""Test patterns: seeded pictures that tell two ways of computing the same thing apart."""

import numpy as np

from steadyeye.core.seeds import stream
from steadyeye.core.types import Image


def patterns(height: int, width: int, count: int) -> list[Image]:
    """`count` images, (height, width, 3) uint8: 8 × 8 coloured blocks under noise; always the same.

    The blocks excite what answers to shapes and colours, the noise what answers to texture, and
    both shift visibly if a crop is off by one pixel.
    """
    rng = stream(0, "patterns")
    images = []
    for _ in range(count):
        blocks = rng.integers(0, 256, (8, 8, 3)).repeat(height // 8 + 1, axis=0)
        tall = blocks.repeat(width // 8 + 1, axis=1)[:height, :width]
        noisy = tall + rng.normal(0, 20, (height, width, 3))
        images.append(noisy.clip(0, 255).astype(np.uint8))
    return images
