"""Classifiers that `steadyeye finetune` trained, built again from their folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from steadyeye.core.abilities import Differentiable
from steadyeye.core.code_permission import distrust
from steadyeye.core.errors import UsageError, list_texts
from steadyeye.models.finetuned import checkpoint_format
from steadyeye.models.finetuned.heads import heads, with_head
from steadyeye.models.introspection.multilabel_head import Independent, logits
from steadyeye.models.runtimes.classifier import Classifier, Recipe
from steadyeye.models.runtimes.torch_classifier import Execution, torch_classifier
from steadyeye.models.runtimes.torch_export import probes
from steadyeye.models.runtimes.torch_module import TorchGradient, one_thread
from steadyeye.models.runtimes.uninitialised import bare, without
from steadyeye.models.runtimes.weights import fill_from

SLACK = 1e-4
"""The largest difference of scores after building a network again; rounding causes less."""


def read_classifier(
    folder: Path, record: Mapping[str, Any], weights: Mapping[str, Tensor], execution: Execution
) -> Classifier:
    """The classifier of a record and its weights."""
    module = network(folder, record, weights)
    if record["several"]:
        module = Independent(module).eval()
    classes, settings = checkpoint_format.classes_of(record), recipe_of(record["recipe"])
    name, origin = folder.resolve().name, checkpoint_format.origin(record)
    return torch_classifier(module, name, classes, settings, execution, origin)


def network(folder: Path, record: Mapping[str, Any], weights: Mapping[str, Tensor]) -> nn.Module:
    """The trained network in eval mode, for one label or several as in its training."""
    size = recipe_of(record["recipe"]).preprocessing.size
    width = len(record["classes"]["names"])
    module = logits(_architecture(folder, record["build"], record["bare"]))
    if not (record["head"]["kept"] and heads(module, size).width == width):
        module = with_head(module, size, width)
    return fill_from(module, weights, folder / checkpoint_format.WEIGHTS).eval()


def buildable(record: Mapping[str, Any], module: nn.Module) -> dict[str, Any]:
    """The record with `bare`: whether the network can be built without the weights of its base.

    It is built from the record before the training and compared on test patterns, so that no
    training ends in an unreadable folder: some libraries build another network around their
    weights, as torchvision does for GoogLeNet. `module`: in eval mode, before the training. Raises
    `UsageError` if it cannot be built at all.
    """
    reason = "every build gives another network"
    inputs = probes(recipe_of(record["recipe"]).preprocessing)
    for plain in (True, False) if without(record["build"]) else (True,):
        extended = {**record, "bare": plain}
        try:
            again = network(Path("the folder"), extended, module.state_dict())
        except UsageError as error:
            reason = str(error)
            continue
        with one_thread(), torch.no_grad():
            pairs = [(module(batch), again(batch)) for batch in map(torch.from_numpy, inputs)]
        if all(torch.allclose(first, second, atol=SLACK) for first, second in pairs):
            return extended
    raise UsageError(f"{record['build']} cannot be built again after training: {reason}")


def recipe_of(record: Mapping[str, Any]) -> Recipe:
    """The recipe from the plain values of `Recipe.record`. Raises an error for other values."""
    plain = json.loads(json.dumps(record))
    recipe = msgspec.convert(plain, Recipe)
    if (known := json.loads(json.dumps(recipe.record()))) != plain:
        others = sorted(key for key in {*plain, *known} if plain.get(key) != known.get(key))
        raise UsageError(f"this version knows no such recipe, by its entries {list_texts(others)}")
    return recipe


def _architecture(folder: Path, spec: str, plain: bool) -> nn.Module:
    """The network that a model was built from; files in its spec must still exist."""
    try:
        with distrust(folder / checkpoint_format.FILE):
            model = bare(spec, weights=not plain)
    except UsageError as error:
        raise UsageError(f"'{folder}' is built from {spec}: {error}") from error
    gradient = model.gradient if isinstance(model, Differentiable) else None
    if not isinstance(gradient, TorchGradient):
        raise UsageError(
            f"'{folder}' is built from {spec}, which is no longer a torch model; "
            "put back what it was, or train again"
        )
    return gradient.module
