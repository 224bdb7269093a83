"""True boxes as files write them: corners, COCO's boxes and its two kinds of masks, VOC's XML."""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_files import read_number
from steadyeye.data.images.image_file import VARIABLE, read_max_pixels

SIDES = ("xmin", "ymin", "xmax", "ymax")
"""The sides of a box in VOC's XML."""

MOST_BITS = 50
"""Bits of a run length: no mask has runs of more."""


def corners(box: Sequence[float]) -> tuple[float, float, float, float]:
    """x0 y0 x1 y1 of COCO's x y width height."""
    x, y, width, height = (float(value) for value in box)
    return x, y, x + width, y + height


def inside(
    box: Sequence[float], width: float, height: float, slack: float = 1.0
) -> tuple[float, float, float, float] | None:
    """The box cut to the image; None where it leaves it by more than `slack` or is empty.

    `box`: x0 y0 x1 y1 in pixels. Tools round, so that boxes reach past the edge by a little.
    """
    x0, y0, x1, y1 = (float(value) for value in box)
    if not (x0 >= -slack and y0 >= -slack and x1 <= width + slack and y1 <= height + slack):
        return None
    x0, y0, x1, y1 = max(x0, 0.0), max(y0, 0.0), min(x1, float(width)), min(y1, float(height))
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def read_xml_size(root: Element, path: Place) -> tuple[int, int] | None:
    """Height and width of an image, where VOC's XML says them."""
    height, width = (
        read_number(root.findtext(f"size/{side}") or "0", f"'{path}': the size's {side}")
        for side in ("height", "width")
    )
    return (int(height), int(width)) if height > 0 and width > 0 else None


def once(objects: Boxes) -> Boxes:
    """The boxes of an image, each once: the same class and corners twice are one object."""
    rows = np.column_stack([objects.boxes, objects.labels, objects.crowd])
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    if len(first) == len(objects):
        return objects
    crowd, area = objects.crowd[first], objects.area[first]
    return Boxes(objects.boxes[first], objects.labels[first], crowd, area)


def repeats(
    more: int, of: int, noun: str = "box", alike: str = "class and corners"
) -> tuple[str, ...]:
    """The note that boxes stood in a file more than once; none where none did."""
    note = f"in the file twice, with the same image, {alike}; each counts once"
    return (f"{more:,} of {number_of(of, noun)} {note}",) if more else ()


def extent(mask: NDArray[np.bool_]) -> tuple[float, float, float, float] | None:
    """The tight half-open box around a mask, (h, w); None for an empty one."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    return float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1)


def of_segmentation(segmentation: Any) -> tuple[float, float, float, float] | None:
    """The box around COCO's polygons or its run-length mask; None for an empty one."""
    if isinstance(segmentation, Mapping):
        return extent(run_lengths(segmentation))
    if not any(len(polygon) for polygon in segmentation):
        return None
    points = np.concatenate([np.asarray(polygon, dtype=np.float64) for polygon in segmentation])
    xs, ys = points[0::2], points[1::2]
    return float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max())


def run_lengths(mask: Mapping[str, Any]) -> NDArray[np.bool_]:
    """The mask, (h, w), of run lengths down the columns, of which the first is background.

    `counts`: a list, or the text in which COCO packs it: numbers in groups of five bits, from the
    third on as differences to the last but one. Raises `UsageError` if they do not fill it, and for
    a mask of more pixels than an image may have.
    """
    height, width = (int(side) for side in mask["size"])
    counts = mask["counts"]
    runs = _unpack_runs(counts) if isinstance(counts, str | bytes) else list(counts)
    if min(height, width, *runs, 0) < 0 or sum(runs) != height * width:
        raise UsageError(
            f"a mask of {height} × {width} pixels has runs that sum to {sum(runs)}; export it again"
        )
    if height * width > read_max_pixels():
        raise UsageError(
            f"a mask has {height} × {width} pixels, over {read_max_pixels():,}; make it smaller, "
            f"or set {VARIABLE} to a higher number"
        )
    values = np.arange(len(runs)) % 2 == 1
    return np.repeat(values, runs).reshape(width, height).T


def _unpack_runs(text: str | bytes) -> list[int]:
    codes = text.encode() if isinstance(text, str) else text
    runs: list[int] = []
    value = shift = 0
    for code in codes:
        bits = code - 48
        if shift > MOST_BITS:
            raise UsageError("a mask has a run of more pixels than any image; export it again")
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:  # the sign of the last group
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = shift = 0
    return runs
