"""Models of timm."""

import math
from pathlib import Path
from typing import Any

from torch import nn

from steadyeye.core.errors import UsageError
from steadyeye.core.imports import library
from steadyeye.core.storage.hub import hub_access
from steadyeye.core.types import Classes, Model
from steadyeye.data.classes.class_lists import from_names, read
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes.classifier import Recipe, unit_range
from steadyeye.models.runtimes.torch_classifier import Execution, torch_classifier
from steadyeye.models.runtimes.weights import fill

PACKAGES = ("torch", "timm", "torchvision")
EXTRA = "timm"

timm_library = library("timm")


def timm(
    *,
    name: str,
    pretrained: bool = True,
    checkpoint: str | None = None,
    classes: str | None = None,
    runtime: str = "onnx",
    precision: str = "fp32",
) -> Model:
    """A model of timm by name, with the preprocessing of its configuration.

    `name`: as timm lists it. `runtime`: "onnx", "torch", or "cuda" on GPUs; `precision`: "fp32", in
    torch also "bf16" and "fp16". `checkpoint`: a state dict instead of the pretrained weights;
    `classes`: its output classes, by default ImageNet-1k (or the larger ImageNet of timm's
    configuration). Without `pretrained` and `checkpoint` the weights are random. Raises
    `UsageError` for an unknown name, weights that cannot be downloaded, and unsupported
    preprocessing.

    Example: `timm(name='resnet50.a1_in1k')`
    """
    labels = read(classes) if classes else None
    module = _module(name, pretrained and checkpoint is None, len(labels) if labels else None)
    if checkpoint is not None:
        fill(module, Path(checkpoint).expanduser())
    settings = Recipe(_preprocessing(timm_library.data.resolve_model_data_config(module)))
    execution = Execution(runtime, precision)
    return torch_classifier(module, name, labels or _classes(module), settings, execution)


def _module(name: str, pretrained: bool, width: int | None) -> nn.Module:
    options = {} if width is None else {"num_classes": width}
    try:
        config = timm_library.get_pretrained_cfg(name)
        with hub_access((pretrained and config and config.hf_hub_id) or ""):
            module: nn.Module = timm_library.create_model(name, pretrained=pretrained, **options)
    except RuntimeError as error:
        raise UsageError(
            f"timm cannot make '{name}': {_line(error)}; timm.list_models() lists the names"
        ) from error
    except OSError as error:
        # huggingface_hub and urllib both raise OSErrors when there is no network
        raise UsageError(
            f"cannot download the weights of '{name}': {_line(error)}; give checkpoint='…'"
        ) from error
    return module.eval()


def _preprocessing(config: dict[str, Any]) -> Preprocessing:
    """The recipe in timm's terms: crop_pct states how much of the resized image the crop keeps."""
    height, width = config["input_size"][1:]
    scaled = tuple(math.floor(side / config["crop_pct"]) for side in (height, width))
    mean, std = unit_range(config["mean"], config["std"])
    if config["crop_mode"] == "squash":
        resize: int | tuple[int, int] = (scaled[0], scaled[1])
    elif config["crop_mode"] == "center" and height == width:
        resize = scaled[0]
    else:
        raise UsageError(
            f"timm prepares this model with crop_mode='{config['crop_mode']}' at {height} × "
            f"{width}; only 'squash', and 'center' of squares, are supported: export it and use "
            "onnx(path=…, recipe=…)"
        )
    return Preprocessing((height, width), resize, mean, std, config["interpolation"])


def _classes(module: nn.Module) -> Classes | None:
    subset = timm_library.data.infer_imagenet_subset(module)
    if subset is None:
        return None
    if subset == "imagenet-1k":
        return read("imagenet1k")
    return from_names(timm_library.data.ImageNetInfo(subset).label_names())


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
