"""Transforms of libraries as operators: their levels, and the conversion of images."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.types import Image
from steadyeye.degradation.operator import Context, MoveBoxes, Operator, Trail, seed_of

Arguments = Mapping[str, Any]
Transform = Callable[[Image, Arguments, int], Any]
"""`transform(image, arguments, seed)`: an (h, w, 3) uint8 array → one of the same shape."""


def build_operator(
    library: str, name: str, levels: Sequence[Arguments], transform: Transform
) -> Operator:
    """The operator of a library's transform, its levels 1 … len(`levels`).

    The seed of an image and level is the same in every process and order. A grey image becomes one
    with three equal channels. Raises `UsageError` if the transform fails on an image or returns
    another shape.
    """
    title = f"{library}.{name}"

    def begin(image: Image, context: Context) -> Trail:
        def at(level: int) -> Image:
            rgb = np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image.copy()
            returned = run(title, transform, rgb, levels[level - 1], seed_of(context.key, level))
            pixels = _check_pixels(title, returned, rgb)
            if image.shape[2] == 1:
                grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)[..., None]
                return np.asarray(grey, dtype=np.uint8)
            return pixels

        return at

    about = f"{library} {version(library)}, {[sorted(level.items()) for level in levels]}"
    return Operator(title, begin, last=len(levels), about=about)


def read_levels(
    title: str,
    transform: Callable[..., Any],
    level: str | None,
    values: Sequence[Any] | None,
    arguments: Arguments,
) -> tuple[Arguments, ...]:
    """The arguments of a transform at each level; a single level if no argument is the level.

    `transform`: its class, which is built once with each. `level`: the argument that has another of
    `values` at each level. `arguments`: the others. Lists become tuples, which such libraries need.
    Raises `UsageError` if one of the two is missing, if the level is among the others, and for
    arguments and values that the transform does not accept.
    """
    if (level is None) != (values is None):
        raise UsageError(
            f"{title}: give the argument that is the level and its values, such as "
            "level='blur_limit', values=[3, 7, 11]; or neither, for one level"
        )
    if values is not None and not values:
        raise UsageError(f"{title}: values is empty; give one for each level")
    if level in arguments:
        raise UsageError(f"{title}: '{level}' is the level and among the arguments; give it once")
    at_levels = [{}] if level is None else [{level: value} for value in values or ()]
    levels = tuple(
        MappingProxyType({name: _as_tuple(value) for name, value in {**arguments, **own}.items()})
        for own in at_levels
    )
    known = set(inspect.signature(transform).parameters)
    for name in levels[0]:
        if name not in known:
            raise unknown(f"argument of {title}", name, sorted(known))
    for chosen in levels:
        run(title, lambda chosen=chosen: transform(**chosen))
    return levels


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def run(title: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function of a library. Raises `UsageError` for any exception of it."""
    try:
        return function(*arguments)
    except UsageError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise UsageError(f"{title} fails: {type(error).__name__}: {reason}") from error


def refuse_boxes(title: str) -> MoveBoxes:
    """The `move` of an operator that moves objects to unknown places: raises `UsageError`."""

    def move(*_: Any) -> NDArray[np.float64]:
        raise UsageError(
            f"{title} moves objects without returning their new places, so it does not go with "
            "true boxes; use another operator, or one of your own with `move`"
        )

    return move


def _check_pixels(title: str, returned: Any, image: Image) -> Image:
    pixels = np.asarray(returned)
    if pixels.shape != image.shape:
        raise UsageError(
            f"{title} changes the shape of an image from {image.shape} to {pixels.shape}, which "
            "an operator must keep; take another transform or other arguments"
        )
    if pixels.dtype != np.uint8:
        raise UsageError(f"{title} returns {pixels.dtype} instead of uint8; take another transform")
    return np.ascontiguousarray(pixels, dtype=np.uint8)
