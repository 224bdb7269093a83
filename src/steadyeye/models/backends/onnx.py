"""ONNX files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Model
from steadyeye.data.classes.class_lists import read
from steadyeye.models.runtimes.classifier import classifier, read_recipe
from steadyeye.models.runtimes.onnx_files import list_contents
from steadyeye.models.runtimes.onnx_session import OnnxSession
from steadyeye.models.runtimes.probe_images import with_output


def onnx(
    *, path: str, classes: str, recipe: Mapping[str, Any] | None = None, runtime: str = "onnx"
) -> Model:
    """An ONNX file with one image input and one row of scores an image.

    `path`: the file. `classes`: `imagenet1k` or a class file. `recipe`: a dict with any of size,
    resize, mean, std, interpolation, output, layout; size and layout default to what the file
    declares, output to what the rows are: probabilities or logits. The first output is read.
    `runtime`: "onnx" on the processor, or "cuda" with onnxruntime-gpu. Raises `UsageError` for a
    file that takes a fixed batch of several images, or images of other than three channels.

    Example: `onnx(path='model.onnx', classes='imagenet1k')`
    """
    file = Path(path).expanduser()
    session = OnnxSession(file, path, runtime)
    declared = read_recipe(recipe, **_read_input_axes(session.input_shape, path))
    settings = with_output(declared, recipe, session, path)
    extra = {"runtime": runtime, "precision": "as in the file", "model_output": session.output}
    model = classifier(file.stem, read(classes), settings, session, _weights(file), extra)
    return replace(model, most=session.most(settings.shape), device=session.device)


def _read_input_axes(shape: tuple[int | None, ...], path: str) -> dict[str, Any]:
    """What the axes of the input say about layout and size."""
    if len(shape) != 4 or shape[0] not in (None, 1):
        raise UsageError(
            f"'{path}' takes input {shape}; export it for images (1, 3, h, w) or a free batch"
        )
    layout = "nhwc" if shape[3] == 3 and shape[1] != 3 else "nchw"
    channels = shape[3] if layout == "nhwc" else shape[1]
    if channels not in (None, 3):
        axes = ", ".join("any" if side is None else str(side) for side in shape)
        raise UsageError(
            f"'{path}' takes input ({axes}), which is not of three channels; images are RGB here: "
            "export it with a first layer that takes (1, 3, h, w)"
        )
    height, width = shape[1:3] if layout == "nhwc" else shape[2:4]
    if height is None or width is None:
        return {"layout": layout}
    return {"layout": layout, "size": (height, width)}


def _weights(file: Path) -> str:
    content, *data = list_contents(file)
    return fingerprint(content, *(data or [b""]))
