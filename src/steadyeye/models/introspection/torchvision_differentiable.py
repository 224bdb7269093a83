"""Detectors of torchvision from within: anchors, or the proposals of the first stage."""

from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from steadyeye.core.imports import library
from steadyeye.core.types import Image
from steadyeye.models.introspection.differentiable import FixedCandidates

detection = library("torchvision").models.detection


def pixels(image: Image) -> Tensor:
    """(3, h, w) float32 in 0…1, as torchvision's detectors take it."""
    values = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)
    return values.to(torch.float32) / 255


def fix_candidates(network: Any, image: Image) -> FixedCandidates:
    """The candidates of an image: of Faster R-CNN and its kin the proposals, of others the anchors.

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
