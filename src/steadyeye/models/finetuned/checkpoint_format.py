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
    """What model.json says of every kind."""

    version: Annotated[int, Meta(ge=1, le=2**31)]
    kind: str


class Names(msgspec.Struct):
    """The classes."""

    names: Annotated[list[str], Meta(min_length=1)]
    wnids: list[str] | None = None


class Trained(msgspec.Struct):
    """What model.json says of a model of any kind that is built again."""

    classes: Names
    build: str
    sha256: str


class HeadOfClassifier(msgspec.Struct):
    """Whether the head is that of the model trained further."""

    is_kept: bool = msgspec.field(name="kept")


class TrainedClassifier(Trained):
    """What model.json says of a classifier."""

    several: bool
    bare: bool
    head: HeadOfClassifier
    recipe: dict[str, Any]


class NetworkOfDetector(msgspec.Struct):
    """What a detector is built from; the rest is its library's."""

    library: Literal["torchvision", "transformers"]


class TrainedDetector(Trained):
    """What model.json says of a detector."""

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
    """The code that a trained model asks to run when it is read, which has to be allowed then.

    It is read for that. Raises `UsageError` as `read` does.
    """
    with record_requests() as names:
        read(folder, Execution("torch"))
    return tuple(names)


def content(folder: Path) -> Mapping[str, Any]:
    """What model.json says. Raises `UsageError` where there is none that can be read."""
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
    """A record with the entries that a kind of it has to have. Raises `UsageError`."""
    try:
        return msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"cannot read '{path}': {one_line(error)}; {CURE}") from error


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
