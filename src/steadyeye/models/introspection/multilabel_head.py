"""Multi-label classifiers: each class has its own probability."""

from torch import Tensor, nn


class Independent(nn.Module):
    """A network of logits with a logistic function per class; probabilities need not sum to 1."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """(n, 3, h, w) → (n, classes) probabilities."""
        scores: Tensor = self.network(images).sigmoid()
        return scores


def logits(module: nn.Module) -> nn.Module:
    """The inner network, if there is one; otherwise the module itself."""
    return module.network if isinstance(module, Independent) else module
