"""Torch modules of the user's own, and models that finetune trained."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import fx

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Detector, Model
from steadyeye.models.finetuned import checkpoint_format
from steadyeye.models.runtimes.classifier import read_recipe
from steadyeye.models.runtimes.network import note_assumed_classes, read_classes
from steadyeye.models.runtimes.probe_images import ask_patterns, check_mode, with_output
from steadyeye.models.runtimes.torch_classifier import Execution, torch_classifier
from steadyeye.models.runtimes.torch_module import TorchModule
from steadyeye.models.runtimes.weights import fill, load_module

PACKAGES = ("torch",)
EXTRA = "torch"


def torch(  # noqa: PLR0913 — the keyword arguments of a spec
    *,
    path: str,
    classes: str | None = None,
    recipe: Mapping[str, Any] | None = None,
    checkpoint: str | None = None,
    runtime: str = "onnx",
    precision: str = "fp32",
    allow_pickle: bool = False,
) -> Model | Detector:
    """A torch module: `py:package.module:factory`, TorchScript, .pt2, or a folder of finetune.

    `path`: one of these. `classes`: `imagenet1k` or a class file; by default ImageNet-1k's for a
    module of 1,000 outputs. `recipe`: a dict with any of
    size, resize, mean, std, interpolation, output, which defaults to the measured one:
    probabilities or logits. `checkpoint`: a state dict for it. `allow_pickle`: also load a pickled
    module or a .pt2 file, which may run code. `runtime`: "onnx", "torch" as it is, or "cuda" on
    GPUs; `precision`: "fp32", in torch also "bf16" and "fp16". A folder of `steadyeye finetune`
    contains the settings of its model, so that it takes only the last two. Raises `UsageError` for
    other files, for a module that was exported in training mode, for a folder with further
    settings, and for code that is not allowed.

    Example: `torch(path='py:my_models:network', classes='imagenet1k')`
    """
    execution = Execution(runtime, precision)
    if Path(path).expanduser().is_dir():
        options = {"classes": classes, "recipe": recipe, "checkpoint": checkpoint}
        for key, value in options.items():
            if value is not None:
                raise UsageError(f"the folder '{path}' sets its {key} itself; leave out {key}=…")
        return checkpoint_format.read(Path(path).expanduser(), execution)
    network = load_module(path, allow_pickle)
    if runtime == "cuda" and isinstance(network, fx.GraphModule) and not path.startswith("py:"):
        raise UsageError(
            f"'{path}' runs on the device that it was exported for; for a GPU give the module, "
            "TorchScript or ONNX"
        )
    if checkpoint is not None:
        network = fill(network, Path(checkpoint).expanduser())
    name = path.rpartition(":")[2] if path.startswith("py:") else Path(path).stem
    in_torch = TorchModule(network)
    settings = with_output(read_recipe(recipe), recipe, in_torch, path)
    check_mode(settings, in_torch, path)
    # none of a module that cannot take an image, which is refused below
    rows = ask_patterns(settings, in_torch) if classes is None else []
    names = read_classes(classes, len(rows[0]) if rows else None, path)
    note = note_assumed_classes(classes, names)
    return torch_classifier(network, name, names, settings, execution, note)
