"""The same mistake once: said by several models, or frame after frame of a video."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.explain.mining.overlap_kernel import share_of

SAME = 0.5  # IoU above which two boxes of a class are one mistake, as NAO matches boxes
GAP = 10  # frames of the data for which a mistake may be gone and is then still the same


def tracks(
    key: NDArray[np.int64],
    frame: NDArray[np.int64],
    boxes: NDArray[np.float64],
    score: NDArray[np.float64],
) -> NDArray[np.int64]:
    """(n,) which mistake each of n detections is of, numbered from 0.

    `key`: what must be the same, such as video and class. `frame`: the place of the image in its
    video; images that follow nothing have keys of their own. `boxes`: (n, 4). In rising order of
    frames, in a frame by falling score, each joins the mistake of its key whose last box it
    overlaps most, at an IoU above `SAME`, if that was seen at most `GAP` frames ago; else it
    begins another.
    """
    order = np.lexsort((np.arange(len(key)), -score, frame, key))
    found = np.empty(len(key), dtype=np.int64)
    found[order] = _follow_boxes(
        key[order], frame[order], np.ascontiguousarray(boxes[order]), (SAME, GAP)
    )
    return found


@njit(nogil=True, cache=True)
def _follow_boxes(
    key: NDArray[np.int64], frame: NDArray[np.int64], boxes: NDArray[np.float64], how: Any
) -> NDArray[np.int64]:
    same, gap = how
    n = len(key)
    number = np.empty(n, dtype=np.int64)
    live = np.empty(n, dtype=np.int64)  # the last detection of each mistake that may go on
    alive = total = 0
    for i in range(n):
        if i > 0 and key[i] != key[i - 1]:
            alive = 0
        kept = 0
        best, place = same, -1
        for j in range(alive):
            last = live[j]
            if frame[i] - frame[last] > gap:
                continue
            live[kept] = last
            share = share_of(boxes, i, boxes, last, False)
            if share > best:
                best, place = share, kept
            kept += 1
        alive = kept
        if place < 0:
            number[i] = total
            total += 1
            live[alive] = i
            alive += 1
            continue
        number[i] = number[live[place]]
        # of one frame the most confident came first and stays what others are held against
        if frame[live[place]] != frame[i]:
            live[place] = i
    return number
