"""Classifiers and detectors of torchvision."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.imports import library
from steadyeye.core.types import Classes, Detector, Model
from steadyeye.data.classes.class_lists import from_names, read
from steadyeye.models.detectors import torchvision_networks as networks
from steadyeye.models.detectors.torch_detector import make_unique
from steadyeye.models.detectors.torchvision_detector import torchvision_detector
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes.classifier import Recipe, unit_range
from steadyeye.models.runtimes.torch_classifier import Execution, torch_classifier
from steadyeye.models.runtimes.weights import fill

PACKAGES = ("torch", "torchvision")
EXTRA = "timm"

library_models = library("torchvision").models


def torchvision(  # noqa: PLR0913 — the keyword arguments of a spec
    *,
    name: str,
    weights: str | None = "DEFAULT",
    checkpoint: str | None = None,
    classes: str | None = None,
    runtime: str = "onnx",
    precision: str = "fp32",
    size: Sequence[int] | None = None,
) -> Model | Detector:
    """A classifier or detector of torchvision by name, with the transforms of its weights.

    `name`: as torchvision lists it. `runtime`: "onnx", "torch", or "cuda" on GPUs; `precision`:
    "fp32", in torch also "bf16" and "fp16". `weights`: an entry such as "IMAGENET1K_V2"; None:
    random, with the default entry's transforms. `checkpoint`: a state dict instead; `classes`: its
    output classes, by default the entry's, for a detector without the background. A detector runs
    in torch, with the library's own processing; `size`: size of its resized images, the shorter
    side and the most of the longer side, (800, 1333) for most. `fasterrcnn_resnet101_fpn` has
    weights of its backbone only: it detects nothing before fine-tuning. Raises `UsageError` for an
    unknown name or entry, and for weights that cannot be downloaded or have other classes.

    Example: `torchvision(name='resnet50', weights='IMAGENET1K_V2')`
    """
    detectors = networks.names()
    known = (*library_models.list_models(module=library_models), *detectors)
    if name not in known:
        raise unknown("torchvision classifier or detector", name, known)
    entries = networks.entries(name)
    chosen = weights or "DEFAULT"
    if chosen not in entries.__members__:
        raise unknown(f"weights of {name}", chosen, entries.__members__)
    entry = entries[chosen]
    own_classes = read(classes) if classes else None
    loaded = entry if weights and checkpoint is None else None
    execution = Execution(runtime, precision)
    if name in detectors:
        build = _Build(name, entry, loaded, networks.Settings(_sides(size)))
        return _detector(build, own_classes, checkpoint, execution.detecting())
    if size is not None:
        raise UsageError(
            f"size={size!r} is for detectors; leave it out: {name} takes the transforms of its "
            "weights"
        )
    labels = own_classes or from_names(entry.meta["categories"])
    module = _module(name, loaded, {} if loaded else {"num_classes": len(labels)})
    if checkpoint is not None:
        fill(module, Path(checkpoint).expanduser())
    settings = Recipe(_preprocessing(entry.transforms()))
    return torch_classifier(module, name, labels, settings, execution)


@dataclass(frozen=True)
class _Build:
    """The parts of a detector: `entry` has its classes, `loaded` its weights, None means random."""

    name: str
    entry: Any
    loaded: Any
    settings: networks.Settings


def _detector(
    build: _Build, own_classes: Classes | None, checkpoint: str | None, runtime: str
) -> Detector:
    # the first category is the background
    categories = networks.categories(build.name, build.entry)
    names = own_classes.names if own_classes else make_unique(categories)[1:]
    if build.loaded and build.name != networks.RESNET_101 and len(names) + 1 != len(categories):
        raise UsageError(
            f"these weights of {build.name} predict {number_of(len(categories) - 1, 'class')}, not "
            f"{len(names)}; give checkpoint='…' for other classes"
        )
    module = _network(build, len(names))
    if checkpoint is not None:
        fill(module, Path(checkpoint).expanduser())
    return torchvision_detector(build.name, module.eval(), own_classes or Classes(names), runtime)


def _network(build: _Build, classes: int) -> nn.Module:
    name, loaded, settings = build.name, build.loaded, build.settings
    if loaded is None:
        return networks.network(name, classes, settings)
    if name == networks.RESNET_101:
        return _build_checked(
            name, loaded, lambda: networks.trained_backbone(loaded, classes, settings)
        )
    options = {"num_classes": classes + 1, "weights_backbone": None}
    return _module(name, loaded, {**options, **networks.options(name, settings)})


def _sides(size: Sequence[int] | None) -> tuple[int, int] | None:
    if size is None:
        return None
    if len(size) != 2 or not 0 < int(size[0]) <= int(size[1]):
        raise UsageError(
            f"size={size!r}: give the shorter side and the most that the longer side may have"
        )
    return int(size[0]), int(size[1])


def _module(name: str, entry: Any, options: dict[str, Any]) -> nn.Module:
    return _build_checked(
        name, entry, lambda: library_models.get_model(name, weights=entry, **options)
    ).eval()


def _build_checked(name: str, entry: Any, build: Callable[[], nn.Module]) -> nn.Module:
    """The output of `build`, after a check that its weights hold only tensors."""
    try:
        if entry:
            # the builder would unpickle whatever it gets; what loads so far is tensors alone
            entry.get_state_dict(progress=False, check_hash=True, weights_only=True)
        return build()
    except OSError as error:
        raise UsageError(
            f"cannot download the weights of '{name}': {error}; give checkpoint='…'"
        ) from error
    except pickle.UnpicklingError as error:
        raise UsageError(
            f"the stored weights of '{name}' hold pickled objects, which may run code; delete "
            f"{Path(entry.url).name} from torch's cache and run again"
        ) from error


def _preprocessing(transforms: Any) -> Preprocessing:
    crop, resize = transforms.crop_size[0], transforms.resize_size[0]
    mean, std = unit_range(tuple(transforms.mean), tuple(transforms.std))
    return Preprocessing((crop, crop), resize, mean, std, transforms.interpolation.value)
