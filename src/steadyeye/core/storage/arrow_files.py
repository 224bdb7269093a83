"""Arrow files and streams that steadyeye wrote, none of which is compressed."""

import struct

import pyarrow as pa

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import Place

MAGIC = b"ARROW1\0\0"
"""What a file begins with before its first message; a stream begins with the message."""

DAMAGE = (pa.ArrowException, OSError, struct.error)
"""What reading a file or stream raises that is damaged or none."""

HEADER, COMPRESSION = 2, 3
"""Where a message has its header, and a record batch its compression (Arrow's Message.fbs)."""


def read_arrow(path: Place, content: bytes | None = None) -> pa.Table:
    """The table of an Arrow file, a view of it where it lies on this machine's disk.

    `content`: of a file of a store. Raises `UsageError` for a compressed file, as a small one may
    unpack to more than the memory holds, and for one that is no Arrow file.
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
    """Whether a record batch of a file or stream says that it is; its content is not looked at.

    Raises one of `DAMAGE` for what is neither.
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
    """Where a field of a table of a flatbuffer lies, counted from the table; 0: it has none."""
    (back,) = struct.unpack_from("<i", message, table)
    (size,) = struct.unpack_from("<H", message, table - back)
    place = 4 + 2 * field
    return int(struct.unpack_from("<H", message, table - back + place)[0]) if place < size else 0
