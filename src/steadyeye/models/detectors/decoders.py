"""Decodes the outputs of detection networks: one function per family."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Detections
from steadyeye.core.errors import UsageError
from steadyeye.models.detectors.onnx_detector import Decode, InputFrame

Outputs = Sequence[NDArray[np.float32]]
CONFIDENT = 0.5
"""Score from which on a detection is not one of the background."""


def yolox(outputs: Outputs, frame: InputFrame) -> Detections:
    """YOLOX (Ge et al. 2021): (1, cells, 5 + classes) of all strides, grid not yet applied.

    Box centres are offsets from their cell and sides are logarithms, both in strides; the score
    is objectness × class probability. Strides 8, 16, 32, of larger networks 64 too.
    """
    rows = outputs[0][0].astype(np.float64)
    grid, stride = _grid(len(rows), frame.size)
    centre = (rows[:, :2] + grid) * stride[:, None]
    side = np.exp(rows[:, 2:4]) * stride[:, None]
    scores = rows[:, 4:5] * rows[:, 5:]
    return _best(_corners(centre, side, frame), scores)


def fastestdet(outputs: Outputs, frame: InputFrame) -> Detections:
    """FastestDet (released 2022): (1, 5 + classes, rows, columns), one cell a box.

    Objectness, tanh offsets of the centre from its cell, logistic sides as shares of the input,
    class probabilities; the score is objectness^0.6 × probability^0.4.
    """
    output = outputs[0][0].astype(np.float64)
    height, width = output.shape[1:]
    ys, xs = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    centre = np.stack([(np.tanh(output[1]) + xs) / width, (np.tanh(output[2]) + ys) / height], -1)
    side = np.stack([_logistic(output[3]), _logistic(output[4])], -1)
    corners = _corners(centre.reshape(-1, 2), side.reshape(-1, 2), frame, frame.sides)
    classes = output[5:].reshape(len(output) - 5, -1).T
    objectness = output[0].reshape(-1, 1)
    return _best(corners, np.clip(objectness, 0, 1) ** 0.6 * np.clip(classes, 0, 1) ** 0.4)


def boxes(outputs: Outputs, frame: InputFrame) -> Detections:
    """Decoded already: x0 y0 x1 y1 in pixels of the input, (1, n, 4); scores and labels, (1, n)."""
    if len(outputs) < 3:
        raise UsageError(
            f"decoder='boxes' reads boxes, scores and labels; this has {len(outputs)} outputs"
        )
    corners = frame.to_image(outputs[0].reshape(-1, 4).astype(np.float64))
    labels = outputs[2].reshape(-1).astype(np.int32)
    return Detections(corners, labels, outputs[1].reshape(-1).astype(np.float64))


def torchvision(outputs: Outputs, frame: InputFrame) -> Detections:
    """As `boxes`, without a batch axis, with labels from 1: 0 is the background.

    RetinaNet and FCOS score the background too, but never high.
    """
    detections = boxes(outputs, frame)
    if detections.scores[detections.labels == 0].max(initial=0) >= CONFIDENT:
        raise UsageError(
            "its labels begin at 0, which in torchvision's exports is the background; write "
            "decoder='boxes', which takes labels as they are"
        )
    return detections


def detr(outputs: Outputs, frame: InputFrame) -> Detections:
    """DETR (Carion et al. 2020): logits (1, n, classes + 1), the last being nothing, and boxes.

    Boxes are (1, n, 4), centre and sides as shares of the input; the score is the softmax.
    """
    logits, rows = _pair(outputs, "detr", "logits and boxes")
    _check_logits(logits, "softmax")
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    scores = (shifted / shifted.sum(axis=1, keepdims=True))[:, :-1]
    return _best(_corners(rows[:, :2], rows[:, 2:], frame, frame.sides), scores)


def ssd(outputs: Outputs, frame: InputFrame) -> Detections:
    """SSD (Liu et al. 2016): boxes (1, n, 4), decoded, and scores (1, n, 1 + classes).

    Boxes are x0 y0 x1 y1 as shares of the input; the first class is the background.
    """
    rows, scores = _pair(outputs, "ssd", "boxes and scores")
    return _best(frame.to_image(rows * np.tile(frame.sides, 2)), scores[:, 1:])


def nanodet(outputs: Outputs, frame: InputFrame, bins: int = 8) -> Detections:
    """NanoDet-Plus (released 2021): (1, cells of all strides, classes + 4 × 8).

    Class probabilities, then for the left, top, right and bottom side of a box the distribution
    over its distance from the cell's centre, 0…7 strides (Li et al., "Generalized Focal Loss",
    2020). Strides 8, 16, 32 and 64.
    """
    rows = outputs[0][0].astype(np.float64)
    grid, stride = _grid(len(rows), frame.size)
    split = rows.shape[1] - 4 * bins
    spread = np.exp(rows[:, split:].reshape(-1, 4, bins))
    distance = (spread / spread.sum(axis=2, keepdims=True)) @ np.arange(bins) * stride[:, None]
    centre = grid * stride[:, None]
    corners = np.concatenate([centre - distance[:, :2], centre + distance[:, 2:]], axis=1)
    return _best(frame.to_image(corners), rows[:, :split])


def nanodet_heads(outputs: Outputs, frame: InputFrame) -> Detections:
    """NanoDet (released 2020): a pair of outputs a stride, 8, 16 and 32; all classes, then boxes.

    Class probabilities (1, cells, classes), then (1, cells, 4 × bins): for the left, top, right and
    bottom side the distribution over its distance from the centre of the cell, in strides.
    """
    half = len(outputs) // 2
    scores = np.concatenate([output[0].astype(np.float64) for output in outputs[:half]])
    if len(scores) and (scores.min() < 0 or scores.max() > 1):
        raise UsageError(
            "its class outputs are not probabilities (below 0 or above 1); export it with the "
            "sigmoid, as the release does"
        )
    spread = np.concatenate([output[0].astype(np.float64) for output in outputs[half:]])
    grid, stride = _grid(len(scores), frame.size)
    bins = spread.shape[1] // 4
    spread = spread.reshape(-1, 4, bins)
    spread = np.exp(spread - spread.max(axis=2, keepdims=True))
    distance = (spread / spread.sum(axis=2, keepdims=True)) @ np.arange(bins) * stride[:, None]
    centre = (grid + 0.5) * stride[:, None]
    corners = np.concatenate([centre - distance[:, :2], centre + distance[:, 2:]], axis=1)
    return _best(frame.to_image(corners), scores)


def yolox_decoded(outputs: Outputs, frame: InputFrame) -> Detections:
    """YOLOX and YOLOv5 in pixels of the input: (1, n, 5 + classes), centre, sides, objectness.

    The score is objectness × class probability.
    """
    rows = outputs[0][0].astype(np.float64)
    return _best(_corners(rows[:, :2], rows[:, 2:4], frame), rows[:, 4:5] * rows[:, 5:])


def ultralytics(outputs: Outputs, frame: InputFrame) -> Detections:
    """Ultralytics' YOLO from version 8: (1, 4 + classes, n), centre, sides, class probabilities.

    In pixels of the input.
    """
    rows = outputs[0][0].astype(np.float64).T
    return _best(_corners(rows[:, :2], rows[:, 2:4], frame), rows[:, 4:])


def end_to_end(outputs: Outputs, frame: InputFrame) -> Detections:
    """After suppression in the network: (1, n, 6), x0 y0 x1 y1 in input pixels, score, class.

    Ultralytics' YOLOv10 and YOLO26, and its exports with `nms=True`. Rows of score 0 are filling.
    """
    return _rows(outputs[0], frame, 6, corners=0, score=4, label=5)


def yolov7(outputs: Outputs, frame: InputFrame) -> Detections:
    """YOLOv7 (Wang et al. 2022) with its suppression: (n, 7), image, x0 y0 x1 y1, class, score."""
    return _rows(outputs[0], frame, 7, corners=1, score=6, label=5)


def yolo_nas_flat(outputs: Outputs, frame: InputFrame) -> Detections:
    """Super-gradients' flat format: (n, 7), image, x0 y0 x1 y1, score, class."""
    return _rows(outputs[0], frame, 7, corners=1, score=5, label=6)


