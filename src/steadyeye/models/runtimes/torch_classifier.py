"""A torch module as a model: on ONNX Runtime if the outputs agree, in torch, or on GPUs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.types import Classes
from steadyeye.models.runtimes.classifier import Classifier, Forward, Recipe, classifier
from steadyeye.models.runtimes.devices import CPU, allocate_pinned, fitting, gpus, name_gpus
from steadyeye.models.runtimes.torch_export import export
from steadyeye.models.runtimes.torch_module import PRECISIONS, TorchGradient, TorchModule
from steadyeye.models.runtimes.weights import is_covered, weights_fingerprint

RUNTIMES = ("onnx", "torch", "cuda")


@dataclass(frozen=True)
class Execution:
    """How a torch module is run: `runtime` of `RUNTIMES`, `precision` fp32, bf16 or fp16.

    "onnx" and "torch" run on the CPU, "cuda" is torch on the GPUs of the machine. Reduced precision
    needs torch: bf16 changed 8 % of the best classes of EfficientNet-Lite0, so it is never chosen
    silently. Raises `UsageError` for anything else.
    """

    runtime: str = "onnx"
    precision: str = "fp32"

    def __post_init__(self) -> None:
        if self.runtime not in RUNTIMES:
            raise unknown("runtime", self.runtime, RUNTIMES)
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)
        if self.precision != "fp32" and self.runtime == "onnx":
            raise UsageError(
                f"precision='{self.precision}' runs in torch only; add runtime='torch' or 'cuda'"
            )

    def detecting(self) -> str:
        """The runtime of a detector of a library. Raises `UsageError` for another precision."""
        if self.precision != "fp32":
            raise UsageError(f"a detector runs in fp32, not {self.precision}; leave precision out")
        return self.runtime


def torch_classifier(
    module: nn.Module,
    name: str,
    classes: Classes | None,
    settings: Recipe,
    execution: Execution,
    origin: Mapping[str, Any] | None = None,
) -> Classifier:
    """The model over `module`, which takes (n, 3, h, w) float32 and is in eval mode already.

    If the ONNX export fails or differs, the module runs in torch and the recipe's `runtime_note`
    says why. `origin`: further entries of the recipe, such as its training data.
    """
    on_gpus = execution.runtime == "cuda"
    in_torch = TorchModule(module, execution.precision, gpus() if on_gpus else (CPU,))
    forward: Forward = in_torch
    weights = weights_fingerprint(module)
    runtime = "cuda" if on_gpus else "torch"
    extra = {"runtime": runtime, "precision": execution.precision, **(origin or {})}
    if execution.runtime == "onnx":
        exported = export(module, settings.preprocessing, weights)
        extra["runtime_note"] = exported.note
        if exported.session:
            forward = exported.session
            extra["runtime"] = "onnx"
    model = classifier(name, classes, settings, forward, weights, extra)
    if on_gpus:
        most = fitting(in_torch, settings.shape, in_torch.devices)
        model = replace(model, most=most, page=allocate_pinned, device=name_gpus(in_torch.devices))
    return replace(model, gradient=TorchGradient(module, settings), cacheable=is_covered(module))
