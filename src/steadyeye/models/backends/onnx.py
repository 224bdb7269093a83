"""ONNX files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Model
from steadyeye.data.classes.class_lists import read
from steadyeye.models.runtimes.classifier import classifier, read_recipe
from steadyeye.models.runtimes.network import read_input_axes
from steadyeye.models.runtimes.onnx_files import list_contents
from steadyeye.models.runtimes.onnx_session import OnnxSession
from steadyeye.models.runtimes.probe_images import with_output


def onnx(
    *, path: str, classes: str, recipe: Mapping[str, Any] | None = None, runtime: str = "onnx"
) -> Model:
    """An ONNX classifier with one image input and one row of scores per image.

    `path`: the file. `classes`: `imagenet1k` or a class file. `recipe`: a dict with any of size,
    resize, mean, std, interpolation, output, layout; size and layout default to what the file
    declares, output to what the rows are: probabilities or logits. The first output is read.
    `runtime`: "onnx" on the processor, or "cuda" with onnxruntime-gpu. Raises `UsageError` for a
    file that takes a fixed batch of several images, or images of other than three channels.

    Example: `onnx(path='model.onnx', classes='imagenet1k')`
    """
    file = Path(path).expanduser()
    session = OnnxSession(file, path, runtime)
    declared = read_recipe(recipe, **read_input_axes(session.input_shape, path))
    settings = with_output(declared, recipe, session, path)
    extra = {"runtime": runtime, "precision": "as in the file", "model_output": session.output}
    model = classifier(file.stem, read(classes), settings, session, _weights(file), extra)
    return replace(model, most=session.most(settings.shape), device=session.device)


def _weights(file: Path) -> str:
    content, *data = list_contents(file)
    return fingerprint(content, *(data or [b""]))
