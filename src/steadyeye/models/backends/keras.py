"""Keras models, run by its torch backend."""

import json
import os
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# read once, when keras is imported
os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("KERAS_TORCH_DEVICE", "cpu")

import keras as keras_library
import numpy as np
from torch import Tensor, nn

from steadyeye.core.errors import UsageError, one_line
from steadyeye.core.types import Model
from steadyeye.data.classes.class_lists import read
from steadyeye.models.runtimes.classifier import read_recipe
from steadyeye.models.runtimes.network_sizes import (
    SMALLEST,
    TIMES,
    WeightsSize,
    check_settings,
    check_unpacked_size,
)
from steadyeye.models.runtimes.probe_images import with_output
from steadyeye.models.runtimes.torch_classifier import Execution, torch_classifier
from steadyeye.models.runtimes.torch_module import TorchModule

PACKAGES = ("torch", "keras")
EXTRA = "keras"
PASSED_OVER = ("InputLayer", "Random")
"""What the names of layers begin with that do not change an image."""
LARGEST_SCALE = 0.1
"""A layer that rescales by less takes values of 0…255, and not of 0…1."""


def keras(
    *,
    path: str,
    classes: str,
    recipe: Mapping[str, Any] | None = None,
    runtime: str = "onnx",
    precision: str = "fp32",
) -> Model:
    """A .keras file, run by ONNX Runtime or by Keras over torch.

    `path`: the file. `classes`: `imagenet1k` or a class file. `recipe`: a dict with mean and std in
    0…255, which may be left out if a layer such as Rescaling normalises the input, and any of size,
    resize, interpolation, output, which defaults to the measured one: probabilities or logits.
    `runtime`: "onnx" or "torch";
    `precision`: "fp32", in torch also "bf16" and "fp16". Raises `UsageError` for other files and
    for missing weights.

    Example: `keras(path='model.keras', classes='imagenet1k', recipe={'mean': 127.5, 'std': 127.5})`
    """
    execution = Execution(runtime, precision)
    if runtime == "cuda":
        raise UsageError("Keras models run on the CPU only; export the model to ONNX for a GPU")
    if keras_library.config.backend() != "torch":
        raise UsageError("Keras uses another backend than PyTorch; set KERAS_BACKEND=torch")
    if not path.endswith(".keras"):
        # of older formats Keras runs the code that a file holds
        raise UsageError(f"'{path}' is no .keras file; save it as one with model.save()")
    try:
        _check_sizes(Path(path))
        with warnings.catch_warnings():
            # Keras goes on with random weights where a file lacks some
            warnings.filterwarnings("error", message=".*(freshly|no matching group)")
            network = keras_library.saving.load_model(path, compile=False, safe_mode=True)
    except UsageError:
        raise
    except Exception as error:
        # zipfile, h5py and Keras's own layers raise what they like
        raise UsageError(
            f"cannot load the Keras model '{path}': {one_line(error, 200)}; save it again"
        ) from error
    shape = getattr(network, "input_shape", None)
    if not isinstance(shape, tuple) or len(shape) != 4:
        raise UsageError(
            f"'{path}' takes input {str(shape)[:100]}; give a model of one image, (None, h, w, 3)"
        )
    height, width = shape[1:3]
    size: dict[str, Any] = {"size": (height, width)} if height and width else {}
    module = _ChannelsFirst(network).eval()
    if not {"mean", "std"} <= set(recipe or {}):
        size |= _read_normalisation(network, path)
    settings = with_output(read_recipe(recipe, **size), recipe, TorchModule(module), path)
    return torch_classifier(module, Path(path).stem, read(classes), settings, execution)


def _read_normalisation(network: Any, path: str) -> dict[str, float]:
    """Mean and std of a network that takes pixels of 0…255 and rescales them itself.

    Raises `UsageError` for one whose first layer, but for random ones, is another.
    """
    layer = network
    while hasattr(layer, "layers"):
        names = [type(inner).__name__ for inner in layer.layers]
        first = next((i for i, n in enumerate(names) if not n.startswith(PASSED_OVER)), None)
        if first is None:
            break
        layer = layer.layers[first]
    if isinstance(layer, keras_library.layers.Rescaling) and np.max(layer.scale) < LARGEST_SCALE:
        return {"mean": 0.0, "std": 1.0}
    raise UsageError(
        f"'{path}' does not say how its input is normalised; give mean and std in a recipe: "
        f"keras(path='{path}', classes='…', recipe={{'mean': 127.5, 'std': 127.5}}) for −1…1"
    )


def _check_sizes(path: Path) -> None:
    """Raises `UsageError` for a file that unpacks to, or needs, much more memory than its size."""
    check_unpacked_size(path)
    with zipfile.ZipFile(path) as archive:
        settings = json.loads(archive.read("config.json"))
        # a number takes a byte or more; how many tensors there are is left to Keras
        size = WeightsSize(SMALLEST, archive.getinfo("model.weights.h5").file_size, SMALLEST)
    check_settings(settings, size, f"config.json in '{path}'")
    try:
        # a device without memory: weights have shapes there, and no numbers
        with keras_library.device("meta"):
            network = keras_library.saving.deserialize_keras_object(settings, safe_mode=True)
        asked_numbers = network.count_params()
    except Exception:
        # who loads it meets the same error, and says it
        return
    if asked_numbers > TIMES * size.numbers + SMALLEST:
        raise UsageError(
            f"config.json in '{path}' asks for a network of {asked_numbers:,} numbers, and its "
            f"weights have {size.numbers:,} bytes; save it again"
        )


class _ChannelsFirst(nn.Module):
    """A Keras model with input (n, 3, h, w), like all other modules."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """(n, 3, h, w) → (n, classes)."""
        scores: Tensor = self.model(images.permute(0, 2, 3, 1), training=False)
        return scores
