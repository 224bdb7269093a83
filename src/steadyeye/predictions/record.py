"""The JSON files by which a run knows what it is, and what is said where one is damaged."""

import json
from collections.abc import Sequence
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.storage.place import Place

RUN = "delete it and run the same command again: finished shards are kept, cells say what they are"
CELL = "run the same command again: where all shards say that they are of the same, it is made anew"
SEAL = "run the same command again to seal it anew"


def read_record(path: Place, todo: str, needs: Sequence[str] = ()) -> dict[str, Any]:
    """What a file of a run holds.

    Raises `UsageError` for one that is no JSON, or without the keys it `needs`, with what `todo`.
    """
    found = found_in(path)
    lacks = [key for key in needs if key not in found] if found is not None else ["JSON"]
    if found is None or lacks:
        raise UsageError(f"'{path}' is damaged, {_size(path)} without {lacks[0]} in it; {todo}")
    return found


def damaged(path: Place) -> bool:
    """Whether a file is there and is no JSON."""
    return path.is_file() and found_in(path) is None


def found_in(path: Place) -> dict[str, Any] | None:
    """The JSON object in a file; None where it is damaged. Raises `FileNotFoundError`."""
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _size(path: Place) -> str:
    return f"{path.stat().st_size:,} bytes"
