"""Image classifiers of MAITE as models: sequences of (3, h, w) images in, rows of scores out."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes
from steadyeye.data.classes.class_lists import read_given, read_index_to_label
from steadyeye.models.runtimes.python_function import FunctionClassifier


class _Batches:
    """A MAITE model as a function of (n, h, w, 3) uint8; `__wrapped__`: whose source counts."""

    def __init__(self, model: Any) -> None:
        self.__wrapped__ = model

    def __call__(self, images: NDArray[np.uint8]) -> NDArray[Any]:
        rows = list(self.__wrapped__(list(np.moveaxis(images, -1, 1))))
        if any(hasattr(row, "boxes") for row in rows):
            raise UsageError(
                "the model gives boxes: of MAITE, classifiers are taken; give a detector as "
                "callable_detector(path='module:function')"
            )
        return np.stack([_read_row(row) for row in rows])


def is_maite_model(value: object) -> bool:
    """Whether an object says of itself what a model of MAITE does: metadata with an id."""
    metadata = getattr(value, "metadata", None)
    return callable(value) and isinstance(metadata, Mapping) and "id" in metadata


def adapt_classifier(model: Any, classes: Classes | None = None) -> FunctionClassifier:
    """A MAITE image classifier as a `Model`.

    It gets (3, h, w) uint8 RGB images of one shape and returns (classes,) scores of each.
    `classes`: what they are over; those of `metadata["index2label"]`, or of the data, if left out.
    """
    names = read_index_to_label(model.metadata)
    own = read_given(names) if names else None
    return FunctionClassifier(_Batches(model), classes or own, name=str(model.metadata["id"]))


def _read_row(row: Any) -> NDArray[Any]:
    """The scores of an image, of a tensor of PyTorch too."""
    values = row.detach().cpu().numpy() if callable(getattr(row, "detach", None)) else row
    return np.asarray(values)
