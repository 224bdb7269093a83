"""Training a classifier: its head replaced by the classes of the data, one label or several."""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from steadyeye.core.abilities import Differentiable, detects
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Image
from steadyeye.models.detectors.trainable import device
from steadyeye.models.finetuned import checkpoint_format, tuned_classifier
from steadyeye.models.finetuned.heads import Heads, heads, with_head
from steadyeye.models.introspection.multilabel_head import logits
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes import uninitialised as building
from steadyeye.models.runtimes.classifier import Recipe
from steadyeye.models.runtimes.torch_module import TorchGradient
from steadyeye.training.dataset import trained_on
from steadyeye.training.protocol import Example, Examples

FEWEST = 8
"""Least images in a batch for which batch normalisation uses batch statistics."""

LEAST = 1e-7  # the least probability for a logarithm, for networks that end in a softmax

Prepared: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor]
"""(3, h, w) the input; () the first label; (classes,) 1 for each label; (classes,) known
classes."""


@dataclass(frozen=True)
class Learning:
    """The settings of training a classifier.

    `several`: all labels of an image, not one. `from_scratch`: from random weights, not only a new
    head. `seed`: of the new weights.
    """

    several: bool = False
    from_scratch: bool = False
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Classification:
    """A `Task` over a classifier with the classes of its examples.

    One label: cross-entropy with the first label. Several: the mean binary cross-entropy of a
    class, over those that were verified; the trained model then outputs a probability for each
    class, which need not sum to 1. The criterion is the loss on the held-out data, because accuracy
    cannot distinguish models on few examples.

    Batch normalisation is trained with batches of `fewest` images or more; in smaller ones it uses
    its running statistics and does not update them, because the spread of a few frames of one video
    is not that of the data.
    """

    module: nn.Module
    preprocessing: Preprocessing
    several: bool
    output: str
    fewest: int
    about: Mapping[str, Any]
    kind: str = "classifier"
    criterion: str = "loss"
    lower: bool = True

    def fit(self, image: Image) -> Image:
        """The image, resized and cropped as by the model."""
        return self.preprocessing.fit(image)

    def prepare(self, example: Example, image: Image) -> Prepared:
        """The input, the first label, all labels, and the classes for which they are known."""
        classes = int(self.about["n classes"])
        pixels = np.empty((3, *self.preprocessing.size), dtype=np.float32)
        self.preprocessing.without_resize()(image, pixels)
        labels, known = torch.zeros(classes), torch.ones(classes)
        labels[list(example.labels)] = 1.0
        if example.verified is not None:
            known.zero_()[[*example.verified, *example.labels]] = 1.0
        return torch.from_numpy(pixels), torch.tensor(example.labels[0]), labels, known

    def loss(self, module: nn.Module, prepared: Sequence[Prepared]) -> Tensor:
        """The mean loss of a batch."""
        inputs, *truth = _stack_batch(module, prepared)
        with _freeze_norms(module, len(inputs) < self.fewest):
            scores = module(inputs)
        if not isinstance(scores, Tensor):
            # in training, GoogLeNet and Inception return their auxiliary heads, too
            scores = scores[0]
        return self._losses(scores.float(), *truth).mean()

    def judge(
        self, module: nn.Module, prepared: Iterable[Sequence[Prepared]]
    ) -> Mapping[str, float]:
        """`loss`, its mean; `accuracy`, the share whose best class is one of their labels; `n`."""
        losses: list[Tensor] = []
        right: list[Tensor] = []
        for batch in prepared:
            inputs, first, labels, known = _stack_batch(module, batch)
            scores = module(inputs).float()
            losses.append(self._losses(scores, first, labels, known).cpu())
            best = scores.argmax(dim=1, keepdim=True)
            right.append((labels.gather(1, best) > 0).flatten().cpu())
        hit = torch.cat(right).double()
        return {
            "loss": float(torch.cat(losses).double().mean()),
            "accuracy": float(hit.mean()),
            "n": float(len(hit)),
        }

    def record(self) -> Mapping[str, Any]:
        """The entries of model.json."""
        return {key: value for key, value in self.about.items() if key != "n classes"}

    def _losses(self, scores: Tensor, first: Tensor, labels: Tensor, known: Tensor) -> Tensor:
        """(n,) the loss of each image."""
        if self.several:
            losses = functional.binary_cross_entropy_with_logits(
                scores, labels, weight=known, reduction="none"
            )
            return losses.sum(dim=1) / known.sum(dim=1)
        if self.output == "probabilities":
            return functional.nll_loss(scores.clamp(min=LEAST).log(), first, reduction="none")
        return functional.cross_entropy(scores, first, reduction="none")


