"""Draws boxes and attribution maps on pictures."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import cv2
import numpy as np

from steadyeye.core.format import RIGHT_TO_LEFT
from steadyeye.core.report_types import Heat, Mark
from steadyeye.core.types import Image

COLOURS = {"truth": (255, 255, 255), "right": (0, 158, 115), "wrong": (213, 94, 0)}
"""Colours of boxes: Okabe and Ito's green and vermilion; wrong boxes are dashed too."""
INK = (0, 0, 0)
"""Colour of letters on the box's colour: a contrast of at least 5 : 1."""
DARK = (20, 20, 20)
LONGEST = 480
"""Pixels of the longer side of a picture in a report."""
FONT = cv2.FONT_HERSHEY_SIMPLEX
LETTERS = 0.65
"""Scale of OpenCV's font in a picture 480 pixels long: capitals of 14 pixels, 10 on a phone."""
DASH = 9
"""Length of a dash in a picture 480 pixels long; the gap after it is two thirds as long."""

Rectangle: TypeAlias = tuple[int, int, int, int]


def draw_marks(image: Image, marks: Sequence[Mark]) -> Image:
    """A copy of the image, (h, w, 3) uint8 RGB, with its marks; the image itself without any.

    Labels have their box's colour as background, stay inside the image, and do not overlap as long
    as there is room.
    """
    if not marks:
        return image
    out = image.copy()
    # so that lines and letters have one size in the thumbnail, whatever that of the image
    unit = max(max(image.shape[:2]) / 480, 1.0)
    width = max(round(2 * unit), 1)
    for mark in marks:
        x0, y0, x1, y1 = (round(value) for value in mark.box)
        cv2.rectangle(out, (x0, y0), (x1, y1), DARK, width + 2)
        step = round(DASH * unit) if mark.kind == "wrong" else 0
        for start, stop in _strokes((x0, y0, x1, y1), step):
            cv2.line(out, start, stop, COLOURS[mark.kind], width)
    texts = [mark for mark in marks if mark.text]
    for mark, place in zip(texts, label_places(out.shape[:2], texts, unit), strict=True):
        x0, y0, x1, y1 = place
        cv2.rectangle(out, (x0, y0), (x1, y1), COLOURS[mark.kind], cv2.FILLED)
        at = (x0 + round(3 * unit), y1 - round(5 * unit))
        thick = max(round(1.2 * unit), 1)
        # OpenCV draws letters from left to right, and joins none
        text = RIGHT_TO_LEFT.sub(lambda name: name[0][::-1], mark.text)
        cv2.putText(out, text, at, FONT, LETTERS * unit, INK, thick, cv2.LINE_AA)
    return out


def enlarge(image: Image, marks: Sequence[Mark]) -> tuple[Image, tuple[Mark, ...]]:
    """An image and its marks, enlarged to `LONGEST` if it is smaller and has marks.

    Labels have the same height on every picture: on a small image they would cover the objects.
    """
    scale = LONGEST / max(image.shape[:2])
    if not marks or scale <= 1:
        return image, tuple(marks)
    size = round(image.shape[1] * scale), round(image.shape[0] * scale)
    large = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_NEAREST), dtype=np.uint8)
    moved = (replace(mark, box=tuple(value * scale for value in mark.box)) for mark in marks)
    return large, tuple(moved)


def label_places(shape: tuple[int, int], marks: Sequence[Mark], unit: float) -> list[Rectangle]:
    """The places of labels, x0 y0 x1 y1 in pixels of an image of `shape`, h w.

    Above the upper left corner of their boxes, shifted into the image, and down below earlier
    labels.
    """
    height, width = shape
    places: list[Rectangle] = []
    for mark in marks:
        (wide, high), _ = cv2.getTextSize(mark.text, FONT, LETTERS * unit, 1)
        wide, high = round(wide + 6 * unit), round(high + 9 * unit)
        x = max(min(round(mark.box[0]), width - wide), 0)
        y = first = max(min(round(mark.box[1]) - high, height - high), 0)
        while y + high <= height and any(_overlap((x, y, x + wide, y + high), p) for p in places):
            y += high + 1
        y = y if y + high <= height else first
        places.append((x, y, x + wide, y + high))
    return places


def _overlap(first: Rectangle, other: Rectangle) -> bool:
    return (
        first[0] < other[2] and other[0] < first[2] and first[1] < other[3] and other[1] < first[3]
    )


def _strokes(box: Rectangle, dash: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """The lines of a rectangle: its sides, or their dashes if `dash` is not 0."""
    x0, y0, x1, y1 = box
    for (ax, ay), (bx, by) in pairwise([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]):
        length = max(abs(bx - ax), abs(by - ay))
        step = dash * 5 // 3 if dash else max(length, 1)
        for at in range(0, max(length, 1), step):
            begin, end = at / max(length, 1), min(at + (dash or length), length) / max(length, 1)
            yield (
                (round(ax + (bx - ax) * begin), round(ay + (by - ay) * begin)),
                (round(ax + (bx - ax) * end), round(ay + (by - ay) * end)),
            )


def draw_heat(image: Image, heat: Heat | None) -> Image:
    """The image in dim grey under the colours of a map; the image itself without one.

    From grey for 0 over violet and orange to light yellow: OpenCV's inferno, whose lightness rises
    evenly, so that it is readable without red-green vision.
    """
    if heat is None:
        return image
    size = image.shape[1], image.shape[0]
    values = np.asarray(heat.rows, dtype=np.float32)
    strength = np.clip(cv2.resize(values, size, interpolation=cv2.INTER_CUBIC), 0, 1)
    levels = np.round(strength * 255).astype(np.uint8)
    colours = cv2.applyColorMap(levels, cv2.COLORMAP_INFERNO)[..., ::-1].astype(np.float32)
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)[..., None] * 0.6
    opacity = np.minimum(1.6 * strength, 0.8)[..., None]
    return np.asarray(grey * (1 - opacity) + colours * opacity, dtype=np.uint8)
