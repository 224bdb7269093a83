"""Exports torch modules to ONNX in the user's cache, and uses them only after a comparison."""

import inspect
import json
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from torch import nn

from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import cache_home, temporary_folder, write_lightly
from steadyeye.core.storage.text_files import read_json
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes.native_output import STDOUT, silence
from steadyeye.models.runtimes.onnx_session import OnnxSession
from steadyeye.models.runtimes.probe_images import patterns
from steadyeye.models.runtimes.torch_module import TorchModule, one_thread

TOLERANCE = 1e-3
"""Largest difference of any output from torch's; EfficientNet-Lite0 differs by 1e-5."""

PROBES = 4


EXPORTERS = {"TorchScript exporter": False, "dynamo exporter": True}
"""Name → `dynamo`. The first takes 0.4 s, the second 4.3 s (EfficientNet-Lite0)."""


@dataclass(frozen=True)
class Export:
    """An ONNX model that agrees with the module, or None, with a sentence on the reason."""

    session: OnnxSession | None
    note: str


def export(module: nn.Module, preprocessing: Preprocessing, weights: str) -> Export:
    """The module on ONNX Runtime, if its outputs equal torch's on `PROBES` seeded images.

    `weights`: the fingerprint of the module. A cached export is compared again at every start (a
    fraction of a second), because the code for the same weights may have changed.
    """
    inputs = probes(preprocessing)
    forward = TorchModule(module)
    expected = np.concatenate([forward(batch) for batch in inputs])
    size = "x".join(map(str, preprocessing.size))
    versions = f"torch {torch.__version__} onnxruntime {ort.__version__}"
    path = cache_folder() / f"{fingerprint(weights, _source(module), size, versions)}.onnx"
    refused = path.with_suffix(".refused.json")
    if path.is_file():
        result = _compare_outputs(path.read_bytes(), inputs, expected)
        if result.session:
            return result
    elif (note := _read_note(refused)) is not None:
        return Export(None, note)
    return _export(module, inputs, expected, path)


def _read_note(refused: Path) -> str | None:
    """Why an export was refused before; None if not known or not readable."""
    try:
        note = read_json(refused, "note")["note"]
    except (UsageError, KeyError, TypeError, IndexError):
        return None
    return note if isinstance(note, str) else None


def cache_folder() -> Path:
    """The folder of exports: `$XDG_CACHE_HOME` or `~/.cache`, then `steadyeye/onnx`."""
    return cache_home() / "onnx"


def probes(preprocessing: Preprocessing) -> list[NDArray[np.float32]]:
    """`PROBES` inputs, (1, 3, h, w) float32: test patterns through the recipe."""
    inputs = []
    for pattern in patterns(*preprocessing.size, PROBES):
        batch = np.empty((1, 3, *preprocessing.size), dtype=np.float32)
        preprocessing(pattern, batch[0])
        inputs.append(batch)
    return inputs


def _export(
    module: nn.Module,
    inputs: list[NDArray[np.float32]],
    expected: NDArray[np.float32],
    path: Path,
) -> Export:
    """The first export that agrees with `expected`, or the reasons; either is saved."""
    reasons = []
    for name, dynamo in EXPORTERS.items():
        try:
            model = _onnx(module, torch.from_numpy(inputs[0]), dynamo)
        except Exception as error:
            # exporters raise whatever the module's code and their own converters raise
            reasons.append(f"{name}: {type(error).__name__} {_line(error)}".strip())
            continue
        result = _compare_outputs(model, inputs, expected)
        if result.session:
            _save(path, model)
            _save(path.with_suffix(".json"), json.dumps({"note": result.note}).encode())
            return result
        reasons.append(f"{name}: {result.note}")
    note = "; ".join(reasons)
    _save(path.with_suffix(".refused.json"), json.dumps({"note": note}).encode())
    return Export(None, note)


def _compare_outputs(
    model: bytes, inputs: list[NDArray[np.float32]], expected: NDArray[np.float32]
) -> Export:
    """The session of `model` if it reproduces `expected` on `inputs`, else None and the reason."""
    try:
        session = OnnxSession(model, "the exported module")
        outputs = np.concatenate([session(batch) for batch in inputs])
    except UsageError as error:
        return Export(None, str(error))
    if outputs.shape != expected.shape:
        return Export(None, f"export gives {outputs.shape}, torch {expected.shape}")
    difference = float(np.abs(outputs - expected).max())
    same = np.array_equal(outputs.argmax(axis=1), expected.argmax(axis=1))
    if same and difference <= TOLERANCE:
        return Export(session, f"export within {TOLERANCE:g} of torch on {PROBES} probe images")
    changed = "" if same else ", and the best class changes"
    return Export(None, f"export differs from torch by {difference:.2g}{changed}")


def _onnx(module: nn.Module, example: torch.Tensor, dynamo: bool) -> bytes:
    """The module as an ONNX model for one image per call; tracing may freeze the batch size."""
    options: dict[str, Any] = {"external_data": False, "verbose": False} if dynamo else {}
    # torch's tracer prints what it cannot export: its log is on whatever is asked for
    with temporary_folder() as folder, warnings.catch_warnings(), one_thread(), silence(STDOUT):
        # tracers warn about every constant they bake in; the comparison is what counts
        warnings.simplefilter("ignore")
        path = folder / "model.onnx"
        torch.onnx.export(
            module,
            (example,),
            str(path),
            input_names=["images"],
            output_names=["scores"],
            dynamo=dynamo,
            **options,
        )
        return path.read_bytes()


def _source(module: nn.Module) -> str:
    """The source of the module's class: a refusal is void once the source changes."""
    try:
        return inspect.getsource(type(module))
    except (OSError, TypeError):
        return ""


def _line(error: Exception) -> str:
    """The first line of an error, without the colours that exporters put in."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    return (plain.strip().splitlines() or [""])[0][:160]


def _save(path: Path, data: bytes) -> None:
    """Writes a file in the cache, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_lightly(path, data)
    except (OSError, UsageError):
        # a home that cannot be written costs the next start an export, not the run
        return
