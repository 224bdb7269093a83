"""Boxes drawn upon pictures."""

from collections.abc import Sequence

import cv2

from steadyeye.core.sections import Mark
from steadyeye.core.types import Image

COLOURS = {"truth": (255, 255, 255), "right": (0, 190, 120), "wrong": (225, 60, 20)}
DARK = (20, 20, 20)


def marked(image: Image, marks: Sequence[Mark]) -> Image:
    """A copy of the image, (h, w, 3) uint8 RGB, with its marks; the image itself without any."""
    if not marks:
        return image
    out = image.copy()
    # so that lines and letters have one size in the thumbnail, whatever that of the image
    unit = max(max(image.shape[:2]) / 480, 1.0)
    width = max(round(2 * unit), 1)
    for mark in marks:
        x0, y0, x1, y1 = (round(value) for value in mark.box)
        cv2.rectangle(out, (x0, y0), (x1, y1), DARK, width + 2)
        cv2.rectangle(out, (x0, y0), (x1, y1), COLOURS[mark.kind], width)
    for mark in marks:
        x, y = round(mark.box[0]), round(max(mark.box[1], 14 * unit))
        for colour, thick in ((DARK, 3 * width), (COLOURS[mark.kind], width)):
            place = (x + width, y - 2 * width)
            font = cv2.FONT_HERSHEY_SIMPLEX
            cv2.putText(out, mark.text, place, font, 0.45 * unit, colour, thick, cv2.LINE_AA)
    return out
