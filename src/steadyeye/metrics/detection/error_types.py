"""Why a box was lost: the kinds of errors of a detector on frames.

Bolya et al., "TIDE: A General Toolbox for Identifying Object Detection Errors", ECCV 2020,
Section 2.2: foreground begins at IoU 0.5, background ends at 0.1. What the paper leaves open, which
kind goes first where two would do, is as in its code (tidecv 1.0.1).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable, take

FOREGROUND, BACKGROUND = 0.5, 0.1
KINDS = ("classification", "localization", "both", "duplicate", "background", "missed")


@dataclass(frozen=True, eq=False)
class Errors:
    """What detections are, n of them, and which of m objects nothing found.

    `kind`: (n,) an index into `KINDS`, or −1 for a true positive and −2 for what lies on a crowd.
    `target`: (n,) the row of the object that a classification or localization error was meant for,
    −1 for all others. `taken`: (m,) objects that a true positive found. `missed`: (m,) objects that
    no detection found, and none was meant for.
    """

    kind: NDArray[np.int64]
    target: NDArray[np.int64]
    taken: NDArray[np.bool_]
    missed: NDArray[np.bool_]


def errors(truth: BoxTable, detections: BoxTable, images: int) -> Errors:
    """The errors of a set of images, frame by frame; tables over images 0 … `images` − 1."""
    kind = np.full(len(detections), -1, dtype=np.int64)
    target = np.full(len(detections), -1, dtype=np.int64)
    taken = np.zeros(len(truth), dtype=np.bool_)
    missed = np.zeros(len(truth), dtype=np.bool_)
    pairs = zip(_rows(truth.image, images), _rows(detections.image, images), strict=True)
    for there, said in pairs:
        found = frame_errors(take(truth, there), take(detections, said))
        kind[said] = found.kind
        target[said] = np.append(there, -1)[found.target]
        taken[there], missed[there] = found.taken, found.missed
    return Errors(kind, target, taken, missed)


def frame_errors(truth: BoxTable, detections: BoxTable) -> Errors:
    """The errors of one frame; tables of that frame alone.

    Matched greedily by falling score, each object once, at IoU ≥ 0.5 with its own class. What is
    left and lies by half or more in a crowd of its class is no error.
    """
    same = detections.label[:, None] == truth.label[None, :]
    overlap = iou(detections.boxes, truth.boxes) * ~truth.crowd
    own, others = overlap * same, overlap * ~same
    hit, taken = _hits(own, detections.score)
    best, other = own.max(axis=1, initial=0), others.max(axis=1, initial=0)
    kind = np.select(
        [
            hit,
            _in_crowd(truth, detections, same),
            (best >= BACKGROUND) & (best < FOREGROUND),
            other >= FOREGROUND,
            best >= FOREGROUND,
            other < BACKGROUND,
        ],
        [-1, -2, *(KINDS.index(k) for k in ("localization", "classification", "duplicate")), 4],
        KINDS.index("both"),
    )
    target = np.full(len(kind), -1, dtype=np.int64)
    for name, overlaps in (("classification", others), ("localization", own)):
        which = kind == KINDS.index(name)
        if which.any():
            target[which] = overlaps[which].argmax(axis=1)
    missed = ~truth.crowd & ~taken
    missed[target[target >= 0]] = False
    return Errors(kind, target, taken, missed)


def iou(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, m) intersection over union of (n, 4) and (m, 4) half-open boxes; 0 for empty ones."""
    shared, sizes = (
        _shared(one, other),
        [np.prod(b[:, 2:] - b[:, :2], axis=1) for b in (one, other)],
    )
    return _share(shared, sizes[0][:, None] + sizes[1][None, :] - shared)


def _shared(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, m) square pixels that both boxes hold."""
    low = np.maximum(one[:, None, :2], other[None, :, :2])
    high = np.minimum(one[:, None, 2:], other[None, :, 2:])
    return np.asarray(np.prod(np.clip(high - low, 0, None), axis=-1), dtype=np.float64)


def _share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    share = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return np.asarray(share, dtype=np.float64)


def _hits(
    own: NDArray[np.float64], score: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """True positives, and the objects that they take."""
    hit = np.zeros(own.shape[0], dtype=np.bool_)
    taken = np.zeros(own.shape[1], dtype=np.bool_)
    falling = np.argsort(-score, kind="stable")
    near = own.max(axis=1, initial=0) >= FOREGROUND
    for each in falling[near[falling]]:
        free = np.where(taken, 0, own[each])
        if free.max() >= FOREGROUND:
            hit[each] = True
            taken[free.argmax()] = True
    return hit, taken


def _in_crowd(truth: BoxTable, detections: BoxTable, same: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Detections of which half or more lies in a crowd of their class, as COCO ignores them."""
    crowd = truth.crowd
    boxes = detections.boxes
    shared = _shared(boxes, truth.boxes[crowd])
    area = np.broadcast_to(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)[:, None], shared.shape)
    return np.asarray(((_share(shared, area) >= FOREGROUND) & same[:, crowd]).any(axis=1))


def _rows(image: NDArray[np.int64], images: int) -> Iterator[NDArray[np.intp]]:
    """The rows of each image, in the order of the table."""
    order = np.argsort(image, kind="stable")
    ends = np.searchsorted(image[order], np.arange(images + 1))
    return (order[begin:end] for begin, end in pairwise(ends))
