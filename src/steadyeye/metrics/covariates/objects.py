"""How the main object of a frame changes place and size, by its boxes."""

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD, Boxes, areas

NAN = float("nan")


def box_changes(anchor: Boxes | None, frame: Boxes | None, diagonal: float) -> dict[str, float]:
    """How the largest box of the anchor is changed in another frame.

    It is followed to the box of its class that overlaps it most (IoU; where none overlaps, the one
    with the nearest centre). `box_area_change`: natural logarithm of the ratio of areas, above 0:
    larger. `box_shift`: distance of the centres, % of the frame's diagonal. `diagonal`: pixels.
    NaN where the anchor has no box or the frame none of that class; neither crowds nor objects
    outside the classes count.
    """
    gone = {"box_area_change": NAN, "box_shift": NAN}
    if anchor is None or frame is None:
        return gone
    aside = anchor.crowd | (anchor.labels == OOD)
    if aside.all():
        return gone
    size = np.where(aside, -1.0, areas(anchor.boxes))
    largest = int(size.argmax())
    box, label = anchor.boxes[largest], anchor.labels[largest]
    others = frame.boxes[(frame.labels == label) & ~frame.crowd]
    if not len(others):
        return gone
    shift = np.hypot(*(_centres(others) - _centres(box[None])).T)
    found = int(np.lexsort((shift, -_overlap(box, others)))[0])
    ratio = areas(others)[found] / size[largest]
    return {
        "box_area_change": float(np.log(ratio)) if ratio > 0 else NAN,
        "box_shift": 100 * float(shift[found]) / diagonal,
    }


def _centres(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((boxes[:, :2] + boxes[:, 2:]) / 2)


def _overlap(box: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) IoU of one box with n others."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    common = np.prod(np.maximum(sides, 0), axis=1)
    return np.asarray(common / np.maximum(areas(box[None])[0] + areas(others) - common, 1e-12))
