"""Image-text models of open_clip as classifiers of named classes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pictures
from torch import Tensor, nn

from steadyeye.core.errors import UsageError, one_line, unknown
from steadyeye.core.imports import library
from steadyeye.core.storage.hub import hub_access
from steadyeye.core.types import Model
from steadyeye.data.classes.class_lists import read
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes.classifier import Recipe, unit_range
from steadyeye.models.runtimes.probe_images import patterns
from steadyeye.models.runtimes.torch_classifier import Execution, torch_classifier
from steadyeye.models.runtimes.zero_shot_head import ZeroShotHead, embed_classes, list_templates

PACKAGES = ("torch", "open_clip", "PIL")
EXTRA = "clip"

clip_models = library("open_clip")


def open_clip(
    *,
    name: str,
    pretrained: str | None,
    classes: str,
    prompts: str | Sequence[str] = "a photo of a {}.",
    runtime: str = "onnx",
    precision: str = "fp32",
) -> Model:
    """A model of open_clip: it predicts the class whose text is most similar to the image.

    `name`: of its architecture, "ViT-B-32". `pretrained`: the tag of its weights, as
    "laion2b_s34b_b79k", or their file; None: random weights, for tests. `classes`, `prompts`: as
    for `zero_shot`, part of the model's fingerprint. `runtime`, `precision`: as for `timm`. Raises
    `UsageError` for an unknown name and for weights that cannot be loaded.

    Example: `open_clip(name='ViT-B-32', pretrained='laion2b_s34b_b79k', classes='imagenet1k')`
    """
    if name not in clip_models.list_models():
        raise unknown("model of open_clip", name, clip_models.list_models())
    names, templates = read(classes), list_templates(prompts)
    weights = pretrained
    if pretrained and Path(pretrained).expanduser().is_file():
        weights = str(Path(pretrained).expanduser())
    try:
        with hub_access(_repository(name, pretrained)):
            model, _, transform = clip_models.create_model_and_transforms(name, pretrained=weights)
            tokenizer = clip_models.get_tokenizer(name)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"open_clip cannot load '{pretrained}' of {name}: {one_line(error)}; give a tag of "
            "open_clip.list_pretrained(), or a file"
        ) from error
    model = model.eval()
    texts = embed_classes(lambda t: model.encode_text(tokenizer(t)), names.names, templates)
    bias = dict(model.named_parameters(recurse=False)).get("logit_bias")
    module = ZeroShotHead(_Images(model), texts, model.logit_scale.exp(), bias).eval()
    settings = Recipe(_preprocessing(model, transform, name))
    origin = {"prompts": templates, "pretrained": pretrained or "random weights"}
    execution = Execution(runtime, precision)
    return torch_classifier(module, name, names, settings, execution, origin)


def _repository(name: str, pretrained: str | None) -> str:
    """The repository on the hub that holds the weights, or else the tokenizer; "": none."""
    weights = str(clip_models.get_pretrained_cfg(name, pretrained or "").get("hf_hub", ""))
    tokenizer = clip_models.get_model_config(name)["text_cfg"].get("hf_tokenizer_name", "")
    return weights.rpartition("/")[0] or str(tokenizer)


class _Images(nn.Module):
    """The image side of a model."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """(n, 3, h, w) → (n, d) embeddings."""
        embedding: Tensor = self.model.encode_image(images)
        return embedding


def _preprocessing(model: Any, transform: Any, name: str) -> Preprocessing:
    """The recipe with the same output as the model's own transform, compared on a test pattern."""
    settings = model.visual.preprocess_cfg
    size = settings["size"]
    height, width = (size, size) if isinstance(size, int) else size
    mean, std = unit_range(tuple(settings["mean"]), tuple(settings["std"]))
    image = patterns(337, 451, 1)[0]
    expected = transform(Pictures.fromarray(image)).numpy()
    for resize in (height, (height, width)):
        recipe = Preprocessing((height, width), resize, mean, std, settings["interpolation"])
        pixels = np.empty((3, height, width), dtype=np.float32)
        recipe(image, pixels)
        if expected.shape == pixels.shape and np.abs(pixels - expected).max() < 2 / min(std):
            return recipe
    raise UsageError(
        f"{name} does more than resize, centre crop and normalise; export it and use onnx(path=…)"
    )
