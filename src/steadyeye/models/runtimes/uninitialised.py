"""Builds models from their spec without their original weights."""

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.spec import Spec, parse

WITHOUT: Mapping[str, Any] = {"pretrained": False, "weights": None}
"""Parameters of model plugins that leave the weights random, and their values."""

LEFT_OUT = ("checkpoint", "classes")
"""Parameters left out together with the weights: files that may be missing, and a replaced head."""


def without(spec: str) -> Mapping[str, Any]:
    """The arguments with which a spec's model has random weights; empty if there are none."""
    known = inspect.signature(plugins.load("models", parse(spec).name)).parameters
    return {key: value for key, value in WITHOUT.items() if key in known}


def bare(spec: str, seed: int = 0, weights: bool = False) -> Any:
    """The model of a spec for its architecture alone, with seeded random weights.

    With `weights`, the model with its weights, but run in torch.

    It runs in torch if the plugin allows it, so that nothing is downloaded or exported. A plugin
    without a parameter for random weights (`WITHOUT`) has its weights. Raises `UsageError` as the
    plugin does.
    """
    call, random = parse(spec), {} if weights else without(spec)
    kwargs = {key: value for key, value in call.kwargs.items() if key != "precision"}
    if "runtime" in inspect.signature(plugins.load("models", call.name)).parameters:
        kwargs["runtime"] = "torch"
    for key in LEFT_OUT if random else ():
        kwargs.pop(key, None)
    with seeded_weights(seed):
        return plugins.build("models", Spec(call.name, {**kwargs, **random}))


def reset(module: nn.Module, seed: int = 0) -> nn.Module:
    """The module itself with new random weights from its layers' own `reset_parameters`.

    A model of transformers gets the random weights of its library for its configuration. Raises
    `UsageError` if a layer has weights but no reset function, because these would stay trained.
    """
    without_reset: list[str] = []
    done: list[str] = []
    with seeded_weights(seed):
        for name, layer in module.named_modules():
            if any(name.startswith(f"{above}.") or not above for above in done):
                continue
            again = getattr(layer, "reset_parameters", getattr(layer, "_reset_parameters", None))
            if hasattr(layer, "config") and hasattr(layer, "init_weights"):
                layer.load_state_dict(type(layer)(copy.deepcopy(layer.config)).state_dict())
                done.append(name)
            elif again is not None:
                again()
            elif own := [key for key, _ in layer.named_parameters(recurse=False)]:
                without_reset.append(f"{name}.{own[0]}".removeprefix("."))
    if without_reset:
        raise UsageError(
            f"{number_of(len(without_reset), 'weight')} of {type(module).__name__} cannot be "
            f"reset, first '{without_reset[0]}'; give their layers a reset_parameters(), or start "
            "from random weights"
        )
    return module


@contextmanager
def seeded_weights(seed: int) -> Iterator[None]:
    """A block in which torch's random numbers come from `seed`; then they continue as before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
