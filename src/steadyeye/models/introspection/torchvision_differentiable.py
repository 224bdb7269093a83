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
    listed, _ = network.transform([pixels(image)])
    (tall, wide), (height, width) = listed.image_sizes[0], image.shape[:2]
    two_stages = hasattr(network, "roi_heads")
    boxes, scores = (_proposals if two_stages else _anchors)(network, listed)
    scale = (wide / width, tall / height)
    corners = boxes.clamp(min=0).double().numpy()
    corners = np.minimum(corners, [wide, tall, wide, tall]) / [*scale, *scale]

    def prepare(given: Image) -> Tensor:
        values: Tensor = network.transform([pixels(given)])[0].tensors
        return values

    return FixedCandidates(image, prepare, scale, corners, scores)


def _proposals(network: Any, listed: Any) -> tuple[Tensor, Any]:
    """(n, classes, 4) boxes in the input, without the background, and the scores of proposals."""
    heads, size = network.roi_heads, listed.image_sizes[0]
    (proposals,), _ = network.rpn(listed, _features(network, listed.tensors), None)

    def head(values: Tensor) -> Any:
        times = len(values)
        features = _features(network, values)
        pooled = heads.box_roi_pool(features, [proposals] * times, [size] * times)
        return heads.box_predictor(heads.box_head(pooled))

    def scores(values: Tensor) -> Tensor:
        logits = head(values)[0]
        return logits.softmax(-1)[:, 1:].reshape(len(values), len(proposals), -1)  # type: ignore[no-any-return]

    regression = head(listed.tensors)[1]
    return heads.box_coder.decode(regression, [proposals])[:, 1:], scores


def _anchors(network: Any, listed: Any) -> tuple[Tensor, Any]:
    """(n, 1, 4) boxes in the input and the scores of the anchors of SSD, RetinaNet or FCOS."""

    def head(values: Tensor) -> tuple[Any, list[Tensor]]:
        features = list(_features(network, values).values())
        return network.head(features), features

    def scores(values: Tensor) -> Tensor:
        found, _ = head(values)
        logits: Tensor = found["cls_logits"]
        if "bbox_ctrness" in found:
            centred: Tensor = found["bbox_ctrness"].sigmoid()
            return (logits.sigmoid() * centred).sqrt()[..., 1:]
        softmax = isinstance(network, detection.ssd.SSD)
        return (logits.softmax(-1) if softmax else logits.sigmoid())[..., 1:]

    found, features = head(listed.tensors)
    (anchors,) = network.anchor_generator(listed, features)
    coder = network.box_coder
    decode = getattr(coder, "decode_single", coder.decode)
    return decode(found["bbox_regression"][0], anchors)[:, None], scores


def _features(network: Any, values: Tensor) -> Any:
    found = network.backbone(values)
    return OrderedDict([("0", found)]) if isinstance(found, Tensor) else found
