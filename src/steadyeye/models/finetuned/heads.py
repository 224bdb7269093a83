"""Finds and replaces the last layer of a torch classifier."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, jit, nn

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import stream
from steadyeye.models.runtimes.torch_module import one_thread
from steadyeye.models.runtimes.uninitialised import seeded_weights

Layer = nn.Linear | nn.Conv2d


@dataclass(frozen=True)
class Heads:
    """The layers that output the scores of a module, by their dotted names, and their width.

    One layer, except for networks with a second head, such as distilled DeiT.
    """

    layers: tuple[str, ...]
    width: int


def heads(module: nn.Module, size: Sequence[int]) -> Heads:
    """The heads of an eval-mode classifier that takes (n, 3, *size) float32.

    The last fully connected layer or 1 × 1 convolution, in the order in which an image goes through
    them, and parallel layers with as many outputs. Raises `UsageError` for compiled code, and if no
    layer outputs the scores.
    """
    if isinstance(module, jit.ScriptModule | fx.GraphModule):
        raise UsageError(
            f"a {type(module).__name__} is compiled, and its head cannot be replaced; "
            "give the Python code of the module: torch(path='py:package.module:factory')"
        )
    order: list[str] = []

    def keep(name: str) -> Any:
        return lambda *_: order.append(name)

    layers = {name: layer for name, layer in module.named_modules() if _is_layer(layer)}
    handles = [layer.register_forward_hook(keep(name)) for name, layer in layers.items()]
    try:
        width = _width(module, size)
    finally:
        for handle in handles:
            handle.remove()
    if not order or outputs(layers[order[-1]]) != width:
        last = f"; its last layer, {order[-1]}, gives {outputs(layers[order[-1]])}" if order else ""
        raise UsageError(
            f"no fully connected layer or 1 × 1 convolution of {type(module).__name__} gives its "
            f"{number_of(width, 'score')}{last}; let the network end in nn.Linear"
        )
    return Heads(_last(order, layers, width), width)


def with_head(module: nn.Module, size: Sequence[int], classes: int, seed: int = 0) -> nn.Module:
    """A copy of a classifier whose head gives `classes` scores, its new weights seeded.

    They are uniform within ±1/√inputs, as torch draws them, from (seed, the layer's name), the same
    on any machine. timm's own `reset_classifier` is tried first, because it knows its networks.
    Raises `UsageError` if there is no head, or if the copy does not output as many scores.
    """
    found_heads = heads(module, size)
    copied = copy.deepcopy(module)
    if callable(again := getattr(copied, "reset_classifier", None)):
        with seeded_weights(seed):
            again(classes)
        if _width(copied.eval(), size) == classes:
            return seed_heads(copied, heads(copied, size), seed)
        copied = copy.deepcopy(module)
    for name in found_heads.layers:
        with seeded_weights(seed):
            copied.set_submodule(name, _another(copied.get_submodule(name), classes))
    width = _width(copied.eval(), size)
    if width != classes:
        raise UsageError(
            f"{type(module).__name__} gives {number_of(width, 'score')} with a head of {classes}; "
            "let the network end in nn.Linear"
        )
    return seed_heads(copied, found_heads, seed)


def seed_heads(module: nn.Module, module_heads: Heads, seed: int) -> nn.Module:
    """The module itself, with new random weights of its heads."""
    for name in module_heads.layers:
        layer = module.get_submodule(name)
        assert isinstance(layer, Layer)
        bound = 1 / np.sqrt(layer.weight[0].numel())
        rng = stream(seed, "head", name)
        with torch.no_grad():
            for weights in (layer.weight, layer.bias):
                if weights is not None:
                    values = rng.uniform(-bound, bound, tuple(weights.shape))
                    weights.copy_(torch.from_numpy(values.astype(np.float32)))
    return module


def outputs(layer: nn.Module) -> int:
    """The number of outputs of a fully connected layer or convolution."""
    assert isinstance(layer, Layer)
    return layer.out_features if isinstance(layer, nn.Linear) else layer.out_channels


def _is_layer(module: nn.Module) -> bool:
    if isinstance(module, nn.Conv2d):
        return module.kernel_size == module.stride == (1, 1) and module.groups == 1
    return isinstance(module, nn.Linear)


def _last(order: Sequence[str], layers: Mapping[str, nn.Module], width: int) -> tuple[str, ...]:
    """The last layer, with the ones just before it of equal numbers of inputs and outputs."""
    final = layers[order[-1]]
    assert isinstance(final, Layer)
    taken = [order[-1]]
    for name in reversed(order[:-1]):
        layer = layers[name]
        assert isinstance(layer, Layer)
        if outputs(layer) != width or layer.weight.shape != final.weight.shape:
            break
        # a square layer may come before its head, but a head beside it reads what it reads
        if width == layer.weight.shape[1]:
            break
        taken.append(name)
    return tuple(dict.fromkeys(reversed(taken)))


def _another(layer: nn.Module, classes: int) -> nn.Module:
    assert isinstance(layer, Layer)
    bias = layer.bias is not None
    if isinstance(layer, nn.Linear):
        return nn.Linear(layer.in_features, classes, bias=bias)
    return nn.Conv2d(layer.in_channels, classes, 1, bias=bias)


def _width(module: nn.Module, size: Sequence[int]) -> int:
    """The number of scores of the module for an image."""
    with one_thread(), torch.no_grad():
        try:
            scores = module(torch.zeros(1, 3, *size))
        except (RuntimeError, TypeError, ValueError, AssertionError) as error:
            line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            sides = " × ".join(map(str, size))
            raise UsageError(
                f"{type(module).__name__} cannot be run on an image of {sides} pixels: {line}; "
                "check the size in its recipe"
            ) from error
    if not isinstance(scores, Tensor) or scores.numel() != scores.shape[1]:
        raise UsageError(f"{type(module).__name__} gives no (1, classes) scores; wrap it")
    return int(scores.numel())
