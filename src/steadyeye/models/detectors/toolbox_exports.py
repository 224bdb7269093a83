"""Exports whose toolbox includes the postprocessing: their outputs are recognised by names.

YOLOv7, super-gradients (YOLO-NAS), TensorFlow's Object Detection API, mmdeploy, PaddleDetection.
The last two write their preprocessing to a file next to the network. In .tflite files Ultralytics
writes boxes as shares of the input, for which eight bits are enough; elsewhere its boxes are in
pixels.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.models.detectors.detector_families import CENTRED, Format, count_cells
from steadyeye.models.detectors.onnx_detector import INTERPOLATIONS
from steadyeye.models.runtimes.network import Network, Output, axes_in_words, wrap_network

INTERPOLATION_NAMES = {number: name for name, number in INTERPOLATIONS.items()}
"""OpenCV's number of an interpolation, which PaddleDetection writes, → its name."""


def recognise_toolbox(network: Network, path: str) -> Format | None:
    """The format of an export of these toolboxes; None for others.

    Raises `UsageError` if the file with its preprocessing is missing.
    """
    outputs = network.described_outputs
    return (
        _of_paddle(network, path)
        or _of_tensorflow(outputs)
        or recognise_tflite(outputs)
        or _of_mmdeploy(outputs, path)
        or _of_super_gradients(network)
        or _of_yolov7(network)
    )


def is_classifier(network: Network) -> bool:
    """Whether a network has one output (n, classes), a row for each image."""
    shapes = [output.shape for output in network.described_outputs]
    return [len(shape) for shape in shapes] == [2] and not _gives_rows_of_boxes(network)


def _gives_rows_of_boxes(network: Network) -> bool:
    """Whether one output (n, columns) has n detections rather than n images of a classifier."""
    outputs = network.described_outputs
    if "scale_factor" in network.input_names or _flat(outputs) is not None:
        return True
    shape = outputs[0].shape
    if len(outputs) != 1 or len(shape) != 2 or shape[0] is not None or shape[1] != 7:
        return False
    batch, *sides = network.input_shape
    if batch is not None:
        return True
    # both are free: three images are three rows of a classifier
    size = [side or 64 for side in sides]
    return len(network.outputs(np.full((3, *size), 114, np.float32))[0]) != 3


def _of_tensorflow(outputs: Sequence[Output]) -> Format | None:
    place = {output.name.removesuffix(":0"): index for index, output in enumerate(outputs)}
    parts = [f"detection_{part}" for part in ("boxes", "scores", "classes")]
    if not set(parts) <= set(place):
        return None
    reason = f"outputs named {', '.join(parts)}, as TensorFlow's Object Detection API has them"
    return Format("tensorflow", reason, tuple(place[part] for part in parts))


def _of_super_gradients(network: Network) -> Format | None:
    outputs = network.described_outputs
    # bytes go in where the division by 255 is in the network
    recipe = {**CENTRED, "overlap": None, **({"std": (1.0,) * 3} if network.takes_bytes else {})}
    flat = _flat(outputs)
    if flat is not None:
        reason = f"output {outputs[flat].name}, as super-gradients exports its flat format"
        return Format("yolo_nas_flat", reason, (flat,), recipe)
    parts = ("pred_boxes", "pred_scores", "pred_classes")
    order = tuple(i for part in parts for i, o in enumerate(outputs) if o.name.endswith(part))
    if len(order) == 3:
        reason = f"outputs named {', '.join(parts)}, as super-gradients exports its batch format"
        return Format("boxes", reason, order, recipe)
    return _of_raw_yolo_nas(network, recipe)


