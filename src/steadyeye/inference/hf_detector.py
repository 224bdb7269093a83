"""Detectors of Hugging Face transformers, with the library's own pre- and postprocessing."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from steadyeye.core.boxes import Detections
from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Classes, Image
from steadyeye.inference.torch_module import ThreadCopies, one_thread
from steadyeye.inference.weights import weights_fingerprint

THRESHOLD = 0.001


@dataclass(frozen=True, eq=False)
class HfDetector:
    """A `Detector` over a transformers model, run by torch in fp32, one image a forward pass."""

    name: str
    classes: Classes
    processor: Any
    copies: ThreadCopies
    recipe: Mapping[str, Any]
    fingerprint: str
    detects: bool = field(default=True, init=False)

    def __call__(self, images: Iterable[Image], /) -> list[Detections]:
        """The detections of each image, by falling score."""
        return [self._one(image) for image in images]

    def _one(self, image: Image) -> Detections:
        inputs = self.processor(images=image, return_tensors="pt")
        with one_thread(), torch.inference_mode():
            outputs = self.copies.mine()(**inputs)
        found = self.processor.post_process_object_detection(
            outputs, threshold=THRESHOLD, target_sizes=[image.shape[:2]]
        )[0]
        scores = found["scores"].double().numpy()
        order = np.argsort(-scores, kind="stable")
        return Detections(
            found["boxes"].double().numpy()[order],
            found["labels"].numpy().astype(np.int32)[order],
            scores[order],
        )


def hf_detector(name: str, module: nn.Module, processor: Any, classes: Classes) -> HfDetector:
    """The detector over a loaded model, in eval mode, and its image processor."""
    record = {
        "processor": json.loads(json.dumps(processor.to_dict(), default=str)),
        "threshold": THRESHOLD,
        "runtime": "torch",
        "precision": "fp32",
    }
    text = json.dumps(record, sort_keys=True)
    mark = fingerprint(weights_fingerprint(module), text, *classes.names)
    return HfDetector(name, classes, processor, ThreadCopies(module), record, mark)


def labels(config: Any) -> Classes:
    """The classes of a detector's configuration; names that come twice are told apart by a number.

    DETR's list has "N/A" where COCO's numbers have gaps.
    """
    names = [str(config.id2label[index]) for index in sorted(config.id2label)]
    times = Counter(names)
    told = [f"{name} {i}" if times[name] > 1 else name for i, name in enumerate(names)]
    return Classes(tuple(told))
