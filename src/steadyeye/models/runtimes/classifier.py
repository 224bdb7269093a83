"""A network with its recipe: images in, one row of scores per image out."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.model_stages import AtInput, ClassGradient, Stages, Triple
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import model_in_short
from steadyeye.core.types import Classes, Image, Scores
from steadyeye.models.preprocessing.recipe import IMAGENET_MEAN, IMAGENET_STD, Preprocessing

OUTPUTS = ("logits", "probabilities")
LAYOUTS = ("nchw", "nhwc")


class Forward(Protocol):
    """The network: (n, 3, h, w) or (n, h, w, 3) float32 → (n, classes) float32, thread-safe.

    On a processor n is 1, whatever the batch. Measured with one thread (ms an image at 1, 4, 8,
    32): EfficientNet-Lite0 4.8, 4.9, 5.3, 6.3; ResNet-50 36, 35, 35; ViT-S/16 46, 45, 49. So a
    larger batch gains 4 % at best, and one image a call gives scores that no batch can influence.
    """

    def __call__(self, batch: NDArray[np.float32], /) -> NDArray[np.float32]:
        """The scores of the prepared images."""
        ...


@dataclass(frozen=True)
class Recipe:
    """Pre- and postprocessing of a network.

    `output`: "logits" (softmax is applied) or "probabilities" (nothing is). `layout`: "nchw" or
    "nhwc", the order of its input's axes. Raises `UsageError` for others.
    """

    preprocessing: Preprocessing
    output: str = "logits"
    layout: str = "nchw"

    def __post_init__(self) -> None:
        if self.output not in OUTPUTS:
            raise unknown("output", str(self.output), OUTPUTS)
        if self.layout not in LAYOUTS:
            raise unknown("layout", str(self.layout), LAYOUTS)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The axes of one input image of the network."""
        height, width = self.preprocessing.size
        return (3, height, width) if self.layout == "nchw" else (height, width, 3)

    def record(self) -> dict[str, Any]:
        """The recipe as plain values, for run.json."""
        preprocessing = self.preprocessing.record()
        return {"preprocessing": preprocessing, "output": self.output, "layout": self.layout}


class _Scratch(threading.local):
    """The input buffer of each thread; a copy in another process starts empty."""

    def __init__(self) -> None:
        self.page: NDArray[np.float32] | None = None

    def __reduce__(self) -> tuple[type["_Scratch"], tuple[()]]:
        return _Scratch, ()


def _empty(shape: Sequence[int]) -> NDArray[np.float32]:
    return np.empty(tuple(shape), dtype=np.float32)


