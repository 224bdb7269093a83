"""Detectors in .tflite files: Ultralytics' exports, and those of TensorFlow with their last step.

Ultralytics writes boxes as shares of the input, so that eight bits are enough for them; elsewhere
its boxes are in pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.models.detectors.detector_families import Format
from steadyeye.models.runtimes.network import Network, NetworkAround, Output

PARTS: dict[str, tuple[str, str, str]] = {
    "TFLite_Detection_PostProcess": ("", ":2", ":1"),
    "StatefulPartitionedCall": (":3", ":1", ":2"),
}
"""How TensorFlow 1 and 2 name the outputs → what the names of boxes, scores and classes end in."""


def recognise_tflite(outputs: Sequence[Output]) -> Format | None:
    """The format of a file whose last step is TensorFlow Lite's own; None for others."""
    place = {output.name: index for index, output in enumerate(outputs)}
    for start, ends in PARTS.items():
        names = [start + end for end in ends]
        if len(outputs) == 4 and set(names) <= set(place):
            reason = f"outputs named {', '.join(names)}, as TensorFlow Lite has them"
            order = tuple(place[name] for name in names)
            return Format("tensorflow_lite", reason, order, background=True)
    return None


def in_pixels(network: Network, path: str, decoder: str | None) -> Network:
    """The network itself, or one that gives the boxes of Ultralytics' export in pixels.

    Raises `UsageError` for one output of a family that the user does not name and no metadata tell.
    """
    metadata, shapes = network.metadata, [output.shape for output in network.described_outputs]
    if "names" not in metadata and decoder is None and [len(shape) for shape in shapes] == [3]:
        raise UsageError(
            f"'{path}' has no metadata of Ultralytics, so that its boxes may be shares of the "
            "image or pixels; export it again with them, or write decoder='…' if they are pixels"
        )
    is_ultralytics = "names" in metadata and metadata.get("task", "detect") == "detect"
    # what is end to end is in pixels, unless it went through TensorFlow
    is_end_to_end = metadata.get("end2end") == "True" and network.input_shape[-1] != 3
    if not is_ultralytics or is_end_to_end:
        return network
    # of what is end to end, and of YOLOv5, whose metadata name no task, a box is a row
    return InPixels(network, metadata.get("end2end") == "True" or "task" not in metadata)


@dataclass(frozen=True)
class InPixels(NetworkAround):
    """Gives the boxes of its first output, (1, n, 4 + …), in pixels of the input.

    `boxes_are_rows`: False for (1, 4 + …, n).
    """

    boxes_are_rows: bool

    def outputs(self, batch: NDArray[np.float32]) -> Sequence[NDArray[np.float32]]:
        """All outputs of a batch of one image, float32."""
        first, *others = self.network.outputs(batch)
        is_last = self.network.input_shape[-1] == 3
        height, width = batch.shape[1:3] if is_last else batch.shape[2:4]
        scale = np.array([width, height, width, height], np.float32)
        first = first.copy()
        if self.boxes_are_rows:
            first[..., :4] *= scale
        else:
            first[:, :4] *= scale[:, None]
        return [first, *others]