def yolo_nas(outputs: Outputs, frame: InputFrame) -> Detections:
    """YOLO-NAS (released 2023) before suppression: boxes (1, n, 4) and scores (1, n, classes).

    Boxes are x0 y0 x1 y1 in pixels of the input.
    """
    rows, scores = _pair(outputs, "yolo_nas", "boxes and scores")
    return _best(frame.to_image(rows), scores)


def paddle(outputs: Outputs, frame: InputFrame) -> Detections:
    """PaddleDetection: (n, 6), class, score, x0 y0 x1 y1 in pixels of the input."""
    return _rows(outputs[0], frame, 6, corners=2, score=1, label=0)


def mmdeploy(outputs: Outputs, frame: InputFrame) -> Detections:
    """MMDetection by mmdeploy: (1, n, 5), x0 y0 x1 y1 and score, and labels (1, n)."""
    if len(outputs) < 2:
        raise UsageError("decoder='mmdeploy' reads dets and labels; this has one output")
    labels = outputs[1].reshape(-1, 1).astype(np.float64)
    rows = np.concatenate([outputs[0].reshape(-1, 5).astype(np.float64), labels], axis=1)
    return _rows(rows, frame, 6, corners=0, score=4, label=5)


def tensorflow(outputs: Outputs, frame: InputFrame) -> Detections:
    """TensorFlow's Object Detection API: boxes (1, n, 4), scores and classes from 1, (1, n) each.

    Boxes are y0 x0 y1 x1 as shares of the input.
    """
    if len(outputs) < 3:
        raise UsageError(
            f"decoder='tensorflow' reads boxes, scores and classes; this has {len(outputs)} outputs"
        )
    corners = outputs[0].reshape(-1, 4).astype(np.float64)[:, [1, 0, 3, 2]]
    corners *= np.tile(frame.sides, 2)
    scores, labels = (output.reshape(-1, 1).astype(np.float64) for output in outputs[1:3])
    rows = np.concatenate([corners, scores, labels], axis=1)
    return _rows(rows, frame, 6, corners=0, score=4, label=5)


