"""A torch detector of a library, with the library's own processing before and after the network."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from steadyeye.core.boxes import Detections
from steadyeye.core.errors import UsageError
from steadyeye.core.model_stages import Stages
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import model_in_short
from steadyeye.core.types import Classes, Image
from steadyeye.models.detectors.trainable import DetectionTensors, Trainable
from steadyeye.models.introspection.differentiable import FixedCandidates
from steadyeye.models.runtimes.devices import gpus, name_gpus
from steadyeye.models.runtimes.torch_module import FAILURES, ThreadCopies, first_line, one_thread
from steadyeye.models.runtimes.weights import is_covered, weights_fingerprint

THRESHOLD = 0.001
"""The least score of a detection, as for `onnx_detector`; libraries have higher defaults."""


@dataclass(frozen=True)
class Asking:
    """The functions of a library's detector.

    `prepare`: image → input of the module, on the CPU. `detections`: input and image → forward pass
    on the module's device, and the library's postprocessing. `fix_candidates`: the same network
    with fixed candidates, for gradients. `trainable`: its training functions.
    """

    prepare: Callable[[Image], Any]
    detections: Callable[[nn.Module, Any, Image], DetectionTensors]
    fix_candidates: Callable[[nn.Module, Image], FixedCandidates]
    trainable: Trainable


@model_in_short
@dataclass(frozen=True, eq=False)
class TorchDetector:
    """A `Detector` over a torch module in fp32, one image a forward pass.

    `copies`: the copies that detect; `on_processor`: the module on the CPU, for explanations;
    `device`: the GPUs it computes on, not part of its identity.
    """

    name: str
    classes: Classes
    copies: ThreadCopies
    on_processor: ThreadCopies
    asking: Asking
    recipe: Mapping[str, Any]
    fingerprint: str
    cacheable: bool
    device: str = ""
    detects: bool = field(default=True, init=False)

    def __call__(self, images: Iterable[Image], /) -> list[Detections]:
        """The detections of each image, by falling score."""
        return self._infer(map(self._prepare, images))

    def stages(self) -> Stages:
        """The library's preprocessing, and the network with its postprocessing."""
        return Stages(self._prepare, self._infer)

    def fix_candidates(self, image: Image) -> FixedCandidates:
        """The candidates of an image, for integrated gradients."""
        module, _ = self.on_processor.mine()
        with one_thread(), torch.no_grad():
            return self.asking.fix_candidates(module, image)

    def _prepare(self, image: Image) -> tuple[Any, Image]:
        with one_thread(), self._explain(image):
            return self.asking.prepare(image), image

    @contextmanager
    def _explain(self, image: Image) -> Iterator[None]:
        """A block of the library's code, whose errors for misfit settings become `UsageError`."""
        try:
            yield
        except torch.OutOfMemoryError:
            raise
        except FAILURES as error:
            height, width = image.shape[:2]
            raise UsageError(
                f"{self.name} cannot detect in an image of {width} × {height}: "
                f"{first_line(error)}; check the settings of its processor and its weights"
            ) from error

    def _infer(self, prepared: Iterable[tuple[Any, Image]]) -> list[Detections]:
        return [self._detect(*pair) for pair in prepared]

    def _detect(self, prepared: Any, image: Image) -> Detections:
        with self.copies.infer_pass() as (module, _), self._explain(image):
            detections = self.asking.detections(module, prepared, image)
            boxes, labels, scores = (column.cpu().numpy() for column in detections)
        scores = scores.astype(np.float64)
        order = np.argsort(-scores, kind="stable")
        return Detections(
            boxes.astype(np.float64)[order], labels.astype(np.int32)[order], scores[order]
        )


def torch_detector(
    name: str,
    module: nn.Module,
    classes: Classes,
    asking: Asking,
    processing: Mapping[str, Any],
    runtime: str = "torch",
) -> TorchDetector:
    """The detector over a module in eval mode; `processing`: its processing, for the record.

    `runtime`: "cuda" on the GPUs of this machine, anything else in torch on its processor.
    """
    on_processor = ThreadCopies(module)
    copies = ThreadCopies(module, gpus()) if runtime == "cuda" else on_processor
    record = {
        **json.loads(json.dumps(processing, default=str)),
        "threshold": THRESHOLD,
        "runtime": "cuda" if runtime == "cuda" else "torch",
        "precision": "fp32",
    }
    text = json.dumps(record, sort_keys=True)
    mark = fingerprint(weights_fingerprint(module), text, *classes.names)
    cacheable, device = is_covered(module), name_gpus(copies.devices)
    return TorchDetector(
        name, classes, copies, on_processor, asking, record, mark, cacheable, device
    )


def make_unique(names: Sequence[str]) -> tuple[str, ...]:
    """The names in their order; repeated names get their index as a suffix.

    COCO's numbers have gaps, for which both DETR's and torchvision's lists hold "N/A".
    """
    times = Counter(names)
    return tuple(f"{name} {i}" if times[name] > 1 else name for i, name in enumerate(names))
