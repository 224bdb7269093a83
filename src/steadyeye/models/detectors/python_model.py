"""What a Python program gives as a model: a function or a model of MAITE, of classes or of boxes.

Which of both it is its answer to one image says: rows of scores, or boxes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Classes, Detector, Image, Model
from steadyeye.data.classes.class_lists import read_given, read_index_to_label
from steadyeye.data.python_boxes import to_array
from steadyeye.models.detectors.function_detector import FunctionDetector, gives_boxes
from steadyeye.models.runtimes.python_function import (
    FunctionClassifier,
    read_fingerprint,
    source_text,
)


class _FirstAxis:
    """A MAITE model as a function of (h, w, 3) images; `__wrapped__`: whose source counts."""

    def __init__(self, model: Any) -> None:
        self.__wrapped__ = model

    def __call__(self, images: Sequence[Image] | NDArray[np.uint8]) -> Any:
        rows = list(self.__wrapped__([np.moveaxis(image, -1, 0) for image in images]))
        return rows if gives_boxes(rows) else np.stack([to_array(row) for row in rows])


def is_maite_model(value: object) -> bool:
    """Whether an object says of itself what a model of MAITE does: metadata with an id."""
    metadata = getattr(value, "metadata", None)
    return callable(value) and isinstance(metadata, Mapping) and "id" in metadata


def adapt_model(
    model: Any, classes: Classes | None, data_classes: Classes | None, image: Image | None
) -> Model | Detector:
    """A function or a MAITE model as a `Model`, or as a `Detector` where it gives boxes.

    A MAITE model gets a list of (3, h, w) uint8 RGB images, a function (n, h, w, 3), or a list of
    (h, w, 3) where it gives boxes. `classes`: what the answers are over; those of
    `metadata["index2label"]`, or of the data, if left out. `image`: one of the data, which it is
    asked of to know what it gives; None: it gives scores.
    """
    function: Callable[..., Any] = model
    name = getattr(model, "__name__", type(model).__name__)
    if is_maite_model(model):
        names = read_index_to_label(model.metadata)
        classes = classes or (read_given(names) if names else None)
        function, name = _FirstAxis(model), str(model.metadata["id"])
    if image is None or not _detects(function, image):
        return FunctionClassifier(function, classes, name=name)
    known = classes or data_classes
    if known is None:
        raise UsageError(f"{name} gives boxes of classes without names; give classes=[…]")
    own = read_fingerprint(model)
    mark = fingerprint(name, own or source_text(function), *known.names)
    recipe = {"runtime": "python", "precision": "as returned"}
    return FunctionDetector(function, name, known, recipe, mark, own is not None)


def _detects(function: Callable[..., Any], image: Image) -> bool:
    try:
        return gives_boxes(function(np.stack([image])))
    except Exception:
        # what fails is told when the run asks it, with the sample
        return False
