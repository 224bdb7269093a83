"""Image-text models as classifiers: an image is compared with a text for each class.

Radford et al., "Learning Transferable Visual Models From Natural Language Supervision", 2021: the
score of a class is the scaled cosine of both embeddings; of several templates the normalised
embeddings of a class are averaged (Section 3.1.4).
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from steadyeye.core.errors import UsageError

Embed = Callable[[list[str]], Tensor]
"""Texts → (n, d) embeddings."""


class ZeroShotHead(nn.Module):
    """(n, 3, h, w) images → (n, classes) logits, over fixed embeddings of texts, (classes, d)."""

    texts: Tensor
    bias: Tensor

    def __init__(
        self, encoder: nn.Module, texts: Tensor, scale: Tensor, bias: Tensor | None
    ) -> None:
        super().__init__()
        self.encoder = encoder
        # what is compared with is part of the weights, and so of the model's fingerprint
        self.register_buffer("texts", texts.detach() * scale.detach())
        self.register_buffer("bias", torch.zeros(1) if bias is None else bias.detach().reshape(-1))

    def forward(self, images: Tensor) -> Tensor:
        """(n, classes) logits."""
        embedding: Tensor = self.encoder(images)
        logits: Tensor = nn.functional.normalize(embedding, dim=-1) @ self.texts.T + self.bias
        return logits


def list_templates(prompts: str | Sequence[str]) -> list[str]:
    """The templates, each with `{}` for the class. Raises `UsageError` for one without."""
    templates = [prompts] if isinstance(prompts, str) else list(prompts)
    for template in templates:
        if not isinstance(template, str) or template.count("{}") != 1:
            raise UsageError(
                f"the prompt {template!r} needs one {{}} where the class goes, as in 'a photo of "
                "a {}.'"
            )
    if not templates:
        raise UsageError("prompts=[] is empty; give at least one, as 'a photo of a {}.'")
    return templates


def embed_classes(embed: Embed, names: Sequence[str], templates: Sequence[str]) -> Tensor:
    """(classes, d) embeddings of length 1: for each class the mean over the templates."""
    rows = []
    with torch.inference_mode():
        for name in names:
            texts = embed([template.replace("{}", name) for template in templates])
            mean = nn.functional.normalize(texts, dim=-1).mean(dim=0)
            rows.append(nn.functional.normalize(mean, dim=0))
    return torch.stack(rows).clone()
