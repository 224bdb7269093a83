"""Image files to RGB arrays and back."""

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray

from steadyeye.core.errors import SampleError, UsageError, unknown
from steadyeye.core.storage import contents
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.remote_path import Remote
from steadyeye.core.types import Image
from steadyeye.data.images import image_header

VARIABLE = "STEADYEYE_MAX_PIXELS"

MAX_PIXELS = 2**27
"""Pixels of an image or a frame, where `$STEADYEYE_MAX_PIXELS` says no other number."""

RAISE_THE_LIMIT = f"make it smaller, or set {VARIABLE} to a higher number"

START = 2**16  # bytes in which most headers end; those with long metadata are read whole

BYTES_PER_PIXEL = 8  # of the largest file that is read: four channels of 16 bits, not compressed

MOST_SCANS = 500
"""Of a JPEG file, whose scans each go over the whole picture; encoders write about ten."""

MOST_SCANNED = 2**32
"""Pixels that all scans of a JPEG file together may go over, which takes some seconds."""

ALWAYS_SCANS = 32
"""Of a JPEG file, however large the picture is."""

LONGEST_PNG = 10**6
"""Pixels of a side; libpng refuses longer ones and says so on stderr itself."""

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"})

JPEG_START = b"\xff\xd8"

PNG_START = b"\x89PNG\r\n\x1a\n"
PIECE = 2**24  # bytes that are unpacked at a time
PNG_END = b"\x00\x00\x00\x00IEND\xaeB`\x82"
CUT_OFF = "it is cut off after {:,} bytes"
PNG_NEEDED = frozenset({b"IHDR", b"PLTE", b"IDAT"})
"""Chunks without which there is no picture."""

PNG_IGNORED = frozenset(
    {b"iCCP", b"sRGB", b"gAMA", b"cHRM", b"cICP", b"mDCV", b"cLLI", b"sBIT", b"hIST", b"sPLT"}
    | {b"tEXt", b"zTXt", b"iTXt", b"tIME", b"pHYs", b"eXIf"}
    | {b"acTL", b"fcTL", b"fdAT"}
)
"""Chunks that change no pixel: colour profiles, texts, times and sizes; and those of an animation,
with which OpenCV gives black for a still picture that is no frame of it."""

if "OPENCV_LOG_LEVEL" not in os.environ:
    # it prints what it makes of odd files; what matters of it is raised
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)


def read_max_pixels() -> int:
    """The most pixels that an image or a frame may have.

    Raises `UsageError` where `$STEADYEYE_MAX_PIXELS` is no number.
    """
    text = os.environ.get(VARIABLE, "")
    if not text:
        return MAX_PIXELS
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 12 and int(text)):
        raise UsageError(
            f"{VARIABLE}={text!r} is not a number of pixels; give one, such as {MAX_PIXELS}"
        )
    return int(text)


@dataclass(frozen=True)
class EncodedImage:
    """A function that decodes the image in encoded bytes.

    `read_bytes`: returns the bytes. `name`: name of the image in errors.
    """

    read_bytes: Callable[[], bytes]
    name: str

    def __call__(self) -> Image:
        """The image, as `decode` gives it."""
        return decode(self.read_bytes(), self.name)

    def made_of(self) -> tuple[object, ...]:
        """The decoder alone: the key of such a sample names the bytes, wherever they were read."""
        return (decode,)


@dataclass(frozen=True)
class ImageFile:
    """A function that reads the image in a file."""

    path: Place

    def __call__(self) -> Image:
        """The image, as `read` gives it."""
        return read(self.path)

    def made_of(self) -> tuple[object, ...]:
        """The decoder alone: the key names the bytes."""
        return (decode,)

    def key(self) -> str:
        """A digest of the file's content; for an object, its version in the store.

        Raises `SampleError` if it cannot be read.
        """
        if not isinstance(self.path, Remote):
            return key(read_content(self.path))
        try:
            return f"object {self.path} {self.path.version()}"
        except OSError as error:
            raise SampleError(f"cannot read the image '{self.path}': {error.strerror}") from error

    def stamp(self) -> str | None:
        """The stamp of the file on the disk, as `contents.stamp`, or None.

        None for an object of a store too, which has a version.
        """
        return None if isinstance(self.path, Remote) else contents.read_stamp(self.path) or None


