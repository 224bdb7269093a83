"""Classifiers and detectors in OpenVINO: its own files, and ONNX files that it compiles."""

from collections.abc import Mapping
from typing import Any

from steadyeye.core.types import Detector, Model
from steadyeye.models.detectors.network_detector import DetectorOptions, network_detector
from steadyeye.models.detectors.toolbox_exports import is_classifier
from steadyeye.models.runtimes.classifier import classifier, read_recipe
from steadyeye.models.runtimes.network import note_assumed_classes, read_classes, read_input_axes
from steadyeye.models.runtimes.openvino_network import OpenVinoNetwork
from steadyeye.models.runtimes.probe_images import with_output

PACKAGES = ("openvino",)
EXTRA = "openvino"


def openvino(
    *,
    path: str,
    classes: str | None = None,
    recipe: Mapping[str, Any] | None = None,
    decoder: str | None = None,
    precision: str = "f32",
) -> Model | Detector:
    """A model for OpenVINO: an .xml file with its .bin, the folder of an export, or an ONNX file.

    `path`: the file or folder. `classes`: `imagenet1k`, `coco` or a class file; by default
    ImageNet-1k's for a classifier of 1,000 outputs, for a detector as for `onnx_detector`.
    `recipe`: as for `onnx`, for a detector as for `onnx_detector`. `decoder`: the output format of
    a detector, by default inferred from names and shapes; a file with one output (n, classes) is a
    classifier. `precision`: "f32", "bf16" or "f16": the precision of OpenVINO's computations, whose
    own default is bf16 on processors that have it, which changes scores by several hundredths; the
    run records the one used. Raises `UsageError` for files that cannot be loaded or read.

    Example: `openvino(path='model_openvino/model.xml', classes='classes.txt')`
    """
    network = OpenVinoNetwork(path, precision)
    outputs = network.described_outputs
    if decoder is not None or not is_classifier(network):
        options = DetectorOptions(decoder, classes, recipe)
        record = {**network.record, "content": network.content}
        return network_detector(network, path, options, record)
    names = read_classes(classes, outputs[0].shape[1], path)
    declared = read_recipe(recipe, **read_input_axes(network.input_shape, path))
    settings = with_output(declared, recipe, network, path)
    name = network.file.stem
    extra = {**network.record, **note_assumed_classes(classes, names)}
    return classifier(name, names, settings, network, network.content, extra)
