"""Detectors of Hugging Face transformers, with the library's own pre- and postprocessing."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor, nn

from steadyeye.core.types import Classes, Image
from steadyeye.models.detectors.hf_training import trainable
from steadyeye.models.detectors.torch_detector import (
    THRESHOLD,
    Asking,
    TorchDetector,
    told_apart,
    torch_detector,
)
from steadyeye.models.detectors.trainable import DetectionTensors, device
from steadyeye.models.introspection.differentiable import FixedCandidates


def hf_detector(
    name: str,
    module: nn.Module,
    processor: Any,
    classes: Classes,
    runtime: str = "torch",
    origin: Mapping[str, Any] | None = None,
) -> TorchDetector:
    """The detector over a loaded model, in eval mode, and its image processor.

    `runtime`: as of `torch_detector`; `origin`: where the weights are from, for the record.
    """

    def prepare(image: Image) -> Any:
        return processor(images=image, return_tensors="pt")

    def ask(network: nn.Module, inputs: Any, image: Image) -> DetectionTensors:
        outputs = network(**inputs.to(device(network)))
        (result,) = processor.post_process_object_detection(
            outputs, threshold=THRESHOLD, target_sizes=[image.shape[:2]]
        )
        return result["boxes"], result["labels"], result["scores"]

    def fix_candidates(network: nn.Module, image: Image) -> FixedCandidates:
        return _fix_candidates(network, processor, image)

    asking = Asking(prepare, ask, fix_candidates, trainable(module, processor, THRESHOLD))
    processing = {"processor": processor.to_dict(), **(origin or {})}
    return torch_detector(name, module, classes, asking, processing, runtime)


def labels(config: Any) -> Classes:
    """The classes of a detector's configuration; names that come twice are told apart."""
    return Classes(told_apart([str(config.id2label[index]) for index in sorted(config.id2label)]))


def _fix_candidates(network: nn.Module, processor: Any, image: Image) -> FixedCandidates:
    """The queries of an image. DETR and YOLOS have a class of nothing, the last, and a softmax.

    Conditional DETR and those after it have none, and a logistic function a class.
    """

    def prepare(picture: Image) -> Tensor:
        values: Tensor = processor(images=picture, return_tensors="pt")["pixel_values"]
        return values

    inputs = processor(images=image, return_tensors="pt")
    mask = inputs.get("pixel_mask")

    def outputs(values: Tensor) -> Any:
        if mask is None:
            return network(pixel_values=values)
        return network(pixel_values=values, pixel_mask=mask.expand(len(values), -1, -1))

    def scores(values: Tensor) -> Tensor:
        logits: Tensor = outputs(values).logits
        nothing = logits.shape[-1] > len(network.config.id2label)  # type: ignore[arg-type, union-attr]
        return logits.softmax(-1)[..., :-1] if nothing else logits.sigmoid()

    centre, side = outputs(inputs["pixel_values"]).pred_boxes[0].double().split(2, dim=-1)
    height, width = image.shape[:2]
    corners = np.concatenate([(centre - side / 2).numpy(), (centre + side / 2).numpy()], axis=1)
    boxes = corners * [width, height, width, height]
    return FixedCandidates(image, prepare, _scale(inputs, image), boxes[:, None], scores)


def _scale(inputs: Any, image: Image) -> tuple[float, float]:
    """Input = image × scale; what lies beyond the image is padding, which the mask leaves out."""
    tall, wide = inputs["pixel_values"].shape[2:]
    if "pixel_mask" in inputs:
        mask = inputs["pixel_mask"][0]
        tall, wide = int(mask[:, 0].sum()), int(mask[0].sum())
    return wide / image.shape[1], tall / image.shape[0]