def _of_raw_yolo_nas(network: Network, recipe: Mapping[str, Any]) -> Format | None:
    """Corners (1, cells, 4) and scores (1, cells, classes) of strides 8, 16 and 32."""
    outputs, side = network.described_outputs, network.input_shape[-2:]
    shapes = [output.shape for output in outputs]
    if len(shapes) != 2 or any(len(shape) != 3 for shape in shapes) or None in side:
        return None
    cells = count_cells((int(side[0] or 0), int(side[1] or 0)), (8, 16, 32))
    if shapes[0][1:] != (cells, 4) or shapes[1][1] != cells or shapes[1][2] in (None, 4):
        return None
    reason = f"outputs ({axes_in_words(shapes[0])}) and ({axes_in_words(shapes[1])}), as YOLO-NAS'"
    recipe = {**recipe, "overlap": CENTRED["overlap"]}
    return Format("yolo_nas", reason, (0, 1), recipe, width=shapes[1][2])


def _flat(outputs: Sequence[Output]) -> int | None:
    places = [i for i, output in enumerate(outputs) if output.name.endswith("flat_predictions")]
    return places[0] if places else None


def _of_yolov7(network: Network) -> Format | None:
    outputs = network.described_outputs
    if len(outputs) != 1 or not _gives_rows_of_boxes(network):
        return None
    output = outputs[0]
    reason = f"output {output.name} ({axes_in_words(output.shape)}), as YOLOv7 exports end to end"
    return Format("yolov7", reason)


def _of_mmdeploy(outputs: Sequence[Output], path: str) -> Format | None:
    place = {output.name: index for index, output in enumerate(outputs)}
    if not {"dets", "labels"} <= set(place) or outputs[place["dets"]].shape[-1] != 5:
        return None
    file = Path(path).expanduser().with_name("pipeline.json")
    try:
        tasks = json.loads(file.read_text(encoding="utf-8"))["pipeline"]["tasks"]
        steps = [step for task in tasks for step in task.get("transforms", ())]
        recipe = _mmdeploy_recipe(steps)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _needs("mmdeploy", "mmdeploy", path, file.name) from error
    reason = "outputs named dets (1, n, 5) and labels, and pipeline.json, as of mmdeploy"
    return Format("mmdeploy", reason, (place["dets"], place["labels"]), recipe)


