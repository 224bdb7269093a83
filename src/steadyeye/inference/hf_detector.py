"""Detectors of Hugging Face transformers, with the library's own pre- and postprocessing."""

from typing import Any

from torch import nn

from steadyeye.core.types import Classes, Image
from steadyeye.inference.torch_detector import (
    THRESHOLD,
    Found,
    TorchDetector,
    told_apart,
    torch_detector,
)


def hf_detector(name: str, module: nn.Module, processor: Any, classes: Classes) -> TorchDetector:
    """The detector over a loaded model, in eval mode, and its image processor."""

    def ask(network: nn.Module, image: Image) -> Found:
        outputs = network(**processor(images=image, return_tensors="pt"))
        (found,) = processor.post_process_object_detection(
            outputs, threshold=THRESHOLD, target_sizes=[image.shape[:2]]
        )
        return found["boxes"], found["labels"], found["scores"]

    return torch_detector(name, module, classes, ask, {"processor": processor.to_dict()})


def labels(config: Any) -> Classes:
    """The classes of a detector's configuration; names that come twice are told apart."""
    return Classes(told_apart([str(config.id2label[index]) for index in sorted(config.id2label)]))
