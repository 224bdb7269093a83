"""The kernel of mining: what lies under each detection, in one pass over the boxes of its image."""

from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable
from steadyeye.explain.mining.class_hierarchy import Kin

HALF = 0.5  # of a detection inside a crowd, from which on the crowd may be what it saw

Found: TypeAlias = tuple[
    NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]
]


def overlaps(
    said: BoxTable, label: NDArray[np.int64], truth: BoxTable, kin: Kin, iou: float
) -> Found:
    """What lies under each of n detections of any classes.

    `label`: (n,) the data's class of each, −1: none. Returns four (n,) arrays: the row of the true
    box of highest IoU (int64; −1 where none overlaps, the first of equals), that IoU (float64),
    whether any true box at an IoU *above* `iou` has its class or one above or below it (bool), and
    whether half of it or more lies in a crowd of such a class (bool). Crowds are no true boxes.
    """
    order = np.argsort(truth.image, kind="stable")
    images = truth.image[order]
    first = np.searchsorted(images, said.image, side="left")
    last = np.searchsorted(images, said.image, side="right")
    corners = np.ascontiguousarray(truth.boxes[order])
    row, best, own, crowd = _find_overlaps(
        (np.ascontiguousarray(said.boxes), np.asarray(label, dtype=np.int64), first, last),
        (corners, truth.label[order].astype(np.int64), truth.crowd[order]),
        (kin.first, kin.members),
        iou,
    )
    # −1 stays what it is
    return np.append(order, -1)[row].astype(np.int64), best, own, crowd


# no tuples within its loops: numba counts references to every array in a tuple
@njit(nogil=True, cache=True)
def _find_overlaps(said: Any, truth: Any, kin: Any, limit: float) -> Found:
    boxes, label, first, last = said
    corners, there, crowd = truth
    kin_first, kin_members = kin
    n = len(label)
    row, best = np.full(n, -1, dtype=np.int64), np.zeros(n)
    own, inside = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    for d in range(n):
        for t in range(first[d], last[d]):
            share = share_of(boxes, d, corners, t, crowd[t])
            if share <= 0:
                continue
            same = label[d] >= 0 and label[d] == there[t]
            if label[d] >= 0 and there[t] >= 0 and not same:
                for k in range(kin_first[label[d]], kin_first[label[d] + 1]):
                    same = same or kin_members[k] == there[t]
            if crowd[t]:
                inside[d] = inside[d] or (same and share >= HALF)
                continue
            if share > best[d]:
                row[d], best[d] = t, share
            own[d] = own[d] or (same and share > limit)
    return row, best, own, inside


@njit(nogil=True, cache=True)
def share_of(
    boxes: NDArray[np.float64], d: int, corners: NDArray[np.float64], t: int, crowd: bool
) -> float:
    """The IoU of box d and box t; of a crowd t, the share of d that is inside it. 0 if apart."""
    width = min(boxes[d, 2], corners[t, 2]) - max(boxes[d, 0], corners[t, 0])
    height = min(boxes[d, 3], corners[t, 3]) - max(boxes[d, 1], corners[t, 1])
    if width <= 0 or height <= 0:
        return 0.0
    inside = width * height
    area = (boxes[d, 2] - boxes[d, 0]) * (boxes[d, 3] - boxes[d, 1])
    if crowd:
        return float(inside / area)
    other = (corners[t, 2] - corners[t, 0]) * (corners[t, 3] - corners[t, 1])
    return float(inside / (area + other - inside))
