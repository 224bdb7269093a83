"""ONNX files of detectors."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Detector
from steadyeye.data.classes.class_lists import read
from steadyeye.models.detectors.decoders import DECODERS
from steadyeye.models.detectors.onnx_detector import DetectorRecipe, OnnxDetector
from steadyeye.models.runtimes.onnx_files import list_contents
from steadyeye.models.runtimes.onnx_session import OnnxSession

RECIPES: Mapping[str, Mapping[str, Any]] = {
    "yolox": {},
    "fastestdet": {"fit": "stretch", "std": (255.0, 255.0, 255.0), "overlap": 0.45},
    "boxes": {"fit": "stretch", "order": "rgb", "overlap": None},
    "detr": {
        "fit": "stretch",
        "order": "rgb",
        "mean": (123.675, 116.28, 103.53),
        "std": (58.395, 57.12, 57.375),
        "overlap": None,
    },
    "nanodet": {
        "fit": "stretch",
        "mean": (103.53, 116.28, 123.675),
        "std": (57.375, 57.12, 58.395),
        "overlap": 0.6,
    },
    "ssd": {"fit": "stretch", "order": "rgb", "mean": (127.0,) * 3, "std": (128.0,) * 3},
}


def onnx_detector(
    *,
    path: str,
    decoder: str,
    classes: str = "coco",
    recipe: Mapping[str, Any] | None = None,
    runtime: str = "onnx",
) -> Detector:
    """An ONNX file of a detector with one image input.

    `path`: the file. `decoder`: what its outputs mean: "yolox", "fastestdet", "nanodet", "detr",
    "ssd" or "boxes" (boxes, scores and labels, decoded in the network). `classes`: `coco` or a
    class file. `recipe`: a dict with any of size, fit, order, mean, std, threshold and overlap; the
    size is what the file declares, the rest as the decoder's family was trained. `runtime`: "onnx"
    on the processor, or "cuda" with onnxruntime-gpu. Raises `UsageError` where neither the file nor
    `recipe` says the size.

    Example: `onnx_detector(path='yolox_nano.onnx', decoder='yolox')`
    """
    if decoder not in DECODERS:
        raise unknown("decoder", decoder, DECODERS)
    file = Path(path).expanduser()
    session = OnnxSession(file, path, runtime)
    parameters = {**RECIPES[decoder], **(recipe or {})}
    known = DetectorRecipe.__dataclass_fields__
    for key in parameters:
        if key not in known:
            raise unknown("key of a detector's recipe", key, known)
    parameters.setdefault("size", _size(session.input_shape, path))
    values: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in parameters.items()
    }
    settings = DetectorRecipe(**values)
    record = {**settings.record(), "decoder": decoder, "runtime": runtime}
    record["precision"] = "as in the file"
    record = json.loads(json.dumps(record))
    names = read(classes)
    mark = fingerprint(*list_contents(file), json.dumps(record, sort_keys=True), *names.names)
    decode, device = DECODERS[decoder], session.device
    return OnnxDetector(
        file.stem, names, settings, session.outputs, decode, record, mark, device, path
    )


def _size(shape: tuple[int | None, ...], path: str) -> tuple[int, int]:
    if len(shape) != 4 or shape[2] is None or shape[3] is None:
        raise UsageError(f"'{path}' takes input {shape}; give the size in the recipe, (h, w)")
    return shape[2], shape[3]
