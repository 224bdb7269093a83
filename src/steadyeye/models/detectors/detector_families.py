"""The families of exported detectors: their recipes and outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steadyeye.models.preprocessing.recipe import IMAGENET_MEAN, IMAGENET_STD
from steadyeye.models.runtimes.network import Network

IMAGENET: Mapping[str, Any] = {"mean": IMAGENET_MEAN, "std": IMAGENET_STD}
UNIT: Mapping[str, Any] = {"order": "rgb", "std": (255.0, 255.0, 255.0)}
STRETCHED: Mapping[str, Any] = {**UNIT, "fit": "stretch", "overlap": None}
CENTRED: Mapping[str, Any] = {**UNIT, "fit": "centred_letterbox", "overlap": 0.7, "clip": True}
SIGNED: Mapping[str, Any] = {"mean": (127.5,) * 3, "std": (127.5,) * 3}
NANODET: Mapping[str, Any] = {
    "mean": IMAGENET_MEAN[::-1],
    "std": IMAGENET_STD[::-1],
    "overlap": 0.6,
}

RECIPES: Mapping[str, Mapping[str, Any]] = {
    "yolox": {},
    "yolox_decoded": {},
    "fastestdet": {"fit": "stretch", "std": (255.0, 255.0, 255.0), "overlap": 0.45},
    "boxes": {"fit": "stretch", "order": "rgb", "overlap": None},
    "torchvision": {**UNIT, "fit": "letterbox", "pad": 0, "overlap": None},
    "detr": {"fit": "stretch", "order": "rgb", **IMAGENET, "overlap": None},
    "detr_sigmoid": STRETCHED,
    "end_to_end": {**CENTRED, "overlap": None},
    "nanodet": {**NANODET, "fit": "stretch"},
    "nanodet_heads": {**NANODET, "fit": "centred_letterbox", "pad": 0},
    "mmdeploy": {"overlap": None},
    "paddle": {"fit": "stretch", "order": "rgb", "overlap": None},
    "ssd": {"fit": "stretch", "order": "rgb", "mean": (127.0,) * 3, "std": (128.0,) * 3},
    "tensorflow": {"fit": "stretch", "order": "rgb", "overlap": None},
    "tensorflow_lite": {**SIGNED, "fit": "stretch", "order": "rgb", "overlap": None},
    "ultralytics": CENTRED,
    "ultralytics_rtdetr": STRETCHED,
    "ultralytics_rtdetr_classes": STRETCHED,
    "yolo_nas": CENTRED,
    "yolo_nas_flat": {**CENTRED, "overlap": None},
    "yolov7": {**CENTRED, "overlap": None},
}
"""Decoder → default recipe of its family."""


CLASSES: Mapping[str, tuple[int, int, int]] = {
    "detr": (0, 2, 1),
    "detr_sigmoid": (0, 2, 0),
    "fastestdet": (0, 1, 5),
    "nanodet": (0, 2, 32),
    "nanodet_heads": (0, 2, 0),
    "ssd": (1, 2, 1),
    "ultralytics": (0, 1, 4),
    "ultralytics_rtdetr_classes": (0, 2, 4),
    "yolo_nas": (1, 2, 0),
    "yolox": (0, 2, 5),
    "yolox_decoded": (0, 2, 5),
}
"""Decoder → the output with the classes, its axis, and the number of other entries."""
LOGITS = (("logits", "pred_boxes"), ("pred_logits", "pred_boxes"), ("labels", "dets"))
NAMES: Mapping[str, Sequence[tuple[str, ...]]] = {
    "boxes": (("boxes", "scores", "labels"),),
    "detr": LOGITS,
    "detr_sigmoid": LOGITS,
    "mmdeploy": (("dets", "labels"),),
    "ssd": (("boxes", "scores"),),
    "tensorflow": (
        ("detection_boxes", "detection_scores", "detection_classes"),
        ("detection_boxes:0", "detection_scores:0", "detection_classes:0"),
    ),
}
"""Decoder → the names of its outputs in its order, as in releases."""


@dataclass(frozen=True)
class Format:
    """The format of a network's outputs.

    `decoder`: of `DECODERS`; `order`: the outputs in the order of the decoder; `recipe`:
    differences from its family's recipe; `width`: number of classes, None if the shapes do not show
    it; `names`: class names in the file, if any; `reason`: how it was recognised.
    """

    decoder: str
    reason: str
    order: tuple[int, ...] = ()
    recipe: Mapping[str, Any] = field(default_factory=dict)
    width: int | None = None
    names: tuple[str, ...] = ()

    @property
    def background(self) -> bool:
        """Whether label 0 is the background."""
        return self.decoder in ("tensorflow", "tensorflow_lite", "torchvision")


def count_cells(size: tuple[int, int], strides: Sequence[int]) -> int:
    """The number of cells of an input (height, width) at all strides."""
    return sum(-(-size[0] // stride) * -(-size[1] // stride) for stride in strides)


def form_of_decoder(decoder: str, network: Network, reason: str) -> Format:
    """The output format of a decoder, without inference from shapes."""
    outputs = network.described_outputs
    place = {output.name: index for index, output in enumerate(outputs)}
    known = [names for names in NAMES.get(decoder, ()) if set(names) <= set(place)]
    order = tuple(place[name] for name in known[0]) if known else ()
    width = None
    if decoder in CLASSES:
        output, axis, others = CLASSES[decoder]
        shapes = [outputs[index].shape for index in order] or [some.shape for some in outputs]
        sides = shapes[output][axis : axis + 1] if output < len(shapes) else ()
        width = sides[0] - others if sides and sides[0] else None
    return Format(decoder, reason, order, width=width)
