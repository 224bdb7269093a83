"""ONNX Runtime on the CPU with one thread per call, or on a GPU."""

import io
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from steadyeye.core.abilities import PASSES, largest
from steadyeye.core.errors import UsageError, one_line, shorten, unknown
from steadyeye.models.runtimes.network import Output
from steadyeye.models.runtimes.onnx_files import data_files, list_entries

RUNTIMES = ("onnx", "cuda", "tensorrt")
GPU_RUNTIMES = ("cuda", "tensorrt")
PRECISIONS: Mapping[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8,
}
"""Type of an input in the file → precision."""
SIZE_INPUTS: Mapping[str, Callable[[int, int], NDArray[Any]]] = {
    "orig_target_sizes": lambda height, width: np.array([[width, height]], np.int64),
    "im_shape": lambda height, width: np.array([[height, width]], np.float32),
    "scale_factor": lambda height, width: np.ones((1, 2), np.float32),
}
"""Further inputs, of the height and width of the first, so that boxes are in its pixels.

The first is of RT-DETR and D-FINE, the others of PaddleDetection.
"""
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
PROVIDERS = {"cuda": CUDA, "tensorrt": TENSORRT}
LIBRARIES = {"cuda": "CUDA", "tensorrt": "TensorRT"}
REMEDIES = {
    "onnx": "export it again",
    "cuda": 'install a driver of NVIDIA and "onnxruntime-gpu[cuda,cudnn]", or leave runtime out',
    "tensorrt": "install the libraries of TensorRT, or take runtime='cuda'",
}
FATAL = 4
"""ONNX Runtime's severity above which nothing is printed; failures are also raised."""

ort.set_default_logger_severity(FATAL)


class OnnxSession:
    """A `Forward` over one session that all threads share.

    Each call runs in its caller's thread. ONNX Runtime allows concurrent calls, and two threads on
    a shared session were as fast as two with their own (2.5 ms an image on two cores, either way),
    so the weights are in memory once. `model`: a path (stored, because external data are next to
    it) or the bytes; `name`: its name in errors; `runtime`: of `RUNTIMES`, "cuda" and "tensorrt"
    for a GPU. Raises `UsageError` for models that cannot be loaded.
    """

    def __init__(self, model: Path | bytes, name: str, runtime: str = "onnx") -> None:
        self.model = model
        self.name = name
        self.runtime = runtime
        self._session = open_session(model, name, runtime)
        self._turn = threading.Semaphore(PASSES) if runtime in GPU_RUNTIMES else nullcontext()
        images = [x for x in self._session.get_inputs() if x.name not in SIZE_INPUTS]
        if len(images) != 1:
            inputs = ", ".join(self.input_names)
            raise UsageError(
                f"'{name}' takes {inputs}; give a model whose only input is the images"
            )
        self._input = images[0]
        self._size_inputs = {n: make for n, make in SIZE_INPUTS.items() if n in self.input_names}
        if self._input.type not in PRECISIONS:
            raise UsageError(
                f"'{name}' takes {self._input.type}; export it with an input of float32, float16 "
                "or uint8"
            )
        if not self._session.get_outputs():
            raise UsageError(f"'{name}' has no output; export it with its scores as the output")
        self._output = self._session.get_outputs()[0].name

    def __reduce__(self) -> tuple[type["OnnxSession"], tuple[Path | bytes, str, str]]:
        return OnnxSession, (self.model, self.name, self.runtime)

    @property
    def input_shape(self) -> tuple[int | None, ...]:
        """The declared axes of the input; None where one is free."""
        return tuple(side if isinstance(side, int) else None for side in self._input.shape)

    @property
    def input_names(self) -> list[str]:
        """The names of all inputs, in the file's order."""
        return [tensor.name for tensor in self._session.get_inputs()]

    @property
    def takes_bytes(self) -> bool:
        """Whether the input is of whole numbers, 0…255."""
        return bool(self._input.type == "tensor(uint8)")

    @property
    def described_outputs(self) -> list[Output]:
        """Its outputs as the file declares them."""
        return [
            Output(
                tensor.name,
                tuple(side if isinstance(side, int) else None for side in tensor.shape),
                tensor.type in ("tensor(int64)", "tensor(int32)"),
            )
            for tensor in self._session.get_outputs()
        ]

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the file, by key."""
        return dict(self._session.get_modelmeta().custom_metadata_map)

    @property
    def device(self) -> str:
        """The GPU it computes on; empty for the CPU."""
        return "cuda:0" if self.runtime in GPU_RUNTIMES else ""

    def most(self, shape: tuple[int, ...]) -> int:
        """Images per pass, so that `PASSES` passes fit; `shape`: of one input image.

        One on the CPU, and if the file has a batch of one.
        """
        if self.runtime not in GPU_RUNTIMES or self.input_shape[0] is not None:
            return 1

        def fits(images: int) -> bool:
            batch = np.zeros((PASSES * images, *shape), dtype=np.float32)
            try:
                return len(self(batch)) == len(batch)
            except UsageError:
                return False

        return largest(fits)

    @property
    def output(self) -> str:
        """The name of the output that is read: the first."""
        return str(self._output)

    def __call__(self, batch: NDArray[np.float32], /) -> NDArray[np.float32]:
        """The scores of `batch`, float32."""
        return self._run([self._output], batch)[0]

    def outputs(self, batch: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """All outputs of `batch`, float32, in the file's order."""
        return self._run(None, batch)

    def _run(
        self, names: list[str] | None, batch: NDArray[np.float32]
    ) -> list[NDArray[np.float32]]:
        # a network without an axis of the batch takes one image
        images = batch[0] if len(self._input.shape) == 3 else batch
        feeds = {name: make(*batch.shape[2:4]) for name, make in self._size_inputs.items()}
        feeds[self._input.name] = self._in_its_type(images)
        try:
            with self._turn:
                outputs = self._session.run(names, feeds)
        except Exception as error:
            # onnxruntime's exceptions share no base class of their own
            raise UsageError(
                f"'{self.name}' cannot run on input {batch.shape}: {one_line(error)}; "
                "check the size in the recipe, or export it again"
            ) from error
        return [self._read_output(output) for output in outputs]

    def _in_its_type(self, images: NDArray[np.float32]) -> NDArray[Any]:
        """Images in the type of the input. Raises `UsageError` for bytes that are no pixels."""
        if not self.takes_bytes:
            return images.astype(PRECISIONS[self._input.type], copy=False)
        low, high = (images.min(), images.max()) if images.size else (0, 0)
        if low < 0 or high > 255 or (0 < high <= 1):
            raise UsageError(
                f"'{self.name}' takes pixels of 0…255, and its recipe makes {low:.3g}…{high:.3g} "
                "of them; write 'mean': [0, 0, 0], 'std': [1, 1, 1] in the recipe"
            )
        return np.rint(images).astype(np.uint8)

    def _read_output(self, output: Any) -> NDArray[np.float32]:
        try:
            with np.errstate(over="ignore"):  # infinite scores are told by the sample
                return np.asarray(output, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"'{self.name}' has an output that is no tensor of numbers ({one_line(error)}); "
                "export it with its scores as the output"
            ) from error


