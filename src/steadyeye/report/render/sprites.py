"""The frames of a film as one JPEG of tiles, small enough for a page."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from steadyeye.core.types import Image

BLOCK = 16  # pixels that JPEG codes together: tiles of whole blocks do not bleed into each other
LONGEST = 320  # pixels of the longest side of a tile
SMALLEST = 96 * 54  # pixels of a tile, below which little is seen
BYTES_PER_PIXEL = 0.2  # measured on frames of DAVIS at the first of `QUALITIES`: 0.13 to 0.21
QUALITIES = (55, 40, 25)
SHRINK = 0.7


@dataclass(frozen=True)
class Sprite:
    """Tiles of one size, in rows of `columns`, as a JPEG.

    `width`, `height`: of the images themselves, in pixels, whose shape a tile has only nearly.
    `tile`: width and height of a tile. `frames`: how many there are.
    """

    jpeg: bytes
    width: int
    height: int
    tile: tuple[int, int]
    columns: int
    frames: int

    def pack(self) -> bytes:
        """The sprite as bytes: a line of JSON, then the JPEG."""
        about = {key: value for key, value in asdict(self).items() if key != "jpeg"}
        return json.dumps(about).encode() + b"\n" + self.jpeg


def unpack(data: bytes) -> Sprite:
    """The sprite that `Sprite.pack` made these bytes of."""
    line, _, jpeg = data.partition(b"\n")
    about = json.loads(line)
    return Sprite(**{**about, "tile": tuple(about["tile"])}, jpeg=jpeg)


def area(frames: int, most: int) -> int:
    """The pixels of a tile of which `frames` take about `most` bytes.

    Not fewer than `SMALLEST`, of which many take more.
    """
    return max(int(most / BYTES_PER_PIXEL / max(frames, 1)), SMALLEST)


def tile(image: Image, pixels: int) -> Image:
    """The image, (h, w, 3) uint8 RGB, as a tile of whole blocks of about `pixels` or fewer."""
    height, width = image.shape[:2]
    scale = min(np.sqrt(pixels / (height * width)), LONGEST / max(height, width), 1.0)
    return _resize(image, scale)


def join(tiles: Sequence[Image], shape: tuple[int, int], most: int) -> Sprite:
    """The sprite of tiles of one size, of images of `shape`, height and width.

    `most`: bytes; what noise makes larger is coded at less quality, and then smaller.
    """
    import simplejpeg

    height, width = tiles[0].shape[:2]
    columns = int(np.ceil(np.sqrt(len(tiles) * height / width)))
    sheet = np.zeros((-(-len(tiles) // columns) * height, columns * width, 3), dtype=np.uint8)
    for i, each in enumerate(tiles):
        y, x = i // columns * height, i % columns * width
        sheet[y : y + height, x : x + width] = each
    for quality in QUALITIES:
        jpeg = bytes(simplejpeg.encode_jpeg(sheet, quality, "RGB", "420"))
        if len(jpeg) <= most:
            break
    else:
        if min(height, width) > BLOCK:
            return join([_resize(each, SHRINK) for each in tiles], shape, most)
    return Sprite(jpeg, shape[1], shape[0], (width, height), columns, len(tiles))


def _resize(image: Image, scale: float) -> Image:
    """The image at a scale, in whole blocks, one at least; never larger than it was by a block."""
    import cv2  # which a report, that only reads films, does without

    height, width = image.shape[:2]
    size = tuple(max(int(each * scale / BLOCK), 1) * BLOCK for each in (width, height))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
