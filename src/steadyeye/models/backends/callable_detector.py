"""Any Python function on images that returns boxes."""

import builtins
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steadyeye.core.abilities import Cutting, Explainable
from steadyeye.core.boxes import Detections
from steadyeye.core.errors import UsageError
from steadyeye.core.imports import attribute
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import model_in_short
from steadyeye.core.types import Classes, Detector, Image
from steadyeye.data.classes.class_lists import read
from steadyeye.models.runtimes.python_function import read_fingerprint, source_text


@model_in_short
@dataclass(frozen=True, eq=False)
class _FunctionDetector:
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
        batch = list(images)
        if not batch:
            return []
        with self._lock:
            returned = self.function(batch)
        try:
            return [_detections(*row) for row in returned]
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"{self.name} returns what are no detections ({error}); return (boxes, scores, "
                "labels) for every image: (n, 4), (n,) and (n,)"
            ) from error


def callable_detector(*, path: str, classes: str = "coco") -> Detector:
    """A Python function `package.module:function`: a list of images → boxes of each.

    `path`: where the function is. Images are (h, w, 3) uint8 RGB. It returns (boxes, scores,
    labels) an image: (n, 4) x0 y0 x1 y1 in pixels, (n,) in 0…1, (n,) indices into `classes` (`coco`
    or a class file). Calls never overlap. The fingerprint covers the function's source text, not
    the weights it may hold; a function with an attribute `fingerprint`, a text, declares what
    covers both. An attribute `threshold` says below which score it returns nothing, 0.0 where it
    has none. Where it has an attribute `fix_candidates`, image →
    `steadyeye.models.introspection.differentiable.FixedCandidates`, it can be explained with
    integrated gradients.

    Example: `callable_detector(path='my_models:detect', classes='coco')`
    """
    function = attribute(path)
    if not builtins.callable(function):
        raise UsageError(f"'{path}' is a {type(function).__name__}, not a function")
    name = path.rpartition(":")[2]
    names = read(classes)
    recipe: dict[str, Any] = {"runtime": "python", "precision": "as returned"}
    if isinstance(function, Cutting):
        recipe["threshold"] = float(function.threshold)
    own = read_fingerprint(function)
    mark = fingerprint(name, own or source_text(function), *names.names)
    fix_candidates = function.fix_candidates if isinstance(function, Explainable) else None
    return _FunctionDetector(function, name, names, recipe, mark, own is not None, fix_candidates)


def _detections(boxes: Any, scores: Any, labels: Any) -> Detections:
    corners = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    n = len(corners)
    return Detections(
        corners,
        np.asarray(labels, dtype=np.int32).reshape(n),
        np.asarray(scores, dtype=np.float64).reshape(n),
    )
