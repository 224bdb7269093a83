"""LiteRT (TensorFlow Lite) on the CPU: .tflite files, float or quantised."""

import ast
import io
import json
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, one_line
from steadyeye.core.seeds import fingerprint
from steadyeye.models.preprocessing.recipe import IMAGENET_MEAN, IMAGENET_STD
from steadyeye.models.runtimes.native_output import STDERR, silence
from steadyeye.models.runtimes.network import Output
from steadyeye.models.runtimes.onnx_files import read_content

SOFTMAX = {np.uint8: (1 / 256, 0), np.int8: (1 / 256, -128)}
"""Type → scale and zero point of a softmax output in the format's specification.

https://ai.google.dev/edge/litert/models/quantization_spec
"""

SLACK, WIDEST = 0.15, 4
"""Of an int8 input for ImageNet's values: by how much pictures without black or white may have
narrowed its range, and how many times as wide one may be that noise was used for."""


class LiteRtNetwork:
    """A `Forward` and a `Network` over a .tflite file; each thread has its interpreter.

    Inputs and outputs are floats: quantised inputs are rounded to their scale, and quantised
    outputs are multiplied by it. `first`: the first column that is read, 1 if column 0 is the
    background of ImageNet. Raises `UsageError` for files that cannot be loaded.
    """

    def __init__(self, path: str, first: int = 0) -> None:
        self.path = path
        self.first = first
        self._content = read_content(Path(path).expanduser())
        self._local = threading.local()
        with silence(STDERR):  # the first one of a process prints that it has a delegate
            interpreter = self._interpreter()
        inputs = interpreter.get_input_details()
        if len(inputs) != 1:
            raise UsageError(
                f"'{path}' has {len(inputs)} inputs; give a model whose only input is the images"
            )
        self._input, self._outputs = inputs[0], interpreter.get_output_details()

    def __reduce__(self) -> tuple[type["LiteRtNetwork"], tuple[str, int]]:
        return LiteRtNetwork, (self.path, self.first)

    @property
    def content(self) -> str:
        """The fingerprint of the file."""
        return fingerprint(self._content)

    @property
    def record(self) -> dict[str, str]:
        """The runtime's entries for the record of a run."""
        kinds = [np.dtype(part["dtype"]).name for part in (self._input, self._outputs[0])]
        return {
            "runtime": "litert",
            "precision": f"as in the file, input {kinds[0]}, output {kinds[1]}",
        }

    @property
    def input_shape(self) -> tuple[int | None, ...]:
        """The declared axes of the input; None for a free axis."""
        return tuple(None if side < 0 else int(side) for side in self._input["shape_signature"])

    @property
    def input_names(self) -> list[str]:
        """The name of its only input."""
        return [str(self._input["name"])]

    @property
    def takes_bytes(self) -> bool:
        """Whether the input has bytes without a scale, which are then pixels."""
        return self._input["dtype"] is np.uint8 and not self._input["quantization"][0]

    @property
    def described_outputs(self) -> list[Output]:
        """Its declared outputs."""
        return [
            Output(
                str(part["name"]),
                tuple(None if side < 0 else int(side) for side in part["shape_signature"]),
                np.issubdtype(part["dtype"], np.integer) and not part["quantization"][0],
            )
            for part in self._outputs
        ]

    @property
    def metadata(self) -> Mapping[str, str]:
        """The metadata of Ultralytics' export, as in its ONNX files."""
        try:
            with zipfile.ZipFile(io.BytesIO(self._content)) as archive:
                names = archive.namelist()
                text = archive.read(names[0]).decode() if names else "{}"
                # earlier exports wrote a dict of Python's
                content = json.loads(text) if "metadata.json" in names else ast.literal_eval(text)
        except (zipfile.BadZipFile, ValueError, SyntaxError):
            return {}
        return {str(k): str(v) for k, v in content.items()} if isinstance(content, dict) else {}

    @property
    def is_classifier(self) -> bool:
        """Whether its only output is one row of numbers per image."""
        return len(self._outputs) == 1 and len(self._outputs[0]["shape"]) == 2

    @property
    def width(self) -> int:
        """The number of outputs of a classifier per image."""
        return int(self._outputs[0]["shape"][1])

    @property
    def gives_probabilities(self) -> bool:
        """Whether its output has the quantisation of a softmax."""
        scale, zero = self._outputs[0]["quantization"]
        kind = SOFTMAX.get(self._outputs[0]["dtype"])
        return kind is not None and kind == (scale, zero)

    def pixel_recipe(self) -> Mapping[str, Any]:
        """The mean and std with which an input of bytes gets unchanged pixels."""
        scale, zero = self._input["quantization"]
        if self._input["dtype"] is not np.uint8 or not scale:
            return {}
        return {"mean": (float(zero),) * 3, "std": (1 / float(scale),) * 3}

    def range_recipe(self) -> Mapping[str, Any]:
        """The mean and std with which an int8 input gets pixels − 128; {} if ImageNet's fit it.

        Those of ImageNet fit a range that holds their values and is at most `WIDEST` times as wide.
        """
        scale, zero = map(float, self._input["quantization"])
        if self._input["dtype"] is not np.int8 or not scale:
            return {}
        low, high = (-128 - zero) * scale, (127 - zero) * scale
        mean, std = np.array(IMAGENET_MEAN), np.array(IMAGENET_STD)
        lowest, highest = float(min(-mean / std)), float(max((255 - mean) / std))
        is_held = low <= lowest + SLACK and high >= highest - SLACK
        if is_held and high - low <= WIDEST * (highest - lowest):
            return {}
        return {"mean": (zero + 128,) * 3, "std": (1 / scale,) * 3}

    def __call__(self, batch: NDArray[np.float32], /) -> NDArray[np.float32]:
        """The scores of one image, (1, n) float32."""
        return np.ascontiguousarray(self.outputs(batch)[0][:, self.first :])

    def outputs(self, batch: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """All outputs of one image, float32, in the file's order."""
        interpreter = self._interpreter()
        try:
            interpreter.set_tensor(self._input["index"], _quantise(batch, self._input))
            interpreter.invoke()
        except (ValueError, RuntimeError) as error:
            raise UsageError(
                f"'{self.path}' cannot run on input {batch.shape}: {one_line(error)}; check the "
                "size in the recipe, or convert it again"
            ) from error
        return [_dequantise(interpreter.get_tensor(p["index"]), p) for p in self._outputs]

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
    """Floats in the type of an input."""
    scale, zero = part["quantization"]
    if not scale or not np.issubdtype(part["dtype"], np.integer):
        return np.asarray(batch, dtype=part["dtype"])
    limits = np.iinfo(part["dtype"])
    steps = np.rint(batch / np.float32(scale)) + zero
    return np.asarray(np.clip(steps, limits.min, limits.max), dtype=part["dtype"])


def _dequantise(values: NDArray[Any], part: Mapping[str, Any]) -> NDArray[np.float32]:
    """The values of an output as floats."""
    scale, zero = part["quantization"]
    numbers = np.array(values, dtype=np.float32)
    return (numbers - np.float32(zero)) * np.float32(scale) if scale else numbers
