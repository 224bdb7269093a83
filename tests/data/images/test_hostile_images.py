"""Small files that are complete images, with other data that would fill the memory."""

import resource
import struct
import zlib
from functools import cache

import cv2
import numpy as np
import pytest

from steadyeye.data.images import image_file

PIXELS = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
ZEROS = 2**27


def encode(suffix):
    return cv2.imencode(suffix, PIXELS[..., ::-1])[1].tobytes()


def put_in_png(kind, content):
    """A PNG file with a chunk of a kind before its picture."""
    chunk = kind + content
    packed = struct.pack(">I", len(content)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    png = encode(".png")
    at = png.index(b"IDAT") - 4
    return png[:at] + packed + png[at:]


@cache
def pack_zeros():
    return zlib.compress(bytes(ZEROS), 9)


def write_tiff(tag=0, kind=4, count=0, next_directory=0):
    """A grey TIFF file of PIXELS' first channel, with a tag of so many values more."""
    numbers = {256: 16, 257: 16, 258: 8, 259: 1, 262: 1, 273: 300, 277: 1, 278: 16, 279: 256}
    entries = [(field, 4, 1, value) for field, value in numbers.items()]
    entries += [(tag, kind, count, 600)] if tag else []
    head = b"II*\0" + struct.pack("<IH", 8, len(entries))
    head += b"".join(struct.pack("<HHII", *entry) for entry in entries)
    head += struct.pack("<I", next_directory)
    return head.ljust(300, b"\0") + PIXELS[..., 0].tobytes()


HOSTILE = {
    "png, text that unpacks to 128 MB": lambda: put_in_png(b"zTXt", b"Comment\0\0" + pack_zeros()),
    "png, text of a language": lambda: put_in_png(b"iTXt", b"C\0\1\0\0\0" + pack_zeros()),
    "png, colour profile": lambda: put_in_png(b"iCCP", b"profile\0\0" + pack_zeros()),
    "png, two billion frames": lambda: put_in_png(b"acTL", struct.pack(">II", 2**31 - 1, 0)),
    "jpeg, 8 MB of empty comments": lambda: (
        encode(".jpg")[:2] + b"\xff\xfe\0\2" * 2**21 + encode(".jpg")[2:]
    ),
    "jpeg, 8 MB of metadata": lambda: (
        encode(".jpg")[:2] + (b"\xff\xe1\xff\xff" + bytes(65533)) * 128 + encode(".jpg")[2:]
    ),
    "tiff, a directory that follows itself": lambda: write_tiff(next_directory=8),
    "tiff, a text of 4 GB": lambda: write_tiff(305, 2, 2**32 - 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_metadata_of_an_image_take_no_memory(name):
    data = HOSTILE[name]()
    image = image_file.decode(encode(f".{name.split(',')[0]}"), "plain")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pixels = image_file.decode(data, name)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**16  # kB
    grey = np.broadcast_to(PIXELS[..., :1], image.shape)
    np.testing.assert_array_equal(pixels, grey if name.startswith("tiff") else image)


def test_of_an_animation_the_picture_that_other_programs_show_is_read():
    later = zlib.compress(b"\0" * (16 * 49))
    control = struct.pack(">IIIIIHHBB", 0, 16, 16, 0, 0, 1, 1, 0, 0)
    chunks = ((b"acTL", struct.pack(">II", 1, 0)), (b"fcTL", control), (b"fdAT", bytes(4) + later))
    png = encode(".png")
    end = png.index(b"IEND") - 4
    frames = [
        struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c)) for k, c in chunks
    ]
    # the still picture is no frame of the animation: its control comes after the picture's data
    animated = png[:33] + frames[0] + png[33:end] + frames[1] + frames[2] + png[end:]
    np.testing.assert_array_equal(image_file.decode(animated, "animated"), PIXELS)
