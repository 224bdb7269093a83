"""Models given as Python objects: a function or a model of MAITE, a classifier or a detector.

Its output for one image shows which it is: rows of scores, or boxes.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Detections
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import model_in_short
from steadyeye.core.types import Classes, Detector, Image, Model
from steadyeye.data.classes.class_lists import read_given, read_index_to_label
from steadyeye.data.python_boxes import holds_boxes, read_answer, to_array
from steadyeye.models.runtimes.python_function import (
    FunctionClassifier,
    call_function,
    read_fingerprint,
    source_text,
)


@model_in_short
@dataclass(frozen=True, eq=False)
class FunctionDetector:
    """A `Detector` over a function: a list of (h, w, 3) uint8 RGB images → boxes of each.

    For an image it returns (boxes, scores, labels), a mapping of these as in torchvision and
    torchmetrics, a detection target of MAITE, or `Detections` of supervision.
    """

    function: Callable[[Sequence[Image]], Any]
    name: str
    classes: Classes
    recipe: Mapping[str, Any]
    fingerprint: str
    cacheable: bool
    fix_candidates: Callable[[Image], Any] | None = None
    detects: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __call__(self, images: Iterable[Image], /) -> list[Detections]:
        """The detections of each image, in the function's order."""
        batch = list(images)
        if not batch:
            return []
        with self._lock:
            answers = call_function(self.function, batch, self.name)
        try:
            rows = [read_detections(row, self.name, self.classes) for row in answers]
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"{self.name} does not return detections ({error}); return (boxes, scores, "
                "labels) for every image: (n, 4), (n,) and (n,)"
            ) from error
        if len(rows) != len(batch):
            raise UsageError(
                f"{self.name} returns {number_of(len(rows), 'row')} of boxes for "
                f"{number_of(len(batch), 'image')}; return (boxes, scores, labels) for every image"
            )
        return rows


def gives_boxes(answers: object) -> bool:
    """Whether the output of a function for a batch is boxes per image."""
    if not isinstance(answers, Sequence) or isinstance(answers, str) or not answers:
        return False
    first = answers[0]
    if holds_boxes(first):
        return True
    if not isinstance(first, tuple | list) or len(first) != 3:
        return False
    boxes = to_array(first[0])
    return boxes.ndim == 2 or boxes.size == 0


def read_detections(row: Any, name: str, classes: Classes) -> Detections:
    """The detections of a function's output for one image; inverted boxes and NaN are unchanged.

    Raises `UsageError` for other outputs, boxes without scores, and unknown class names.
    """
    if not holds_boxes(row):
        boxes, scores, labels = row
        row = {"boxes": boxes, "scores": scores, "labels": labels}
    boxes_row = read_answer(row, name)
    if boxes_row.scores is None:
        raise UsageError(f"{name} returns boxes without scores; give a score in 0…1 for each")
    for label in boxes_row.labels:
        if isinstance(label, str) and label not in classes.names:
            raise UsageError(
                f"{name} returns the class '{label}', which is not one of its classes; give all "
                "its classes as classes=[…]"
            )
    places = [
        classes.names.index(label) if isinstance(label, str) else label
        for label in boxes_row.labels
    ]
    return Detections(boxes_row.corners, np.asarray(places, dtype=np.int32), boxes_row.scores)


class _FirstAxis:
    """A MAITE model as a function of (h, w, 3) images; `__wrapped__`: the fingerprinted object."""

    def __init__(self, model: Any) -> None:
        self.__wrapped__ = model

    def __call__(self, images: Sequence[Image] | NDArray[np.uint8]) -> Any:
        rows = list(self.__wrapped__([np.moveaxis(image, -1, 0) for image in images]))
        return rows if gives_boxes(rows) else np.stack([to_array(row) for row in rows])


def is_maite_model(value: object) -> bool:
    """Whether an object is a model of MAITE: it has metadata with an id."""
    metadata = getattr(value, "metadata", None)
    return callable(value) and isinstance(metadata, Mapping) and "id" in metadata


def adapt_model(
    model: Any, classes: Classes | None, data_classes: Classes | None, image: Image | None
) -> Model | Detector:
    """A function or a MAITE model as a `Model`, or as a `Detector` if it returns boxes.

    A MAITE model gets a list of (3, h, w) uint8 RGB images, a function (n, h, w, 3), or a list of
    (h, w, 3) if it returns boxes. `classes`: its output classes; by default those of
    `metadata["index2label"]`, or of the data. `image`: an image of the data to test the kind of
    output with; None: it returns scores.
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
