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
from steadyeye.degradation.operator import Context, Operator, Trail

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

    It gets the image itself, (h, w, 3) uint8 RGB, and a level 1 … `levels`, and returns an image
    of that shape. `level`: the keyword the level goes to, e.g. "severity" for imagecorruptions,
    which has five. `values`: what is given in place of the levels 1, 2, … `arguments`: further
    keyword arguments. `name`: what it is called; the function's name if left out. A class, as
    those of albumentations, is built with the level and called with `image=`. What is drawn at
    random must come from Python's or numpy's global generator or that of the transform, which are
    seeded for every image and level.
    """
    found = attribute(path)
    if not builtins.callable(found):
        raise UsageError(f"'{path}' is a {type(found).__name__}, not a function")
    if inspect.isclass(found) and level is None:
        raise UsageError(f"'{path}' is a class; name the argument that is its level with level=…")
    given = list(values) if values is not None else list(range(1, levels + 1))
    if not given:
        raise UsageError(f"levels={levels}: an operator has at least one level")
    further = dict(arguments or {})

    def begin(image: Image, context: Context) -> Trail:
        def at(degree: int) -> Image:
            value = given[degree - 1]
            named = {level: value, **further} if level else further
            seed = (int(context.key) + degree) % 2**32
            # one at a time: the global generators are one for all threads
            with LOCK:
                random.seed(seed)
                np.random.seed(seed)
                if inspect.isclass(found):
                    made = _transformed(found(**named), image.copy(), seed)
                else:
                    made = found(image.copy(), *(() if level else (value,)), **named)
            return _checked(path, made["image"] if isinstance(made, dict) else made, image)

        return at

    called = name or path.rpartition(":")[2]
    about = f"{path}, {level}, {given}, {further}"
    return Operator(called, begin, last=len(given), about=about, known=False)


def _transformed(transform: Any, image: Image, seed: int) -> Any:
    if hasattr(transform, "set_random_seed"):
        transform.set_random_seed(seed)
    return transform(image=image)


def _checked(path: str, made: Any, image: Image) -> Image:
    found = np.asarray(made)
    if found.shape != image.shape:
        raise UsageError(f"'{path}' returns shape {found.shape} for an image of {image.shape}")
    if found.dtype != np.uint8:
        # such libraries return whole grey values as floats
        found = np.floor(np.clip(found, 0, 255) + 0.5).astype(np.uint8)
    return np.ascontiguousarray(found)
