"""Models that `steadyeye finetune` trained: their folder, written and read back.

::

    model.json   what it was built from and trained on, its classes, recipe and head
    weights.pt   the state dict of the trained network
"""

import hashlib
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import encode_record, read_checked, sha256, write_file
from steadyeye.core.types import Classes, Detector, Model
from steadyeye.models.runtimes.torch_classifier import Execution
from steadyeye.models.runtimes.weights import load_content, serialise

VERSION = 1
FILE, WEIGHTS = "model.json", "weights.pt"
UNPROTECTED = "record"
BARE = (
    f"{FILE} was written by an earlier version and bears no checksum, so changes in it cannot "
    "be detected"
)

READERS = {
    "classifier": "steadyeye.models.finetuned.tuned_classifier:read_classifier",
    "detector": "steadyeye.models.finetuned.tuned_detector:read_detector",
}
"""Kind → the function that builds it: `(folder, record, weights, execution)` → the model.

What is common to the kinds in model.json: `version`, `kind`, `base` (spec, name and fingerprint of
the model trained further), `build` (the spec its architecture is built from), `classes` (names and
wnids), `trained on` (name, fingerprint, n and videos of the examples), `augmentation` (what was
done to their images, how often; None: nothing) and `sha256` of the weights.
"""


def write(folder: Path, record: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
    """Writes a trained model, each file whole; `record`: `Task.record()`, `weights`: fp32, CPU."""
    folder.mkdir(parents=True, exist_ok=True)
    content_bytes = serialise({name: value.detach().cpu() for name, value in weights.items()})
    write_file(folder / WEIGHTS, content_bytes)
    content = {"version": VERSION, **record, "sha256": hashlib.sha256(content_bytes).hexdigest()}
    write_file(folder / FILE, encode_record(content))


def read(folder: Path, execution: Execution) -> Model | Detector:
    """The trained model in a folder, named as the folder is.

    Raises `UsageError` for a folder that holds none, whose files are not what was written, or
    are not of one model. One of an earlier version says so in its recipe.
    """
    record = content(folder)
    module, _, name = READERS[record["kind"]].partition(":")
    build = getattr(importlib.import_module(module), name)
    if not (folder / WEIGHTS).is_file() or sha256(folder / WEIGHTS) != record["sha256"]:
        raise UsageError(
            f"'{folder / WEIGHTS}' does not match {FILE}; copy both, or run finetune again"
        )
    model: Model | Detector = build(folder, record, load_content(folder / WEIGHTS), execution)
    return model


def content(folder: Path) -> Mapping[str, Any]:
    """What model.json says. Raises `UsageError` where there is none that can be read."""
    path = folder / FILE
    if not path.is_file():
        raise UsageError(f"the folder '{folder}' has no {FILE}; give one that finetune wrote")
    checked = read_checked(path)
    if checked is None:
        raise UsageError(f"'{path}' is not what was written; copy it again or run finetune again")
    record = checked.content if checked.protected else {**checked.content, UNPROTECTED: BARE}
    try:
        version, kind = int(record["version"]), record["kind"]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"cannot read '{path}': {error}; run finetune again") from error
    if version > VERSION or kind not in READERS:
        raise UsageError(
            f"'{path}' holds a {kind} of version {version}; this steadyeye reads {VERSION}"
        )
    return record


def base_record(model: Any, spec: str) -> dict[str, Any]:
    """What model.json says of the model that is trained further: `base` and `build`.

    One that was itself trained further is built again from what it was built from.
    """
    base = {"spec": spec, "name": model.name, "fingerprint": model.fingerprint}
    return {"base": base, "build": model.recipe.get("build", spec)}


def classes_of(record: Mapping[str, Any]) -> Classes:
    """The classes that the model answers in."""
    names = record["classes"]
    wnids = names.get("wnids")
    return Classes(tuple(names["names"]), tuple(wnids) if wnids else None)


def classes_record(classes: Classes) -> dict[str, Any]:
    """The classes as plain values."""
    return {
        "names": list(classes.names),
        "wnids": None if classes.wnids is None else list(classes.wnids),
    }


def origin(record: Mapping[str, Any]) -> dict[str, Any]:
    """What the recipe of the trained model says of where it is from."""
    keys = ("base", "build", "trained on", "augmentation", "loss", "from scratch", UNPROTECTED)
    return {key: record[key] for key in keys if key in record}
