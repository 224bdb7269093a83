"""Any Python function on an image and a level."""

import builtins
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from steadyeye.core.errors import UsageError
from steadyeye.core.imports import attribute
from steadyeye.core.types import Image
from steadyeye.degradation.operators import Context, Operator, Trail

LOCK = threading.Lock()


def callable(
    path: str,
    levels: int = 5,
    level: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Operator:
    """A Python function `package.module:function` of your own or of a library: (image, level).

    It gets the image itself, (h, w, 3) uint8 RGB, and a level 1 … `levels`, and returns an image
    of that shape (or a dict with one as "image", as albumentations does). `level`: the keyword
    the level goes to, e.g. "severity" for imagecorruptions, which has five. `arguments`: further
    keyword arguments. `name`: what it is called; the function's name if left out. What it draws
    at random must come from numpy's global generator, which is seeded for every image and level.
    """
    function = attribute(path)
    if not builtins.callable(function):
        raise UsageError(f"'{path}' is a {type(function).__name__}, not a function")
    if levels < 1:
        raise UsageError(f"levels={levels}: an operator has at least one level")
    given = dict(arguments or {})

    def begin(image: Image, context: Context) -> Trail:
        def at(degree: int) -> Image:
            places = (image.copy(),) if level else (image.copy(), degree)
            named = {level: degree, **given} if level else given
            # one at a time: numpy's global generator is one for all threads
            with LOCK:
                np.random.seed((int(context.key) + degree) % 2**32)
                made = function(*places, **named)
            return _checked(path, made["image"] if isinstance(made, dict) else made, image)

        return at

    called = name or path.rpartition(":")[2]
    return Operator(called, begin, last=levels, about=f"{path}, {given}")


def _checked(path: str, made: Any, image: Image) -> Image:
    found = np.asarray(made)
    if found.shape != image.shape:
        raise UsageError(f"'{path}' returns shape {found.shape} for an image of {image.shape}")
    if found.dtype != np.uint8:
        # such libraries return whole grey values as floats
        found = np.floor(np.clip(found, 0, 255) + 0.5).astype(np.uint8)
    return np.ascontiguousarray(found)
