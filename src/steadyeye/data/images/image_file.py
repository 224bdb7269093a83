"""Image files to RGB arrays and back."""

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import cv2
import numpy as np
import simplejpeg

from steadyeye.core.errors import SampleError, unknown
from steadyeye.core.storage import contents
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.remote_path import Remote
from steadyeye.core.types import Image

MOST_PIXELS = 2**28  # a file of a few kB can promise far more than memory holds

START = 2**16  # bytes in which most headers end; those with long metadata are read whole

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff"})

MAGIC = {
    "PNG": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "TIFF": re.compile(rb"II\*\x00|MM\x00\*|II\+\x00|MM\x00\+"),
    "WebP": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "GIF": re.compile(rb"GIF8[79]a"),
    "BMP": re.compile(rb"BM"),
}
"""How the files of a format begin; JPEG files have a decoder of their own."""

PNG_START = b"\x89PNG\r\n\x1a\n"
PNG_END = b"\x00\x00\x00\x00IEND\xaeB`\x82"
PNG_NEEDED = frozenset({b"IHDR", b"PLTE", b"IDAT"})
"""Chunks without which there is no picture."""

PNG_IGNORED = frozenset(
    {b"iCCP", b"sRGB", b"gAMA", b"cHRM", b"cICP", b"mDCV", b"cLLI", b"sBIT", b"hIST", b"sPLT"}
    | {b"tEXt", b"zTXt", b"iTXt", b"tIME", b"pHYs", b"eXIf"}
)
"""Chunks that change no pixel as OpenCV decodes them: colour profiles, texts, times and sizes."""

if "OPENCV_LOG_LEVEL" not in os.environ:
    # it prints what it makes of odd files; what matters of it is raised
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)


@dataclass(frozen=True)
class EncodedImage:
    """What decodes the image in encoded bytes when it is called.

    `read_bytes`: gives the bytes, wherever they lie. `name`: what an error calls the image.
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
    """What reads the image in a file when it is called."""

    path: Place

    def __call__(self) -> Image:
        """The image, as `read` gives it."""
        return read(self.path)

    def made_of(self) -> tuple[object, ...]:
        """The decoder alone: the key names the bytes."""
        return (decode,)

    def key(self) -> str:
        """What the file holds, as a digest; of an object, what its store says of it.

        Raises `SampleError` where it cannot be read.
        """
        if isinstance(self.path, Remote):
            return f"object {self.path} {_version(self.path)}"
        return key(_content(self.path))

    def stamp(self) -> str | None:
        """What the disk says of the file, as `contents.stamp`; None where it says nothing.

        None for an object of a store too: there its version tells.
        """
        return None if isinstance(self.path, Remote) else contents.read_stamp(self.path) or None


def read(path: Place) -> Image:
    """The image in a file, (h, w, 3) uint8 RGB; EXIF rotation is not applied, as in training code.

    Raises `SampleError` for a file that is missing, truncated or no image.
    """
    return decode(_content(path), str(path))


def _content(path: Place) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SampleError(f"cannot read the image '{path}': {error.strerror}") from error


def _version(path: Remote) -> str:
    try:
        return path.version()
    except OSError as error:
        raise SampleError(f"cannot read the image '{path}': {error.strerror}") from error


def key(data: bytes) -> str:
    """What names the encoded bytes of an image, wherever they lie."""
    return f"file {hashlib.blake2b(data, digest_size=32).hexdigest()}"


def decode(data: bytes, name: str) -> Image:
    """The image in encoded bytes; `name` is what an error calls it.

    One that promises more than 2²⁸ pixels is refused before it is decoded.
    """
    pixels = read_promised_pixels(data)
    if pixels > MOST_PIXELS:
        raise SampleError(f"'{name}' promises {pixels:,} pixels, over {MOST_PIXELS:,}; shrink it")
    if data[:2] == b"\xff\xd8":
        try:
            return simplejpeg.decode_jpeg(data, "RGB")  # type: ignore[no-any-return]
        except ValueError as error:
            raise SampleError(f"cannot decode the JPEG '{name}': {error}") from error
    form = next((form for form, magic in MAGIC.items() if magic.match(data)), None)
    if form == "PNG":
        try:
            data = strip_png_chunks(data)
        except ValueError as error:
            raise SampleError(f"cannot decode the PNG '{name}': {error}") from error
    flags = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    image = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), flags) if data else None
    if image is None:
        why = "it is empty" if not data else "it is damaged or cut off"
        why = why if form or not data else "its format is unknown"
        raise SampleError(f"cannot decode the {form or 'image'} '{name}': {why}")
    return np.ascontiguousarray(image[..., ::-1])


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
                raise ValueError(f"it is cut off after {len(data):,} bytes")
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
        if part[4:8] == b"IDAT":
            pixels.decompress(part[8:-4])
    if not pixels.eof:
        raise ValueError(f"it is cut off after {len(data):,} bytes")
    return b"".join([*parts, PNG_END])


def _list_png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Each chunk's name, first byte and end, which lies beyond the file where it is cut off."""
    at = len(PNG_START)
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 8], at, at + 12 + length
        at += 12 + length


def read_promised_pixels(data: bytes) -> int:
    """The pixels that the header of a JPEG or PNG file promises; 0 where it cannot be told.

    Of other formats OpenCV itself refuses more than 2³⁰.
    """
    height, width = _header(data) or (0, 0)
    return height * width


def size(path: Place) -> tuple[int, int]:
    """Height and width of the image in a file: a JPEG's or PNG's header says them.

    Other formats are decoded. Raises `SampleError` as `read` does.
    """
    try:
        with path.open("rb") as file:
            sides = _header(file.read(START)) or _header(path.read_bytes())
    except OSError as error:
        raise SampleError(f"cannot read the image '{path}': {error.strerror}") from error
    if sides:
        return sides
    height, width = read(path).shape[:2]
    return height, width


def _header(data: bytes) -> tuple[int, int] | None:
    """Height and width in the header of a JPEG or PNG file; None where they cannot be told."""
    if data[:8] == PNG_START and len(data) >= 24:
        return int.from_bytes(data[20:24], "big"), int.from_bytes(data[16:20], "big")
    if data[:2] == b"\xff\xd8":
        try:
            height, width, *_ = simplejpeg.decode_jpeg_header(data)
        except ValueError:
            return None
        return int(height), int(width)
    return None


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
