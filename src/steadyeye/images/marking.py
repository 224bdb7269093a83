"""Boxes drawn upon pictures, and maps laid over them."""

from collections.abc import Sequence

import cv2
import numpy as np

from steadyeye.core.sections import Heat, Mark
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


def heated(image: Image, heat: Heat | None) -> Image:
    """The image in dim grey under the colours of a map; the image itself without one.

    From nothing, which stays grey, over violet and orange to light yellow: OpenCV's inferno, whose
    lightness rises evenly, so that it is read without telling red from green.
    """
    if heat is None:
        return image
    size = image.shape[1], image.shape[0]
    values = np.asarray(heat.rows, dtype=np.float32)
    strength = np.clip(cv2.resize(values, size, interpolation=cv2.INTER_CUBIC), 0, 1)
    levels = np.round(strength * 255).astype(np.uint8)
    colours = cv2.applyColorMap(levels, cv2.COLORMAP_INFERNO)[..., ::-1].astype(np.float32)
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.float32)[..., None] * 0.6
    shown = np.minimum(1.6 * strength, 0.8)[..., None]
    return np.asarray(grey * (1 - shown) + colours * shown, dtype=np.uint8)
