"""OpenVINO on the CPU, one thread per call, in an explicit precision."""

import importlib
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, one_line, unknown
from steadyeye.core.seeds import fingerprint
from steadyeye.models.runtimes.network import Output
from steadyeye.models.runtimes.onnx_files import list_contents, read_content

PRECISIONS = ("f32", "bf16", "f16")
"""The precisions of computations. OpenVINO's own default is bf16 on processors that have it."""
TYPES = {"f32": "fp32", "bf16": "bf16", "f16": "fp16"}


def _import_openvino() -> Any:
    """The package `openvino` without its telemetry, which starts a process on import.

    If the user's code has imported either before, nothing is changed.
    """
    telemetry = "openvino_telemetry"
    is_first = "openvino" not in sys.modules and telemetry not in sys.modules
    if is_first:
        sys.modules[telemetry] = None  # type: ignore[assignment]  # as if it were not installed
    try:
        return importlib.import_module("openvino")
    finally:
        if is_first:
            del sys.modules[telemetry]


openvino = _import_openvino()


class OpenVinoNetwork:
    """A `Forward` and a `Network` over a model of OpenVINO; each thread has its request.

    `path`: an .xml file with its .bin next to it, a folder with one, or an .onnx file. `precision`:
    of `PRECISIONS`. Raises `UsageError` for files that cannot be loaded.
    """

    def __init__(self, path: str, precision: str = "f32") -> None:
        if precision not in PRECISIONS:
            raise unknown("precision", precision, PRECISIONS)
        self.path = path
        self.precision = precision
        self.file = find_file(path)
        settings = {
            "INFERENCE_PRECISION_HINT": precision,
            "INFERENCE_NUM_THREADS": 1,
            "NUM_STREAMS": 1,
        }
        try:
            self._model = openvino.Core().compile_model(str(self.file), "CPU", settings)
        except Exception as error:
            # openvino's exceptions are plain RuntimeErrors
            raise UsageError(
                f"cannot load '{path}' into OpenVINO: {one_line(error)}; convert it again"
            ) from error
        if len(self._model.inputs) != 1:
            raise UsageError(
                f"'{path}' has {len(self._model.inputs)} inputs; give a model whose only input "
                "is the images"
            )
        self._local = threading.local()

    def __reduce__(self) -> tuple[type["OpenVinoNetwork"], tuple[str, str]]:
        return OpenVinoNetwork, (self.path, self.precision)

    @property
    def content(self) -> str:
        """The fingerprint of the file and of its weights."""
        if self.file.suffix == ".onnx":
            return fingerprint(*list_contents(self.file))
        return fingerprint(read_content(self.file), read_content(self.file.with_suffix(".bin")))

    @property
    def record(self) -> dict[str, str]:
        """The runtime's entries for the record of a run, with the precision that OpenVINO chose."""
        used = str(self._model.get_property("INFERENCE_PRECISION_HINT").to_string())
        return {
            "runtime": "openvino",
            "precision": TYPES.get(used, used),
            "runtime_note": f"OpenVINO {openvino.get_version()}",
        }

    @property
    def input_shape(self) -> tuple[int | None, ...]:
        """The declared axes of the input; None where one is free."""
        return _axes(self._model.inputs[0])

    @property
    def input_names(self) -> list[str]:
        """The name of its one input."""
        port = self._model.inputs[0]
        return [port.any_name if port.names else "0"]

    @property
    def takes_bytes(self) -> bool:
        """Whether the input is of whole numbers, 0…255."""
        return bool(self._model.inputs[0].element_type.is_integral())

    @property
    def described_outputs(self) -> list[Output]:
        """Its outputs as the file declares them."""
        return [
            Output(
                output.any_name if output.names else str(index),
                _axes(output),
                output.element_type.is_integral(),
            )
            for index, output in enumerate(self._model.outputs)
        ]

    @property
    def metadata(self) -> Mapping[str, str]:
        """The metadata of Ultralytics' export next to it, as in its ONNX files."""
        try:
            content = yaml.safe_load(self.file.with_name("metadata.yaml").read_text("utf-8"))
        except (OSError, ValueError, yaml.YAMLError):
            return {}
        return {str(k): str(v) for k, v in content.items()} if isinstance(content, dict) else {}

    def __call__(self, batch: NDArray[np.float32], /) -> NDArray[np.float32]:
        """The scores of `batch`, float32: the first output."""
        return self.outputs(batch)[0]

    def outputs(self, batch: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """All outputs of `batch`, float32, in the file's order."""
        if not hasattr(self._local, "request"):
            self._local.request = self._model.create_infer_request()
        request: Any = self._local.request
        try:
            request.infer({0: batch})
        except Exception as error:
            raise UsageError(
                f"'{self.path}' cannot run on input {batch.shape}: {one_line(error)}; check the "
                "size in the recipe, or convert it again"
            ) from error
        count = len(self._model.outputs)
        return [np.array(request.get_output_tensor(i).data, np.float32) for i in range(count)]


def find_file(path: str) -> Path:
    """The .xml or .onnx file of a path. Raises `UsageError` if there is none."""
    file = Path(path).expanduser()
    if file.is_dir():
        files = sorted(file.glob("*.xml"))
        if len(files) != 1:
            raise UsageError(
                f"the folder '{path}' holds {len(files)} .xml files; give the path of one"
            )
        file = files[0]
    if not file.is_file():
        raise UsageError(f"there is no file '{path}'; give an .xml of OpenVINO or an .onnx file")
    if file.suffix == ".xml" and not file.with_suffix(".bin").is_file():
        raise UsageError(f"'{path}' has no {file.stem}.bin next to it; copy its weights too")
    return file


def _axes(port: Any) -> tuple[int | None, ...]:
    return tuple(None if side.is_dynamic else int(side.get_length()) for side in port.partial_shape)
