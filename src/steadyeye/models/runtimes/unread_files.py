"""Files and folders that may hold a model and are not read: what to do with each."""

from collections.abc import Sequence
from pathlib import Path

ADVICE = {
    ".h5": "load it in Keras and save it as .keras",
    ".hdf5": "load it in Keras and save it as .keras",
    ".pb": "convert it to ONNX, for example with tf2onnx",
    ".engine": "give the ONNX file that it was built from, with runtime='tensorrt'",
}
"""Suffix of a model file that is not read → what to do."""


def describe_unread(path: Path, known: Sequence[str]) -> str:
    """Why a path is read as no model, and what to do. `known`: suffixes of files that are read."""
    suffix = path.suffix.lower()
    if path.is_dir() and (path / "saved_model.pb").is_file():
        return (
            f"'{path}' is a SavedModel of TensorFlow; save the model as .keras, or convert it: "
            f"python -m tf2onnx.convert --saved-model '{path}' --output model.onnx"
        )
    if path.is_dir():
        return (
            f"the folder '{path}' holds neither model.json (finetune) nor config.json "
            "(transformers); give a model file"
        )
    if suffix == ".py":
        return f"'{path}' is a Python file; name a function in it, such as {path.stem}:NAME"
    advice = f"{ADVICE[suffix]}; " if suffix in ADVICE else ""
    return f"'{path}' is no known kind of model file; {advice}known: {', '.join(known)}"
