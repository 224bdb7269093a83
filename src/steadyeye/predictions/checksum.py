"""A shard that says itself whether it is what was written, before any seal does."""

import hashlib
import re

import pyarrow as pa

HEAD = b"steadyeye sha256 "
EMPTY = HEAD + b"0" * 64
METADATA = {b"checksum": EMPTY}
"""What the schema of a table to be written carries."""


def signed(data: bytes) -> bytes:
    """An Arrow file written with `METADATA`, with its SHA-256 put where that stands empty.

    The checksum is that of the bytes while it is empty, so no reader of Arrow is needed to check.
    """
    return data.replace(EMPTY, HEAD + hashlib.sha256(data).hexdigest().encode())


def intact(data: bytes) -> bool:
    """Whether a shard is what was written; of one of an earlier version, whether it can be read."""
    found = re.search(re.escape(HEAD) + rb"[0-9a-f]{64}", data)
    if found is None:
        return _readable(data)
    written = found[0].removeprefix(HEAD).decode()
    return hashlib.sha256(data.replace(found[0], EMPTY)).hexdigest() == written


def _readable(data: bytes) -> bool:
    try:
        pa.ipc.open_file(pa.BufferReader(data)).read_all().validate(full=True)
    except (pa.ArrowException, OSError, ValueError):
        return False
    return True
