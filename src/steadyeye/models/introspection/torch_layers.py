"""Inner layers of torch modules as their output."""

from typing import Any

from torch import Tensor, fx, jit, nn

from steadyeye.core.errors import UsageError, unknown
from steadyeye.models.runtimes.torch_module import TorchModule


def cut_at_layer(forward: Any, layer: str = "") -> tuple[TorchModule, str]:
    """The module with the output of one of its layers, and the name of that layer.

    `layer`: a module by its dotted name; by default the input of the last linear layer or
    convolution, in the order of declaration. Raises `UsageError` for compiled code and unknown
    names.
    """
    if not isinstance(forward, TorchModule):
        raise UsageError(
            f"a {type(forward).__name__} has no layers that can be read; embed with an ONNX file"
        )
    module = forward.module
    if isinstance(module, jit.ScriptModule | fx.GraphModule):
        raise UsageError(f"{type(module).__name__} is compiled; export it to ONNX and embed that")
    names = dict(module.named_modules())
    if layer and layer not in names:
        raise unknown("layer", layer, [name for name in names if name])
    weighed = [name for name, layer_ in names.items() if isinstance(layer_, nn.Linear | nn.Conv2d)]
    if not layer and not weighed:
        raise UsageError(f"{type(module).__name__} has no linear layer; name one with layer=")
    inner = _Inner(module, layer or weighed[-1], reads=not layer)
    name = layer or f"what {weighed[-1]} reads"
    return TorchModule(inner.eval(), forward.precision, forward.devices), name


class _Inner(nn.Module):
    """A module that returns the input or the output of one of its layers."""

    def __init__(self, module: nn.Module, layer: str, reads: bool) -> None:
        super().__init__()
        self.module = module
        self.layer = layer
        self.reads = reads

    def forward(self, images: Tensor) -> Tensor:
        """(n, 3, h, w) → the layer's input or output."""
        tensors: list[Tensor] = []

        def keep(_: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            tensors.append(inputs[0] if self.reads else output)

        handle = self.module.get_submodule(self.layer).register_forward_hook(keep)
        try:
            self.module(images)
        finally:
            handle.remove()
        if not tensors or not isinstance(tensors[-1], Tensor):
            raise ValueError(f"{self.layer} gives no tensor")
        return tensors[-1]
