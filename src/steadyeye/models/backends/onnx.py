"""ONNX files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Model
from steadyeye.models.runtimes.classifier import classifier, read_recipe
from steadyeye.models.runtimes.network import note_assumed_classes, read_classes, read_input_axes
from steadyeye.models.runtimes.onnx_files import list_contents
from steadyeye.models.runtimes.onnx_session import OnnxSession
from steadyeye.models.runtimes.probe_images import check_mode, with_output

ULTRALYTICS = {"mean": 0, "std": 255, "interpolation": "bilinear"}
"""The preprocessing of Ultralytics' classifiers, which does not crop square images."""


def onnx(
    *,
    path: str,
    classes: str | None = None,
    recipe: Mapping[str, Any] | None = None,
    runtime: str = "onnx",
) -> Model:
    """An ONNX classifier with one image input and one row of scores per image.

    `path`: the file. `classes`: `imagenet1k` or a class file; by default ImageNet-1k's for a file
    of 1,000 outputs, otherwise those of Ultralytics' metadata. `recipe`: a dict with any of size,
    resize, mean, std, interpolation, output, layout; size and layout default to those of the file,
    output to the measured one, probabilities or logits, the rest to Ultralytics' training settings
    if its metadata name a classifier. The first output is read. `runtime`: "onnx" on the processor,
    or "cuda" with onnxruntime-gpu. Raises `UsageError` for a file with a fixed batch of several
    images, without three channels or in training mode, and if the classes are not known.

    Example: `onnx(path='model.onnx', classes='imagenet1k')`
    """
    file = Path(path).expanduser()
    session = OnnxSession(file, path, runtime)
    axes = read_input_axes(session.input_shape, path)
    if session.metadata.get("task") == "classify" and "size" in axes:
        axes |= {**ULTRALYTICS, "resize": min(axes["size"])}
    declared = read_recipe(recipe, **axes)
    settings = with_output(declared, recipe, session, path)
    check_mode(settings, session, path)
    width = session.described_outputs[0].shape[-1]
    names = read_classes(classes, width, path, session.metadata)
    extra = {"runtime": runtime, "precision": "as in the file", "model_output": session.output}
    extra |= note_assumed_classes(classes, names)
    content, *data = list_contents(file)
    weights = fingerprint(content, *(data or [b""]))
    model = classifier(file.stem, names, settings, session, weights, extra)
    return replace(model, most=session.most(settings.shape), device=session.device)
