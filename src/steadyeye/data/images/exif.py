"""When a photo was taken and how it is turned, by EXIF: JPEG's APP1 segment, not decoded.

CIPA DC-008, "Exchangeable image file format for digital still cameras: Exif", 4.6.5.
"""

import struct
from datetime import datetime

from steadyeye.core.storage.files import Place

EXIF_POINTER, TIME_TAKEN, TIME_WRITTEN, PART_OF_SECOND = 0x8769, 0x9003, 0x0132, 0x9291
ORIENTATION, UPRIGHT = 0x0112, 1
FIRST = 256 * 1024
"""Bytes of a file that are looked at: EXIF stands in its first 64 KiB, after JFIF's own."""


def read_time(path: Place) -> float | None:
    """Seconds since 1970 by the camera's own clock, without its zone; None where it is not said.

    With the part of a second where the camera writes it, as in bursts.
    """
    try:
        tiff = _find_tiff(_read_start(path))
        order = _order(tiff)
        (first,) = struct.unpack_from(f"{order}I", tiff, 4)
        main = _entries(tiff, first, order)
        more = _entries(tiff, int(main[EXIF_POINTER]), order) if EXIF_POINTER in main else {}
        text = str(more.get(TIME_TAKEN) or main.get(TIME_WRITTEN) or "")
        if not text:
            return None
        # no time zone: only differences of one camera's clock count
        whole = datetime.strptime(text, "%Y:%m:%d %H:%M:%S") - datetime(1970, 1, 1)  # noqa: DTZ001, DTZ007, RUF100
        part = str(more.get(PART_OF_SECOND) or "").strip()
        return whole.total_seconds() + (float(f"0.{part}") if part.isdecimal() else 0.0)
    except (struct.error, ValueError, IndexError):
        return None


def read_orientation(path: Place) -> int:
    """How the pixels of a JPEG file are to be turned for viewing, 2 to 8; 1 where they are not."""
    return find_orientation(_find_tiff(_read_start(path)))


def find_orientation(tiff: bytes) -> int:
    """The same of the TIFF part of an EXIF segment."""
    try:
        order = _order(tiff)
        (first,) = struct.unpack_from(f"{order}I", tiff, 4)
        turn = _entries(tiff, first, order).get(ORIENTATION, UPRIGHT)
    except (struct.error, ValueError):
        return UPRIGHT  # cut short: nobody turns it
    return turn if isinstance(turn, int) and UPRIGHT <= turn <= 8 else UPRIGHT


def _read_start(path: Place) -> bytes:
    with path.open("rb") as file:
        return file.read(FIRST)


def _find_tiff(data: bytes) -> bytes:
    """The TIFF part of a JPEG's EXIF segment; nothing where there is none."""
    if data[:2] != b"\xff\xd8":
        return b""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker == 0xE1 and data[at + 4 : at + 10] == b"Exif\0\0":
            return data[at + 10 : at + 2 + length]
        if marker == 0xDA or length < 2:
            return b""
        at += 2 + length
    return b""


def _order(tiff: bytes) -> str:
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        raise ValueError
    return order


def _entries(tiff: bytes, at: int, order: str) -> dict[int, int | str]:
    """The texts and whole numbers of a directory, by tag."""
    (count,) = struct.unpack_from(f"{order}H", tiff, at)
    entries: dict[int, int | str] = {}
    for index in range(count):
        tag, kind, n, value = struct.unpack_from(f"{order}HHII", tiff, at + 2 + 12 * index)
        if kind == 2:
            start = value if n > 4 else at + 10 + 12 * index
            text = tiff[start : start + n].split(b"\0")[0]
            entries.setdefault(tag, text.decode("ascii", "replace").strip())
        elif kind == 3:
            (short,) = struct.unpack_from(f"{order}H", tiff, at + 10 + 12 * index)
            entries.setdefault(tag, short)
        elif kind == 4:
            entries.setdefault(tag, value)
    return entries
