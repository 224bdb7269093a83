"""Instance segmentation models of libraries, for data without masks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.imports import library
from steadyeye.core.spec import Spec
from steadyeye.core.storage.hub import hub_access
from steadyeye.core.types import Image
from steadyeye.models.runtimes.network_sizes import check_config, check_file
from steadyeye.models.runtimes.torch_module import one_thread
from steadyeye.models.runtimes.weights import fill, weights_fingerprint

Instances: TypeAlias = Callable[[Image], NDArray[np.bool_]]
"""`image -> (n, h, w) bool`: the masks of the objects, in the size of the image."""

LEAST = 0.5
"""The least score of an instance, and the least probability of its pixels."""


def instances(spec: Spec) -> tuple[Instances, str]:
    """The segmenter of a spec, and the fingerprint of its weights.

    `hf(name='…')`: MaskFormer, Mask2Former or OneFormer, a folder or a name on the hub.
    `torchvision(name='maskrcnn_…', checkpoint='…')`: Mask R-CNN; its default weights without a
    checkpoint. Raises `UsageError` for others.
    """
    known: dict[str, Callable[..., tuple[Instances, nn.Module]]]
    known = {"hf": _hf, "torchvision": _torchvision}
    if spec.name not in known:
        raise unknown("instance segmentation", spec.name, known)
    try:
        segment, module = known[spec.name](**spec.kwargs)
    except (OSError, ValueError, TypeError) as error:
        line = " ".join(str(error).split())[:240]
        raise UsageError(
            f"cannot load the instance segmentation {spec}: {line}; check its name or its file"
        ) from error
    return segment, f"{spec} {weights_fingerprint(module)}"


def _hf(name: str) -> tuple[Instances, nn.Module]:
    transformers = library("transformers")
    kind = transformers.AutoModelForUniversalSegmentation
    own = {"trust_remote_code": False}
    with hub_access(name):
        size = check_file(name)
        processor = transformers.AutoImageProcessor.from_pretrained(name, backend="pil", **own)
        config = transformers.AutoConfig.from_pretrained(name, **own)
        check_config(config, kind, size, f"config.json of '{name}'")
        module = kind.from_pretrained(name, use_safetensors=True, **own).eval()

    def segment(image: Image) -> NDArray[np.bool_]:
        with one_thread(), torch.inference_mode():
            outputs = module(**processor(images=np.ascontiguousarray(image), return_tensors="pt"))
            (result,) = processor.post_process_instance_segmentation(
                outputs, threshold=LEAST, target_sizes=[image.shape[:2]], return_binary_maps=True
            )
        return _stack_masks(result["segmentation"] if result["segments_info"] else None, image)

    return segment, module


def _torchvision(name: str, checkpoint: str | None = None) -> tuple[Instances, nn.Module]:
    models = library("torchvision").models
    options: dict[str, Any] = {"weights": "DEFAULT"}
    if checkpoint is not None:
        options = {"weights": None, "weights_backbone": None}
    if not name.startswith("maskrcnn"):
        raise UsageError(f"torchvision's '{name}' gives no masks; use maskrcnn_resnet50_fpn")
    module: nn.Module = models.get_model(name, **options)
    if checkpoint is not None:
        fill(module, Path(checkpoint).expanduser())
    module.eval()

    def segment(image: Image) -> NDArray[np.bool_]:
        pixels = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)
        with one_thread(), torch.inference_mode():
            (result,) = module([pixels.to(torch.float32) / 255])
        return _stack_masks(result["masks"][result["scores"] > LEAST, 0] > LEAST, image)

    return segment, module


def _stack_masks(masks: Any, image: Image) -> NDArray[np.bool_]:
    if masks is None or not len(masks):
        return np.zeros((0, *image.shape[:2]), dtype=np.bool_)
    return np.asarray(masks.numpy() > 0, dtype=np.bool_)
