"""Classifiers in LiteRT (TensorFlow Lite), as they run on phones."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyeye.core.types import Model
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.models.runtimes.classifier import classifier, read_recipe
from steadyeye.models.runtimes.litert_network import LiteRtNetwork
from steadyeye.models.runtimes.network import read_classes, read_input_axes
from steadyeye.models.runtimes.probe_images import with_output

PACKAGES = ("ai_edge_litert",)
EXTRA = "litert"


def litert(
    *, path: str, classes: str | None = None, recipe: Mapping[str, Any] | None = None
) -> Model:
    """A .tflite file of a classifier, of floats or quantised, on LiteRT.

    `path`: the file. `classes`: `imagenet1k` or a class file; ImageNet-1k's if left out of a file
    of 1,000 outputs, or of 1,001, the first of which is then the background and left out. `recipe`:
    as of `onnx`. Of an input of bytes (uint8) the pixels go in as they are unless `recipe` has a
    mean or std; other inputs, int8 too, get the numbers that `recipe` makes, by default
    ImageNet's. Raises `UsageError` for what cannot be loaded, and for files of detectors.

    Example: `litert(path='mobilenet_v2_quant.tflite')`
    """
    imagenet = shipped_classes("imagenet1k")
    network = LiteRtNetwork(path)
    chosen = read_classes(classes, len(imagenet) if network.width == 1001 else network.width, path)
    if network.width == len(imagenet) + 1 and chosen.names == imagenet.names:
        network = LiteRtNetwork(path, first=1)
    defaults = {**read_input_axes(network.input_shape, path), **network.pixel_recipe()}
    if network.gives_probabilities:
        defaults["output"] = "probabilities"
    settings = with_output(read_recipe(recipe, **defaults), recipe, network, path)
    record = {**network.record, "first_output": network.first}
    return classifier(Path(path).stem, chosen, settings, network, network.content, record)
