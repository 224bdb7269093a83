"""Test patterns, which tell two ways of computing apart, and what networks answer to them.

Seeded pictures. By them it is seen whether a network gives probabilities or logits.
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
"""How far a row of probabilities may sum from 1: fp16 rounds 1,000 of them to within this."""
PROBES = 3


def with_output(
    settings: Recipe, record: Mapping[str, Any] | None, forward: Forward, path: str
) -> Recipe:
    """`settings` with the output "probabilities" where the network ends in a softmax.

    A second softmax over probabilities would flatten them: of 1,000 classes to 0.1 to 0.3 % each.
    `record`: the recipe as the user wrote it, whose `output` "probabilities" is not questioned.
    Raises `UsageError` where it says "logits" and the network gives probabilities, and where it
    says nothing and the network may end in a sigmoid, or in a softmax of few bits.
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
    """Whether each row is of 0 or more and sums to 1, as probabilities do; of logits none does."""
    return bool(rows) and all(
        row.min() >= 0 and abs(float(row.sum()) - 1) <= TOLERANCE for row in rows
    )


def ask_patterns(settings: Recipe, forward: Forward) -> list[NDArray[np.float32]]:
    """The rows of a network for test patterns.

    None of a network that cannot take them or has one output: that is refused elsewhere.
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
