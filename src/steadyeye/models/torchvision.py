"""Classifiers and detectors of torchvision."""

import pickle
from pathlib import Path
from typing import Any

from torch import nn

from steadyeye.classes.known import from_names, read
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.imports import library
from steadyeye.core.types import Classes, Detector, Model
from steadyeye.images.preprocessing import Preprocessing
from steadyeye.inference.classifier import Recipe
from steadyeye.inference.recipes import unit_range
from steadyeye.inference.torch_classifier import Execution, torch_classifier
from steadyeye.inference.torch_detector import told_apart
from steadyeye.inference.torchvision_detector import torchvision_detector
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
) -> Model | Detector:
    """A classifier or detector of torchvision by its name, prepared as its weights' transforms say.

    `weights`: an entry such as "IMAGENET1K_V2"; None: random, with the default entry's transforms.
    `checkpoint`: a state dict instead; `classes`: what it answers in, by default the entry's, of a
    detector without the background. A detector runs in torch, with the library's own processing.
    """
    detectors = library_models.list_models(module=library_models.detection)
    known = (*library_models.list_models(module=library_models), *detectors)
    if name not in known:
        raise unknown("torchvision classifier or detector", name, known)
    entries = library_models.get_model_weights(name)
    chosen = weights or "DEFAULT"
    if chosen not in entries.__members__:
        raise unknown(f"weights of {name}", chosen, entries.__members__)
    entry = entries[chosen]
    given = read(classes) if classes else None
    loaded = entry if weights and checkpoint is None else None
    if name in detectors:
        return _detector(name, entry, loaded, given, checkpoint)
    labels = given or from_names(entry.meta["categories"])
    module = _module(name, loaded, {} if loaded else {"num_classes": len(labels)})
    if checkpoint is not None:
        fill(module, Path(checkpoint).expanduser())
    settings = Recipe(_preprocessing(entry.transforms()))
    return torch_classifier(module, name, labels, settings, Execution(runtime, precision))


def _detector(
    name: str, entry: Any, loaded: Any, given: Classes | None, checkpoint: str | None
) -> Detector:
    # the first category is the background
    names = given.names if given else told_apart(entry.meta["categories"])[1:]
    width = len(entry.meta["categories"])
    if loaded and len(names) + 1 != width:
        raise UsageError(
            f"these weights of {name} answer in {width - 1} classes, not {len(names)}; "
            "give checkpoint='…' for other classes"
        )
    module = _module(name, loaded, {"num_classes": len(names) + 1, "weights_backbone": None})
    if checkpoint is not None:
        fill(module, Path(checkpoint).expanduser())
    return torchvision_detector(name, module, given or Classes(names))


def _module(name: str, entry: Any, options: dict[str, Any]) -> nn.Module:
    try:
        if entry:
            # the builder would unpickle whatever it gets; what loads so far is tensors alone
            entry.get_state_dict(progress=False, check_hash=True, weights_only=True)
        module: nn.Module = library_models.get_model(name, weights=entry, **options)
    except OSError as error:
        raise UsageError(
            f"cannot download the weights of '{name}': {error}; give checkpoint='…'"
        ) from error
    except pickle.UnpicklingError as error:
        raise UsageError(
            f"the stored weights of '{name}' hold pickled objects, which may run code; delete "
            f"{Path(entry.url).name} from torch's cache and run again"
        ) from error
    return module.eval()


def _preprocessing(transforms: Any) -> Preprocessing:
    crop, resize = transforms.crop_size[0], transforms.resize_size[0]
    mean, std = unit_range(tuple(transforms.mean), tuple(transforms.std))
    return Preprocessing((crop, crop), resize, mean, std, transforms.interpolation.value)
