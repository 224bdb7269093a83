"""Ultralytics' detectors through their own package, which is AGPL-3.0 and the user's to install."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from steadyeye.core.errors import UsageError, one_line
from steadyeye.core.imports import library
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Detector, Image
from steadyeye.data.classes.class_lists import from_names, read
from steadyeye.models.detectors.function_detector import FunctionDetector

PACKAGES = ("ultralytics",)
THRESHOLD, OVERLAP, MOST = 0.001, 0.7, 300

package = library("ultralytics")


def ultralytics(
    *, path: str, classes: str | None = None, size: int = 640, allow_pickle: bool = False
) -> Detector:
    """A .pt file of Ultralytics, run by `predict` of its package, one image at a time.

    The package is not installed with steadyeye: `pip install ultralytics`, under its licence,
    AGPL-3.0. `path`: the file, or a .yaml of its architecture, whose weights are then random.
    `classes`: a class file; the model's own names if left out. `size`: the longer side of its
    input. `allow_pickle`: a .pt file is a pickle, which may run code, and is loaded only with this.
    Boxes with a score below 0.001 are left out, and those with an IoU above 0.7 with a better one
    of their class. Raises `UsageError` for other tasks than detection.

    Example: `ultralytics(path='yolo11n.pt', allow_pickle=True)`
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise UsageError(
            f"there is no file '{path}'; check the path: weights of Ultralytics are not downloaded"
        )
    if file.suffix != ".yaml" and not allow_pickle:
        raise UsageError(
            f"'{path}' is a pickle, which may run code as it loads; if you trust it, add "
            "allow_pickle=True, or export it to ONNX and give that"
        )
    try:
        model = package.YOLO(str(file))
        task, own = model.task, [str(name) for _, name in sorted(model.names.items())]
    except Exception as error:
        raise UsageError(
            f"ultralytics cannot load '{path}': {one_line(error)}; give weights that the installed "
            "version reads, or export them to ONNX with the one that wrote them"
        ) from error
    if task != "detect":
        raise UsageError(f"'{path}' is for the task '{task}'; give a model for the task 'detect'")
    names = read(classes) if classes else from_names(own)
    if len(names) != len(own):
        raise UsageError(f"'{path}' has {len(own)} classes, not {len(names)}; correct classes=…")
    settings = {"conf": THRESHOLD, "iou": OVERLAP, "max_det": MOST, "imgsz": size}

    def detect(images: Sequence[Image]) -> list[tuple[Any, Any, Any]]:
        # one at a time: the padding of a batch depends on what else is in it
        in_bgr = (np.ascontiguousarray(image[..., ::-1]) for image in images)
        results = [model.predict(image, verbose=False, **settings)[0].boxes for image in in_bgr]
        return [(boxes.xyxy, boxes.conf, boxes.cls) for boxes in results]

    recipe = {**settings, "runtime": "ultralytics", "precision": "fp32"}
    recipe["version"] = package.__version__
    mark = fingerprint(file.read_bytes(), str(recipe), *names.names)
    random = file.suffix == ".yaml"
    return FunctionDetector(detect, file.stem, names, recipe, mark, cacheable=not random)