def read(path: Place) -> Image:
    """The image in a file, (h, w, 3) uint8 RGB; EXIF rotation is not applied, as in training code.

    That of a TIFF or AVIF file is, as every decoder applies it. Raises `SampleError` for a file
    that is missing, truncated or no image.
    """
    return decode(read_content(path), str(path))


def check_length(size: int, name: str) -> None:
    """Raises `SampleError` for an image that has more bytes than any that is read."""
    if size > BYTES_PER_PIXEL * read_max_pixels():
        raise SampleError(
            f"'{name}' is larger than the largest image that is read: {RAISE_THE_LIMIT}"
        )


def read_content(path: Place) -> bytes:
    """The bytes of an image file. Raises `SampleError` as `read` does."""
    try:
        if isinstance(path, Path):
            check_length(path.stat().st_size, str(path))
        return path.read_bytes()
    except OSError as error:
        raise SampleError(f"cannot read the image '{path}': {error.strerror}") from error


def key(data: bytes) -> str:
    """A key of the encoded bytes of an image, independent of their place."""
    return f"file {hashlib.blake2b(data, digest_size=32).hexdigest()}"


def decode(data: bytes, name: str) -> Image:
    """The image in encoded bytes; `name` is what an error calls it.

    Raises `SampleError` for one that is damaged or of another format, and, before it is decoded,
    for one that promises more pixels than `read_max_pixels` allows.
    """
    if data.startswith(JPEG_START):
        _check_jpeg(data, name)
        try:
            return simplejpeg.decode_jpeg(data, "RGB")  # type: ignore[no-any-return]
        except ValueError as error:
            raise SampleError(f"cannot decode the JPEG '{name}': {error}") from error
    image = decode_by_opencv(data, name, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB, dst=image), dtype=np.uint8)


def decode_by_opencv(data: bytes, name: str, flags: int) -> NDArray[Any]:
    """The picture in encoded bytes as OpenCV decodes it with these flags, its colours as BGR.

    Raises `SampleError` as `decode` does.
    """
    form = check_pixels(data, name)
    try:
        # without what should change no pixel
        if form == "TIFF":
            data = image_header.keep_colours_of_tiff(data)
        elif form == "PNG":
            data = strip_png_chunks(data)
        image = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), flags)
    except (cv2.error, ValueError) as error:
        why = error.err if isinstance(error, cv2.error) else str(error)
        raise SampleError(f"cannot decode the {form} '{name}': {why}") from error
    if image is None:
        deep = ", or has values of 32 bits; convert it to 8 or 16" if form == "TIFF" else ""
        raise SampleError(f"cannot decode the {form} '{name}': it is damaged or cut off{deep}")
    return image


def check_pixels(data: bytes, name: str) -> str:
    """The format of an image file, whose header promises no more pixels than are read.

    Raises `SampleError` for others, for formats that are not read, and for a JPEG file that would
    take hours.
    """
    if data.startswith(JPEG_START):
        _check_jpeg(data, name)
        return "JPEG"
    if data.startswith(PNG_START):
        height, width = _read_png_size(data, name)
        _check_limit(height * width, name)
        if max(height, width) > LONGEST_PNG:
            raise SampleError(
                f"'{name}' is {max(height, width):,} pixels long; PNG files of over "
                f"{LONGEST_PNG:,} are not read: cut it into parts"
            )
        return "PNG"
    form = image_header.name_format(data)
    if form is None:
        formats = ", ".join(("JPEG", "PNG", *image_header.MAGIC))
        why = f"its format is none of {formats}; convert it" if data else "it is empty"
        raise SampleError(f"cannot decode the image '{name}': {why}")
    _check_limit(image_header.count_pixels(data), name)
    return form


