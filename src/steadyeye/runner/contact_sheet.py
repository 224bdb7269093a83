"""The contact sheet of an image file: the image under operators (rows) at levels (columns)."""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.model_stages import AtInput, at_input
from steadyeye.core.spec import parse
from steadyeye.core.storage.files import Place, write_output
from steadyeye.core.types import Image
from steadyeye.data.images import image_file
from steadyeye.degradation.counter_rng import stream_key
from steadyeye.degradation.operator import Context, Gradient, Operator
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.runner.sweep import levels, operators

GAP = 6
LINE = 18
LEFT = 132
INK = (40, 40, 40)
GROUND = 250


@dataclass(frozen=True)
class View:
    """The size of the image: the input of a model (a spec), or `size` pixels square."""

    model: str | None
    size: int
    seed: int


def sheet(image: Place, chosen: str, at: str | None, view: View) -> Image:
    """The sheet of an image file; `chosen`: operators or `all`, `at`: levels, as in a job.

    Without `at`: five levels from 0 to the last, or all where there are not more than six.
    With a model `gradient_descent` goes against the model's own answer. Raises `UsageError`.
    """
    picture = image_file.read(image)
    parts = at_input(plugins.build("models", parse(view.model))) if view.model else None
    fitted = parts.fit(picture) if parts else _square(view.size).fit(picture)
    gradient = _gradient(parts, fitted) if parts else None
    picked = operators(chosen, gradients=gradient is not None)
    asking = [operator.name for operator in picked if operator.needs_gradient]
    if asking and gradient is None:
        raise UsageError(f"{asking[0]} needs a model with gradients; give --model")
    steps = levels(at, picked) if at else _steps(max(operator.last for operator in picked))
    return draw_sheet(fitted, image.name, picked, steps, view.seed, gradient)


def write(path: Place, image: Image) -> None:
    """Writes the sheet; the suffix names the format. Raises `UsageError`."""
    content = image_file.encode(image, path.suffix)
    write_output(path, content)


def _steps(last: int) -> tuple[int, ...]:
    """The default levels of a sheet: of thirty 0, 5, 10, 20 and 30."""
    if last <= 5:
        return tuple(range(last + 1))
    return tuple(sorted({0, last // 6, last // 3, 2 * last // 3, last}))


def _square(size: int) -> Preprocessing:
    if size < 1:
        raise UsageError(f"size={size}: give the side in pixels")
    return Preprocessing((size, size), size, (0.0,) * 3, (1.0,) * 3)


def _gradient(parts: AtInput, fitted: Image) -> Gradient | None:
    slope = parts.gradient
    if slope is None:
        return None
    label = int(parts.model([fitted])[0].argmax())

    def gradient(image: NDArray[np.float32]) -> NDArray[np.float32]:
        return slope(image, [label])

    return gradient


def draw_sheet(
    image: Image,
    name: str,
    operators: Sequence[Operator],
    levels: Sequence[int],
    seed: int = 0,
    gradient: Gradient | None = None,
) -> Image:
    """The sheet, (h, w, 3) uint8 RGB: one row per operator, one column per level.

    `image`: (h, w, 3) uint8. `name`: its id, which with `seed` makes the random streams, so the
    pictures are those of a sweep over an image of that id. A level that an operator does not have
    stays empty.
    """
    height, width, _ = image.shape
    rows, columns = height + GAP, width + GAP
    size = (LINE + rows * len(operators), LEFT + columns * len(levels), 3)
    page = np.full(size, GROUND, dtype=np.uint8)
    for column, level in enumerate(levels):
        _write(page, f"level {level}", LEFT + column * columns + 2, LINE - 5)
    for row, operator in enumerate(operators):
        top = LINE + row * rows
        _write(page, operator.name, 4, top + height // 2)
        trail = operator.start(image, Context(stream_key(seed, name, operator.name), gradient))
        for column, level in enumerate(levels):
            if level <= operator.last:
                left = LEFT + column * columns
                page[top : top + height, left : left + width] = trail(level)
    return page


def _write(page: Image, text: str, x: int, y: int) -> None:
    cv2.putText(page, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.42, INK, 1, cv2.LINE_AA)
