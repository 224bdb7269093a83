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
REPEATED, BATCHED = 0.01, 0.1
"""How far a row may move, as a share of its spread: asked again, and beside another image.

A file that is quantised as it runs takes its scale from the whole batch, and moves a little.
"""


def with_output(
    settings: Recipe, record: Mapping[str, Any] | None, forward: Forward, path: str
) -> Recipe:
    """`settings` with the output "probabilities" if the network ends in a softmax.

    A second softmax over probabilities would flatten them: of 1,000 classes to 0.1 to 0.3 % each.
    `record`: the user's recipe. Raises `UsageError` if it says "logits" and the network outputs
    probabilities, or the reverse, if it has no output and the network may end in a sigmoid, or in a
    softmax of few bits, and for one logit per image.
    """
    rows = ask_patterns(settings, forward)
    if settings.output == "probabilities":
        _check_probabilities(rows, path)
        return settings
    if any(row.size == 1 for row in rows):
        # of one logit, softmax makes 1, whatever the image
        raise UsageError(
            f"'{path}' gives one number per image; give a model with one output for each class, or "
            "output='probabilities' in the recipe if it is the probability of the only class"
        )
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


def _check_probabilities(rows: Sequence[NDArray[np.float32]], path: str) -> None:
    """Raises `UsageError` if the scores of a network are not all in 0…1."""
    finite = [row for row in rows if np.isfinite(row).all()]
    low = min((float(row.min()) for row in finite), default=0.0)
    high = max((float(row.max()) for row in finite), default=1.0)
    if low < -TOLERANCE or high > 1 + TOLERANCE:
        raise UsageError(
            f"'{path}' gives scores of {low:.3g} to {high:.3g}, which are no probabilities; leave "
            "output out of its recipe, or give output='logits'"
        )


def check_mode(settings: Recipe, forward: Forward, path: str) -> None:
    """Raises `UsageError` for a network in training mode: its scores depend on more than the image.

    Dropout changes them from call to call; batch normalisation, with the other images of a batch,
    if the network takes several.
    """
    height, width = settings.preprocessing.size
    image = patterns(height, width, 1)[0]
    pages = np.stack([_prepare(settings, image), _prepare(settings, np.zeros_like(image))])
    first, again, batch = (_ask(forward, pages[:n]) for n in (1, 1, 2))
    if first is None or again is None:
        return
    with np.errstate(over="ignore", invalid="ignore"):  # scores of damaged weights
        spread = float(np.ptp(first)) or 1.0
        moves = [np.abs(first - again).max() > REPEATED * spread]
        if batch is not None and batch.shape[1:] == first.shape[1:]:
            moves.append(np.abs(first - batch[:1]).max() > BATCHED * spread)
    if any(moves):
        cause = "is asked again" if moves[0] else "comes beside another one"
        raise UsageError(
            f"'{path}' gives an image other scores when it {cause}, as a network in training mode "
            "does (dropout, batch normalisation); call eval() before it is traced or exported, and "
            "leave out dropout that is always on"
        )


def _ask(forward: Forward, page: NDArray[np.float32]) -> NDArray[np.float32] | None:
    try:
        return np.array(forward(page))
    except UsageError:
        return None


def sum_to_one(rows: Sequence[NDArray[np.float32]]) -> bool:
    """Whether each row is non-negative and sums to 1, which logits never do."""
    return bool(rows) and all(
        row.min() >= 0 and abs(float(row.sum()) - 1) <= TOLERANCE for row in rows
    )


def ask_patterns(settings: Recipe, forward: Forward) -> list[NDArray[np.float32]]:
    """The output rows of a network for test patterns.

    None for a network that fails on them, which is refused later.
    """
    height, width = settings.preprocessing.size
    rows = []
    for image in patterns(height, width, PROBES):
        answer = _ask(forward, _prepare(settings, image)[np.newaxis])
        if answer is None:
            return []
        rows.append(answer.ravel())
    return rows


def _prepare(settings: Recipe, image: Image) -> NDArray[np.float32]:
    page = np.empty(settings.shape, dtype=np.float32)
    first = page if settings.layout == "nchw" else page.transpose(2, 0, 1)
    settings.preprocessing(image, first)
    return page


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
