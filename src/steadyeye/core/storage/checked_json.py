"""Small JSON files that bear a checksum of what they say, so that no byte of them changes unseen.

::

    {"format": 2, …, "checksum": "SHA-256 of all the rest"}

A file without either key is of an earlier version: it is read, and whoever reads it says so.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from steadyeye.core.storage.paths import Place

FORMAT, CHECKSUM = "format", "checksum"
VERSION = 2
"""Of the layout; from this one on there is a checksum."""


@dataclass(frozen=True)
class Record:
    """What a file says. `protected`: whether a checksum said that it is what was written."""

    content: dict[str, Any]
    protected: bool


def encode(content: Mapping[str, Any]) -> bytes:
    """JSON with a final newline, the same bytes for the same content."""
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def encode_record(content: Mapping[str, Any]) -> bytes:
    """The file of a record: its content with the checksum of it."""
    whole = {FORMAT: VERSION, **content}
    return encode({**whole, CHECKSUM: checksum(whole)})


def checksum(content: Mapping[str, Any]) -> str:
    """The SHA-256 of what a record says, its checksum aside; spaces do not count."""
    rest = {key: value for key, value in content.items() if key != CHECKSUM}
    return hashlib.sha256(encode(rest)).hexdigest()


def read_checked(path: Place) -> Record | None:
    """The record in a file; None where it is no JSON object or not what was written.

    Raises `FileNotFoundError`.
    """
    try:
        content = path.read_bytes()
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    if CHECKSUM not in found and FORMAT not in found:
        return Record(found, protected=False)
    if not _holds(content):
        return None
    rest = {key: value for key, value in found.items() if key not in (FORMAT, CHECKSUM)}
    return Record(rest, protected=True)


@lru_cache(maxsize=16)
def _holds(content: bytes) -> bool:
    """Whether the checksum in a file is that of the rest.

    A report reads the same few records several times, and encoding one anew takes milliseconds.
    """
    found = json.loads(content)
    try:
        return bool(found.get(CHECKSUM) == checksum(found))
    except UnicodeEncodeError:
        return False  # half of a surrogate pair, which nothing of ours writes
