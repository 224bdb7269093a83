"""Datasets and views of FiftyOne: images by their paths, classes or boxes of one field."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError, list_texts
from steadyeye.data.images import image_file

FIELD = "ground_truth"
"""The field that FiftyOne itself calls the labels by."""
KINDS = ("Classification", "Detections")


class FiftyOneSamples:
    """The samples of a dataset of FiftyOne as (path, label); `classes`: their names, or None."""

    def __init__(self, items: Sequence[tuple[str, Any]], classes: Sequence[str] | None) -> None:
        self.items = items
        self.classes = classes

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[str, Any]:
        return self.items[index]


def is_fiftyone(data: object) -> bool:
    """Whether data are a dataset or a view of FiftyOne."""
    module = type(data).__module__.partition(".")[0]
    return module == "fiftyone" and hasattr(data, "iter_samples")


def list_samples(data: Any) -> FiftyOneSamples:
    """The images of a dataset or view of FiftyOne, in its order, with their labels.

    The labels are those of the field `ground_truth`, or of the only one of classes or boxes; boxes,
    shares of the image there, are in pixels here. Raises `UsageError` for videos, and where several
    fields may be the labels.
    """
    if data.media_type not in (None, "image"):
        raise UsageError(
            f"the dataset '{data.name}' holds {data.media_type}; give images, or the videos "
            "themselves as video(path='…')"
        )
    field = _label_field(data)
    items = [
        (str(sample.filepath), _read_label(sample[field], str(sample.filepath)) if field else None)
        for sample in data.iter_samples()
    ]
    names = list(data.classes.get(field) or data.default_classes or []) if field else []
    return FiftyOneSamples(items, [str(name) for name in names] or None)


def _label_field(data: Any) -> str | None:
    """The field that holds the labels; None where no field holds any."""
    schema: Mapping[str, Any] = data.get_field_schema()
    kinds = {name: getattr(kind, "document_type", None) for name, kind in schema.items()}
    fields = [n for n, kind in kinds.items() if getattr(kind, "__name__", "") in KINDS]
    if FIELD in fields:
        return FIELD
    if len(fields) > 1:
        raise UsageError(
            f"the dataset '{data.name}' has labels in {list_texts(sorted(fields))}; name the one "
            f"that is true '{FIELD}', or give dataset.select_fields('{fields[0]}')"
        )
    return fields[0] if fields else None


def _read_label(label: Any, path: str) -> Any:
    if label is None:
        return None
    if type(label).__name__ == "Classification":
        return label.label
    height, width = image_file.read(Path(path)).shape[:2]
    corners, crowds = [], []
    for detection in label.detections:
        left, top, wide, tall = detection.bounding_box
        corners.append([left * width, top * height, (left + wide) * width, (top + tall) * height])
        crowds.append(bool(detection.get_attribute_value("iscrowd", False)))
    names = [str(detection.label) for detection in label.detections]
    return {"boxes": corners, "labels": names, "iscrowd": crowds}
