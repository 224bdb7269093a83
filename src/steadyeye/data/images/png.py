"""PNG files as the decoder gets them: sound, and without what it would print complaints about.

libpng prints its errors and warnings itself, on the stderr of the whole process.
"""

import zlib
from collections.abc import Iterator

MAGIC = b"\x89PNG\r\n\x1a\n"
END = b"\x00\x00\x00\x00IEND\xaeB`\x82"

NEEDED = frozenset({b"IHDR", b"PLTE", b"IDAT"})
"""Chunks without which there is no picture."""

IGNORED = frozenset(
    {b"iCCP", b"sRGB", b"gAMA", b"cHRM", b"cICP", b"mDCV", b"cLLI", b"sBIT", b"hIST", b"sPLT"}
    | {b"tEXt", b"zTXt", b"iTXt", b"tIME", b"pHYs", b"eXIf"}
)
"""Chunks that change no pixel as OpenCV decodes them: colour profiles, texts, times and sizes."""


def strip_chunks(data: bytes) -> bytes:
    """The bytes of a PNG file without the chunks that change no pixel.

    Raises `ValueError` where the picture is cut off or a checksum of it is wrong.
    """
    parts, image_chunks = [data[: len(MAGIC)]], 0
    pixels = zlib.decompressobj()
    for kind, start, end in _chunks(data):
        if end > len(data):
            if kind in NEEDED or not image_chunks:
                raise ValueError(f"it is cut off after {len(data):,} bytes")
            break
        if kind in NEEDED:
            image_chunks += kind == b"IDAT"
            if zlib.crc32(data[start + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
                raise ValueError(f"the checksum of its {kind.decode()} at byte {start:,} is wrong")
        if kind == b"IEND":
            return b"".join([*parts, END])
        if kind not in IGNORED:
            parts.append(data[start:end])
    for part in parts[1:]:
        if part[4:8] == b"IDAT":
            pixels.decompress(part[8:-4])
    if not pixels.eof:
        raise ValueError(f"it is cut off after {len(data):,} bytes")
    return b"".join([*parts, END])


def _chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Each chunk's name, first byte and end, which lies beyond the file where it is cut off."""
    at = len(MAGIC)
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 8], at, at + 12 + length
        at += 12 + length
