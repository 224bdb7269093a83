"""Checkpoints: written whole or not at all and verified; the last two and the best are stored."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import write_file
from steadyeye.models.runtimes.weights import load_content, serialise

KEPT = 2
"""Number of latest checkpoints that are stored, besides the best."""


@dataclass(frozen=True)
class State:
    """The state from which a training is resumed; random numbers come from the seed and the step.

    `module`, `optimizer`: state dicts; `scaler`: of fp16's gradients, otherwise empty. `history`:
    as `History.record`. `threads`: torch's number of threads; `device`: its device.
    """

    step: int
    module: Mapping[str, Any]
    optimizer: Mapping[str, Any]
    scaler: Mapping[str, Any]
    history: Mapping[str, Any]
    threads: int
    device: str


def path(folder: Path, step: int) -> Path:
    """The file of the checkpoint after `step` steps."""
    return folder / f"step-{step:07d}.pt"


def save(folder: Path, state: State) -> Path:
    """Writes a checkpoint and deletes those that are no longer needed; returns its file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = path(folder, state.step)
    # `asdict` would copy every tensor once more
    content = serialise(vars(state))
    # first the digest: a file without one, or with another one, does not count
    _digest(file).unlink(missing_ok=True)
    write_file(file, content)
    line = f"{hashlib.sha256(content).hexdigest()}  {file.name}\n"
    write_file(_digest(file), line.encode())
    best = state.history["best_step"]
    for old in _list_checkpoints(folder)[:-KEPT]:
        if best is None or old != path(folder, best):
            remove(old)
    return file


def latest(folder: Path, say: Callable[[str], None]) -> State | None:
    """The latest undamaged checkpoint; None without one.

    `say`: receives a message for each later damaged one, which is removed.
    """
    files = _list_checkpoints(folder)
    while files:
        file = files.pop()
        try:
            return read(file)
        except UsageError as error:
            remove(file)
            before = f"continuing from {files[-1].name}" if files else "starting again"
            say(f"{error}; {before}")
    return None


def read(file: Path) -> State:
    """The checkpoint in a file. Raises `UsageError` where it was changed after it was written."""
    try:
        recorded = _digest(file).read_text("ascii", errors="replace").partition(" ")[0]
        with file.open("rb") as stream:
            actual = hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise UsageError(f"the checkpoint '{file}' was not finished") from None
    if recorded != actual:
        raise UsageError(f"the checkpoint '{file}' was changed after it was written")
    return State(**load_content(file))


def last_good(folder: Path) -> Path | None:
    """The file of the latest undamaged checkpoint."""
    for file in reversed(_list_checkpoints(folder)):
        try:
            read(file)
        except UsageError:
            continue
        return file
    return None


def remove(file: Path) -> None:
    """Removes a checkpoint with its digest."""
    _digest(file).unlink(missing_ok=True)
    file.unlink(missing_ok=True)


def clear(folder: Path) -> None:
    """Removes temporary files of killed processes."""
    for left in folder.glob(".*.tmp"):
        left.unlink()


def _list_checkpoints(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.pt"))


def _digest(file: Path) -> Path:
    return file.with_name(f"{file.name}.sha256")
