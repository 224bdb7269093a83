"""Any Python function as a model."""

import inspect
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.abilities import Marked
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.imports import place_of
from steadyeye.core.model_stages import AtInput, Stages
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import model_in_short
from steadyeye.core.types import Classes, Image, Scores
from steadyeye.data.python_boxes import to_array
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes.classifier import check_width

PARTS = ("logits", "scores", "probs", "probabilities")
"""What libraries call the scores in what their classifiers return."""


@model_in_short
class FunctionClassifier:
    """A `Model` over a function of (n, h, w, 3) uint8 RGB that returns (n, classes) scores.

    Images of one shape go in together, in one call; calls never overlap. `size`: None, unchanged
    images; a side, resized to that short side and centre-cropped square; (height, width), resized
    to exactly that; Pillow's bicubic. Scores are used as returned, without softmax. The fingerprint
    covers the function's source text, not its weights, so predictions are not cached; an attribute
    `fingerprint`, a text, replaces it and should cover both.
    """

    def __init__(
        self,
        function: Callable[[NDArray[np.uint8]], Any],
        classes: Classes | None = None,
        size: int | tuple[int, int] | None = None,
        name: str = "",
    ) -> None:
        self.function = function
        self.classes = classes
        self.size = size
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.recipe: Mapping[str, Any] = {
            "size": list(size) if isinstance(size, tuple) else size,
            "output": "as returned",
            "runtime": "python",
            "precision": "as returned",
            "runtime_note": "the fingerprint covers the source of the function, not its weights",
        }
        labels = classes.names if classes else ()
        own = read_fingerprint(function)
        self.cacheable = own is not None
        text = own or source_text(function)
        self.fingerprint = fingerprint(self.name, text, repr(size), *labels)
        self._resize = _resizer(size) if size is not None else None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type["FunctionClassifier"], tuple[Any, ...]]:
        return FunctionClassifier, (self.function, self.classes, self.size, self.name)

    def __call__(self, images: Iterable[Image], /) -> Scores:
        """(n, classes) float32, one row an image in order; (0, classes) for no images."""
        prepare = self.stages().prepare
        return self._infer(prepare(image) for image in images)

    def stages(self) -> Stages:
        """The resizing, and the function."""
        return Stages(self._resize.fit if self._resize else np.asarray, self._infer)

    def _infer(self, prepared: Iterable[Image]) -> Scores:
        ready = list(prepared)
        groups: dict[tuple[int, ...], list[int]] = {}
        for row, image in enumerate(ready):
            groups.setdefault(image.shape, []).append(row)
        parts = [self._scores(np.stack([ready[row] for row in rows])) for rows in groups.values()]
        if not parts:
            return np.zeros((0, len(self.classes or ())), dtype=np.float32)
        widths = {part.shape[1] for part in parts}
        if len(widths) > 1:
            raise UsageError(
                f"{self.name} gives rows of different widths: {sorted(widths)}; "
                "return one score per class"
            )
        order = np.concatenate([np.array(rows, dtype=np.intp) for rows in groups.values()])
        scores = np.empty((len(ready), widths.pop()), dtype=np.float32)
        scores[order] = np.concatenate(parts)
        return scores

    def at_input(self) -> AtInput:
        """The resizing, and the model without it."""
        if self._resize is None:
            return AtInput(np.asarray, self, None)
        rest = FunctionClassifier(self.function, self.classes, None, self.name)
        return AtInput(self._resize.fit, rest, None)

    def _scores(self, batch: NDArray[np.uint8]) -> Scores:
        with self._lock:
            returned = call_function(self.function, batch, self.name)
        try:
            scores = to_array(returned)
        except ValueError:  # rows of different lengths, such as boxes
            scores = np.asarray(None)
        if scores.dtype.kind not in "fiub":
            raise UsageError(
                f"{self.name} returns {type(returned).__name__}, not an array of numbers; "
                + _advise(returned)
            )
        if scores.ndim != 2 or len(scores) != len(batch):
            raise UsageError(
                f"{self.name} returns shape {scores.shape} for {number_of(len(batch), 'image')}; "
                f"it should return ({len(batch)}, classes)"
            )
        scores = np.asarray(scores, dtype=np.float32)
        check_width(scores, self.classes)
        return scores


def call_function(
    function: Callable[[Any], Any], batch: Sequence[Image] | NDArray[np.uint8], name: str
) -> Any:
    """What a function returns for images. Its own errors are `UsageError`, with file and line."""
    try:
        return function(batch)
    except (UsageError, MemoryError):
        raise
    except Exception as error:
        shape = "x".join(map(str, (len(batch), *batch[0].shape)))
        raise UsageError(f"{name} fails on images of shape {shape}: {place_of(error)}") from error


def _advise(returned: Any) -> str:
    """What to return instead of something that is no array."""
    names = list(returned) if isinstance(returned, Mapping) else dir(returned)
    part = next((name for name in PARTS if name in names), None)
    if part:
        return f"return its {part} alone: one row per image, one column per class"
    return "for a detector on data without boxes use callable_detector(path='…')"


def _resizer(size: int | tuple[int, int]) -> Preprocessing:
    exact = (size, size) if isinstance(size, int) else size
    return Preprocessing(exact, size, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def read_fingerprint(code: object) -> str | None:
    """The fingerprint that a user's function or module declares."""
    mark = code.fingerprint if isinstance(code, Marked) else None
    return mark if isinstance(mark, str) and mark else None


def source_text(function: Callable[..., Any]) -> str:
    """The text of a function, or of the class of a callable object; its name without a source."""
    if isinstance(function, partial):
        return f"{source_text(function.func)} {function.args} {function.keywords}"
    function = inspect.unwrap(function)
    routine = function if inspect.isroutine(function) else type(function)
    try:
        return inspect.getsource(routine)
    except (OSError, TypeError):
        return f"{routine.__module__}.{routine.__qualname__}"
