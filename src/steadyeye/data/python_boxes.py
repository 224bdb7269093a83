"""Boxes as other libraries hold them: of torchvision and torchmetrics, MAITE, supervision, COCO."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import from_sides
from steadyeye.core.errors import UsageError, one_line

CATEGORY_KEYS = ("category", "categories", "label", "labels", "class")
EXAMPLE = "{'boxes': [[x0, y0, x1, y1], …], 'labels': [0, …]}, in pixels"


@dataclass(frozen=True, eq=False)
class BoxRow:
    """The boxes of one image as they came.

    `corners`: (n, 4) float64, x0 y0 x1 y1 in pixels. `labels`: n numbers or names. `scores`: (n,)
    float64 of detections. `crowd`: (n,) bool, `area`: (n,) float64; each None where it is not said.
    """

    corners: NDArray[np.float64]
    labels: tuple[int | str, ...]
    scores: NDArray[np.float64] | None = None
    crowd: NDArray[np.bool_] | None = None
    area: NDArray[np.float64] | None = None


def to_array(values: Any) -> NDArray[Any]:
    """Values as an array, of a tensor of PyTorch or a list of them too.

    Float32 of bfloat16, which NumPy lacks.
    """
    if not hasattr(values, "detach"):
        try:
            return np.asarray(values)
        except (RuntimeError, TypeError):
            # NumPy takes no tensors that have gradients, are bfloat16 or lie on a GPU
            if not isinstance(values, list | tuple):
                raise
            return np.asarray([to_array(value) for value in values])
    tensor = values.detach().cpu()
    return np.asarray((tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy())


def holds_boxes(label: object) -> bool:
    """Whether a label or an answer is boxes of a form that `read_boxes` knows."""
    if isinstance(label, Mapping):
        return "boxes" in label or "bbox" in label
    if isinstance(label, list | tuple) and label and isinstance(label[0], Mapping):
        return "bbox" in label[0]
    return hasattr(label, "xyxy") or (hasattr(label, "boxes") and hasattr(label, "labels"))


def read_boxes(label: Any, name: str) -> BoxRow:
    """The boxes of an image; `name`: what an error calls it.

    Mappings with `boxes` and `labels`, as torchvision and torchmetrics have them, x0 y0 x1 y1
    unless the `format` of torchvision's BoundingBoxes is another; with `bbox` (x y width height, as
    COCO has them) and `category`, as Hugging Face's; objects with `boxes` and `labels` of MAITE;
    `Detections` of supervision, by their `class_name` where they have it. Raises `UsageError` for
    others, and for boxes that are inverted or no numbers.
    """
    row = read_answer(label, name)
    if not (np.isfinite(row.corners).all() and (row.corners[:, 2:] >= row.corners[:, :2]).all()):
        raise _refuse(name, "a box ends before it begins, or at no number; corners are x0 y0 x1 y1")
    return row


def read_answer(label: Any, name: str) -> BoxRow:
    """As `read_boxes`, with the boxes as they are, also inverted ones and NaN."""
    try:
        return _read(label)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise _refuse(name, one_line(error)) from error


def _refuse(name: str, reason: str) -> UsageError:
    return UsageError(f"the boxes of '{name}' cannot be read ({reason}); give {EXAMPLE}")


def _read(label: Any) -> BoxRow:
    if isinstance(label, list | tuple):
        raise ValueError(
            "a list of COCO's annotations, whose ids name no class here: evaluate "
            "coco(annotations='…', images='…')"
        )
    if isinstance(label, Mapping) and "boxes" in label:
        part = label.get
        return _row(part("boxes"), part("labels"), part("scores"), part("iscrowd"), part("area"))
    if isinstance(label, Mapping):
        category = next((label[key] for key in CATEGORY_KEYS if key in label), None)
        corners = _read_corners(label["bbox"], "XYWH")
        area = label.get("area")
        empty = area is None or len(area) == 0
        return _row(corners, category, None, label.get("iscrowd"), None if empty else area)
    if hasattr(label, "xyxy"):
        names = getattr(label, "data", {}).get("class_name")
        classes = label.class_id if names is None else names
        return _row(label.xyxy, classes, getattr(label, "confidence", None))
    return _row(label.boxes, label.labels, getattr(label, "scores", None))


def _read_corners(boxes: Any, form: str = "XYXY") -> NDArray[np.float64]:
    """(n, 4) x0 y0 x1 y1; `form`: what boxes are that have no format as torchvision's do."""
    sides = to_array(boxes).astype(np.float64)
    if sides.size and (sides.ndim != 2 or sides.shape[1] != 4):
        raise ValueError(f"they have the shape {sides.shape}, and not (n, 4)")
    sides = sides.reshape(-1, 4)
    form = getattr(getattr(boxes, "format", None), "value", form)
    if form == "CXCYWH":
        sides = np.concatenate([sides[:, :2] - sides[:, 2:] / 2, sides[:, 2:]], axis=1)
    elif form not in ("XYXY", "XYWH"):
        raise ValueError(f"their format is {form}, and not XYXY, XYWH or CXCYWH")
    return sides if form == "XYXY" else from_sides(sides)


def _row(
    corners: Any, labels: Any, scores: Any = None, crowd: Any = None, area: Any = None
) -> BoxRow:
    box = _read_corners(corners)
    n = len(box)
    if labels is None:
        raise ValueError("they have no labels")
    classes = _read_classes(labels if n else ())
    values = None if scores is None else to_array(scores).astype(np.float64)
    if values is not None and values.ndim == 2:
        # MAITE allows a row of scores over the classes for each box
        values = values.max(axis=1) if n else np.zeros(0)
    for part in (classes, values, crowd, area):
        if part is not None and len(part) != n:
            raise ValueError(f"{n} boxes and {len(part)} of what is said of them")
    return BoxRow(
        box,
        classes,
        values,
        None if crowd is None else to_array(crowd).astype(np.bool_),
        None if area is None else to_array(area).astype(np.float64),
    )


def _read_classes(labels: Any) -> tuple[int | str, ...]:
    """Numbers and names; floats where they are whole, as those of Ultralytics."""
    values = labels if isinstance(labels, list | tuple) else to_array(labels).tolist()
    classes = [value.item() if hasattr(value, "item") else value for value in values]
    for i, value in enumerate(classes):
        if isinstance(value, float) and value.is_integer():
            classes[i] = int(value)
        elif isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(f"the label {value!r} is neither a number nor a name")
    return tuple(classes)
