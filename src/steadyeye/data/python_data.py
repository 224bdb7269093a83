"""Data as Python objects: lists of (image, label), datasets of PyTorch, Hugging Face and MAITE.

Whatever has a length and is indexed by numbers is taken, and datasets of FiftyOne. An item is
(image, label), (image, label, metadata) as MAITE gives it, (path, image, detections) of
supervision, a mapping with `image` and `label`, or an image alone; a label may be boxes. Every item
is asked for once at the start: its label has to be known before a run, and a hash of its pixels
tells a change of the data when the run is resumed.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, present
from steadyeye.core.errors import SampleError, UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.storage.files import place
from steadyeye.core.types import Classes, Image, Labels, Sample, Source
from steadyeye.data.annotations.string_columns import NumberedNames
from steadyeye.data.classes.class_lists import from_names, read_given, read_index_to_label
from steadyeye.data.fiftyone_data import is_fiftyone, list_samples
from steadyeye.data.images import image_file
from steadyeye.data.python_boxes import CATEGORY_KEYS, BoxRow, holds_boxes, number_boxes, read_boxes

IMAGE_KEYS = ("image", "img")
LABEL_KEYS = ("label", "labels", "target", "objects", "class")
CHANNELS = (1, 3, 4)
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
            pixels = to_rgb(split_item(_ask_item(self.data, index), name)[0], name)
            if _hash(pixels) != self.keys[index]:
                raise SampleError(
                    f"'{name}' is another image than before; leave random transforms out"
                )
            return pixels

        objects = self.boxes[index] if self.boxes is not None else None
        return Sample(name, image, self.truths[index], boxes=objects, key=lambda: self.keys[index])


def read_items(data: Any, classes: str | Sequence[str] | None = None) -> Source:
    """A source over a dataset of another library, or a list.

    Images are NumPy arrays ((h, w), (h, w, 3) or (3, h, w); uint8, or floats of 0 to 1), tensors,
    PIL images, or paths; labels are names, numbers, lists of these, scores over the classes, or
    None. `classes`: the names of the classes, a known list or a file; those that the data name
    themselves otherwise (`data.classes`, `data.features`, `data.metadata`), or the labels' own.

    Raises `UsageError` for anything else, and for labels that no class is known of.
    """
    if is_fiftyone(data):
        data = list_samples(data)
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")) or _is_no_list(data):
        raise UsageError(
            f"cannot evaluate on {_describe(data)}; give a spec string, a list or a dataset with "
            f"a length, as in {EXAMPLE}"
        )
    name = "items" if isinstance(data, list | tuple) else type(data).__name__.lower()
    count = _ask(lambda: len(data), f"the length of the data ({_describe(data)})")
    if not count:
        raise UsageError(f"the data ({_describe(data)}) are empty; give at least one item")
    labels, keys = _read_all(data, count, name)
    known = _find_classes(data, labels, classes)
    truths = [_number(label, known, f"{name}/{i:08d}") for i, label in enumerate(labels)]
    boxes = None
    if any(isinstance(label, BoxRow) for label in labels):
        boxes = [_number_row(label, known, f"{name}/{i:08d}") for i, label in enumerate(labels)]
        truths = [present(objects) for objects in boxes]
    marks = [] if boxes is None else [_box_mark(objects) for objects in boxes]
    return _Items(
        name=name,
        classes=known,
        columns=(("truth", "boxes") if boxes is not None else ("truth",)) if known else (),
        fingerprint=fingerprint("items", *keys, repr(truths), repr(known), *marks),
        notes=(f"{number_of(len(truths), 'image')} of {_describe(data)}",),
        data=data,
        truths=truths,
        keys=keys,
        boxes=boxes,
    )


def _read_all(data: Any, count: int, name: str) -> tuple[list["Label"], list[str]]:
    """The label of every item, and the hash of its image."""
    labels: list[Label] = []
    keys = []
    for index in range(count):
        where = f"{name}/{index:08d}"
        image, label = split_item(_ask_item(data, index), where)
        labels.append(_read_label(label, where))
        keys.append(_hash(to_rgb(image, where)))
    return labels, keys


def _number_row(label: "Label", known: Classes | None, name: str) -> Boxes:
    """The true boxes of an image. Raises `UsageError` for a label beside those of boxes."""
    if not isinstance(label, BoxRow):
        raise UsageError(f"'{name}' has no boxes and others do; give it empty ones")
    places = [_number(part, known, name) for part in label.labels]
    if any(len(place) != 1 for place in places):
        raise UsageError(f"'{name}' has a box with the label −1; leave such boxes out")
    return number_boxes(label, [place[0] for place in places])


def _box_mark(objects: Boxes) -> str:
    """What names the true boxes of an image."""
    parts = (objects.boxes, objects.labels, objects.crowd, objects.area)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def to_rgb(image: Any, name: str) -> Image:
    """An image of Python as (h, w, 3) uint8 RGB.

    Of arrays with three axes the channels are last, unless only the first can be; of tensors of
    PyTorch they are first. Raises `SampleError` for what is no image, and for normalised values.
    """
    if isinstance(image, str | PathLike):
        return image_file.read(place(str(image)))
    if type(image).__module__.partition(".")[0] == "PIL":
        # an image of PIL may be decoded only now
        return np.ascontiguousarray(_ask(lambda: np.asarray(image.convert("RGB")), f"'{name}'"))
    values = _to_array(image, f"the image of '{name}'")
    if values.ndim == 2:
        values = values[..., None]
    elif values.ndim == 3 and (_is_tensor(image) or values.shape[-1] not in CHANNELS):
        values = np.moveaxis(values, 0, -1)
    if values.ndim != 3 or values.shape[-1] not in CHANNELS or not values.size:
        raise SampleError(
            f"'{name}' is {_describe(image)}, no image; give (h, w, 3), (3, h, w) or (h, w)"
        )
    pixels = _to_bytes(values, name)[..., :3]
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))


def _to_bytes(values: NDArray[Any], name: str) -> NDArray[np.uint8]:
    """Values as bytes: uint8 as they are, floats of 0 to 1 times 255."""
    if values.dtype == np.uint8:
        return values
    if not np.issubdtype(values.dtype, np.floating):
        raise SampleError(f"the pixels of '{name}' are {values.dtype}; give uint8, or 0.0 to 1.0")
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high <= 1):
        raise SampleError(
            f"the pixels of '{name}' go from {low:.3g} to {high:.3g}; give uint8, or 0.0 to 1.0, "
            "as they are before Normalize"
        )
    return np.asarray(np.rint(values * 255), np.uint8)


def _is_no_list(data: Any) -> bool:
    """Whether an object with a length and items is none of samples: text, a mapping, one array."""
    return isinstance(data, str | bytes | Mapping) or (
        isinstance(data, np.ndarray) and data.ndim not in (3, 4)
    )


def _ask(question: Callable[[], Any], title: str) -> Any:
    """What data that are not ours answer: whatever they raise is a `SampleError` of that question.

    `title`: what is asked for, "item 3 of the data".
    """
    try:
        return question()
    except UsageError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise SampleError(f"{title} cannot be read: {type(error).__name__}: {reason}") from error


def _ask_item(data: Any, index: int) -> Any:
    return _ask(lambda: data[index], f"item {index} of the data")


def _to_array(thing: Any, title: str) -> NDArray[Any]:
    """An array of what may be one: a list, a tensor of PyTorch, an array of another library."""

    def convert() -> NDArray[Any]:
        return np.asarray(thing.detach().cpu().numpy() if _is_tensor(thing) else thing)

    return cast(NDArray[Any], _ask(convert, title))


def _is_tensor(thing: Any) -> bool:
    return callable(getattr(thing, "detach", None))


def split_item(item: Any, name: str) -> tuple[Any, Any]:
    """The image and the label of an item, None without one. Raises `UsageError` for no item."""
    if isinstance(item, Mapping):
        image = next((item[key] for key in IMAGE_KEYS if key in item), None)
        if image is None:
            raise unknown(f"key of '{name}'", IMAGE_KEYS[0], [str(key) for key in item])
        return image, next((item[key] for key in LABEL_KEYS if key in item), None)
    if isinstance(item, tuple | list):
        if len(item) not in (1, 2, 3):
            raise UsageError(f"'{name}' has {len(item)} parts; give (image, label)")
        if len(item) == 3 and isinstance(item[0], str | PathLike) and holds_boxes(item[2]):
            return item[0], item[2]  # supervision, whose image beside the path is BGR
        return item[0], item[1] if len(item) > 1 else None
    return item, None


Label = int | str | tuple[int | str, ...] | BoxRow | None


def _read_label(label: Any, name: str) -> Label:
    """A label as a number or a name, several of them, or None.

    Floats in a row are scores over the classes, as MAITE gives the truth: the highest counts.
    """
    if label is None or isinstance(label, str):
        return label
    if isinstance(label, list | tuple | set | frozenset) and all(
        isinstance(part, str) for part in label
    ):
        return tuple(sorted(label))
    if isinstance(label, Mapping) and not holds_boxes(label):
        raise UsageError(
            f"the label of '{name}' is {_describe(label)}; give a number, the name of a class, or "
            "boxes as {'boxes': [[x0, y0, x1, y1], …], 'labels': [0, …]}"
        )
    if holds_boxes(label):
        return cast(BoxRow, _ask(lambda: read_boxes(label, name), f"the label of '{name}'"))
    numbers = _to_array(label, f"the label of '{name}'")
    if numbers.ndim == 1 and np.issubdtype(numbers.dtype, np.floating) and len(numbers) > 1:
        if not np.isfinite(numbers).all():
            raise UsageError(f"the label of '{name}' has scores that are no numbers; correct them")
        return int(numbers.argmax())
    if numbers.ndim > 1 or not np.issubdtype(numbers.dtype, np.integer):
        raise UsageError(
            f"the label of '{name}' is {_describe(label)}; give a number, the name of a class, or "
            "boxes as {'boxes': [[x0, y0, x1, y1], …], 'labels': [0, …]}"
        )
    return int(numbers) if numbers.ndim == 0 else tuple(sorted(numbers.tolist()))


def _find_classes(
    data: Any, labels: Sequence[Label], classes: str | Sequence[str] | None
) -> Classes | None:
    """The classes that are given, that the data name, or whose names the labels are."""
    names = classes or _read_names(data)
    if names:
        return read_given(names)
    parts = [part for label in labels for part in _list(label)]
    if not parts:
        return None
    if any(isinstance(part, int) for part in parts):
        raise UsageError(
            "the labels are numbers and the data name no classes; give classes=[…] in the order "
            "of the numbers, a known list or a file"
        )
    return from_names(sorted({str(part) for part in parts}))


def _read_names(data: Any) -> Sequence[str] | None:
    """The names of the classes as torchvision, Hugging Face `datasets` and MAITE keep them."""
    names = getattr(data, "classes", None)
    names = names.tolist() if isinstance(names, np.ndarray) else names
    if names:
        # a set has no order, and a mapping may have another one
        if not isinstance(names, Sequence) or isinstance(names, str | bytes):
            raise UsageError(
                f"the classes of the data are {repr(names)[:60]}; give classes=[…] with their names"
            )
        return list(names)
    features = getattr(data, "features", None)
    if isinstance(features, Mapping):
        kinds = [features[key] for key in LABEL_KEYS if key in features]
        # of boxes the class is a part of each, in a list
        parts = [getattr(kind, "feature", kind) for kind in kinds]
        parts += [
            p[key] for p in parts if isinstance(p, Mapping) for key in CATEGORY_KEYS if key in p
        ]
        parts += [getattr(part, "feature", part) for part in parts]
        return next((list(part.names) for part in parts if getattr(part, "names", None)), None)
    return read_index_to_label(getattr(data, "metadata", None))


def _number(label: Label, known: Classes | None, name: str) -> Labels:
    """The places of a label among the classes."""
    if known is None:
        return ()
    places = []
    for part in _list(label):
        if isinstance(part, str):
            if part not in known.names:
                raise unknown(f"class of '{name}'", part, known.names)
            places.append(known.names.index(part))
        elif not 0 <= part < len(known):
            if part == -1:  # datasets write −1 where a label is not told
                continue
            raise UsageError(f"the label of '{name}' is {part}; classes go to {len(known) - 1}")
        else:
            places.append(part)
    return tuple(sorted(set(places)))


def _list(label: Label) -> tuple[int | str, ...]:
    if label is None:
        return ()
    if isinstance(label, BoxRow):
        return label.labels
    return label if isinstance(label, tuple) else (label,)


def _hash(pixels: Image) -> str:
    """What names an image: its size and its pixels."""
    return hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).hexdigest()


def _describe(thing: Any) -> str:
    """An object in a few words: its type, and the shape of an array."""
    name = f"{type(thing).__module__}.{type(thing).__qualname__}".removeprefix("builtins.")
    shape: Callable[..., Any] | Any = getattr(thing, "shape", None)
    return f"{name} of shape {tuple(shape)}" if isinstance(shape, tuple) else name