def open_session(model: Path | bytes, name: str, runtime: str = "onnx") -> ort.InferenceSession:
    """The session of a model, after a check that its external data are in its folder.

    Raises `UsageError` for models that cannot be loaded; arguments as for `OnnxSession`.
    """
    on_gpu = runtime in GPU_RUNTIMES
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.use_deterministic_compute = on_gpu
    # warnings about the graph are no business of the user's, and what fails is raised
    options.log_severity_level = FATAL
    source = str(model) if isinstance(model, Path) else model
    if isinstance(model, Path):
        if not model.is_file():
            raise UsageError(f"there is no ONNX file '{model}'; check the path")
        data_files(model)
    elif list_entries(model, name):
        raise UsageError(f"'{name}' keeps its weights in other files; give its path, not its bytes")
    providers = _providers(runtime)
    missing = _load_cuda() if on_gpu else ""
    start = f"runtime='{runtime}': " if on_gpu else ""
    try:
        # with its fallback a session would go on upon the processor where the GPU fails
        session = ort.InferenceSession(source, options, providers=providers, enable_fallback=0)
    except Exception as error:
        raise UsageError(
            f"{start}cannot load '{name}' into ONNX Runtime: {one_line(error)}; {REMEDIES[runtime]}"
        ) from error
    # without the libraries that it needs, a provider is left out with no more than a warning
    if on_gpu and PROVIDERS[runtime] not in session.get_providers():
        raise UsageError(
            f"{start}ONNX Runtime found no GPU it can use for '{name}'{missing}; "
            f"{REMEDIES[runtime]}"
        )
    return session


def _load_cuda() -> str:
    """Loads CUDA's libraries of pip; returns missing ones in brackets, or an empty text."""
    if not hasattr(ort, "preload_dlls"):
        return ""
    with redirect_stdout(io.StringIO()) as printed:
        ort.preload_dlls()
    failures = [line for line in printed.getvalue().splitlines() if line.startswith("Failed")]
    return f" ({shorten(failures[0], 120)})" if failures else ""


def _providers(runtime: str) -> list[Any]:
    if runtime not in RUNTIMES:
        raise unknown("runtime", runtime, RUNTIMES)
    if runtime == "onnx":
        return [CPU]
    if PROVIDERS[runtime] not in ort.get_available_providers():
        raise UsageError(
            f"runtime='{runtime}': this onnxruntime is built without {LIBRARIES[runtime]}; install "
            "onnxruntime-gpu in its place, or leave runtime out to infer on the processor"
        )
    # what it has no kernel for it computes on the processor; fp32 is fp32, not TF32, and a search
    # for the quickest kernel would find another one each time
    cuda = (CUDA, {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"})
    if runtime == "cuda":
        return [cuda, CPU]
    # a quantised file says itself where TensorRT is to compute in int8; fp16 is never silent
    return [(TENSORRT, {"trt_fp16_enable": "0"}), cuda, CPU]
