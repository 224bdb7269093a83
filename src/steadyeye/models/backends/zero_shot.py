"""Image-text models of Hugging Face (CLIP, SigLIP) as classifiers of named classes."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from steadyeye.core.errors import UsageError, one_line
from steadyeye.core.imports import library
from steadyeye.core.storage.hub import hub_access, short_name
from steadyeye.core.types import Model
from steadyeye.data.classes.class_lists import read
from steadyeye.models.runtimes.classifier import Recipe
from steadyeye.models.runtimes.hf_processor import preprocessing
from steadyeye.models.runtimes.torch_classifier import Execution, torch_classifier
from steadyeye.models.runtimes.zero_shot_head import ZeroShotHead, embed_classes, list_templates

PACKAGES = ("torch", "transformers", "PIL")
EXTRA = "hf"
OWN_CODE = {"trust_remote_code": False}

transformers = library("transformers")


def zero_shot(
    *,
    name: str,
    classes: str,
    prompts: str | Sequence[str] = "a photo of a {}.",
    runtime: str = "onnx",
    precision: str = "fp32",
) -> Model:
    """CLIP, SigLIP and similar models: the class whose text is most similar to the image.

    `name`: a folder or a name on the hub; safetensors. `classes`: `imagenet1k`, another known list
    or a class file: the classes of the texts. `prompts`: a template with {} for the class, or a
    list of them, whose embeddings are averaged. They are part of the model's fingerprint.
    `runtime`, `precision`: as for `hf`. Raises `UsageError` for models that cannot be loaded, and
    for a template without {}.

    Example: `zero_shot(name='openai/clip-vit-base-patch32', classes='imagenet1k')`
    """
    names, templates = read(classes), list_templates(prompts)
    try:
        with hub_access(name):
            processor = transformers.AutoImageProcessor.from_pretrained(
                name, backend="pil", **OWN_CODE
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, **OWN_CODE)
            model = transformers.AutoModelForZeroShotImageClassification.from_pretrained(
                name, use_safetensors=True, **OWN_CODE
            ).eval()
        settings = Recipe(preprocessing(processor))
    except (UsageError, ModuleNotFoundError):
        raise
    except Exception as error:
        raise UsageError(
            f"transformers cannot load '{name}': {one_line(error)}; download or save it again"
        ) from error
    # SigLIP was trained on texts of full length
    padding = "max_length" if "siglip" in model.config.model_type else True

    def embed(texts: list[str]) -> Tensor:
        tokens = tokenizer(texts, padding=padding, truncation=True, return_tensors="pt")
        return _features(model.get_text_features(**tokens))

    texts = embed_classes(embed, names.names, templates)
    bias = dict(model.named_parameters(recurse=False)).get("logit_bias")
    module = ZeroShotHead(_Images(model), texts, model.logit_scale.exp(), bias).eval()
    origin = {"prompts": templates}
    execution = Execution(runtime, precision)
    return torch_classifier(module, short_name(name), names, settings, execution, origin)


class _Images(nn.Module):
    """The image side of a model."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixel_values: Tensor) -> Tensor:
        """(n, 3, h, w) → (n, d) embeddings."""
        return _features(self.model.get_image_features(pixel_values=pixel_values))


def _features(output: Any) -> Tensor:
    """The embeddings in the output of a model: the output itself, or its pooled part."""
    features: Tensor = output if isinstance(output, torch.Tensor) else output.pooler_output
    return features
