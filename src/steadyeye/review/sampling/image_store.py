"""The pictures of a set: JPEG files named by their content."""

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import simplejpeg

from steadyeye.core.storage.confinement import confine
from steadyeye.core.storage.files import make_folder, write_file, write_output
from steadyeye.core.types import Image
from steadyeye.data.annotations.review_set import image_name, image_path
from steadyeye.data.images import image_file
from steadyeye.data.images.image_header import UPRIGHT, find_orientation

QUALITY = 95
START, SCAN, EXIF = b"\xff\xd8", 0xDA, b"Exif\0\0"


def store_image(out: Path, image: Callable[[], Image]) -> tuple[str, Image]:
    """Stores a picture under images/; returns its name and the picture.

    A JPEG file is stored byte for byte, but without its EXIF orientation: models get it unrotated,
    and so must people. Anything else becomes a JPEG of quality 95.
    """
    original = _read_original(image)
    pixels = image()
    if original is None:
        content = simplejpeg.encode_jpeg(np.ascontiguousarray(pixels), QUALITY, "RGB", "444")
    else:
        content = strip_orientation(original)
    name = image_name(content)
    path = image_path(out, name)
    if not path.is_file():
        write_output(path, content)
    return name, pixels


def read_size(path: Path) -> tuple[int, int]:
    """Width and height of a stored picture, from its header.

    Raises `SampleError` where it cannot be read.
    """
    height, width = image_file.size(path)
    return width, height


def copy_image(root: Path, name: str, target: Path) -> None:
    """Copies a stored picture to another path, unless the path exists."""
    if not target.exists():
        path = image_path(root, name)
        confine(root, root / "set.json")(path.relative_to(root).as_posix())
        make_folder(target.parent)
        write_file(target, path.read_bytes())


def strip_orientation(content: bytes) -> bytes:
    """The JPEG file without its EXIF orientation; its pixels stay as they are."""
    parts, at = [START], len(START)
    while at + 4 <= len(content) and content[at] == 0xFF and content[at + 1] != SCAN:
        (length,) = struct.unpack(">H", content[at + 2 : at + 4])
        part = content[at : at + 2 + length]
        if part[4:10] != EXIF or find_orientation(part[10:]) == UPRIGHT:
            parts.append(part)
        at += len(part)
    return b"".join([*parts, content[at:]])


def _read_original(image: Callable[[], Image]) -> bytes | None:
    """The bytes of the JPEG file that an image is read from; None for other files."""
    if not isinstance(image, image_file.ImageFile) or not image.path.is_file():
        return None
    content = image.path.read_bytes()
    return content if content[:2] == START else None
