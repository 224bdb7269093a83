"""Detectors of torchvision, to detect and to train: their processing is part of the network."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadyeye.core.boxes import Boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.imports import library
from steadyeye.core.types import Classes, Image
from steadyeye.models.detectors.torch_detector import (
    THRESHOLD,
    Asking,
    TorchDetector,
    torch_detector,
)
from steadyeye.models.detectors.torchvision_networks import Settings, network, settings
from steadyeye.models.detectors.trainable import (
    DetectionTensors,
    Prepared,
    Trainable,
    device,
    learnable,
    move_tensors,
)
from steadyeye.models.introspection.differentiable import FixedCandidates

LIBRARY = "torchvision"
MORE = {"maskrcnn": "masks", "keypointrcnn": "keypoints"}
"""Networks whose loss needs more than boxes."""


def trainable(name: str, module: Any, threshold: float) -> Trainable:
    """The training functions of the detector `name`; `threshold`: the least score of detections.

    The loss is the sum of those of the model, as torchvision's own reference training takes it: of
    Faster R-CNN the classes and boxes of proposals and of objects (Ren et al., "Faster R-CNN",
    2015, equation 1). Images go in at their own size; the network resizes them.
    """
    chosen = settings(module)
    training = _trainable(name, chosen, threshold)
    if chosen.frozen is None:
        return training
    # a normalisation that never learned anything is not to stay as it is
    return replace(training, anew=_trainable(name, replace(chosen, frozen=None), threshold))


def _trainable(name: str, chosen: Settings, threshold: float) -> Trainable:
    def make(classes: Classes) -> nn.Module:
        if labels := MORE.get(name.partition("_")[0]):
            raise UsageError(f"{name} trains on {labels}, not on boxes alone; give fasterrcnn_…")
        module = network(name, len(classes), chosen)
        with_threshold(module, threshold)
        return module

    def prepare(image: Image, truth: Boxes) -> Prepared:
        objects = learnable(truth, image.shape[:2])
        boxes = torch.from_numpy(objects.boxes).float()
        # 0 is the background
        labels = torch.from_numpy(objects.labels).long() + 1
        return {"input": {"pixels": pixels(image)}, "target": {"boxes": boxes, "labels": labels}}

    record = {"library": LIBRARY, "network": name, "settings": chosen.record()}
    return Trainable(make, prepare, _loss, _evaluate, record)


def with_threshold(module: Any, threshold: float) -> None:
    """Lowers the score threshold inside the network."""
    getattr(module, "roi_heads", module).score_thresh = threshold


def drop_background(outputs: Any) -> DetectionTensors:
    """A network's detections in one image, over the classes without the background."""
    # RetinaNet and FCOS score the background too, which is no detection
    is_object = outputs["labels"] > 0
    return (
        outputs["boxes"][is_object],
        outputs["labels"][is_object] - 1,
        outputs["scores"][is_object],
    )


def _loss(module: nn.Module, batch: Sequence[Prepared]) -> Tensor:
    to = device(module)
    targets = [move_tensors(example["target"], to) for example in batch]
    losses: dict[str, Tensor] = module(_images(module, batch), targets)
    return torch.stack(list(losses.values())).sum()


def _evaluate(
    module: nn.Module, batch: Sequence[Prepared]
) -> tuple[Tensor, list[DetectionTensors]]:
    answers = [drop_background(output) for output in module(_images(module, batch))]
    with _teaching(module):
        return _loss(module, batch), answers


def _images(module: nn.Module, batch: Sequence[Prepared]) -> list[Tensor]:
    to = device(module)
    return [example["input"]["pixels"].to(to) for example in batch]


@contextmanager
def _teaching(module: nn.Module) -> Iterator[None]:
    """A block in which the network returns losses, with its layers in their mode.

    The sampled proposals are seeded, so that losses are comparable.
    """
    parts = [module, *(getattr(module, name, module) for name in ("rpn", "roi_heads"))]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for part in parts:
            part.training = True
        try:
            yield
        finally:
            for part in parts:
                part.training = False


TRANSFORM = ("min_size", "max_size", "fixed_size", "size_divisible", "image_mean", "image_std")
ENDING = ("nms_thresh", "detections_per_img", "topk_candidates")


