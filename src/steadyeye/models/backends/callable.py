"""Any Python function on uint8 images."""

from steadyeye.core.imports import user_function
from steadyeye.core.types import Model
from steadyeye.data.classes.class_lists import read
from steadyeye.models.runtimes.python_function import FunctionClassifier


def callable(
    *, path: str, classes: str | None = None, size: int | tuple[int, int] | None = None
) -> Model:
    """A Python function `package.module:function`: (n, h, w, 3) uint8 RGB → (n, classes) scores.

    `path`: the import path of the function. `classes`: `imagenet1k` or a class file; the data's
    classes if left out. `size`: size of the resized images: a short side (then centre-cropped
    square) or (height, width). Raises `UsageError` for a function that cannot be imported.

    Example: `callable(path='my_models:predict', classes='imagenet1k', size=224)`
    """
    function = user_function(path)
    name = path.rpartition(":")[2]
    return FunctionClassifier(function, read(classes) if classes else None, size, name)
