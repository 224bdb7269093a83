"""A detection network with its recipe: images in, boxes of each image out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Detections, reach_score
from steadyeye.core.errors import UsageError, one_line, unknown
from steadyeye.core.model_stages import Stages, Triple
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import model_in_short
from steadyeye.core.types import Classes, Image
from steadyeye.models.preprocessing.recipe import ORDERS, check_size

FITS = ("letterbox", "rounded_letterbox", "centred_letterbox", "stretch")
INTERPOLATIONS = {
    "nearest": cv2.INTER_NEAREST,
    "bilinear": cv2.INTER_LINEAR,
    "bicubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_AREA,
}


@dataclass(frozen=True)
class InputFrame:
    """The place of an image in the input: pixel = (input − `offset`) ÷ `scale`, x and y.

    Sizes are (height, width).
    """

    scale: tuple[float, float]
    size: tuple[int, int]
    image: tuple[int, int]
    offset: tuple[float, float] = (0.0, 0.0)

    @property
    def sides(self) -> NDArray[np.float64]:
        """(2,) width and height of the input."""
        return np.array(self.size[::-1], dtype=np.float64)

    def to_image(self, corners: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, 4) boxes in pixels of the image, from boxes in pixels of the input."""
        return np.asarray((corners - np.tile(self.offset, 2)) / np.tile(self.scale, 2))


@dataclass(frozen=True)
class DetectorRecipe:
    """Pre- and postprocessing of a detection network.

    `size`: (height, width) of its input; None: that of each image, if the network resizes. `fit`:
    "letterbox", resized with its aspect kept and padded with `pad`, a grey or a value a channel, to
    the right and below; "rounded_letterbox", the same with its sides rounded, not cut, to whole
    pixels (as MMDetection); "centred_letterbox", padded on all sides (as Ultralytics rounds it); or
    "stretch". `order`: "bgr" or "rgb". `mean`, `std`: of the input's channels, in 0…255.
    `threshold`: the least score of a detection. `overlap`: IoU of non-maximum suppression per
    class; None: the network does it itself. `clip`: whether boxes are clipped to the image.
    `interpolation`: of `INTERPOLATIONS`.
    """

    size: tuple[int, int] | None
    fit: str = "letterbox"
    order: str = "bgr"
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    threshold: float = 0.001
    overlap: float | None = 0.65
    pad: float | tuple[float, float, float] = 114
    clip: bool = False
    interpolation: str = "bilinear"

    def __post_init__(self) -> None:
        if self.fit not in FITS:
            raise unknown("fit", self.fit, FITS)
        if self.order not in ORDERS:
            raise unknown("channel order", self.order, ORDERS)
        if self.interpolation not in INTERPOLATIONS:
            raise unknown("interpolation", self.interpolation, INTERPOLATIONS)
        if self.size is not None:
            check_size(self.size, "the size of a detector's input")

    def record(self) -> dict[str, Any]:
        """The recipe as plain values, for run.json; the default interpolation is left out."""
        values = asdict(self)
        if self.interpolation == "bilinear":
            del values["interpolation"]
        return values

    def prepare(self, image: Image) -> tuple[NDArray[np.float32], InputFrame]:
        """(1, 3, h, w) float32, and the place of the image, (h, w, 3) uint8 RGB, in it."""
        height, width = image.shape[:2]
        tall, wide = size = self.size or (height, width)
        inner, offset, ratio = self._place(image.shape[:2], size)
        resized = cv2.resize(image, inner[::-1], interpolation=INTERPOLATIONS[self.interpolation])
        top, left = offset
        rows, columns = slice(top, top + inner[0]), slice(left, left + inner[1])
        mean, std = (np.asarray(triple, dtype=np.float32) for triple in (self.mean, self.std))
        batch = np.empty((1, 3, tall, wide), dtype=np.float32)
        batch[0] = ((np.asarray(self.pad, np.float32) - mean) / std)[:, None, None]
        channels = cv2.split(resized)
        # a channel at a time, in place: pixels side by side would be copied four times
        for place, channel in enumerate(channels[::-1] if self.order == "bgr" else channels):
            inside = batch[0, place, rows, columns]
            np.subtract(channel, mean[place], out=inside, dtype=np.float32)
            inside /= std[place]
        return batch, InputFrame(ratio, size, (height, width), (float(left), float(top)))

    def _place(
        self, image: tuple[int, ...], size: tuple[int, int]
    ) -> tuple[tuple[int, int], tuple[int, int], tuple[float, float]]:
        """The size of the resized image, its top and left padding, and its scale, x and y."""
        (height, width), (tall, wide) = image[:2], size
        if self.fit == "stretch":
            return size, (0, 0), (wide / width, tall / height)
        scale = min(tall / height, wide / width)
        # of a very long image no side is nothing
        if self.fit == "letterbox":
            inner = (max(1, int(height * scale)), max(1, int(width * scale)))
            return inner, (0, 0), (scale, scale)
        inner = (max(1, round(height * scale)), max(1, round(width * scale)))
        if self.fit == "rounded_letterbox":
            return inner, (0, 0), (inner[1] / width, inner[0] / height)
        above, beside = (round((t - i) / 2 - 0.1) for t, i in zip(size, inner, strict=True))
        # each side is rounded by itself, so that the two scales differ a little
        return inner, (above, beside), (inner[1] / width, inner[0] / height)


