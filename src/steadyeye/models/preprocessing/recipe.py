"""The recipe that turns an image into a model's input: resize, centre crop, normalise."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.model_stages import Triple
from steadyeye.core.types import Image
from steadyeye.models.preprocessing.resample import FILTERS, normalise, resample, taps

OFFSETS: dict[str, Callable[[float], int]] = {"even": round, "down": math.floor}
ORDERS = ("rgb", "bgr")
IMAGENET_MEAN: Triple = (123.675, 116.28, 103.53)
IMAGENET_STD: Triple = (58.395, 57.12, 57.375)
"""Of R, G and B of ImageNet's training images: 255 × (0.485, 0.456, 0.406), 255 × (0.229, …)."""

LARGEST_INPUT = 2**25
"""Most pixels of a model's input; more is a sign of a damaged file, and does not fit into
memory."""
LONGEST_SIDE = 2**14
"""Most pixels of a side, because a long line costs as much as a square."""


def check_size(size: Any, title: str) -> None:
    """Raises `UsageError` unless `size` is a possible height and width."""
    sides = size if isinstance(size, tuple) and len(size) == 2 else ()
    whole = [side for side in sides if isinstance(side, int) and 1 <= side <= LONGEST_SIDE]
    if len(whole) != 2 or whole[0] * whole[1] > LARGEST_INPUT:
        raise UsageError(
            f"{title} is {repr(size)[:60]}; give a height and a width from 1 to {LONGEST_SIDE:,}, "
            f"together of at most {LARGEST_INPUT:,} pixels"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


@dataclass(frozen=True)
class Preprocessing:
    """Resize (antialiased, as Pillow does), centre crop, then `(x − mean) / std` a channel.

    `size`: (height, width) of the model's input. `resize`: the short side in pixels, with the same
    aspect ratio and the long side rounded down, or an exact (height, width). `mean`, `std`: R, G, B
    in 0…255. `offset`: rounding of half a pixel of the crop's offset: "even" as torchvision, "down"
    as transformers. `order`: of the input's channels, "rgb" or "bgr". Raises `UsageError` if the
    crop does not fit into the resized image.
    """

    size: tuple[int, int]
    resize: int | tuple[int, int]
    mean: Triple
    std: Triple
    interpolation: str = "bicubic"
    offset: str = "even"
    order: str = "rgb"

    def __post_init__(self) -> None:
        check_size(self.size, "the size of a model's input")
        if not isinstance(self.resize, int):
            check_size(self.resize, "resize")
        for key, values in (("mean", self.mean), ("std", self.std)):
            if len(values) != 3 or not all(map(_is_number, values)):
                raise UsageError(f"{key}={values!r} of a recipe is not three numbers; correct it")
        if min(self.std) <= 0:
            raise UsageError(f"std={self.std} of a recipe is not above 0; correct it")
        if self.interpolation not in FILTERS:
            raise unknown("interpolation", self.interpolation, FILTERS)
        if self.offset not in OFFSETS:
            raise unknown("crop offset", self.offset, OFFSETS)
        if self.order not in ORDERS:
            raise unknown("channel order", str(self.order), ORDERS)
        smallest = (self.resize,) * 2 if isinstance(self.resize, int) else self.resize
        if self.size[0] > smallest[0] or self.size[1] > smallest[1]:
            raise UsageError(
                f"preprocessing crops {self.size} from an image resized to {self.resize}; "
                "make resize at least as large as size"
            )

    def __call__(self, image: Image, out: NDArray[np.float32]) -> None:
        """Writes the input for `image`, (h, w, 3) uint8 RGB, to `out`, (3, height, width)."""
        if self.order == "rgb":
            normalise(self.fit(image), *_affine(self), out)
            return
        channels = np.empty(out.shape, dtype=np.float32)
        normalise(self.fit(image), *_affine(self), channels)
        out[:] = channels[::-1]

    def fit(self, image: Image) -> Image:
        """The image resized and cropped, (height, width, 3) uint8, before it is normalised.

        An image of this size is returned unchanged.
        """
        image = np.ascontiguousarray(image)
        if image.shape[:2] == self.size == self.resize:
            return image
        # read-only as those of most sources: for both kinds it would be compiled twice
        pixels = image.view()
        pixels.flags.writeable = False
        out = np.empty((*self.size, 3), dtype=np.uint8)
        resample(pixels, *_windows(self, image.shape[0], image.shape[1]), out)
        return out

    def without_resize(self) -> "Preprocessing":
        """The rest of the recipe, for images that are fitted already."""
        return replace(self, resize=self.size)

    def record(self) -> dict[str, Any]:
        """The recipe as plain values, for run.json; the default order is left out."""
        values = asdict(self)
        if self.order == "rgb":
            del values["order"]
        return values


@lru_cache(maxsize=256)
def _windows(recipe: Preprocessing, height: int, width: int) -> tuple[Any, Any]:
    resized = _resize_to(recipe.resize, height, width)
    cut = OFFSETS[recipe.offset]
    top, left = (cut((side - crop) / 2) for side, crop in zip(resized, recipe.size, strict=True))
    columns = taps(width, resized[1], left, recipe.size[1], recipe.interpolation)
    rows = taps(height, resized[0], top, recipe.size[0], recipe.interpolation)
    return columns, rows


def _resize_to(resize: int | tuple[int, int], height: int, width: int) -> tuple[int, int]:
    if not isinstance(resize, int):
        return resize
    if height <= width:
        return resize, int(resize * width / height)
    return int(resize * height / width), resize


@lru_cache(maxsize=64)
def _affine(recipe: Preprocessing) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    mean, std = np.array(recipe.mean), np.array(recipe.std)
    return (1 / std).astype(np.float32), (-mean / std).astype(np.float32)
