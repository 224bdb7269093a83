"""What image files say of themselves, read without decoding them; other sizes: `image_file`.

Format, size and scans; and by EXIF, JPEG's APP1 segment, when a photo was taken and how it is
turned: CIPA DC-008, "Exchangeable image file format for digital still cameras: Exif", 4.6.5.
"""

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place

EXIF_POINTER, TIME_TAKEN, TIME_WRITTEN, PART_OF_SECOND = 0x8769, 0x9003, 0x0132, 0x9291
ORIENTATION, UPRIGHT = 0x0112, 1
FIRST = 256 * 1024
"""Bytes of a file that are looked at: EXIF stands in its first 64 KiB, after JFIF's own."""
LOOKED_AT = 100
"""Files of a folder whose EXIF is read for a note."""

MAGIC = MappingProxyType(
    {
        "TIFF": re.compile(rb"II\*\x00|MM\x00\*|II\+\x00|MM\x00\+"),
        "WebP": re.compile(rb"RIFF....WEBP", re.DOTALL),
        "GIF": re.compile(rb"GIF8[79]a"),
        "BMP": re.compile(rb"BM"),
        "PNM": re.compile(rb"P[1-6][\s#]"),
        "AVIF": re.compile(rb"....ftypavi[fs]", re.DOTALL),
    }
)
"""How the files of each format begin."""

PNM_SIZE = re.compile(rb"P[1-6](?:\s+|#[^\n]*\n)+(\d{1,10})(?:\s+|#[^\n]*\n)+(\d{1,10})\s")
JPEG_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
"""Begins a segment of a JPEG file; not those that are part of a scan's data."""
JPEG_SCAN = b"\xff\xda"
JPEG_SCANS = re.compile(JPEG_SCAN)
JPEG_BARE, JPEG_END = (0x01, 0xD8), 0xD9
"""Markers after which no length stands: those in front of the picture, and its end."""
MOST_SEGMENTS = 100_000  # of a JPEG file that are looked at one by one
TIFF_WIDTH, TIFF_HEIGHT, TILE_WIDTH, TILE_HEIGHT = 256, 257, 322, 323
TIFF_EXTRA, MULTIPLIED, SEPARATE = 338, 1, 2
"""The tag that says what a fourth channel is, and two of its values: opacity by which the colours
are multiplied already (associated alpha), or are not."""
MOST_TAGS = 4096  # of a TIFF file; the sides come first
TIFF_NUMBERS = MappingProxyType({3: "H", 4: "I", 16: "Q"})
"""The types of a number of a TIFF file: as `struct` writes them."""


def name_format(data: bytes) -> str | None:
    """The format of an image file that begins so; None for another."""
    return next((name for name, magic in MAGIC.items() if magic.match(data)), None)


def read_size(data: bytes) -> tuple[int, int] | None:
    """Height and width as the header of an image file says them; None where it cannot be told."""
    read = READERS.get(name_format(data) or "")
    try:
        return read(data) if read else None
    except (struct.error, ValueError):
        return None


def count_pixels(data: bytes) -> int:
    """The pixels that decoding an image file takes, by its header; 0 where it cannot be told."""
    height, width = read_size(data) or (0, 0)
    if name_format(data) != "TIFF" or not height:
        return height * width
    # a tile may be larger than the picture, and is decoded whole
    tags = _read_tiff_tags(data)
    return max(height * width, tags.get(TILE_HEIGHT, 0) * tags.get(TILE_WIDTH, 0))


def has_more_scan_marks(data: bytes, most: int) -> bool:
    """Whether the marker of a scan stands in a file more than so often, also where it begins none.

    By a pattern, which takes a fifth of the time of `bytes.count`.
    """
    return next(islice(JPEG_SCANS.finditer(data), most, None), None) is not None


def count_scans(data: bytes) -> int:
    """The scans of the first picture in a JPEG file; at least those, in one of many segments."""
    scans, at = 0, 0
    for _ in range(MOST_SEGMENTS):
        marker = JPEG_MARKER.search(data, at)
        code = data[marker.end() - 1] if marker else JPEG_END
        if marker is None or code == JPEG_END:
            return scans
        scans, at = scans + (code == JPEG_SCAN[1]), marker.end()
        if code not in JPEG_BARE:
            at += int.from_bytes(data[at : at + 2], "big")
    return scans + data.count(JPEG_SCAN, at)


def _read_gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return height, width


def _read_bmp(data: bytes) -> tuple[int, int]:
    (header,) = struct.unpack_from("<I", data, 14)
    width, height = struct.unpack_from("<HH" if header == 12 else "<ii", data, 18)
    return abs(height), abs(width)


def _read_webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
        return (height, width) if len(data) >= 30 else None
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return height & 0x3FFF, width & 0x3FFF
    return None


def _read_pnm(data: bytes) -> tuple[int, int] | None:
    size = PNM_SIZE.match(data)
    return (int(size[2]), int(size[1])) if size else None


