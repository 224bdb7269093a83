"""Detectors of Hugging Face transformers, to detect and to train, each with its own loss.

Pre- and postprocessing are the library's own.
"""

import copy
import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from steadyeye.core.boxes import Boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes, Image
from steadyeye.models.detectors.torch_detector import (
    THRESHOLD,
    Asking,
    TorchDetector,
    make_unique,
    torch_detector,
)
from steadyeye.models.detectors.trainable import (
    DetectionTensors,
    Prepared,
    Trainable,
    device,
    learnable,
    move_tensors,
)
from steadyeye.models.introspection.differentiable import FixedCandidates

LIBRARY = "transformers"


def hf_detector(
    name: str,
    module: nn.Module,
    processor: Any,
    classes: Classes,
    runtime: str = "torch",
    origin: Mapping[str, Any] | None = None,
) -> TorchDetector:
    """The detector over a loaded model, in eval mode, and its image processor.

    `runtime`: as for `torch_detector`; `origin`: the origin of the weights, for the record.
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
    """The classes of a detector's configuration; repeated names are made unique."""
    return Classes(make_unique([str(config.id2label[index]) for index in sorted(config.id2label)]))


def _fix_candidates(network: nn.Module, processor: Any, image: Image) -> FixedCandidates:
    """The queries of an image. DETR and YOLOS have a last class for no object, and a softmax.

    Conditional DETR and its successors have none, and a logistic function per class.
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
    """Input = image × scale; the rest is padding, which the mask leaves out."""
    tall, wide = inputs["pixel_values"].shape[2:]
    if "pixel_mask" in inputs:
        mask = inputs["pixel_mask"][0]
        tall, wide = int(mask[:, 0].sum()), int(mask[0].sum())
    return wide / image.shape[1], tall / image.shape[0]


def trainable(module: nn.Module, processor: Any, threshold: float) -> Trainable:
    """The training functions of a detector; `threshold`: the least score of its detections.

    The loss is that of the model's own code: DETR and its variants match queries to objects one to
    one (Carion et al., "End-to-End Object Detection with Transformers", 2020, equation 1).
    """

    def make(classes: Classes) -> nn.Module:
        config: Any = copy.deepcopy(module.config)
        answering(config, classes)
        network: nn.Module = type(module)(config)
        return network.float()

    def prepare(image: Image, truth: Boxes) -> Prepared:
        inputs = processor(images=image, return_tensors="pt")
        return {
            "input": {name: value[0] for name, value in inputs.items()},
            "target": _target(image, truth),
        }

    def loss(network: nn.Module, batch: Sequence[Prepared]) -> Tensor:
        parts = _alike(sorted(batch, key=_size))
        if len(parts) > 1 and _several():
            raise UsageError(
                f"images of {len(parts)} sizes cannot be used in several processes; give the "
                "model's image processor a fixed height and width, or train in one process"
            )
        return _mean([_infer_with_loss(network, part)[1] * len(part) for part in parts], batch)

    def evaluate(
        network: nn.Module, batch: Sequence[Prepared]
    ) -> tuple[Tensor | None, list[DetectionTensors]]:
        # the losses of transformers wait for all processes, of which one alone judges
        taught = not _several()
        losses: list[Tensor] = []
        detections: list[DetectionTensors] = []
        for part in _alike(batch):
            outputs, mean = _infer_with_loss(network, part, taught)
            losses.append(mean * len(part))
            sizes = [tuple(example["target"]["size"].tolist()) for example in part]
            detections += [
                (result["boxes"], result["labels"], result["scores"])
                for result in processor.post_process_object_detection(
                    outputs, threshold=threshold, target_sizes=sizes
                )
            ]
        return _mean(losses, batch) if taught else None, detections

    return Trainable(make, prepare, loss, evaluate, _record(module, processor))


def answering(config: Any, classes: Classes) -> None:
    """Sets the output classes of a network configuration."""
    config.id2label = dict(enumerate(classes.names))
    config.label2id = {name: index for index, name in enumerate(classes.names)}


def _target(image: Image, truth: Boxes) -> dict[str, Tensor]:
    """The targets of transformers' losses: centre and sides in 0…1 of the image, and the classes.

    Its processors make the same for a single image: a resize does not change such boxes.
    """
    height, width = image.shape[:2]
    objects = learnable(truth, (height, width))
    x0, y0, x1, y1 = (objects.boxes / [width, height, width, height]).T
    boxes = np.stack([(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0], axis=1)
    return {
        "boxes": torch.from_numpy(boxes).float(),
        "class_labels": torch.from_numpy(objects.labels).long(),
        "size": torch.tensor([height, width]),
    }


def _size(example: Prepared) -> tuple[int, ...]:
    return tuple(example["input"]["pixel_values"].shape)


def _alike(batch: Sequence[Prepared]) -> list[list[Prepared]]:
    """Runs of images in a batch with the same input size.

    Only these go through the network together: at inference images go in one by one, without
    padding.
    """
    return [list(part) for _, part in groupby(batch, _size)]


def _infer_with_loss(
    network: nn.Module, part: Sequence[Prepared], taught: bool = True
) -> tuple[Any, Tensor]:
    """The outputs of the network and its loss; NaN if it is not `taught`, or has no loss."""
    to = device(network)
    stacked = {
        name: torch.stack([example["input"][name] for example in part]) for name in part[0]["input"]
    }
    inputs = move_tensors(stacked, to)
    names = ("boxes", "class_labels")
    labels = [
        move_tensors({name: example["target"][name] for name in names}, to) for example in part
    ]
    nan = torch.full((), torch.nan, device=to)
    if not taught:
        return network(**inputs), nan
    try:
        outputs = network(**inputs, labels=labels)
    except ValueError:
        # queries that are no numbers cannot be matched to objects
        outputs = network(**inputs)
        if outputs.logits.isfinite().all() and outputs.pred_boxes.isfinite().all():
            raise
        return outputs, nan
    return outputs, outputs.loss


def _mean(parts: Sequence[Tensor], batch: Sequence[Prepared]) -> Tensor:
    return torch.stack(list(parts)).sum() / len(batch)


def _several() -> bool:
    """Whether several processes train one model."""
    return distributed.is_initialized() and distributed.get_world_size() > 1


def _record(module: Any, processor: Any) -> dict[str, Any]:
    """The configuration of the network and of its processor, as transformers writes them."""
    config = {**module.config.to_dict(), "architectures": [type(module).__name__]}
    settings = {"config": config, "processor": processor.to_dict()}
    return {"library": LIBRARY, **json.loads(json.dumps(settings, default=str))}
