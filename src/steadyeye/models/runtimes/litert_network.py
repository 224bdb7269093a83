"""LiteRT (TensorFlow Lite) on the processor: .tflite files, of floats or quantised."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, one_line
from steadyeye.core.seeds import fingerprint
from steadyeye.models.runtimes.onnx_files import read_content

SOFTMAX = {np.uint8: (1 / 256, 0), np.int8: (1 / 256, -128)}
"""Type → scale and zero point that the format prescribes for the output of a softmax.

https://ai.google.dev/edge/litert/models/quantization_spec
"""


class LiteRtNetwork:
    """A `Forward` over a .tflite file; threads have an interpreter each, of one thread.

    Floats go in and come out: what is quantised is rounded to its scale on the way in and
    multiplied by it on the way out. `first`: the first output that is read, 1 where the first is
    the background of ImageNet. Raises `UsageError` for what cannot be loaded, and for a file that
    is no classifier.
    """

    def __init__(self, path: str, first: int = 0) -> None:
        self.path = path
        self.first = first
        self._content = read_content(Path(path).expanduser())
        self._local = threading.local()
        interpreter = self._interpreter()
        inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
        if len(inputs) != 1 or len(outputs) != 1 or len(outputs[0]["shape"]) != 2:
            raise UsageError(
                f"'{path}' has {len(inputs)} inputs and outputs "
                f"{', '.join(str(tuple(map(int, o['shape']))) for o in outputs)}; of .tflite files "
                "classifiers are read: export a detector to ONNX or OpenVINO"
            )
        self._input, self._output = inputs[0], outputs[0]

    def __reduce__(self) -> tuple[type["LiteRtNetwork"], tuple[str, int]]:
        return LiteRtNetwork, (self.path, self.first)

    @property
    def content(self) -> str:
        """The fingerprint of the file."""
        return fingerprint(self._content)

    @property
    def record(self) -> dict[str, str]:
        """What a run says of where it computes."""
        kinds = [np.dtype(part["dtype"]).name for part in (self._input, self._output)]
        return {
            "runtime": "litert",
            "precision": f"as in the file, input {kinds[0]}, output {kinds[1]}",
        }

    @property
    def input_shape(self) -> tuple[int | None, ...]:
        """The declared axes of the input; None where one is free."""
        return tuple(None if side < 0 else int(side) for side in self._input["shape_signature"])

    @property
    def width(self) -> int:
        """How many numbers it gives an image."""
        return int(self._output["shape"][1])

    @property
    def gives_probabilities(self) -> bool:
        """Whether its output is quantised as the format prescribes for a softmax."""
        scale, zero = self._output["quantization"]
        kind = SOFTMAX.get(self._output["dtype"])
        return kind is not None and kind == (scale, zero)

    def pixel_recipe(self) -> Mapping[str, Any]:
        """The mean and std by which pixels go in as they are, of an input of bytes."""
        scale, zero = self._input["quantization"]
        if self._input["dtype"] is not np.uint8 or not scale:
            return {}
        return {"mean": float(zero), "std": 1 / float(scale)}

    def __call__(self, batch: NDArray[np.float32], /) -> NDArray[np.float32]:
        """The scores of one image, (1, n) float32."""
        interpreter = self._interpreter()
        try:
            interpreter.set_tensor(self._input["index"], _quantise(batch, self._input))
            interpreter.invoke()
        except (ValueError, RuntimeError) as error:
            raise UsageError(
                f"'{self.path}' cannot run on input {batch.shape}: {one_line(error)}; check the "
                "size in the recipe, or convert it again"
            ) from error
        values = interpreter.get_tensor(self._output["index"])
        scale, zero = self._output["quantization"]
        scores = values.astype(np.float32)
        if scale:
            scores = (scores - np.float32(zero)) * np.float32(scale)
        return np.asarray(scores[:, self.first :], dtype=np.float32)

    def _interpreter(self) -> Any:
        if not hasattr(self._local, "interpreter"):
            try:
                interpreter = Interpreter(model_content=self._content, num_threads=1)
                interpreter.allocate_tensors()
            except (ValueError, RuntimeError) as error:
                raise UsageError(
                    f"cannot load '{self.path}' into LiteRT: {one_line(error)}; convert it again"
                ) from error
            self._local.interpreter = interpreter
        return self._local.interpreter


def _quantise(batch: NDArray[np.float32], part: Mapping[str, Any]) -> NDArray[Any]:
    """Floats as an input takes them."""
    scale, zero = part["quantization"]
    if not scale or not np.issubdtype(part["dtype"], np.integer):
        return np.asarray(batch, dtype=part["dtype"])
    limits = np.iinfo(part["dtype"])
    steps = np.rint(batch / np.float32(scale)) + zero
    return np.asarray(np.clip(steps, limits.min, limits.max), dtype=part["dtype"])
