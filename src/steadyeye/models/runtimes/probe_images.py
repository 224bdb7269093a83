"""Test patterns that reveal differences of two implementations, and networks' outputs for them.

Seeded images. They also show whether a network outputs probabilities or logits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import stream
from steadyeye.core.types import Image
from steadyeye.models.runtimes.classifier import Forward, Recipe

TOLERANCE = 1e-3
"""The largest deviation of a sum of probabilities from 1: fp16 keeps 1,000 of them within this."""
PROBES = 3


def with_output(
    settings: Recipe, record: Mapping[str, Any] | None, forward: Forward, path: str
) -> Recipe:
    """`settings` with the output "probabilities" if the network ends in a softmax.

    A second softmax over probabilities would flatten them: of 1,000 classes to 0.1 to 0.3 % each.
    `record`: the user's recipe, whose `output` "probabilities" is not checked. Raises `UsageError`
    if it says "logits" and the network outputs probabilities, and if it has no output and the
    network may end in a sigmoid, or in a softmax of few bits.
    """
    if settings.output == "probabilities":
        return settings
    rows = ask_patterns(settings, forward)
    is_written = "output" in (record or {})
    if sum_to_one(rows):
        if is_written:
            raise UsageError(
                f"'{path}' gives probabilities (rows that sum to 1), not logits; leave output out "
                "of the recipe, or give output='probabilities'"
            )
        return replace(settings, output="probabilities")
    if rows and not is_written and all(row.min() >= 0 and row.max() <= 1 for row in rows):
        raise UsageError(
            f"'{path}' gives scores in 0…1 that do not sum to 1, such as a sigmoid's; write "
            "output='probabilities' in its recipe if they are, output='logits' if not"
        )
    return settings


def sum_to_one(rows: Sequence[NDArray[np.float32]]) -> bool:
    """Whether each row is non-negative and sums to 1, which logits never do."""
    return bool(rows) and all(
        row.min() >= 0 and abs(float(row.sum()) - 1) <= TOLERANCE for row in rows
    )


def ask_patterns(settings: Recipe, forward: Forward) -> list[NDArray[np.float32]]:
    """The output rows of a network for test patterns.

    None for a network that fails on them or has one output, which is refused later.
    """
    height, width = settings.preprocessing.size
    rows = []
    for image in patterns(height, width, PROBES):
        page = np.empty((1, *settings.shape), dtype=np.float32)
        first = page[0] if settings.layout == "nchw" else page[0].transpose(2, 0, 1)
        settings.preprocessing(image, first)
        try:
            row = forward(page).ravel()
        except UsageError:
            return []
        if len(row) < 2:
            return []
        rows.append(row)
    return rows


def patterns(height: int, width: int, count: int) -> list[Image]:
    """`count` images, (height, width, 3) uint8: 8 × 8 coloured blocks under noise; always the same.

    The blocks test responses to shapes and colours, the noise responses to texture, and both change
    clearly if a crop is off by one pixel.
    """
    rng = stream(0, "patterns")
    images = []
    for _ in range(count):
        blocks = rng.integers(0, 256, (8, 8, 3)).repeat(height // 8 + 1, axis=0)
        tall = blocks.repeat(width // 8 + 1, axis=1)[:height, :width]
        noisy = tall + rng.normal(0, 20, (height, width, 3))
        images.append(noisy.clip(0, 255).astype(np.uint8))
    return images