def _mmdeploy_recipe(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The recipe of an image's transforms. Raises `KeyError` if one is missing."""
    kinds = [step["type"] for step in steps]
    # of several of a kind the first
    by_kind = {step["type"]: step for step in reversed(steps)}
    resize, normalise = by_kind["Resize"], by_kind["Normalize"]
    mean, std = tuple(map(float, normalise["mean"])), tuple(map(float, normalise["std"]))
    fit = "rounded_letterbox" if resize["keep_ratio"] else "stretch"
    recipe = {"order": "rgb" if normalise["to_rgb"] else "bgr", "mean": mean, "std": std}
    # what is padded after the normalisation is padded with 0, which is the mean
    pad: Any = mean
    if "Pad" in kinds and kinds.index("Pad") < kinds.index("Normalize"):
        value = by_kind["Pad"].get("pad_val", 0)
        value = value.get("img", 0) if isinstance(value, dict) else value
        pad = tuple(map(float, value)) if isinstance(value, list) else float(value)
    return {**recipe, "fit": fit, "pad": pad}


def _of_paddle(network: Network, path: str) -> Format | None:
    if "scale_factor" not in network.input_names:
        return None
    file = Path(path).expanduser().with_name("infer_cfg.yml")
    try:
        settings = yaml.safe_load(file.read_text(encoding="utf-8"))
        steps = {step["type"]: step for step in settings["Preprocess"]}
        recipe = _paddle_recipe(steps)
        names = tuple(map(str, settings["label_list"]))
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        raise _needs("PaddleDetection", "paddle", path, file.name) from error
    reason = "an input scale_factor and infer_cfg.yml, as of PaddleDetection"
    return Format("paddle", reason, (0,), recipe, width=len(names), names=names)


def _paddle_recipe(steps: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The recipe of an image's steps. Raises `KeyError` if one is missing or not known."""
    resize, normalise = steps["Resize"], steps.get("NormalizeImage", {})
    if resize.get("keep_ratio", True) or set(steps) - {"Resize", "NormalizeImage", "Permute"}:
        raise KeyError("keep_ratio")
    unit = 255.0 if normalise.get("is_scale", True) and normalise else 1.0
    plain = normalise.get("norm_type", "mean_std") == "none" or not normalise
    mean = (0.0,) * 3 if plain else tuple(unit * float(value) for value in normalise["mean"])
    std = (unit,) * 3 if plain else tuple(unit * float(value) for value in normalise["std"])
    size = resize["target_size"]
    size = (size, size) if isinstance(size, int) else tuple(size)
    interpolation = INTERPOLATION_NAMES[resize.get("interp", 1)]
    return {"size": size, "mean": mean, "std": std, "interpolation": interpolation}


def _needs(toolbox: str, decoder: str, path: str, file: str) -> UsageError:
    return UsageError(
        f"'{path}' is an export of {toolbox}, and {file} next to it, which says how images are "
        f"prepared, is missing or of another form; put it there, or write decoder='{decoder}' and "
        "recipe={…} with fit, order, mean and std"
    )


PARTS: dict[str, tuple[str, str, str]] = {
    "TFLite_Detection_PostProcess": ("", ":2", ":1"),
    "StatefulPartitionedCall": (":3", ":1", ":2"),
}
"""TensorFlow 1 and 2 → the suffixes of the output names of boxes, scores and classes."""


def recognise_tflite(outputs: Sequence[Output]) -> Format | None:
    """The format of a file that ends in TensorFlow Lite's postprocessing; None for others."""
    place = {output.name: index for index, output in enumerate(outputs)}
    for start, ends in PARTS.items():
        names = [start + end for end in ends]
        if len(outputs) == 4 and set(names) <= set(place):
            reason = f"outputs named {', '.join(names)}, as TensorFlow Lite has them"
            order = tuple(place[name] for name in names)
            return Format("tensorflow_lite", reason, order)
    return None


def in_pixels(network: Network, path: str, decoder: str | None) -> Network:
    """The network itself, or a wrapper that returns the boxes of Ultralytics' export in pixels.

    Raises `UsageError` for a single output whose family neither the user nor metadata name.
    """
    metadata, shapes = network.metadata, [output.shape for output in network.described_outputs]
    if "names" not in metadata and decoder is None and [len(shape) for shape in shapes] == [3]:
        raise UsageError(
            f"'{path}' has no metadata of Ultralytics, so that its boxes may be shares of the "
            "image or pixels; export it again with them, or write decoder='…' if they are pixels"
        )
    is_ultralytics = "names" in metadata and metadata.get("task", "detect") == "detect"
    # what is end to end is in pixels, unless it went through TensorFlow
    is_end_to_end = metadata.get("end2end") == "True" and network.input_shape[-1] != 3
    if not is_ultralytics or is_end_to_end:
        return network
    # of what is end to end, and of YOLOv5, whose metadata name no task, a box is a row
    boxes_are_rows = metadata.get("end2end") == "True" or "task" not in metadata
    return wrap_network(network, partial(_infer_pixels, network, boxes_are_rows))


def _infer_pixels(
    network: Network, boxes_are_rows: bool, batch: NDArray[np.float32]
) -> Sequence[NDArray[np.float32]]:
    """The outputs of a network with the boxes of the first one in pixels of the input.

    The first output is (1, n, 4 + …), or (1, 4 + …, n) unless `boxes_are_rows`.
    """
    first, *others = network.outputs(batch)
    is_last = network.input_shape[-1] == 3
    height, width = batch.shape[1:3] if is_last else batch.shape[2:4]
    scale = np.array([width, height, width, height], np.float32)
    first = first.copy()
    if boxes_are_rows:
        first[..., :4] *= scale
    else:
        first[:, :4] *= scale[:, None]
    return [first, *others]
