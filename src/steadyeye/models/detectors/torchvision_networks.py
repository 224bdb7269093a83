"""Networks of torchvision's detectors: its own by name, and Faster R-CNN over ResNet-101."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from steadyeye.core.errors import UsageError
from steadyeye.core.imports import library

models = library("torchvision").models
ops = library("torchvision").ops

RESNET_101 = "fasterrcnn_resnet101_fpn"
"""Built from torchvision's parts as its own Faster R-CNN over ResNet-50 is."""

LIKE = "fasterrcnn_resnet50_fpn"
"""The network whose classes and settings `RESNET_101` uses."""


@dataclass(frozen=True)
class Settings:
    """The settings of a network besides its name.

    `size`: the shorter side of a resized image and the most of the longer side, in pixels; None:
    the network's own. `frozen`: epsilon of frozen batch normalisation; None: it is trained.
    """

    size: tuple[int, int] | None = None
    frozen: float | None = None

    def record(self) -> dict[str, Any]:
        """As plain values."""
        return {"size": list(self.size) if self.size else None, "frozen": self.frozen}


def settings(network: Any) -> Settings:
    """The settings that a network was built with."""
    transform = network.transform
    fixed = transform.fixed_size is not None
    size = None if fixed else (int(transform.min_size[0]), int(transform.max_size))
    frozen = [m.eps for m in network.modules() if isinstance(m, ops.misc.FrozenBatchNorm2d)]
    return Settings(size, frozen[0] if frozen else None)


def settings_of(record: Mapping[str, Any]) -> Settings:
    """The settings from the plain values of `Settings.record`."""
    size = record["size"]
    return Settings((int(size[0]), int(size[1])) if size else None, record["frozen"])


def names() -> tuple[str, ...]:
    """The detectors that can be built."""
    return (*models.list_models(module=models.detection), RESNET_101)


def entries(name: str) -> Any:
    """The weights of a detector; of `RESNET_101` those of its backbone, since it has no others."""
    return models.ResNet101_Weights if name == RESNET_101 else models.get_model_weights(name)


def categories(name: str, entry: Any) -> list[str]:
    """The output classes of a detector, the background first."""
    if name == RESNET_101:
        entry = models.get_model_weights(LIKE).DEFAULT
    labels: list[str] = entry.meta["categories"]
    return labels


def network(name: str, classes: int, chosen: Settings) -> nn.Module:
    """A detector with random weights; `classes`: without the background."""
    module: nn.Module
    arguments = options(name, chosen)
    if name == RESNET_101:
        module = _resnet101(models.resnet101(weights=None), classes + 1, 5, arguments)
    else:
        module = models.get_model(
            name, weights=None, weights_backbone=None, num_classes=classes + 1, **arguments
        )
    if chosen.frozen is not None:
        _freeze(module, chosen.frozen)
    return module


def trained_backbone(entry: Any, classes: int, chosen: Settings) -> nn.Module:
    """`RESNET_101` with a backbone of ImageNet; its pyramid and heads are random, seeded.

    Frozen as torchvision does it: batch normalisation, and the first two of five stages.
    """
    frozen = ops.misc.FrozenBatchNorm2d
    backbone = models.resnet101(weights=entry, progress=False, norm_layer=frozen)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return _resnet101(backbone, classes + 1, 3, options(RESNET_101, chosen))


def options(name: str, chosen: Settings) -> dict[str, Any]:
    """The arguments of torchvision's builder for settings."""
    if chosen.size is None:
        return {}
    if name.startswith("ssd"):
        raise UsageError(f"{name} has a fixed image size; leave out size=…")
    shorter, longer = chosen.size
    return {"min_size": shorter, "max_size": longer}


def _resnet101(backbone: Any, classes: int, learning: int, arguments: Any) -> nn.Module:
    parts = models.detection.backbone_utils
    pyramid = parts._resnet_fpn_extractor(backbone, learning)
    detector: nn.Module = models.detection.FasterRCNN(pyramid, num_classes=classes, **arguments)
    return detector


def _freeze(module: nn.Module, eps: float) -> None:
    """Replaces batch normalisation by frozen layers, as in torchvision's trained networks."""
    for name, layer in list(module.named_modules()):
        if isinstance(layer, nn.BatchNorm2d):
            module.set_submodule(name, ops.misc.FrozenBatchNorm2d(layer.num_features, eps))
