"""Why a box was lost: the kinds of errors of a frame's detections.

Bolya et al., "TIDE: A General Toolbox for Identifying Object Detection Errors", ECCV 2020,
Section 2.2: foreground begins at IoU 0.5, background ends at 0.1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable

FOREGROUND, BACKGROUND = 0.5, 0.1
KINDS = ("classification", "localization", "both", "duplicate", "background", "missed")


@dataclass(frozen=True, eq=False)
class FrameErrors:
    """What a frame's detections are, n of them, and which of its m objects nothing found.

    `kind`: (n,) an index into `KINDS`, or −1 for a true positive and −2 for what lies on a crowd.
    `missed`: (m,) objects that no detection found, and none found badly (a classification or
    localization error accounts for its object).
    """

    kind: NDArray[np.int64]
    missed: NDArray[np.bool_]


def frame_errors(truth: BoxTable, detections: BoxTable) -> FrameErrors:
    """The errors of one frame; tables of that frame alone.

    Matched greedily by falling score, each object once, at IoU ≥ 0.5 with its own class.
    """
    overlap = iou(detections.boxes, truth.boxes)
    plain = ~truth.crowd
    same = detections.label[:, None] == truth.label[None, :]
    kind = np.full(len(detections), -1, dtype=np.int64)
    taken = np.zeros(len(truth), dtype=np.bool_)
    for each in np.argsort(-detections.score, kind="stable"):
        good = same[each] & plain & (overlap[each] >= FOREGROUND)
        free = np.flatnonzero(good & ~taken)
        if len(free):
            taken[free[overlap[each, free].argmax()]] = True
        else:
            kind[each] = _kind(overlap[each], same[each], plain, bool(good.any()))
    accounted = _accounted(kind, overlap, same, plain)
    return FrameErrors(kind, plain & ~taken & ~accounted)


def iou(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, m) intersection over union of (n, 4) and (m, 4) half-open boxes; 0 for empty ones."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=-1)
    sizes = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (one, other)]
    union = sizes[0][:, None] + sizes[1][None, :] - shared
    share = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return np.asarray(share, dtype=np.float64)


def _kind(
    overlap: NDArray[np.float64], same: NDArray[np.bool_], plain: NDArray[np.bool_], twice: bool
) -> int:
    if (overlap[~plain] >= FOREGROUND).any():
        return -2
    near = np.where(plain, overlap, 0)
    own, others = near[same].max(initial=0), near[~same].max(initial=0)
    if twice:
        return KINDS.index("duplicate")
    if own >= BACKGROUND:
        return KINDS.index("localization")
    if others >= FOREGROUND:
        return KINDS.index("classification")
    return KINDS.index("both" if others >= BACKGROUND else "background")


def _accounted(
    kind: NDArray[np.int64],
    overlap: NDArray[np.float64],
    same: NDArray[np.bool_],
    plain: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """(m,) objects that a classification or localization error points at."""
    pointed = np.zeros(overlap.shape[1], dtype=np.bool_)
    for name, wanted in (("classification", ~same), ("localization", same)):
        for each in np.flatnonzero(kind == KINDS.index(name)):
            candidates = np.where(wanted[each] & plain, overlap[each], 0)
            if candidates.size:
                pointed[candidates.argmax()] = True
    return pointed
