"""Detectors of torchvision: what surrounds their networks lies within them."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from steadyeye.core.types import Classes, Image
from steadyeye.models.detectors.torch_detector import (
    THRESHOLD,
    Asking,
    TorchDetector,
    torch_detector,
)
from steadyeye.models.detectors.torchvision_training import (
    drop_background,
    trainable,
    with_threshold,
)
from steadyeye.models.detectors.trainable import DetectionTensors, device
from steadyeye.models.introspection import torchvision_differentiable

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
    to 0.2, is lowered to 0.001 in the module given. `runtime`: as of `torch_detector`; `network`:
    what torchvision calls it, where that is not its name; `origin`: where the weights are from, for
    the record.
    """
    with_threshold(module, THRESHOLD)
    training = trainable(network or name, module, THRESHOLD)
    asking = Asking(
        torchvision_differentiable.pixels, _ask, torchvision_differentiable.fix_candidates, training
    )
    processing = {**_processing(module), **(origin or {})}
    return torch_detector(name, module, classes, asking, processing, runtime)


def _ask(network: nn.Module, pixels: Tensor, image: Image) -> DetectionTensors:
    (outputs,) = network([pixels.to(device(network))])
    return drop_background(outputs)


def _processing(module: Any) -> Mapping[str, Any]:
    """What the model does before and after the network, for the record."""
    ending = getattr(module, "roi_heads", module)
    before = {key: getattr(module.transform, key) for key in TRANSFORM}
    after = {key: getattr(ending, key) for key in ENDING if hasattr(ending, key)}
    return {"values": "0…1", **before, **after}
