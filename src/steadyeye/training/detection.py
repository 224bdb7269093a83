"""Training a detector: its head replaced by the classes of the data, by its library's own loss."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor, nn

from steadyeye.core.boxes import (
    EMPTY,
    OOD,
    Boxes,
    Detections,
    detection_table,
    in_classes,
    truth_table,
)
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.types import Classes, Image
from steadyeye.metrics.detection.average_precision import dataset_ap
from steadyeye.metrics.detection.frame_ap import mean
from steadyeye.metrics.detection.iou_thresholds import IOUS
from steadyeye.metrics.detection.matching import match
from steadyeye.models.detectors.torch_detector import TorchDetector
from steadyeye.models.detectors.trainable import (
    DetectionTensors,
    Prepared,
    Trainable,
    build_random,
    frozen,
    learnable,
    with_classes,
)
from steadyeye.models.finetuned import checkpoint_format
from steadyeye.training.dataset import trained_on
from steadyeye.training.protocol import Example, Examples

Ready: TypeAlias = tuple[Prepared, Boxes]
"""The network's input for an image, and its true boxes in pixels."""


@dataclass(frozen=True, eq=False)
class Detection:
    """A `Task` over a detector with the classes of its examples.

    The criterion is the AP on the held-out data over IoU 0.5 … 0.95. `notes`: boxes left out of the
    loss, and frozen layers.
    """

    module: nn.Module
    trainable: Trainable
    classes: Classes
    about: Mapping[str, Any]
    notes: tuple[str, ...]
    kind: str = "detector"
    criterion: str = "ap"
    lower: bool = False

    def fit(self, image: Image) -> Image:
        """The unchanged image: its library resizes it, and a sweep degrades it before that."""
        return image

    def prepare(self, example: Example, image: Image) -> Ready:
        """The image and its boxes as network inputs, and the original boxes."""
        truth = EMPTY if example.boxes is None else example.boxes
        return self.trainable.prepare(image, truth), truth

    def loss(self, module: nn.Module, prepared: Sequence[Ready]) -> Tensor:
        """The loss of the library, without crowds and objects outside the classes."""
        return self.trainable.loss(module, [inputs for inputs, _ in prepared])

    def judge(self, module: nn.Module, prepared: Iterable[Sequence[Ready]]) -> Mapping[str, float]:
        """`ap` over IoU 0.5 … 0.95 and `ap50`, means over the present classes; `loss`.

        As of pycocotools (`steadyeye.metrics.detection`); crowds neither reward nor punish, a
        detection of an object outside the classes is a false positive. `n`: images. NaN if a
        network outputs NaN. Raises `UsageError` if no image has an object.
        """
        truths: list[Boxes] = []
        detections: list[Detections] = []
        losses: list[float] = []
        for batch in prepared:
            loss, outputs = self.trainable.evaluate(module, [inputs for inputs, _ in batch])
            truths += [truth for _, truth in batch]
            detections += [_detections(output) for output in outputs]
            losses += [] if loss is None else [float(loss.detach()) * len(batch)]
        numbers = _precision(truths, detections, len(self.classes))
        if losses:
            numbers["loss"] = sum(losses) / len(truths)
            # a diverged network may detect nothing; its AP would look like that of a trained one
            numbers |= {} if np.isfinite(numbers["loss"]) else {"ap": np.nan, "ap50": np.nan}
        return {**numbers, "n": float(len(truths))}

    def record(self) -> Mapping[str, Any]:
        """What model.json holds beside the weights."""
        return self.about


def check_detector(model: Any) -> None:
    """Raises `UsageError` for a detector without gradients, such as one of ONNX."""
    if not isinstance(model, TorchDetector):
        runtime = model.recipe.get("runtime", "its own code")
        raise UsageError(
            f"{model.name} has no gradients to train by: it is run by {runtime}; give a detector "
            "of torchvision(name=…) or hf(name=…)"
        )