def tensorflow_lite(outputs: Outputs, frame: InputFrame) -> Detections:
    """TensorFlow Lite's last step: as `tensorflow`, with classes from 0, without the background."""
    detections = tensorflow(outputs, frame)
    if not np.array_equal(outputs[2], np.round(outputs[2])) or outputs[1].max(initial=0) > 1:
        raise UsageError(
            "its third output is not classes, or its second not scores; export it again"
        )
    return replace(detections, labels=detections.labels + 1)


def ultralytics_rtdetr(outputs: Outputs, frame: InputFrame) -> Detections:
    """Ultralytics' RT-DETR: (1, n, 6), centre and sides as shares of the input, score, class."""
    rows = outputs[0][0].astype(np.float64)
    corners = _corners(rows[:, :2], rows[:, 2:4], frame, frame.sides)
    return Detections(corners, rows[:, 5].astype(np.int32), rows[:, 4])


def ultralytics_rtdetr_classes(outputs: Outputs, frame: InputFrame) -> Detections:
    """Ultralytics' RT-DETR before 8.4: (1, n, 4 + classes), boxes as shares, probabilities."""
    rows = outputs[0][0].astype(np.float64)
    return _best(_corners(rows[:, :2], rows[:, 2:4], frame, frame.sides), rows[:, 4:])


def detr_sigmoid(outputs: Outputs, frame: InputFrame) -> Detections:
    """RT-DETR, D-FINE, Deformable DETR, RF-DETR: logits (1, n, classes) and boxes (1, n, 4).

    Boxes are centre and sides as shares of the input; the score is the sigmoid. A query may be
    several detections: the n best of all n × classes are taken, as the releases do.
    """
    logits, rows = _pair(outputs, "detr_sigmoid", "logits and boxes")
    _check_logits(logits, "sigmoid")
    scores = _logistic(logits).reshape(-1)
    best = np.argsort(-scores, kind="stable")[: len(rows)]
    query, label = np.divmod(best, logits.shape[1])
    corners = _corners(rows[query, :2], rows[query, 2:], frame, frame.sides)
    return Detections(corners, label.astype(np.int32), scores[best])