def _check_jpeg(data: bytes, name: str) -> None:
    height, width = _read_jpeg_size(data, name)
    _check_limit(height * width, name)
    most = min(MOST_SCANS, max(ALWAYS_SCANS, MOST_SCANNED // max(height * width, 1)))
    # what stands in metadata, or behind the picture as a phone's film does, only looks like a scan
    if not image_header.has_more_scan_marks(data, most):
        return
    scans = image_header.count_scans(data)
    if scans > most:
        raise SampleError(
            f"'{name}' has {scans:,} scans, over {most} for its {height * width:,} pixels; "
            "save it again"
        )


def _read_jpeg_size(data: bytes, name: str) -> tuple[int, int]:
    try:
        height, width, *_ = simplejpeg.decode_jpeg_header(data)
    except ValueError as error:
        raise SampleError(f"cannot decode the JPEG '{name}': {error}") from error
    return int(height), int(width)


def _read_png_size(data: bytes, name: str) -> tuple[int, int]:
    try:
        width, height = struct.unpack_from(">II", data, 16)
    except struct.error as error:
        raise SampleError(f"cannot decode the PNG '{name}': {CUT_OFF.format(len(data))}") from error
    return height, width


def _check_limit(pixels: int, name: str) -> None:
    most = read_max_pixels()
    if pixels > most:
        raise SampleError(
            f"the header of '{name}' states {pixels:,} pixels, over {most:,}: {RAISE_THE_LIMIT}"
        )


def strip_png_chunks(data: bytes) -> bytes:
    """The bytes of a PNG file without the chunks that change no pixel.

    libpng prints its complaints about those itself, on the stderr of the whole process.
    Raises `ValueError` where the picture is cut off or a checksum of it is wrong.
    """
    parts, image_chunks = [data[: len(PNG_START)]], 0
    pixels = zlib.decompressobj()
    for kind, start, end in _list_png_chunks(data):
        if end > len(data):
            if kind in PNG_NEEDED or not image_chunks:
                raise ValueError(CUT_OFF.format(len(data)))
            break
        if kind in PNG_NEEDED:
            image_chunks += kind == b"IDAT"
            if zlib.crc32(data[start + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
                raise ValueError(f"the checksum of its {kind.decode()} at byte {start:,} is wrong")
        if kind == b"IEND":
            return b"".join([*parts, PNG_END])
        if kind not in PNG_IGNORED:
            parts.append(data[start:end])
    for part in parts[1:]:
        rest = part[8:-4] if part[4:8] == b"IDAT" else b""
        while rest and not pixels.eof:
            # in pieces: a few kB may hold gigabytes
            pixels.decompress(rest, PIECE)
            rest = pixels.unconsumed_tail
    if not pixels.eof:
        raise ValueError(CUT_OFF.format(len(data)))
    return b"".join([*parts, PNG_END])


def _list_png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Each chunk's name, first byte and end, which lies beyond the file where it is cut off."""
    at = len(PNG_START)
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 8], at, at + 12 + length
        at += 12 + length


def size(path: Place) -> tuple[int, int]:
    """Height and width of the image in a file, as its header says them.

    An AVIF file is decoded, as it may say that it is turned. Raises `SampleError` as `read` does.
    """
    try:
        with path.open("rb") as file:
            start = file.read(START)
    except OSError as error:
        raise SampleError(f"cannot read the image '{path}': {error.strerror}") from error
    sides = _read_size(start) or _read_size(read_content(path))
    if sides:
        return sides
    height, width = read(path).shape[:2]
    return height, width


def _read_size(data: bytes) -> tuple[int, int] | None:
    try:
        if data.startswith(JPEG_START):
            return _read_jpeg_size(data, "")
        if data.startswith(PNG_START):
            return _read_png_size(data, "")
    except SampleError:
        return None
    is_turned = image_header.name_format(data) == "AVIF"
    return None if is_turned else image_header.read_size(data)


def encode(image: Image, suffix: str) -> bytes:
    """The image as a file of the format that `suffix` names (`.png`, `.jpg` …).

    Raises `UsageError` for a suffix that names none.
    """
    if suffix.lower() not in SUFFIXES:
        raise unknown("image format", suffix, sorted(SUFFIXES))
    return cv2.imencode(suffix.lower(), image[..., ::-1])[1].tobytes()


def thumbnail(image: Image, longest: int = 480, quality: int = 82) -> bytes:
    """A JPEG of the image, its longest side at most `longest` pixels."""
    height, width = image.shape[:2]
    scale = longest / max(height, width)
    if scale < 1:
        size = (max(round(width * scale), 1), max(round(height * scale), 1))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    return bytes(simplejpeg.encode_jpeg(np.ascontiguousarray(image), quality, "RGB"))