def detection(
    model: Any, spec: str, train: Examples, from_scratch: bool = False, seed: int = 0
) -> Detection:
    """The task of training the detector `model`, built from `spec`, on the classes of `train`.

    Its head is replaced, even if it already has these classes. `from_scratch`: from the library's
    random weights; `seed`: of the new weights. Raises `UsageError` for a detector that is not of
    torchvision or transformers, such as one of ONNX, for one whose loss needs more than boxes, and
    for examples without boxes.
    """
    check_detector(model)
    notes = _left_out(train)
    trainable = model.asking.trainable
    if from_scratch:
        trainable = trainable.anew or trainable
        module = build_random(trainable.make, train.classes, seed)
    else:
        module = with_classes(trainable.make, model.copies.module, train.classes, seed)
    weights, layers = frozen(module)
    for kind, names in (("weights", weights), ("layers of batch normalisation", layers)):
        if names:
            notes += [f"{len(names):,} {kind} frozen as the model has them, first '{names[0]}'"]
    about = {
        "kind": "detector",
        **checkpoint_format.base_record(model, spec),
        "classes": checkpoint_format.classes_record(train.classes),
        "detector": trainable.record,
        "loss": f"that of {trainable.record['library']}",
        "from scratch": from_scratch,
        "seed": seed,
        "frozen": [*weights, *layers],
        "trained on": trained_on(train),
        "notes": notes,
    }
    return Detection(module, trainable, train.classes, about, tuple(notes))


def library(model: Any) -> str:
    """The library of a detector; empty if it cannot be trained."""
    trainable = model.asking.trainable if isinstance(model, TorchDetector) else None
    return str(trainable.record["library"]) if trainable else ""


def _left_out(train: Examples) -> list[str]:
    """Notes on boxes left out of the loss; raises `UsageError` if none remain."""
    truths = [example.boxes for example in train.items if example.boxes is not None]
    learned = sum(len(learnable(truth)) for truth in truths)
    if not learned:
        raise UsageError(
            f"'{train.name}' has no boxes of its classes to train a detector on, in "
            f"{number_of(len(train.items), 'image')}; give a source with boxes, such as coco(…) or "
            "davis(…)"
        )
    crowds = sum(int(truth.crowd.sum()) for truth in truths)
    outside = sum(int(((truth.labels == OOD) & ~truth.crowd).sum()) for truth in truths)
    empty = sum(
        example.boxes is None or not len(learnable(example.boxes)) for example in train.items
    )
    flat = sum(map(len, truths)) - learned - crowds - outside
    counts = {
        "around crowds": crowds,
        "of objects outside the classes": outside,
        "without any area": flat,
    }
    notes = [f"{number_of(learned, 'box')} for training, cut at the border of their image"]
    notes += [
        f"{number_of(n, 'box')} {description}, left out of the loss"
        for description, n in counts.items()
        if n
    ]
    if empty:
        notes.append(f"{number_of(empty, 'image')} without an object, used as background")
    return notes


def _detections(output: DetectionTensors) -> Detections:
    boxes, labels, scores = (tensor.detach().cpu() for tensor in output)
    return Detections(
        boxes.double().numpy(), labels.numpy().astype(np.int32), scores.double().numpy()
    )


def _precision(
    truths: Sequence[Boxes], detected: Sequence[Detections], classes: int
) -> dict[str, float]:
    truth = in_classes(truth_table(truths))
    if not (~truth.crowd).any():
        raise UsageError(
            f"none of the {len(truths):,} held-out images has an object, so there is no AP; hold "
            "out others, or give --val"
        )
    if not all(
        np.isfinite(detections.scores).all() and np.isfinite(detections.boxes).all()
        for detections in detected
    ):
        return {"ap": float("nan"), "ap50": float("nan")}
    matched = match(truth, detection_table(detected), len(truths), classes)
    return {"ap": mean(dataset_ap(matched)), "ap50": mean(dataset_ap(matched, IOUS[:1]))}
