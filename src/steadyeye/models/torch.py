"""Torch modules of the user's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadyeye.classes.known import read
from steadyeye.core.types import Model
from steadyeye.inference.recipes import recipe as read_recipe
from steadyeye.inference.torch_classifier import Execution, torch_classifier
from steadyeye.inference.torch_files import module
from steadyeye.inference.weights import fill


def torch(  # noqa: PLR0913 — the keyword arguments of a spec
    *,
    path: str,
    classes: str,
    recipe: Mapping[str, Any] | None = None,
    checkpoint: str | None = None,
    runtime: str = "onnx",
    precision: str = "fp32",
    allow_pickle: bool = False,
) -> Model:
    """A torch module: `py:package.module:factory`, a TorchScript file or a .pt2 of torch.export.

    `classes`: `imagenet1k` or a class file. `recipe`: a dict with any of size, resize, mean, std,
    interpolation, output. `checkpoint`: a state dict for it. `allow_pickle`: also load a pickled
    module, which may run code. `runtime`: "onnx", or "torch" as it is; `precision`: "fp32", in
    torch also "bf16" and "fp16".
    """
    found = module(path, allow_pickle)
    if checkpoint is not None:
        found = fill(found, Path(checkpoint).expanduser())
    name = path.rpartition(":")[2] if path.startswith("py:") else Path(path).stem
    execution = Execution(runtime, precision)
    return torch_classifier(found, name, read(classes), read_recipe(recipe), execution)
