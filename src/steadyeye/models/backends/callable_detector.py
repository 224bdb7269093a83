"""Any Python function on images that returns boxes."""

from typing import Any

from steadyeye.core.abilities import Cutting, Explainable
from steadyeye.core.imports import user_function
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Detector
from steadyeye.data.classes.class_lists import read
from steadyeye.models.detectors.function_detector import FunctionDetector
from steadyeye.models.runtimes.python_function import read_fingerprint, source_text


def callable_detector(*, path: str, classes: str = "coco") -> Detector:
    """A Python function `package.module:function`: a list of images → the boxes of each image.

    `path`: the import path of the function. Images are (h, w, 3) uint8 RGB. It returns (boxes,
    scores, labels) an image: (n, 4) x0 y0 x1 y1 in pixels, (n,) in 0…1, (n,) indices into `classes`
    (`coco` or a class file); or a mapping of these, a target of MAITE, or supervision's
    `Detections`. Calls never overlap. The fingerprint covers the function's source text, not its
    weights; an attribute `fingerprint`, a text, replaces it and should cover both. An attribute
    `threshold` is the score below which it returns nothing, 0.0 if there is none. With an attribute
    `fix_candidates`, image → `steadyeye.models.introspection.differentiable.FixedCandidates`, it
    can be explained with integrated gradients. Raises `UsageError` if the path names no function.

    Example: `callable_detector(path='my_models:detect', classes='coco')`
    """
    function = user_function(path)
    name = path.rpartition(":")[2]
    names = read(classes)
    recipe: dict[str, Any] = {"runtime": "python", "precision": "as returned"}
    if isinstance(function, Cutting):
        recipe["threshold"] = float(function.threshold)
    own = read_fingerprint(function)
    mark = fingerprint(name, own or source_text(function), *names.names)
    fix_candidates = function.fix_candidates if isinstance(function, Explainable) else None
    return FunctionDetector(function, name, names, recipe, mark, own is not None, fix_candidates)
