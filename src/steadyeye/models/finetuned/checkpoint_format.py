"""Models that `steadyeye finetune` trained: their folder, written and read back.

::

    model.json   what it was built from and trained on, its classes, recipe and head
    weights.pt   the state dict of the trained network
"""

import hashlib
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta
from torch import Tensor

from steadyeye.core.code_permission import record_requests
from steadyeye.core.errors import UsageError, one_line, shorten
from steadyeye.core.storage.files import encode_record, read_checked, sha256, write_file
from steadyeye.core.types import Classes, Detector, Model
from steadyeye.models.runtimes.torch_classifier import Execution
from steadyeye.models.runtimes.weights import load_content, serialise

VERSION = 1
FILE, WEIGHTS = "model.json", "weights.pt"
UNPROTECTED = "record"
BARE = (
    f"{FILE} was written by an earlier version and has no checksum, so changes in it cannot be "
    "detected"
)

CURE = "copy the folder again, or run finetune again"

Entry = TypeVar("Entry")


class Head(msgspec.Struct):
    """The entries of model.json for every kind."""

    version: Annotated[int, Meta(ge=1, le=2**31)]
    kind: str


class Names(msgspec.Struct):
    """The classes."""

    names: Annotated[list[str], Meta(min_length=1)]
    wnids: list[str] | None = None


class Trained(msgspec.Struct):
    """The entries of model.json for building a model of any kind again."""

    classes: Names
    build: str
    sha256: str


class HeadOfClassifier(msgspec.Struct):
    """Whether the head is that of the base model."""

    is_kept: bool = msgspec.field(name="kept")


class TrainedClassifier(Trained):
    """The entries of model.json for a classifier."""

    several: bool
    bare: bool
    head: HeadOfClassifier
    recipe: dict[str, Any]


class NetworkOfDetector(msgspec.Struct):
    """The network of a detector; other entries are those of its library."""

    library: Literal["torchvision", "transformers"]


class TrainedDetector(Trained):
    """The entries of model.json for a detector."""

    detector: NetworkOfDetector


RECORDS: Mapping[str, type[Trained]] = {
    "classifier": TrainedClassifier,
    "detector": TrainedDetector,
}
READERS = {
    "classifier": "steadyeye.models.finetuned.tuned_classifier:read_classifier",
    "detector": "steadyeye.models.finetuned.tuned_detector:read_detector",
}
"""Kind → the function that builds it: `(folder, record, weights, execution)` → the model.

Common entries of model.json: `version`, `kind`, `base` (spec, name and fingerprint of the base
model), `build` (the spec its architecture is built from), `classes` (names and wnids), `trained on`
(name, fingerprint, n and videos of the examples), `augmentation` (operators on their images and
their frequency; None: nothing) and `sha256` of the weights.
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

    Raises `UsageError` for a folder without one, or whose files were changed or are of different
    models. The recipe of a model of an earlier version says so.
    """
    record = content(folder)
    module, _, name = READERS[record["kind"]].partition(":")
    build = getattr(importlib.import_module(module), name)
    if not (folder / WEIGHTS).is_file() or sha256(folder / WEIGHTS) != record["sha256"]:
        raise UsageError(
            f"'{folder / WEIGHTS}' does not match {FILE}; copy both, or run finetune again"
        )
    weights = load_content(folder / WEIGHTS)
    try:
        model: Model | Detector = build(folder, record, weights, execution)
    except (UsageError, ModuleNotFoundError):
        raise
    except Exception as error:
        # the libraries of the networks take what a damaged record says as it is
        raise UsageError(
            f"cannot build the model of '{folder / FILE}': {one_line(error)}; {CURE}"
        ) from error
    return model


def list_code(folder: Path) -> tuple[str, ...]:
    """The code that a trained model runs when it is read, which the user must allow.

    The model is read for this. Raises `UsageError` as `read` does.
    """
    with record_requests() as names:
        read(folder, Execution("torch"))
    return tuple(names)


def content(folder: Path) -> Mapping[str, Any]:
    """The content of model.json. Raises `UsageError` if it cannot be read."""
    path = folder / FILE
    if not path.is_file():
        raise UsageError(f"the folder '{folder}' has no {FILE}; give one that finetune wrote")
    checked = read_checked(path)
    if checked is None:
        raise UsageError(
            f"'{path}' was changed after finetune wrote it; copy it again or run finetune again"
        )
    record = checked.content if checked.protected else {**checked.content, UNPROTECTED: BARE}
    head = _check(record, Head, path)
    if head.version > VERSION or head.kind not in RECORDS:
        raise UsageError(
            f"'{path}' holds a {shorten(head.kind, 40)} of version {head.version}; this steadyeye "
            f"reads {VERSION}"
        )
    _check(record, RECORDS[head.kind], path)
    return record


def _check(record: Mapping[str, Any], kind: type[Entry], path: Path) -> Entry:
    """A record with the required entries of its kind. Raises `UsageError`."""
    try:
        return msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"cannot read '{path}': {one_line(error)}; {CURE}") from error


def base_record(model: Any, spec: str) -> dict[str, Any]:
    """The entries of model.json on the base model: `base` and `build`.

    A base model that was itself fine-tuned is built from its own `build`.
    """
    base = {"spec": spec, "name": model.name, "fingerprint": model.fingerprint}
    return {"base": base, "build": model.recipe.get("build", spec)}


def classes_of(record: Mapping[str, Any]) -> Classes:
    """The output classes of the model."""
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
    """The origin of the trained model, for its recipe."""
    keys = ("base", "build", "trained on", "augmentation", "loss", "from scratch", UNPROTECTED)
    return {key: record[key] for key in keys if key in record}