def classification(
    model: Any, spec: str, train: Examples, learning: Learning | None = None
) -> Classification:
    """The task of training `model`, built from `spec`, on the classes of `train`.

    The head is replaced, unless the model already has these classes in this order and starts from
    its weights. Raises `UsageError` for a detector, for a model without gradients, such as one of
    ONNX, for one without a head that can be replaced, for several labels with a network that ends
    in a softmax, and for weights that cannot be reset.
    """
    how = learning or Learning()
    gradient = find_gradient(model)
    module, recipe = logits(gradient.module), _recipe(gradient)
    if how.several and recipe.output == "probabilities":
        raise UsageError(
            f"{model.name} ends in a softmax, which cannot be trained on several labels; give "
            "the network without its softmax and recipe={'output': 'logits'}"
        )
    if how.from_scratch:
        module = _scratch(module, spec, how.seed)
    size = recipe.preprocessing.size
    same = model.classes is not None and model.classes.names == train.classes.names
    same_head = same and not how.from_scratch
    module = (
        copy.deepcopy(module)
        if same_head
        else with_head(module, size, len(train.classes), how.seed)
    )
    base = checkpoint_format.base_record(model, spec)
    about = _about(base, train, how, recipe, heads(module, size), same_head)
    return Classification(
        module=module,
        preprocessing=recipe.preprocessing,
        several=how.several,
        output=recipe.output,
        fewest=2 if how.from_scratch else FEWEST,
        about=tuned_classifier.buildable(about, module.eval()),
    )


def find_gradient(model: Any) -> TorchGradient:
    """What a classifier is trained by. Raises `UsageError` for one without, such as one of ONNX."""
    if detects(model):
        raise UsageError(f"{model.name} is a detector; give a classifier")
    gradient = model.gradient if isinstance(model, Differentiable) else None
    if not isinstance(gradient, TorchGradient):
        runtime = model.recipe.get("runtime", "")
        raise UsageError(
            f"{model.name} has no gradients to train by: it is run by {runtime or 'its own code'}; "
            "give the torch model it was made from, such as torch(path='py:package.module:factory')"
        )
    return gradient


def _recipe(gradient: TorchGradient) -> Recipe:
    """The recipe of the network that is trained, with logits if it has a logistic function."""
    inner = logits(gradient.module) is not gradient.module
    return replace(gradient.recipe, output="logits") if inner else gradient.recipe


def _scratch(module: nn.Module, spec: str, seed: int) -> nn.Module:
    """The same architecture with random weights."""
    if building.without(spec):
        return logits(building.bare(spec, seed).gradient.module)
    return building.reset(copy.deepcopy(module), seed)


def _about(
    base: Mapping[str, Any],
    train: Examples,
    how: Learning,
    recipe: Recipe,
    head: Heads,
    kept_head: bool,
) -> Mapping[str, Any]:
    output = "probabilities" if how.several else recipe.output
    return {
        "kind": "classifier",
        **base,
        "classes": checkpoint_format.classes_record(train.classes),
        "n classes": len(train.classes),
        "recipe": replace(recipe, output=output).record(),
        "head": {"layers": list(head.layers), "kept": kept_head},
        "several": how.several,
        "loss": "binary cross-entropy of each class" if how.several else "cross-entropy",
        "from scratch": how.from_scratch,
        "seed": how.seed,
        "trained on": trained_on(train),
    }


def _stack_batch(module: nn.Module, prepared: Sequence[Prepared]) -> list[Tensor]:
    """Each part of a batch as one tensor, on the module's device."""
    to = device(module)
    return [torch.stack(tensors).to(to) for tensors in zip(*prepared, strict=True)]


@contextmanager
def _freeze_norms(module: nn.Module, few: bool) -> Iterator[None]:
    """A block with batch normalisation in evaluation mode, if there are few images."""
    norms = [
        layer
        for layer in module.modules()
        if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.training
    ]
    for layer in norms if few else ():
        layer.eval()
    try:
        yield
    finally:
        for layer in norms if few else ():
            layer.train()