@model_in_short
@dataclass(frozen=True, eq=False)
class Classifier:
    """A `Model` over any `Forward`; its scores are probabilities, (n, classes) float32.

    `most`: images per pass; `page`: allocates the input buffer of several images; `device`: the
    GPUs it computes on, not part of its identity. Raises `UsageError` if the network's width is not
    that of `classes`.
    """

    name: str
    classes: Classes | None
    settings: Recipe
    forward: Forward
    recipe: Mapping[str, Any]
    fingerprint: str
    gradient: ClassGradient | None = None
    cacheable: bool = True
    most: int = 1
    page: Callable[[Sequence[int]], NDArray[np.float32]] = _empty
    device: str = ""
    _scratch: _Scratch = field(default_factory=_Scratch, repr=False)

    def __call__(self, images: Iterable[Image], /) -> Scores:
        """(n, classes) float32, one row an image in order; (0, classes) for no images."""
        return self._infer(self._prepare(image) for image in images)

    def stages(self) -> Stages:
        """The preparation of an image, and the network."""
        return Stages(self._prepare, self._infer)

    def at_input(self) -> AtInput:
        """The resize and crop, and the model for images that are fitted already."""
        preprocessing = self.settings.preprocessing
        settings = replace(self.settings, preprocessing=preprocessing.without_resize())
        rest = replace(self, settings=settings, _scratch=_Scratch())
        return AtInput(preprocessing.fit, rest, self.gradient)

    def with_normalisation(self, mean: Triple, std: Triple) -> "Classifier":
        """The same network with its input normalised in another way."""
        preprocessing = replace(self.settings.preprocessing, mean=mean, std=std)
        return self._with_input(preprocessing, "normalisation", repr((mean, std)))

    def with_reversed_channels(self) -> "Classifier":
        """The same network with the channels of its input in the reverse order."""
        order = "rgb" if self.settings.preprocessing.order == "bgr" else "bgr"
        return self._with_input(replace(self.settings.preprocessing, order=order), "order", order)

    def _with_input(self, preprocessing: Preprocessing, *marks: str) -> "Classifier":
        settings = replace(self.settings, preprocessing=preprocessing)
        digest = fingerprint(self.fingerprint, *marks)
        return replace(self, settings=settings, fingerprint=digest, _scratch=_Scratch())

    def _prepare(self, image: Image) -> NDArray[np.float32]:
        """The input of the network for an image, of the recipe's shape."""
        out = _empty(self.settings.shape)
        first = out if self.settings.layout == "nchw" else out.transpose(2, 0, 1)
        self.settings.preprocessing(image, first)
        return out

    def _infer(self, prepared: Iterable[NDArray[np.float32]]) -> Scores:
        rows = [
            check_scores(self.forward(page), page, self.classes) for page in self._pages(prepared)
        ]
        if not rows:
            return np.zeros((0, len(self.classes or ())), dtype=np.float32)
        scores = np.concatenate(rows)
        return softmax(scores) if self.settings.output == "logits" else scores

    def _pages(self, prepared: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
        """Batches of a pass; several images are copied to a buffer, which the next overwrites."""
        if self.most == 1:
            yield from (image[np.newaxis] for image in prepared)
            return
        page, count = self._page(), 0
        for image in prepared:
            page[count] = image
            count += 1
            if count == self.most:
                yield page
                count = 0
        if count:
            yield page[:count]

    def _page(self) -> NDArray[np.float32]:
        page, shape = self._scratch.page, (self.most, *self.settings.shape)
        if page is None or page.shape != shape:
            page = self._scratch.page = self.page(shape)
        return page


def classifier(
    name: str,
    classes: Classes | None,
    settings: Recipe,
    forward: Forward,
    weights: str,
    extra: Mapping[str, Any],
) -> Classifier:
    """A `Classifier` that has classified one black image, so that errors appear before a run.

    `weights`: fingerprint of the weights. `extra`: further entries of the record; keys ending in
    `note` are explanations and do not count as a change of the model.
    """
    # through JSON, so that a recipe equals the one read back from a record
    record = json.loads(json.dumps({**settings.record(), **extra}))
    counted = {key: value for key, value in record.items() if not key.endswith("note")}
    labels = classes.names if classes else ()
    digest = fingerprint(weights, json.dumps(counted, sort_keys=True), *labels)
    model = Classifier(name, classes, settings, forward, record, digest)
    model([np.zeros((*settings.preprocessing.size, 3), dtype=np.uint8)])
    return model


def check_scores(
    scores: NDArray[np.float32], page: NDArray[np.float32], classes: Classes | None
) -> NDArray[np.float32]:
    """`scores` as (n, classes), one row per image of the batch. Raises `UsageError`.

    Trailing axes of length 1 are dropped.
    """
    n = len(page)
    if scores.ndim < 2 or scores.shape[0] != n or scores.size != n * scores.shape[1]:
        raise UsageError(
            f"the network gives an output of shape {scores.shape} for {count_images(n)}; "
            f"a classifier gives ({n}, classes)"
        )
    rows = scores.reshape(n, -1)
    check_width(rows, classes)
    return rows


def count_images(images: int) -> str:
    """A number of images, in words."""
    return "one image" if images == 1 else f"{images} images"


def check_width(scores: NDArray[np.float32], classes: Classes | None) -> None:
    """Raises `UsageError` unless there is one column per class."""
    if classes is not None and scores.shape[1] != len(classes.names):
        raise UsageError(
            f"scores have {number_of(scores.shape[1], 'column')} but the class list has "
            f"{len(classes)}; give the class list that the model was trained on"
        )


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities along the rows, float32: softmax must not round as fp16 does (0.23 % flips)."""
    # of infinite logits come NaN, which a run tells of as a fault of the sample
    with np.errstate(invalid="ignore", over="ignore"):
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True), dtype=np.float32)


DEFAULTS: Mapping[str, Any] = {
    "size": 224,
    "resize": None,
    "mean": IMAGENET_MEAN,
    "std": IMAGENET_STD,
    "interpolation": "bicubic",
    "order": "rgb",
    "output": "logits",
    "layout": "nchw",
}
"""The defaults of a recipe."""


def read_recipe(record: Mapping[str, Any] | None, **defaults: Any) -> Recipe:
    """The `Recipe` of a dict, over the values of a file, `defaults`, over `DEFAULTS`.

    `size`: side or (height, width); `resize`: short side or exact (height, width), by default size
    / 0.875; `mean`, `std`: one number or three, of R, G, B in 0…255; `interpolation`; `order` of
    the input's channels, "rgb" or "bgr"; `output`; `layout`. Raises `UsageError` for an unknown key
    and an invalid value.
    """
    for key in record or {}:
        if key not in DEFAULTS:
            raise unknown("key of a recipe", key, DEFAULTS)
    settings = {**DEFAULTS, **defaults, **(record or {})}
    return Recipe(_preprocessing(settings), settings["output"], settings["layout"])


def unit_range(
    mean: tuple[float, ...], std: tuple[float, ...]
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """`mean` and `std` in 0…255, from those for pixels in 0…1, which most libraries state."""
    low, high = (tuple(255.0 * float(value) for value in values) for values in (mean, std))
    return _three("mean", low), _three("std", high)


def _preprocessing(settings: Mapping[str, Any]) -> Preprocessing:
    size = _size("size", settings["size"])
    resize = int(max(size) / 0.875) if settings["resize"] is None else settings["resize"]
    if not isinstance(resize, int):
        resize = _pair(resize)
    mean, std = _three("mean", settings["mean"]), _three("std", settings["std"])
    if min(std) <= 0 or max(std) < 1:
        raise UsageError(
            f"std={settings['std']} is not in 0…255; multiply mean and std by 255 if they are for "
            "0…1"
        )
    filtered, order = str(settings["interpolation"]), str(settings["order"])
    return Preprocessing(size, resize, mean, std, filtered, order=order)


def _size(key: str, value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else _pair(value, key)


def _pair(value: Any, key: str = "resize") -> tuple[int, int]:
    try:
        height, width = value
        return int(height), int(width)
    except (TypeError, ValueError):
        raise UsageError(
            f"{key}={value!r} is neither a side nor (height, width); give one of these"
        ) from None


def _three(key: str, value: Any) -> tuple[float, float, float]:
    try:
        values = [float(value)] * 3 if isinstance(value, int | float) else list(map(float, value))
        red, green, blue = values
    except (TypeError, ValueError):
        raise UsageError(
            f"{key}={value!r} is neither one number nor three (R, G, B); give one of these"
        ) from None
    return red, green, blue
