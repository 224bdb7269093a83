"""Classifiers of torchvision."""

from pathlib import Path
from typing import Any

from torch import nn

from steadyeye.classes.known import from_names, read
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.imports import library
from steadyeye.core.types import Model
from steadyeye.images.preprocessing import Preprocessing
from steadyeye.inference.classifier import Recipe
from steadyeye.inference.recipes import unit_range
from steadyeye.inference.torch_classifier import Execution, torch_classifier
from steadyeye.inference.weights import fill

library_models = library("torchvision").models


def torchvision(
    *,
    name: str,
    weights: str | None = "DEFAULT",
    checkpoint: str | None = None,
    classes: str | None = None,
    runtime: str = "onnx",
    precision: str = "fp32",
) -> Model:
    """A classifier of torchvision by its name, prepared as its weights' transforms say.

    `weights`: an entry such as "IMAGENET1K_V2"; None: random, with the default entry's transforms.
    `checkpoint`: a state dict instead; `classes`: what it answers in, by default the entry's.
    """
    known = library_models.list_models(module=library_models)
    if name not in known:
        raise unknown("torchvision classifier", name, known)
    entries = library_models.get_model_weights(name)
    chosen = weights or "DEFAULT"
    if chosen not in entries.__members__:
        raise unknown(f"weights of {name}", chosen, entries.__members__)
    entry = entries[chosen]
    labels = read(classes) if classes else from_names(entry.meta["categories"])
    module = _module(name, entry if weights and checkpoint is None else None, len(labels))
    if checkpoint is not None:
        fill(module, Path(checkpoint).expanduser())
    settings = Recipe(_preprocessing(entry.transforms()))
    return torch_classifier(module, name, labels, settings, Execution(runtime, precision))


def _module(name: str, entry: Any, width: int) -> nn.Module:
    options = {} if entry else {"num_classes": width}
    try:
        module: nn.Module = library_models.get_model(name, weights=entry, **options)
    except OSError as error:
        raise UsageError(
            f"cannot download the weights of '{name}': {error}; give checkpoint='…'"
        ) from error
    return module.eval()


def _preprocessing(transforms: Any) -> Preprocessing:
    crop, resize = transforms.crop_size[0], transforms.resize_size[0]
    mean, std = unit_range(tuple(transforms.mean), tuple(transforms.std))
    return Preprocessing((crop, crop), resize, mean, std, transforms.interpolation.value)
