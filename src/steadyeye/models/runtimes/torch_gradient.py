"""How a class's probability changes with every value of an image, by backpropagation."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from steadyeye.models.runtimes.classifier import Recipe
from steadyeye.models.runtimes.torch_module import ThreadCopies, one_thread


class TorchGradient:
    """A `ClassGradient` over an eval-mode module with its recipe, in fp32; safe from any thread.

    Of the log-odds log(p / (1 − p)): the direction is that of the probability's own gradient,
    which rounds to zero where the model is certain.
    """

    def __init__(self, module: nn.Module, recipe: Recipe) -> None:
        self.recipe = recipe
        self._copies = ThreadCopies(module)

    @property
    def module(self) -> nn.Module:
        """The module itself, which no thread runs but in its own copy."""
        return self._copies.module

    def __reduce__(self) -> tuple[type["TorchGradient"], tuple[nn.Module, Recipe]]:
        return TorchGradient, (self._copies.module, self.recipe)

    def __call__(
        self, image: NDArray[np.float32], members: Sequence[int], /
    ) -> NDArray[np.float32]:
        """(h, w, 3) float32: the gradient at `image`, for the best of the `members` classes."""
        preprocessing = self.recipe.preprocessing
        module, _ = self._copies.mine()
        with one_thread(), torch.enable_grad():
            pixels = torch.from_numpy(image.copy()).requires_grad_()
            mean, std = torch.tensor(preprocessing.mean), torch.tensor(preprocessing.std)
            normalised = (pixels - mean) / std
            scores = module(normalised.permute(2, 0, 1)[None]).reshape(-1)
            best = max(members, key=scores.detach().numpy().__getitem__)
            odds = self._log_odds(scores, best)
            (gradient,) = torch.autograd.grad(odds, pixels)
        return np.asarray(gradient.numpy(), dtype=np.float32)

    def _log_odds(self, scores: Tensor, index: int) -> Tensor:
        if self.recipe.output == "probabilities":
            return torch.logit(scores[index], eps=1e-7)
        others = torch.cat([scores[:index], scores[index + 1 :]])
        return scores[index] - torch.logsumexp(others, 0)
