"""Boxes as other libraries hold them: of torchvision and torchmetrics, MAITE, supervision, COCO."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, from_sides
from steadyeye.core.boxes import boxes as make_boxes
from steadyeye.core.errors import UsageError

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
    """Values as an array, of a tensor of PyTorch too."""
    return np.asarray(values.detach().cpu().numpy() if hasattr(values, "detach") else values)


def holds_boxes(label: object) -> bool:
    """Whether a label or an answer is boxes of a form that `read_boxes` knows."""
    if isinstance(label, Mapping):
        return "boxes" in label or "bbox" in label
    if isinstance(label, list | tuple) and label and isinstance(label[0], Mapping):
        return "bbox" in label[0]
    return hasattr(label, "xyxy") or (hasattr(label, "boxes") and hasattr(label, "labels"))


def read_boxes(label: Any, name: str) -> BoxRow:
    """The boxes of an image; `name`: what an error calls it.

    Mappings with `boxes` (x0 y0 x1 y1) and `labels`, as torchvision and torchmetrics have them;
    with `bbox` (x y width height, as COCO has them) and `category`, as Hugging Face's; objects with
    `boxes` and `labels` of MAITE; `Detections` of supervision. Raises `UsageError` for others.
    """
    try:
        return _read(label)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(
            f"the boxes of '{name}' cannot be read ({reason}); give {EXAMPLE}"
        ) from error


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
        sides = to_array(label["bbox"]).astype(np.float64).reshape(-1, 4)
        corners = from_sides(sides)
        area = label.get("area") or None
        return _row(corners, category, None, label.get("iscrowd"), area)
    if hasattr(label, "xyxy"):
        names = getattr(label, "data", {}).get("class_name")
        classes = label.class_id if label.class_id is not None else names
        return _row(label.xyxy, classes, getattr(label, "confidence", None))
    return _row(label.boxes, label.labels, getattr(label, "scores", None))


def _row(
    corners: Any, labels: Any, scores: Any = None, crowd: Any = None, area: Any = None
) -> BoxRow:
    box = to_array(corners).astype(np.float64).reshape(-1, 4)
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
    if n and not (np.isfinite(box).all() and (box[:, 2:] >= box[:, :2]).all()):
        raise ValueError("a box ends before it begins, or at no number; corners are x0 y0 x1 y1")
    return BoxRow(
        box,
        classes,
        values,
        None if crowd is None else to_array(crowd).astype(np.bool_),
        None if area is None else to_array(area).astype(np.float64),
    )


def _read_classes(labels: Any) -> tuple[int | str, ...]:
    values = labels if isinstance(labels, list | tuple) else to_array(labels).tolist()
    classes = [value.item() if hasattr(value, "item") else value for value in values]
    for value in classes:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(f"the label {value!r} is neither a number nor a name")
    return tuple(classes)


def number_boxes(row: BoxRow, labels: Sequence[int]) -> Boxes:
    """The true boxes of an image, with labels as places among the classes."""
    return make_boxes(row.corners, labels, row.crowd, row.area)
