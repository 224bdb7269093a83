"""The JSON files that identify a run, and errors for damaged ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import Place, encode_record, read_checked, write_file
from steadyeye.core.storage.run_lock import check_out

RUN = "delete it and run the same command again: finished shards are kept"
CELL = "run the same command again: it is rebuilt if all shards belong to the same run"
MEND = "run the same command again, to compute it again"
SEAL = "run the same command again to seal it again"

RESULTS: Mapping[str, str] = {
    "candidates.json": "mine",
    "results.json": "run",
    "state.json": "watch",
    "set.json": "sample",
}
"""File of a folder → the command that wrote it; `mine` writes set.json as well."""


def write_record(path: Place, content: Mapping[str, Any]) -> None:
    """Writes a file of a run, with a checksum of its content."""
    write_file(path, encode_record(content))


def read_record(path: Place, todo: str, needs: Sequence[str] = ()) -> dict[str, Any]:
    """The content of a file of a run.

    Raises `UsageError` if it is no JSON, was changed after it was written, or lacks keys that it
    `needs`; `todo` is the advice in the message.
    """
    content = read_content(path)
    if content is None:
        raise UsageError(f"'{path}' is damaged: its {_size(path)} are not what was written; {todo}")
    check_keys(path, content, todo, needs)
    return content


def check_keys(path: Place, content: Mapping[str, Any], todo: str, needs: Sequence[str]) -> None:
    """Raises `UsageError` for the content of a file that lacks the keys it `needs`."""
    lacks = [key for key in needs if key not in content]
    if lacks:
        raise UsageError(f"'{path}' is damaged: {_size(path)} without {lacks[0]}; {todo}")


def is_damaged(path: Place) -> bool:
    """Whether a file exists and was changed after it was written."""
    return path.is_file() and read_content(path) is None


def read_content(path: Place) -> dict[str, Any] | None:
    """The content of a file; None if it is damaged. Raises `FileNotFoundError`."""
    record = read_checked(path)
    return None if record is None else record.content


def check_results(out: Place, command: str) -> None:
    """Raises `UsageError` where another command wrote into a folder: its report would be lost.

    And where the folder cannot be written.

    `command`: which one is to write there, `run`, `explain`, `mine`, `watch` or `sample`.
    """
    check_out(out)
    path = out / "run.json"
    before = read_content(path) if path.is_file() else None
    finished = [of for name, of in RESULTS.items() if (out / name).is_file()]
    if "mine" in finished and "sample" in finished:
        finished.remove("sample")
    if before:
        finished += ["explain"] if "explain" in before else []
        finished += ["finetune"] if before.get("kind") == "finetune" else []
        finished += ["run"] if not finished and command in ("watch", "sample") else []
    others = [of for of in finished if of != command]
    if others:
        raise UsageError(
            f"'{out}' holds the results of steadyeye {others[0]}, not of {command}; choose another "
            "--out"
        )


def is_protected(path: Place) -> bool:
    """Whether a file has a valid checksum; files of earlier versions have none."""
    record = read_checked(path)
    return record is not None and record.protected


def _size(path: Place) -> str:
    return f"{path.stat().st_size:,} bytes"
