"""A torch module as a model: exported to ONNX where that is faithful, run by torch where not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.types import Classes
from steadyeye.inference.classifier import Classifier, Forward, Recipe, classifier
from steadyeye.inference.torch_export import export
from steadyeye.inference.torch_gradient import TorchGradient
from steadyeye.inference.torch_module import PRECISIONS, TorchModule
from steadyeye.inference.weights import covered, weights_fingerprint


@dataclass(frozen=True)
class Execution:
    """How a torch module is run: `runtime` "onnx" or "torch", `precision` fp32, bf16 or fp16.

    Reduced precision needs torch: bf16 changed 8 % of the best classes of EfficientNet-Lite0, so
    it is never chosen silently. Raises `UsageError` for anything else.
    """

    runtime: str = "onnx"
    precision: str = "fp32"

    def __post_init__(self) -> None:
        if self.runtime not in ("onnx", "torch"):
            raise unknown("runtime", self.runtime, ("onnx", "torch"))
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)
        if self.precision != "fp32" and self.runtime == "onnx":
            raise UsageError(
                f"precision='{self.precision}' runs in torch only; add runtime='torch'"
            )


def torch_classifier(
    module: nn.Module,
    name: str,
    classes: Classes | None,
    settings: Recipe,
    execution: Execution,
    origin: Mapping[str, Any] | None = None,
) -> Classifier:
    """The model over `module`, which takes (n, 3, h, w) float32 and is in eval mode already.

    Where the ONNX export fails or differs, the module stays in torch and the recipe's
    `runtime_note` says why. `origin`: what else the recipe records, such as what it was trained on.
    """
    weights = weights_fingerprint(module)
    forward: Forward = TorchModule(module, execution.precision)
    extra = {"runtime": "torch", "precision": execution.precision, **(origin or {})}
    if execution.runtime == "onnx":
        found = export(module, settings.preprocessing, weights)
        extra["runtime_note"] = found.note
        if found.session:
            forward = found.session
            extra["runtime"] = "onnx"
    found_classifier = classifier(name, classes, settings, forward, weights, extra)
    gradient = TorchGradient(module, settings)
    return replace(found_classifier, gradient=gradient, cacheable=covered(module))
