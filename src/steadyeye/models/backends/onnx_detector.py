"""ONNX files of detectors."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Detector
from steadyeye.models.detectors.network_detector import DetectorOptions, network_detector
from steadyeye.models.runtimes.onnx_files import list_contents
from steadyeye.models.runtimes.onnx_session import OnnxSession


def onnx_detector(
    *,
    path: str,
    decoder: str | None = None,
    classes: str | None = None,
    recipe: Mapping[str, Any] | None = None,
    runtime: str = "onnx",
) -> Detector:
    """An ONNX detector with one image input.

    `path`: the file. `decoder`: the output format, by default inferred from names and shapes:
    "yolox", "yolox_decoded", "ultralytics", "ultralytics_rtdetr", "ultralytics_rtdetr_classes",
    "end_to_end", "yolov7", "yolo_nas", "yolo_nas_flat", "fastestdet", "nanodet", "nanodet_heads",
    "detr", "detr_sigmoid", "ssd", "tensorflow", "tensorflow_lite", "mmdeploy", "paddle", or boxes,
    scores and labels decoded in the network: "boxes" with labels from 0, "torchvision" with the
    background as 0. `classes`: `coco` or a class file; by
    default those of the file, or `coco`. `recipe`: a dict with any of size, fit, order, mean, std,
    threshold, overlap, pad, clip and interpolation; the default size is that of the file, the rest
    is that of the family's training. `runtime`: "onnx" on the processor, "cuda" or "tensorrt" with
    onnxruntime-gpu. Raises `UsageError` if neither the file nor `recipe` has the size, and for
    outputs that fit no decoder or several.

    Example: `onnx_detector(path='yolox_nano.onnx')`
    """
    options = DetectorOptions(decoder, classes, recipe)
    file = Path(path).expanduser()
    session = OnnxSession(file, path, runtime)
    settings = {"runtime": runtime, "precision": "as in the file"}
    settings["content"] = fingerprint(*list_contents(file))
    return replace(network_detector(session, path, options, settings), device=session.device)
