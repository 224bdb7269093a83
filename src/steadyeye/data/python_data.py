"""Data as Python objects: lists of (image, label), datasets of PyTorch, Hugging Face and MAITE.

Whatever has a length and is indexed by numbers is taken, and datasets of FiftyOne. An item is
(image, label), (image, label, metadata) as MAITE gives it, (path, image, detections) of
supervision, a mapping with `image` and `label`, or an image alone; a label may be boxes. Every item
is read once at the start: its label must be known before a run, and a hash of its pixels reveals a
change of the data when the run is resumed.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from steadyeye.core.boxes import Boxes, check_pixels, present
from steadyeye.core.errors import SampleError, UsageError, list_texts
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.types import Classes, Image, Labels, Sample, Source
from steadyeye.data.annotations.sample_columns import NumberedNames
from steadyeye.data.images import image_file
from steadyeye.data.python_boxes import BoxRow
from steadyeye.data.python_items import (
    ask,
    ask_item,
    describe,
    is_decoded_later,
    split_item,
    to_rgb,
)
from steadyeye.data.python_labels import (
    Label,
    find_classes,
    number_label,
    number_label_boxes,
    read_label,
)

UNREADABLE = "unreadable:"
"""Begins what stands for the hash of an image that cannot be read."""

NO_BOXES = BoxRow(np.zeros((0, 4)), ())

EXAMPLE = "evaluate(model, [(image, 'cat'), (image, 'dog')]), images as (h, w, 3) uint8 arrays"


@source_in_short
@dataclass(frozen=True, eq=False)
class _Items:
    """A `Source` over the items of `data`; `keys`: the hash of the pixels of each, as they were."""

    name: str
    classes: Classes | None
    columns: tuple[str, ...]
    fingerprint: str
    notes: tuple[str, ...]
    data: Any = field(repr=False)
    truths: Sequence[Labels] = field(repr=False)
    keys: Sequence[str] = field(repr=False)
    boxes: Sequence[Boxes] | None = field(repr=False, default=None)

    @property
    def ids(self) -> Sequence[str]:
        """The name and the number of every item."""
        return NumberedNames(f"{self.name}/", len(self))

    def missing(self) -> Sequence[str]:
        """Nothing: every item was read once."""
        return ()

    def __len__(self) -> int:
        return len(self.truths)

    def __getitem__(self, index: int) -> Sample:
        index = range(len(self))[index]
        name = self.ids[index]

        def image() -> Image:
            pixels = to_rgb(split_item(ask_item(self.data, index), name)[0], name)
            if _hash(pixels) != self.keys[index]:
                raise SampleError(
                    f"'{name}' gave another image before; leave random transforms out"
                )
            return pixels

        objects = self.boxes[index] if self.boxes is not None else None
        return Sample(name, image, self.truths[index], boxes=objects, key=lambda: self.keys[index])


def read_items(
    data: Any, classes: str | Sequence[str] | None = None, skip_unreadable: bool = False
) -> Source:
    """A source over a dataset of another library, or a list.

    Images are NumPy arrays ((h, w), (h, w, 3) or (3, h, w); uint8, or floats of 0 to 1), tensors,
    PIL images, or paths; labels are names, numbers, lists of these, one-hot rows or scores over the
    classes, or None. `classes`: the names of the classes, a known list or a file; those that the
    data name themselves (`data.classes`, `data.features`, `data.metadata`) go before it, unless it
    has other names for as many classes. Without either they are the labels' own.
    `skip_unreadable`: an item that the data fail to give, and a file or an image of PIL that cannot
    be decoded, is a sample whose image cannot be read; otherwise it raises `SampleError` here.

    Raises `UsageError` for anything else, and for labels that no class is known of.
    """
    if is_fiftyone(data):
        data = list_samples(data)
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")) or _is_no_list(data):
        raise UsageError(
            f"cannot evaluate on {describe(data)}; give a spec string, a list or a dataset with "
            f"a length, as in {EXAMPLE}"
        )
    name = "items" if isinstance(data, list | tuple) else type(data).__name__.lower()
    count = ask(lambda: len(data), f"the length of the data ({describe(data)})")
    if not count:
        raise UsageError(f"the data ({describe(data)}) are empty; give at least one item")
    pairs = [_read_one(data, i, f"{name}/{i:08d}", skip_unreadable) for i in range(count)]
    labels, keys = [label for label, _ in pairs], [key for _, key in pairs]
    known = find_classes(data, labels, classes)
    truths = [number_label(label, known, f"{name}/{i:08d}") for i, label in enumerate(labels)]
    boxes = None
    if any(isinstance(label, BoxRow) for label in labels):
        boxes = [
            number_label_boxes(
                NO_BOXES if label is None and keys[i].startswith(UNREADABLE) else label,
                known,
                f"{name}/{i:08d}",
            )
            for i, label in enumerate(labels)
        ]
        largest = (float(objects.boxes.max()) for objects in boxes if len(objects))
        check_pixels(max(largest, default=0.0), "the data")
        truths = [present(objects) for objects in boxes]
    marks = [] if boxes is None else [_box_mark(objects) for objects in boxes]
    return _Items(
        name=name,
        classes=known,
        columns=(("truth", "boxes") if boxes is not None else ("truth",)) if known else (),
        fingerprint=fingerprint("items", *keys, repr(truths), repr(known), *marks),
        notes=(f"{number_of(len(truths), 'image')} of {describe(data)}", *_note_unreadable(keys)),
        data=data,
        truths=truths,
        keys=keys,
        boxes=boxes,
    )


def read_first_image(source: Source) -> Image:
    """The first image that can be read; raises the `SampleError` of the first one if none can."""
    for index in range(len(source)):
        try:
            return source[index].image()
        except SampleError:
            continue
    return source[0].image()


def _read_one(data: Any, index: int, where: str, skip_unreadable: bool) -> tuple[Label, str]:
    """The label of an item, None where it is not given, and the hash of its image.

    Or, for a hash, why the image cannot be read.
    """
    try:
        image, label = split_item(ask_item(data, index), where)
    except SampleError as error:
        if not skip_unreadable:
            raise
        return None, f"{UNREADABLE} {error}"
    own = read_label(label, where)
    try:
        return own, _hash(to_rgb(image, where))
    except SampleError as error:
        # an array that is no image, or normalised, is a mistake in all of the data
        if not (skip_unreadable and is_decoded_later(image)):
            raise
        return own, f"{UNREADABLE} {error}"


def _note_unreadable(keys: Sequence[str]) -> list[str]:
    """How many images cannot be read, and why the first cannot; nothing where all can."""
    why = [key.removeprefix(UNREADABLE) for key in keys if key.startswith(UNREADABLE)]
    return [f"{number_of(len(why), 'image')} that cannot be read, first:{why[0]}"] if why else []


def _box_mark(objects: Boxes) -> str:
    """A key of the true boxes of an image."""
    parts = (objects.boxes, objects.labels, objects.crowd, objects.area)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def _is_no_list(data: Any) -> bool:
    """Whether an object with a length is no list of samples: text, a mapping, one array."""
    return isinstance(data, str | bytes | Mapping) or (
        isinstance(data, np.ndarray) and data.ndim not in (3, 4)
    )


def _hash(pixels: Image) -> str:
    """A key of an image: its size and its pixels."""
    return hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).hexdigest()


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
