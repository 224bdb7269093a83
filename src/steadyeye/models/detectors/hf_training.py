"""Detectors of Hugging Face transformers as they are trained: each with its own loss."""

import copy
import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from steadyeye.core.boxes import Boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes, Image
from steadyeye.models.detectors.trainable import (
    DetectionTensors,
    Prepared,
    Trainable,
    device,
    learnable,
    move_tensors,
)

LIBRARY = "transformers"


def trainable(module: nn.Module, processor: Any, threshold: float) -> Trainable:
    """How a detector is trained; `threshold`: what it finds with a lower score is left out.

    The loss is that of the model's own code: DETR and its kin match queries to objects one to one
    (Carion et al., "End-to-End Object Detection with Transformers", 2020, equation 1).
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
    """Sets the classes that a network of the configuration answers in."""
    config.id2label = dict(enumerate(classes.names))
    config.label2id = {name: index for index, name in enumerate(classes.names)}


def _target(image: Image, truth: Boxes) -> dict[str, Tensor]:
    """What the losses of transformers take: centre and sides in 0…1 of the image, and the classes.

    That is what its processors make of an image alone: a resize keeps such boxes as they are.
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
    """The neighbours in a batch whose inputs are of one size.

    Only those go through the network together: padding would be a picture that is never asked
    about, since an image is asked about alone.
    """
    return [list(part) for _, part in groupby(batch, _size)]


def _infer_with_loss(
    network: nn.Module, part: Sequence[Prepared], taught: bool = True
) -> tuple[Any, Tensor]:
    """The outputs of the network and its loss; NaN where it is not `taught`, or gives no number."""
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
    """Whether several processes train together."""
    return distributed.is_initialized() and distributed.get_world_size() > 1


def _record(module: Any, processor: Any) -> dict[str, Any]:
    """The configuration of the network and of its processor, as transformers writes them."""
    config = {**module.config.to_dict(), "architectures": [type(module).__name__]}
    settings = {"config": config, "processor": processor.to_dict()}
    return {"library": LIBRARY, **json.loads(json.dumps(settings, default=str))}
