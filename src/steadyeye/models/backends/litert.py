"""Classifiers and detectors in LiteRT (TensorFlow Lite), as they run on phones."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyeye.core.types import Detector, Model
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.models.detectors.network_detector import DetectorOptions, network_detector
from steadyeye.models.detectors.toolbox_exports import in_pixels
from steadyeye.models.runtimes.classifier import classifier, read_recipe
from steadyeye.models.runtimes.litert_network import LiteRtNetwork
from steadyeye.models.runtimes.network import note_assumed_classes, read_classes, read_input_axes
from steadyeye.models.runtimes.probe_images import with_output

PACKAGES = ("ai_edge_litert",)
EXTRA = "litert"


def litert(
    *,
    path: str,
    classes: str | None = None,
    recipe: Mapping[str, Any] | None = None,
    decoder: str | None = None,
) -> Model | Detector:
    """A .tflite file, float or quantised, run by LiteRT.

    `path`: the file. `classes`: `imagenet1k`, `coco` or a class file; by default ImageNet-1k's for
    a classifier of 1,000 outputs, or of 1,001, the first of which is then the background and is
    dropped; for a detector as for `onnx_detector`. `recipe`: as for `onnx`, for a detector as for
    `onnx_detector`. `decoder`: the output format of a detector, by default inferred from
    Ultralytics' metadata or the names and shapes of the outputs; a file with one output (1,
    classes) is a classifier. An input of bytes (uint8) gets the pixels as they are, unless `recipe`
    has a mean or std; so does the int8 input of a classifier, less 128, unless its scale is for
    ImageNet's values. Other inputs get the values of `recipe`, by default those of the family's
    training. Raises `UsageError` for files that cannot be loaded or read.

    Example: `litert(path='mobilenet_v2_quant.tflite')`
    """
    network = LiteRtNetwork(path)
    if decoder is not None or not network.is_classifier:
        options = DetectorOptions(decoder, classes, {**network.pixel_recipe(), **(recipe or {})})
        record = {**network.record, "content": network.content}
        return network_detector(in_pixels(network, path, decoder), path, options, record)
    imagenet = shipped_classes("imagenet1k")
    chosen = read_classes(classes, len(imagenet) if network.width == 1001 else network.width, path)
    if network.width == len(imagenet) + 1 and chosen.names == imagenet.names:
        network = LiteRtNetwork(path, first=1)
    axes = read_input_axes(network.input_shape, path)
    defaults = {**axes, **network.pixel_recipe(), **network.range_recipe()}
    if network.gives_probabilities:
        defaults["output"] = "probabilities"
    settings = with_output(read_recipe(recipe, **defaults), recipe, network, path)
    extra = {**network.record, "first_output": network.first}
    extra |= note_assumed_classes(classes, chosen)
    return classifier(Path(path).stem, chosen, settings, network, network.content, extra)
