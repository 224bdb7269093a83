"""The training functions of a library's detector, and a new head for other classes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from steadyeye.core.boxes import OOD, Boxes, areas
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes, Image
from steadyeye.models.runtimes import uninitialised

Prepared: TypeAlias = dict[str, dict[str, Tensor]]
"""`input`: the network's input for one image; `target`: the target of its loss; CPU tensors."""

DetectionTensors: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Boxes (n, 4) x0 y0 x1 y1 in pixels of the image, labels (n,) over the classes, scores (n,)."""


@dataclass(frozen=True)
class Trainable:
    """The functions that train a library's detector.

    `make(classes)`: a network of the same architecture and settings in fp32, with the library's
    random weights. `prepare(image, truth)`: the image and its true boxes as inputs of the network.
    `loss(network, batch)`: the library's own loss in training mode. `evaluate(network, batch)`: the
    loss in eval mode, None if it has none, and the detections in each image. The batch is moved to
    the network's device. `record`: the values from which `models.finetuned.tuned_detector` builds
    the detector again, besides the classes and the weights. `anew`: the functions for training from
    random weights, if they differ.
    """

    make: Callable[[Classes], nn.Module]
    prepare: Callable[[Image, Boxes], Prepared]
    loss: Callable[[nn.Module, Sequence[Prepared]], Tensor]
    evaluate: Callable[
        [nn.Module, Sequence[Prepared]], tuple[Tensor | None, list[DetectionTensors]]
    ]
    record: Mapping[str, Any]
    anew: "Trainable | None" = None


def learnable(truth: Boxes, size: tuple[int, int] | None = None) -> Boxes:
    """The boxes for the loss, clipped to the image.

    Without crowds, objects outside the classes, and boxes without area after clipping. `size`:
    height and width; None: not clipped.
    """
    corners = truth.boxes
    if size is not None:
        corners = np.clip(corners, 0, [size[1], size[0], size[1], size[0]])
    inside = (corners[:, 0] < corners[:, 2]) & (corners[:, 1] < corners[:, 3])
    usable = inside & ~truth.crowd & (truth.labels != OOD)
    return Boxes(corners[usable], truth.labels[usable], truth.crowd[usable], areas(corners[usable]))


def with_classes(
    make: Callable[[Classes], nn.Module], trained: nn.Module, classes: Classes, seed: int
) -> nn.Module:
    """A network for other classes with the weights of a trained one, except for its head.

    The head is every weight whose shape depends on the number of classes; its weights are the
    library's random ones, seeded. Frozen parts of the trained network stay frozen. Raises
    `UsageError` if the two networks differ in architecture.
    """
    fresh = build_random(make, classes, seed)
    with torch.device("meta"):
        wider = make(Classes((*classes.names, "")))
    shapes = {name: value.shape for name, value in wider.state_dict().items()}
    head = {name for name, value in fresh.state_dict().items() if value.shape != shapes[name]}
    weights = {name: value for name, value in trained.state_dict().items() if name not in head}
    try:
        missing, unexpected = fresh.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        raise UsageError(_unlike(trained, str(error).strip().splitlines()[-1].strip())) from error
    if unexpected or set(missing) != head:
        raise UsageError(_unlike(trained, ", ".join([*unexpected, *sorted(set(missing) ^ head)])))
    learning = {name: parameter.requires_grad for name, parameter in trained.named_parameters()}
    for name, parameter in fresh.named_parameters():
        parameter.requires_grad_(name in head or learning[name])
    return fresh


def frozen(network: nn.Module) -> tuple[list[str], list[str]]:
    """The frozen weights of a network, and its layers of frozen batch normalisation.

    These layers have no weights, and each library has its own.
    """
    weights = [name for name, part in network.named_parameters() if not part.requires_grad]
    layers = [
        name for name, part in network.named_modules() if "FrozenBatchNorm" in type(part).__name__
    ]
    return weights, layers


def build_random(make: Callable[[Classes], nn.Module], classes: Classes, seed: int) -> nn.Module:
    """A network with all its weights random, from `seed` alone."""
    with uninitialised.seeded_weights(seed):
        return make(classes)


def device(network: nn.Module) -> torch.device:
    """The device of a network."""
    return next(network.parameters()).device


def move_tensors(tensors: Mapping[str, Tensor], to: torch.device) -> dict[str, Tensor]:
    """The same tensors on a device."""
    return {name: value.to(to) for name, value in tensors.items()}


def _unlike(trained: nn.Module, difference: str) -> str:
    return (
        f"{type(trained).__name__} is not what its settings make ({difference[:160]}), so it has "
        "no head that could be replaced; give the model as its library saves it"
    )
