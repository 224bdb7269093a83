"""The interface of operators: an operator starts a trail of levels."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, areas
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Image

DEFAULT = "0:30"
"""The default levels of operators; those that exist if an operator has fewer."""
LEVELS = 30
"""The last level of the operators of Swingler 2022."""
LEAST = 0.01
"""Pixels: a narrower rest of a clipped box is a rounding error of libraries, not an object."""
Trail: TypeAlias = Callable[[int], Image]
"""`trail(level)`: the image at that level. Levels are requested in rising order."""
Gradient: TypeAlias = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""(h, w, 3) float32 in 0…255 → the gradient of the true class's probability."""


def parse_levels(text: str, most: int) -> tuple[int, ...]:
    """The levels of `first:last[:step]`, both ends included, or of a list with commas; rising.

    Raises `UsageError` for other text and for a level above `most`.

    Example:
        >>> parse_levels("0:30:10", most=30), parse_levels("5,1", most=5)
        ((0, 10, 20, 30), (1, 5))

    """
    try:
        if ":" in text:
            first, last, *step = (int(part) for part in text.split(":"))
            levels = set(range(first, last + 1, *step))
        else:
            levels = {int(part) for part in text.split(",")}
    except (TypeError, ValueError):
        raise UsageError(
            f"levels '{text}': write first:last, first:last:step or a list such as 5,10,20"
        ) from None
    outside = sorted(level for level in levels if not 0 <= level <= most)
    if not levels:
        raise UsageError(f"levels '{text}': there are none; write the lower one first, as 5:10")
    if outside:
        raise UsageError(f"levels '{text}': levels go from 0 to {most}, not {outside[:3]}")
    return tuple(sorted(levels))


@dataclass(frozen=True)
class Context:
    """The inputs of an operator besides the image: its random stream and the model's gradient."""

    key: np.uint64
    gradient: Gradient | None = None


MoveBoxes: TypeAlias = Callable[
    [NDArray[np.float64], int, tuple[int, int], np.uint64], NDArray[np.float64]
]
"""`(boxes, level, (height, width), key) -> boxes`, (n, 4) each: the true boxes after an operator
that moves objects; `key` is its random stream, `Context.key`.
"""


@dataclass(frozen=True)
class Operator:
    """A degradation operator with its parameters.

    `begin(image, context)`: the trail of one image. `last`: its highest level. `needs_gradient`:
    whether it needs a differentiable model. `about`: its parameters, for the record. `known`:
    whether its name and parameters determine its output, which they do not for a user's function.
    Its random stream depends on (seed, image id, `name`) alone. `move`: the true boxes, if it moves
    objects; None: they are unchanged.
    """

    name: str
    begin: Callable[[Image, Context], Trail]
    last: int = LEVELS
    needs_gradient: bool = False
    about: str = ""
    known: bool = True
    move: MoveBoxes | None = None

    def start(self, image: Image, context: Context) -> Trail:
        """The trail of an image, (h, w, 3) or (h, w) uint8, which is never changed.

        `trail(level)` gives an array of the image's shape, the image itself at level 0. Raises
        `UsageError` for an image of another kind and for a level the operator does not have.

        Example:
            >>> halve = of_original("halve", lambda image, level: image // 2**level)
            >>> trail = halve.start(np.full((1, 1, 3), 200, dtype=np.uint8), Context(np.uint64(0)))
            >>> [trail(level).max().item() for level in (0, 1, 2)]
            [200, 100, 50]

        """
        if image.dtype != np.uint8 or image.ndim not in (2, 3) or not image.size:
            raise UsageError(
                f"{self.name} takes (h, w, 3) or (h, w) uint8 images, "
                f"not {image.shape} {image.dtype}"
            )
        solid = np.ascontiguousarray(image if image.ndim == 3 else image[..., None])
        trail = self.begin(solid, context)

        def at(level: int) -> Image:
            self.check(level)
            if level == 0:
                return image
            degraded = trail(level)
            return degraded if image.ndim == 3 else degraded.reshape(image.shape)

        return at

    def check(self, level: int) -> None:
        """Raises `UsageError` for a level that the operator does not have."""
        if not 0 <= level <= self.last:
            raise UsageError(f"{self.name} has levels 0 to {self.last}, not {level}")


def move_boxes(
    operator: Operator, boxes: Boxes, level: int, size: tuple[int, int], key: np.uint64
) -> Boxes:
    """The true boxes of an image as an operator moves them at a level; their number is unchanged.

    `size`: (height, width) in pixels. `key`: of the image, as `Context.key`. Boxes are clipped to
    the image; one outside it stays as an ignored box without area. Raises `UsageError` for an
    operator that moves objects without returning their boxes.

    Example:
        >>> from steadyeye.core.boxes import boxes
        >>> def shift(corners, level, size, key):
        ...     return corners + [level, 0, level, 0]
        >>> right = Operator("right", lambda image, context: lambda level: image, move=shift)
        >>> moved = move_boxes(right, boxes([[0, 0, 4, 4], [9, 0, 10, 4]], [0, 0]), 2, (8, 10), 0)
        >>> moved.boxes.tolist(), moved.crowd.tolist()
        ([[2.0, 0.0, 6.0, 4.0], [0.0, 0.0, 0.0, 0.0]], [False, True])

    """
    if operator.move is None or not level or not len(boxes):
        return boxes
    height, width = size
    cut = np.clip(operator.move(boxes.boxes.copy(), level, size, key), 0, [width, height] * 2)
    outside = (cut[:, 2:] - cut[:, :2] < LEAST).any(axis=1)
    # at its old place it would ignore false positives on other objects
    cut[outside] = 0
    shrunk = areas(cut) / np.maximum(areas(boxes.boxes), 1e-9)
    return replace(boxes, boxes=cut, crowd=boxes.crowd | outside, area=boxes.area * shrunk)


def seed_of(key: np.uint64, level: int) -> int:
    """The seed of a generator for one image at one level, 0 … 2³² − 1; `key`: `Context.key`."""
    return (int(key) + level) % 2**32


def incremental(name: str, step: Callable[[Image, np.uint64], Image]) -> Operator:
    """An operator that makes every level from the level before.

    `step(image, key)` returns a new image, one level further; `key` is that level's own stream.

    Example:
        >>> darker = incremental("darker", lambda image, key: image - np.uint8(10))
        >>> trail = darker.start(np.full((1, 1), 200, dtype=np.uint8), Context(np.uint64(0)))
        >>> trail(3).item()
        170

    """

    def begin(image: Image, context: Context) -> Trail:
        # imports numba, which reading a sweep does not need
        from steadyeye.degradation.counter_rng import level_key

        state, reached = image, 0

        def at(level: int) -> Image:
            nonlocal state, reached
            while reached < level:
                reached += 1
                state = step(state, level_key(context.key, reached))
            return state

        return at

    return Operator(name, begin)


def of_original(name: str, make: Callable[[Image, int], Image]) -> Operator:
    """An operator that makes every level from the original image: `make(image, level)`.

    Levels 1 … 30 unless `last` is replaced; for an example see `Operator.start`.
    """
    return Operator(name, lambda image, _: lambda level: make(image, level))