DECODERS: Mapping[str, Decode] = {
    "boxes": boxes,
    "detr": detr,
    "detr_sigmoid": detr_sigmoid,
    "end_to_end": end_to_end,
    "fastestdet": fastestdet,
    "mmdeploy": mmdeploy,
    "nanodet": nanodet,
    "nanodet_heads": nanodet_heads,
    "paddle": paddle,
    "ssd": ssd,
    "tensorflow": tensorflow,
    "tensorflow_lite": tensorflow_lite,
    "torchvision": torchvision,
    "ultralytics": ultralytics,
    "ultralytics_rtdetr": ultralytics_rtdetr,
    "ultralytics_rtdetr_classes": ultralytics_rtdetr_classes,
    "yolo_nas": yolo_nas,
    "yolo_nas_flat": yolo_nas_flat,
    "yolov7": yolov7,
    "yolox": yolox,
    "yolox_decoded": yolox_decoded,
}
"""Name → function that decodes the outputs, in its expected order."""


def _rows(
    output: NDArray[Any], frame: InputFrame, columns: int, *, corners: int, score: int, label: int
) -> Detections:
    """One detection per row: first column of its box, score, class; score 0 is padding."""
    rows = output.reshape(-1, output.shape[-1]).astype(np.float64)
    if rows.shape[1] != columns:
        raise ValueError(f"rows of {rows.shape[1]} numbers, not of {columns}")
    rows = rows[rows[:, score] > 0]
    boxes = frame.to_image(rows[:, corners : corners + 4])
    return Detections(boxes, rows[:, label].astype(np.int32), rows[:, score])


def _pair(
    outputs: Outputs, decoder: str, parts: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if len(outputs) < 2 or any(output.ndim != 3 for output in outputs[:2]):
        shapes = ", ".join(str(output.shape) for output in outputs)
        raise UsageError(f"decoder='{decoder}' reads {parts}, (1, n, …) each; this gives {shapes}")
    first, second = (output[0].astype(np.float64) for output in outputs[:2])
    return first, second


def _check_logits(logits: NDArray[np.float64], function: str) -> None:
    """Raises `UsageError` for probabilities, which a sigmoid or softmax would make nearly equal."""
    if logits.size and logits.min() >= 0 and logits.max() <= 1:
        raise UsageError(
            "its class outputs are probabilities (all are in 0…1) and no logits; export it without "
            f"the {function}"
        )


def _grid(cells: int, size: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(cells, 2) x and y of every cell, and (cells,) its stride."""
    for strides in ((8, 16, 32), (8, 16, 32, 64)):
        shapes = [(-(-size[0] // s), -(-size[1] // s)) for s in strides]
        if sum(h * w for h, w in shapes) == cells:
            parts = [np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1) for h, w in shapes]
            grid = np.concatenate([part.reshape(-1, 2) for part in parts]).astype(np.float64)
            counts = [h * w for h, w in shapes]
            return grid, np.repeat(np.array(strides, dtype=np.float64), counts)
    raise UsageError(
        f"the decoder expects the cells of strides 8, 16, 32 (and 64) at {size}, not {cells}; "
        "export the network for this size without decoding, or choose another decoder"
    )


def _corners(
    centre: NDArray[np.float64],
    side: NDArray[np.float64],
    frame: InputFrame,
    unit: NDArray[np.float64] | float = 1.0,
) -> NDArray[np.float64]:
    """Corners in the image; `unit`: pixels of the input, x and y, that a number stands for."""
    centre, side = centre * unit, side * unit
    return frame.to_image(np.concatenate([centre - side / 2, centre + side / 2], axis=1))


def _best(corners: NDArray[np.float64], scores: NDArray[np.float64]) -> Detections:
    """The best class of every box, as in the releases of both families."""
    label = scores.argmax(axis=1)
    return Detections(corners, label.astype(np.int32), scores[np.arange(len(scores)), label])


def _logistic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-values)))
