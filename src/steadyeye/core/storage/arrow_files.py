"""Reads Arrow files and streams that steadyeye wrote; none of them is compressed."""

import struct

import pyarrow as pa

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import Place

MAGIC = b"ARROW1\0\0"
"""The first bytes of a file, before its first message; a stream begins with the message."""

DAMAGE = (pa.ArrowException, OSError, struct.error)
"""The errors of reading a damaged file or stream, or one of another format."""

HEADER, COMPRESSION = 2, 3
"""Fields of a message's header, and of a record batch's compression (Arrow's Message.fbs)."""


def read_arrow(path: Place, content: bytes | None = None) -> pa.Table:
    """The table of an Arrow file, a view of it if it is on a local disk.

    `content`: of a file of a store. Raises `UsageError` for a compressed file, because a small one
    may expand beyond the memory, and for other formats.
    """
    try:
        with pa.BufferReader(content) if content is not None else pa.memory_map(str(path)) as file:
            buffer = file.read_buffer()
            if is_compressed(buffer):
                raise UsageError(
                    f"'{path}' is compressed, and predictions never are; copy the run again"
                )
            return pa.ipc.open_file(pa.BufferReader(buffer)).read_all()
    except DAMAGE as error:
        raise UsageError(f"'{path}' is no Arrow file ({error}); copy the run again") from None


def is_compressed(buffer: pa.Buffer) -> bool:
    """Whether a record batch of a file or stream is marked as compressed; its data are not read.

    Raises one of `DAMAGE` for other formats.
    """
    start = len(MAGIC) if buffer.slice(0, len(MAGIC)).to_pybytes() == MAGIC else 0
    reader = pa.ipc.MessageReader.open_stream(pa.BufferReader(buffer.slice(start)))
    return any(
        message.type == "record batch" and _names_compression(message.metadata.to_pybytes())
        for message in iter(reader.read_next_message, None)
    )


def _names_compression(message: bytes) -> bool:
    (table,) = struct.unpack_from("<I", message)
    place = table + _find_field(message, table, HEADER)
    (forward,) = struct.unpack_from("<I", message, place)
    return bool(_find_field(message, place + forward, COMPRESSION))


def _find_field(message: bytes, table: int, field: int) -> int:
    """The position of a field of a flatbuffer table, relative to the table; 0: absent."""
    (back,) = struct.unpack_from("<i", message, table)
    (size,) = struct.unpack_from("<H", message, table - back)
    place = 4 + 2 * field
    return int(struct.unpack_from("<H", message, table - back + place)[0]) if place < size else 0
