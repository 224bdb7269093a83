"""The JSON files by which a run knows what it is, and what is said where one is damaged."""

from collections.abc import Mapping, Sequence
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import Place, encode_record, read_checked, write_file

RUN = "delete it and run the same command again: finished shards are kept"
CELL = "run the same command again: it is rebuilt if all shards belong to the same run"
MEND = "run the same command again, to compute it again"
SEAL = "run the same command again to seal it again"


def write_record(path: Place, content: Mapping[str, Any]) -> None:
    """Writes a file of a run, with a checksum of what it says."""
    write_file(path, encode_record(content))


def read_record(path: Place, todo: str, needs: Sequence[str] = ()) -> dict[str, Any]:
    """What a file of a run holds.

    Raises `UsageError` for one that is no JSON, that is not what was written, or that lacks the
    keys it `needs`, with what `todo`.
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
    """Whether a file is there and is not what was written."""
    return path.is_file() and read_content(path) is None


def read_content(path: Place) -> dict[str, Any] | None:
    """What a file says; None where it is damaged. Raises `FileNotFoundError`."""
    record = read_checked(path)
    return None if record is None else record.content


def is_protected(path: Place) -> bool:
    """Whether a file bears a checksum that holds; one of an earlier version bears none."""
    record = read_checked(path)
    return record is not None and record.protected


def _size(path: Place) -> str:
    return f"{path.stat().st_size:,} bytes"