Decode = Callable[[Sequence[NDArray[np.float32]], InputFrame], Detections]
"""`(outputs, frame) -> Detections` in pixels of the image, before filtering."""


@model_in_short
@dataclass(frozen=True, eq=False)
class OnnxDetector:
    """A `Detector` over an ONNX session; safe from many threads, one image a forward pass.

    `device`: the GPU it computes on, and `file`: its name in errors; neither is part of its
    identity.
    """

    name: str
    classes: Classes
    settings: DetectorRecipe
    outputs: Callable[[NDArray[np.float32]], Sequence[NDArray[np.float32]]]
    decode: Decode
    recipe: Mapping[str, Any]
    fingerprint: str
    device: str = ""
    file: str = ""
    detects: bool = True
    cacheable: bool = True

    def __call__(self, images: Iterable[Image], /) -> list[Detections]:
        """The detections of each image, by falling score."""
        return self._infer(map(self.settings.prepare, images))

    def with_threshold(self, threshold: float) -> "OnnxDetector":
        """The same network with another score threshold."""
        return replace(
            self,
            settings=replace(self.settings, threshold=threshold),
            recipe={**self.recipe, "threshold": threshold},
            fingerprint=fingerprint(self.fingerprint, "threshold", repr(threshold)),
        )

    def with_normalisation(self, mean: Triple, std: Triple) -> "OnnxDetector":
        """The same network with its input normalised in another way."""
        if self.settings.order == "bgr":
            mean, std = mean[::-1], std[::-1]
        return replace(
            self,
            settings=replace(self.settings, mean=mean, std=std),
            fingerprint=fingerprint(self.fingerprint, "normalisation", repr((mean, std))),
        )

    def with_reversed_channels(self) -> "OnnxDetector":
        """The same network with the channels of its input in the reverse order."""
        own = self.settings
        order = "rgb" if own.order == "bgr" else "bgr"
        return replace(
            self,
            # they have the order of the channels
            settings=replace(own, order=order, mean=own.mean[::-1], std=own.std[::-1]),
            fingerprint=fingerprint(self.fingerprint, "order", order),
        )

    def stages(self) -> Stages:
        """The preprocessing of an image, and the network with its postprocessing."""
        return Stages(self.settings.prepare, self._infer)

    def _infer(
        self, prepared: Iterable[tuple[NDArray[np.float32], InputFrame]]
    ) -> list[Detections]:
        return [self._detect(batch, frame) for batch, frame in prepared]

    def _detect(self, batch: NDArray[np.float32], frame: InputFrame) -> Detections:
        outputs = self.outputs(batch)
        try:
            # what is no number is told by the sample
            with np.errstate(all="ignore"):
                detections = self.decode(outputs, frame)
        except UsageError as error:
            raise UsageError(f"'{self.file}' is not read: {error}") from error
        except (ValueError, IndexError) as error:
            shapes = ", ".join(str(output.shape) for output in outputs)
            raise UsageError(
                f"'{self.file}' gives {shapes}, which the decoder does not read "
                f"({one_line(error)}); choose another decoder, or export it again"
            ) from error
        if len(detections) and detections.labels.max() >= len(self.classes):
            raise UsageError(
                f"'{self.file}' predicts more classes than the {len(self.classes)} given; give "
                "the class list it was trained on"
            )
        settings = self.settings
        left = suppress_overlaps(detections, settings.threshold, settings.overlap)
        if not settings.clip:
            return left
        return replace(left, boxes=np.clip(left.boxes, 0, np.tile(frame.image[::-1], 2)))


def suppress_overlaps(
    detections: Detections, threshold: float, overlap: float | None
) -> Detections:
    """The detections of at least `threshold`, by falling score, after suppression per class.

    Greedy non-maximum suppression as OpenCV does it: a box goes if its IoU with a better one of
    its class is above `overlap`; None: no suppression.
    """
    strong = np.flatnonzero(reach_score(detections.scores, threshold))
    order = strong[np.argsort(-detections.scores[strong], kind="stable")]
    boxes, labels, scores = (
        detections.boxes[order],
        detections.labels[order],
        detections.scores[order],
    )
    if overlap is None or not len(order):
        return Detections(boxes, labels, scores)
    sides = np.column_stack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])
    picked = cv2.dnn.NMSBoxesBatched(
        sides.tolist(), scores.tolist(), labels.tolist(), threshold, overlap
    )
    chosen = np.sort(np.asarray(picked, dtype=np.intp).reshape(-1))
    return Detections(boxes[chosen], labels[chosen], scores[chosen])
