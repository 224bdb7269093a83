"""Any Python function on an image and a level, or a transform of a library."""

import builtins
import inspect
import random
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from steadyeye.core.errors import UsageError
from steadyeye.core.imports import attribute
from steadyeye.core.types import Image
from steadyeye.degradation.library_transforms import run
from steadyeye.degradation.operator import Context, Operator, Trail, seed_of

LOCK = threading.Lock()


def callable(
    *,
    path: str,
    levels: int = 5,
    level: str | None = None,
    values: Sequence[Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Operator:
    """A Python function `package.module:function` of your own or of a library: (image, level).

    `path`: its import path. It receives the image itself, (h, w, 3) uint8 RGB, and a level 1 …
    `levels`, and returns an image of that shape. `level`: the keyword of the level, e.g. "severity"
    for imagecorruptions, which has five. `values`: passed instead of the levels 1, 2, …
    `arguments`: further keyword arguments. `name`: of the operator; the function's name if left
    out. A class, as those of albumentations, is built with the level and called with `image=`.
    Random numbers must come from Python's or numpy's global generator or that of the transform,
    which are seeded for every image and level. Floats are rounded and clipped to 0…255. Raises
    `UsageError` if the path leads to nothing that can be called, the function fails on an image, or
    the output has another shape or lies in 0…1.

    Example, with `numpy.right_shift(image, level)`:

        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(callable(path="numpy:right_shift"), level=1))
        100 % of pixels changed, mean 127 → 63
    """
    function = _load_function(path, level)
    level_values = list(values) if values is not None else list(range(1, levels + 1))
    if not level_values:
        raise UsageError(f"levels={levels}: an operator has at least one level")
    further = dict(arguments or {})

    def begin(image: Image, context: Context) -> Trail:
        def at(degree: int) -> Image:
            value = level_values[degree - 1]
            at_level = ((), {level: value, **further}) if level else ((value,), further)
            seed = seed_of(context.key, degree)
            returned = run(f"'{path}'", _call_seeded, function, image.copy(), at_level, seed)
            return _check_image(path, returned, image)

        return at

    operator_name = name or path.rpartition(":")[2]
    about = f"{path}, {level}, {level_values}, {further}"
    return Operator(operator_name, begin, last=len(level_values), about=about, known=False)


def _load_function(path: str, level: str | None) -> Any:
    function = attribute(path)
    if not builtins.callable(function):
        raise UsageError(
            f"'{path}' is a {type(function).__name__}, not a function; give the path of a function"
        )
    if inspect.isclass(function) and level is None:
        raise UsageError(f"'{path}' is a class; name the argument that is its level with level=…")
    return function


def _call_seeded(
    function: Any, image: Image, arguments: tuple[Sequence[Any], Mapping[str, Any]], seed: int
) -> Any:
    positional, keywords = arguments
    # one at a time: all threads share the global generators
    with LOCK:
        random.seed(seed)
        np.random.seed(seed)
        if not inspect.isclass(function):
            return function(image, *positional, **keywords)
        transform: Any = function(**keywords)
        if hasattr(transform, "set_random_seed"):
            transform.set_random_seed(seed)
        return transform(image=image)


def _check_image(path: str, returned: Any, image: Image) -> Image:
    pixels = np.asarray(returned.get("image") if isinstance(returned, dict) else returned)
    if pixels.shape != image.shape:
        raise UsageError(
            f"'{path}' returns shape {pixels.shape} for an image of {image.shape}; return the "
            "same shape"
        )
    if pixels.dtype != np.uint8:
        _check_values(path, pixels, image)
        # such libraries return whole grey values as floats
        pixels = np.floor(np.clip(pixels, 0, 255) + 0.5).astype(np.uint8)
    return np.ascontiguousarray(pixels)


def _check_values(path: str, pixels: np.ndarray[Any, Any], image: Image) -> None:
    """Raises `UsageError` for values that are no grey values: NaN, and shares in 0…1."""
    if pixels.dtype.kind not in "biuf":
        raise UsageError(f"'{path}' returns {pixels.dtype}; return grey values 0…255")
    if not np.isfinite(pixels).all():
        raise UsageError(f"'{path}' returns NaN or infinity; return grey values 0…255")
    # a picture that was black before may stay black
    if pixels.dtype.kind in "bf" and 0 < pixels.max(initial=0) <= 1 < image.max(initial=0):
        raise UsageError(
            f"'{path}' returns {pixels.dtype} in 0…1, which would be black; "
            "return grey values 0…255"
        )
