"""What the outputs of detection networks mean: one function a family."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Detections
from steadyeye.core.errors import UsageError
from steadyeye.inference.detector import Decode, Frame

Outputs = Sequence[NDArray[np.float32]]


def yolox(outputs: Outputs, frame: Frame) -> Detections:
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


def fastestdet(outputs: Outputs, frame: Frame) -> Detections:
    """FastestDet (released 2022): (1, 5 + classes, rows, columns), one cell a box.

    Objectness, tanh offsets of the centre from its cell, logistic sides as shares of the input,
    class probabilities; the score is objectness^0.6 × probability^0.4.
    """
    found = outputs[0][0].astype(np.float64)
    height, width = found.shape[1:]
    ys, xs = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    centre = np.stack([(np.tanh(found[1]) + xs) / width, (np.tanh(found[2]) + ys) / height], -1)
    side = np.stack([_logistic(found[3]), _logistic(found[4])], -1)
    whole = np.array(frame.size[::-1], dtype=np.float64)
    corners = _corners(centre.reshape(-1, 2) * whole, side.reshape(-1, 2) * whole, frame)
    classes = found[5:].reshape(len(found) - 5, -1).T
    objectness = found[0].reshape(-1, 1)
    return _best(corners, np.clip(objectness, 0, 1) ** 0.6 * np.clip(classes, 0, 1) ** 0.4)


def boxes(outputs: Outputs, frame: Frame) -> Detections:
    """Decoded already: x0 y0 x1 y1 in pixels of the input, (1, n, 4); scores and labels, (1, n)."""
    if len(outputs) < 3:
        raise UsageError(
            f"decoder='boxes' reads boxes, scores and labels; this has {len(outputs)} outputs"
        )
    corners = outputs[0].reshape(-1, 4).astype(np.float64) / np.tile(frame.scale, 2)
    labels = outputs[2].reshape(-1).astype(np.int32)
    return Detections(corners, labels, outputs[1].reshape(-1).astype(np.float64))


DECODERS: Mapping[str, Decode] = {"boxes": boxes, "fastestdet": fastestdet, "yolox": yolox}


def _grid(cells: int, size: tuple[int, int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(cells, 2) x and y of every cell and (cells,) its stride."""
    for strides in ((8, 16, 32), (8, 16, 32, 64)):
        shapes = [(size[0] // s, size[1] // s) for s in strides]
        if sum(h * w for h, w in shapes) == cells:
            parts = [np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1) for h, w in shapes]
            grid = np.concatenate([part.reshape(-1, 2) for part in parts]).astype(np.float64)
            counts = [h * w for h, w in shapes]
            return grid, np.repeat(np.array(strides, dtype=np.float64), counts)
    raise UsageError(
        f"decoder='yolox' expects the cells of strides 8, 16 and 32 at {size}, not {cells}; "
        "export the network for this size without decoding, or choose another decoder"
    )


def _corners(
    centre: NDArray[np.float64], side: NDArray[np.float64], frame: Frame
) -> NDArray[np.float64]:
    found = np.concatenate([centre - side / 2, centre + side / 2], axis=1)
    return np.asarray(found / np.tile(frame.scale, 2))


def _best(corners: NDArray[np.float64], scores: NDArray[np.float64]) -> Detections:
    """The best class of every box, as the releases of both families answer."""
    label = scores.argmax(axis=1)
    return Detections(corners, label.astype(np.int32), scores[np.arange(len(scores)), label])


def _logistic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-values)))