def torchvision_detector(
    name: str,
    module: Any,
    classes: Classes,
    runtime: str = "torch",
    network: str | None = None,
    origin: Mapping[str, Any] | None = None,
) -> TorchDetector:
    """The detector over a model of `torchvision.models.detection` in eval mode.

    Its labels count from 1, 0 being the background. The model resizes, normalises, suppresses and
    gives boxes in pixels of the image itself; what it does so is recorded. Its own threshold, 0.01
    to 0.2, is lowered to 0.001 in the module given. `runtime`: as for `torch_detector`; `network`:
    torchvision's name, if it differs; `origin`: the origin of the weights, for the record.
    """
    with_threshold(module, THRESHOLD)
    training = trainable(network or name, module, THRESHOLD)
    asking = Asking(pixels, _ask, fix_candidates, training)
    processing = {**_processing(module), **(origin or {})}
    return torch_detector(name, module, classes, asking, processing, runtime)


def _ask(network: nn.Module, pixels: Tensor, image: Image) -> DetectionTensors:
    (outputs,) = network([pixels.to(device(network))])
    return drop_background(outputs)


def _processing(module: Any) -> Mapping[str, Any]:
    """The pre- and postprocessing of the model, for the record."""
    ending = getattr(module, "roi_heads", module)
    before = {key: getattr(module.transform, key) for key in TRANSFORM}
    after = {key: getattr(ending, key) for key in ENDING if hasattr(ending, key)}
    return {"values": "0…1", **before, **after}


detection = library("torchvision").models.detection


def pixels(image: Image) -> Tensor:
    """(3, h, w) float32 in 0…1, the input of torchvision's detectors."""
    values = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)
    return values.to(torch.float32) / 255


def fix_candidates(network: Any, image: Image) -> FixedCandidates:
    """The candidates of an image: proposals of Faster R-CNN and its variants, anchors of others.

    The scores leave out the background, as the labels do.
    """
    image_list, _ = network.transform([pixels(image)])
    (tall, wide), (height, width) = image_list.image_sizes[0], image.shape[:2]
    two_stages = hasattr(network, "roi_heads")
    boxes, scores = (_proposals if two_stages else _anchors)(network, image_list)
    scale = (wide / width, tall / height)
    corners = boxes.clamp(min=0).double().numpy()
    corners = np.minimum(corners, [wide, tall, wide, tall]) / [*scale, *scale]

    def prepare(picture: Image) -> Tensor:
        values: Tensor = network.transform([pixels(picture)])[0].tensors
        return values

    return FixedCandidates(image, prepare, scale, corners, scores)


def _proposals(network: Any, image_list: Any) -> tuple[Tensor, Any]:
    """(n, classes, 4) boxes in the input, without the background, and the scores of proposals."""
    heads, size = network.roi_heads, image_list.image_sizes[0]
    (proposals,), _ = network.rpn(image_list, _features(network, image_list.tensors), None)

    def head(values: Tensor) -> Any:
        times = len(values)
        features = _features(network, values)
        pooled = heads.box_roi_pool(features, [proposals] * times, [size] * times)
        return heads.box_predictor(heads.box_head(pooled))

    def scores(values: Tensor) -> Tensor:
        logits = head(values)[0]
        return logits.softmax(-1)[:, 1:].reshape(len(values), len(proposals), -1)  # type: ignore[no-any-return]

    regression = head(image_list.tensors)[1]
    return heads.box_coder.decode(regression, [proposals])[:, 1:], scores


def _anchors(network: Any, image_list: Any) -> tuple[Tensor, Any]:
    """(n, 1, 4) boxes in the input and the scores of the anchors of SSD, RetinaNet or FCOS."""

    def head(values: Tensor) -> tuple[Any, list[Tensor]]:
        features = list(_features(network, values).values())
        return network.head(features), features

    def scores(values: Tensor) -> Tensor:
        outputs, _ = head(values)
        logits: Tensor = outputs["cls_logits"]
        if "bbox_ctrness" in outputs:
            centred: Tensor = outputs["bbox_ctrness"].sigmoid()
            return (logits.sigmoid() * centred).sqrt()[..., 1:]
        softmax = isinstance(network, detection.ssd.SSD)
        return (logits.softmax(-1) if softmax else logits.sigmoid())[..., 1:]

    outputs, features = head(image_list.tensors)
    (anchors,) = network.anchor_generator(image_list, features)
    coder = network.box_coder
    decode = getattr(coder, "decode_single", coder.decode)
    return decode(outputs["bbox_regression"][0], anchors)[:, None], scores


def _features(network: Any, values: Tensor) -> Any:
    features = network.backbone(values)
    return OrderedDict([("0", features)]) if isinstance(features, Tensor) else features
