"""The items of data of Python: images as NumPy, PIL or PyTorch have them, beside their labels."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import SampleError, UsageError, unknown
from steadyeye.core.storage.files import place
from steadyeye.core.types import Image
from steadyeye.data.images import image_file
from steadyeye.data.python_boxes import holds_boxes, to_array

IMAGE_KEYS = ("image", "img")
LABEL_KEYS = ("label", "labels", "target", "objects", "class")
CHANNELS = (1, 3, 4)


def is_decoded_later(image: Any) -> bool:
    """Whether an image is a path or of PIL, whose pixels may turn out to be damaged."""
    return isinstance(image, str | PathLike) or _is_of_pil(image)


def _is_of_pil(image: Any) -> bool:
    return type(image).__module__.partition(".")[0] == "PIL"


def to_rgb(image: Any, name: str) -> Image:
    """An image of Python as (h, w, 3) uint8 RGB.

    Of arrays with three axes the channels are last, unless only the first can be; of tensors of
    PyTorch they are first. Raises `SampleError` for what is no image, and for normalised values.
    """
    if isinstance(image, str | PathLike):
        return image_file.read(place(str(image)))
    if _is_of_pil(image):
        image = _read_pil(image, name)
    values = read_array(image, f"the image of '{name}'")
    if values.ndim == 2:
        values = values[..., None]
    elif values.ndim == 3 and (is_tensor(image) or values.shape[-1] not in CHANNELS):
        values = np.moveaxis(values, 0, -1)
    if values.ndim != 3 or values.shape[-1] not in CHANNELS or not values.size:
        raise SampleError(
            f"'{name}' is {describe(image)}, no image; give (h, w, 3), (3, h, w) or (h, w)"
        )
    pixels = _to_bytes(values, name)[..., :3]
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))


def _read_pil(image: Any, name: str) -> NDArray[Any]:
    """The pixels of an image of PIL, which may be decoded only now.

    Of 16 bits the upper eight, as of such a file; of 32, which `convert` would cut off at 255, the
    values as they are.
    """
    mode = str(image.mode)
    if mode.startswith("I;16"):
        return np.asarray(ask(lambda: np.asarray(image), f"'{name}'") >> 8, dtype=np.uint8)
    unchanged = mode in ("I", "F")
    return cast(
        NDArray[Any],
        ask(lambda: np.asarray(image if unchanged else image.convert("RGB")), f"'{name}'"),
    )


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


def ask(question: Callable[[], Any], title: str) -> Any:
    """The result of a call of the user's data, whose errors become a `SampleError`.

    `title`: the requested object, "item 3 of the data".
    """
    try:
        return question()
    except UsageError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise SampleError(f"{title} cannot be read: {type(error).__name__}: {reason}") from error


def ask_item(data: Any, index: int) -> Any:
    """An item of the data. Raises `SampleError` for its errors."""
    return ask(lambda: data[index], f"item {index} of the data")


def read_array(thing: Any, title: str) -> NDArray[Any]:
    """An array of what may be one: a list, a tensor of PyTorch, an array of another library."""
    return cast(NDArray[Any], ask(lambda: to_array(thing), title))


def is_tensor(thing: Any) -> bool:
    """Whether an object is a tensor of PyTorch."""
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


def describe(thing: Any) -> str:
    """An object in a few words: its type, and the shape of an array."""
    name = f"{type(thing).__module__}.{type(thing).__qualname__}".removeprefix("builtins.")
    shape: Callable[..., Any] | Any = getattr(thing, "shape", None)
    return f"{name} of shape {tuple(shape)}" if isinstance(shape, tuple) else name


class AugmentedData:
    """Items of data as an augmentation returns them, a batch of one at a time."""

    def __init__(self, data: Any, augmentation: Any) -> None:
        self.data = data
        self.augmentation = augmentation

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        name = f"item {index}"
        item = self.data[index]
        image, target = split_item(item, name)
        metadata = item[2] if isinstance(item, tuple) and len(item) == 3 else {"id": index}
        pixels = np.ascontiguousarray(np.moveaxis(to_rgb(image, name), -1, 0))
        try:
            images, targets, _ = self.augmentation(([pixels], [target], [metadata]))
            return images[0], targets[0]
        except Exception as error:
            raise SampleError(
                f"the augmentation fails on {name}: {type(error).__name__}: {error}"
            ) from error

    def __getattr__(self, name: str) -> Any:
        # the names of the classes, wherever the data keep them
        if name in ("classes", "features", "metadata"):
            return getattr(self.data, name)
        raise AttributeError(name)


def augment(data: Any, augmentation: Any) -> AugmentedData:
    """The data as an augmentation of MAITE returns them; (image, target) of each item.

    It gets ([image], [target], [metadata]) with the image as (3, h, w) uint8 RGB. Raises
    `UsageError` for what is no augmentation, and for data without a length.
    """
    if not callable(augmentation):
        raise UsageError(
            f"augmentation={augmentation!r:.100} cannot be called; give one of MAITE, which takes "
            "and returns (images, targets, metadata)"
        )
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise UsageError(f"cannot augment {type(data).__name__}; give a list or a dataset")
    return AugmentedData(data, augmentation)