def _read_tiff(data: bytes) -> tuple[int, int] | None:
    tags = _read_tiff_tags(data)
    if not {TIFF_WIDTH, TIFF_HEIGHT} <= tags.keys():
        return None
    # every decoder turns a TIFF file as its tag says, from 5 on by a quarter
    is_turned = tags.get(ORIENTATION, UPRIGHT) > 4
    height, width = tags[TIFF_HEIGHT], tags[TIFF_WIDTH]
    return (width, height) if is_turned else (height, width)


def _read_tiff_tags(data: bytes) -> dict[int, int]:
    """The sides of the first picture and of its tiles, and how it is turned, by their tags."""
    sides = (TIFF_WIDTH, TIFF_HEIGHT, TILE_WIDTH, TILE_HEIGHT, ORIENTATION)
    values: dict[int, int] = {}
    for tag, number, inside in _list_tiff_tags(data):
        if tag in sides and number:
            (values[tag],) = struct.unpack_from(number, data, inside)
    return values


def _list_tiff_tags(data: bytes) -> Iterator[tuple[int, str, int]]:
    """Each tag of the first picture, how `struct` reads its number, and the place of that.

    The second is empty where its value is no whole number.
    """
    order = "<" if data[:2] == b"II" else ">"
    is_big = struct.unpack_from(f"{order}H", data, 2) == (43,)
    offset, count, entry = ("Q", "Q", 20) if is_big else ("I", "H", 12)
    (at,) = struct.unpack_from(order + offset, data, 8 if is_big else 4)
    (number,) = struct.unpack_from(order + count, data, at)
    start = at + struct.calcsize(order + count)
    for place in range(start, start + min(number, MOST_TAGS) * entry, entry):
        tag, kind = struct.unpack_from(f"{order}HH", data, place)
        form = f"{order}{TIFF_NUMBERS[kind]}" if kind in TIFF_NUMBERS else ""
        yield tag, form, place + (12 if is_big else 8)


def keep_colours_of_tiff(data: bytes) -> bytes:
    """A TIFF file whose colours libtiff does not multiply by their opacity, as it else does.

    In files of other formats opacity is left out; so the same picture has the same colours.
    """
    try:
        for tag, form, inside in _list_tiff_tags(data):
            if tag == TIFF_EXTRA and form and struct.unpack_from(form, data, inside) == (SEPARATE,):
                multiplied = struct.pack(form, MULTIPLIED)
                return data[:inside] + multiplied + data[inside + len(multiplied) :]
    except struct.error:
        pass  # decoding tells what is wrong with it
    return data


def _read_avif(data: bytes) -> tuple[int, int] | None:
    """The largest picture in the file: the whole one, where it is put together of several."""
    sides, at = [], data.find(b"ispe")
    while at >= 0:
        width, height = struct.unpack_from(">II", data, at + 8)
        sides.append((height, width))
        at = data.find(b"ispe", at + 4)
    return max(sides, key=lambda pair: pair[0] * pair[1], default=None)


READERS: Mapping[str, Callable[[bytes], tuple[int, int] | None]] = MappingProxyType(
    {
        "TIFF": _read_tiff,
        "WebP": _read_webp,
        "GIF": _read_gif,
        "BMP": _read_bmp,
        "PNM": _read_pnm,
        "AVIF": _read_avif,
    }
)


def read_time(path: Place) -> float | None:
    """Seconds since 1970 by the camera's own clock, without its zone; None where it is not said.

    With the part of a second where the camera writes it, as in bursts.
    """
    try:
        tiff = _find_tiff(_read_start(path))
        order, main = _read_main(tiff)
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
        turn = _read_main(tiff)[1].get(ORIENTATION, UPRIGHT)
    except (struct.error, ValueError):
        return UPRIGHT  # cut short: nobody turns it
    return turn if isinstance(turn, int) and UPRIGHT <= turn <= 8 else UPRIGHT


def note_orientations(paths: Sequence[Place]) -> tuple[str, ...]:
    """A note on photos that EXIF asks to rotate or mirror, which are read as stored.

    Of the files on this machine at most `LOOKED_AT` are looked at, at even distances.
    """
    files = [path for path in paths if isinstance(path, Path)]
    some = files[:: -(-len(files) // LOOKED_AT) or 1]
    turned = [path for path in some if path.is_file() and read_orientation(path) != UPRIGHT]
    if not turned:
        return ()
    return (
        f"{len(turned)} of {number_of(len(some), 'image')} looked at ask to be rotated or mirrored "
        f"(EXIF), first '{turned[0].name}': they are read as stored, as in most training code",
    )


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


def _read_main(tiff: bytes) -> tuple[str, dict[int, int | str]]:
    """The order of bytes, as `struct` writes it, and the entries of the first directory."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        raise ValueError
    (first,) = struct.unpack_from(f"{order}I", tiff, 4)
    return order, _entries(tiff, first, order)


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
