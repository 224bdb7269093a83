"""The kinds of errors of a detector on frames, and the cost of each kind.

Bolya et al., "TIDE: A General Toolbox for Identifying Object Detection Errors", ECCV 2020,
Section 2.2: foreground begins at IoU 0.5, background ends at 0.1. What the paper leaves open, which
kind goes first where two would do, is as in its code (tidecv 1.0.1). The cost, Sections 2.3 and 3,
is the AP gained at IoU 0.5 where one kind is put right: every kind alone, from the same detections,
so that gains do not add up to what is lacking.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable, divide_areas, intersect_boxes, iou, take
from steadyeye.core.stats.class_means import less, mean_difference
from steadyeye.core.types import Result
from steadyeye.metrics.detection.average_precision import dataset_ap
from steadyeye.metrics.detection.box_groups import group_boxes
from steadyeye.metrics.detection.frame_ap import Frames, Table, ap, spread_of
from steadyeye.metrics.detection.matching import Matched

FOREGROUND, BACKGROUND = 0.5, 0.1
KINDS = ("classification", "localization", "both", "duplicate", "background", "missed")
IOU = (FOREGROUND,)


@dataclass(frozen=True, eq=False)
class Errors:
    """The verdicts on n detections, and which of m objects were missed.

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
    for present, detected in pairs:
        of_frame = frame_errors(take(truth, present), take(detections, detected))
        kind[detected] = of_frame.kind
        target[detected] = np.append(present, -1)[of_frame.target]
        taken[present], missed[present] = of_frame.taken, of_frame.missed
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
        rows = kind == KINDS.index(name)
        if rows.any():
            target[rows] = overlaps[rows].argmax(axis=1)
    missed = ~truth.crowd & ~taken
    missed[target[target >= 0]] = False
    return Errors(kind, target, taken, missed)


def _hits(
    own: NDArray[np.float64], score: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """True positives, and the objects that they take."""
    hit = np.zeros(own.shape[0], dtype=np.bool_)
    taken = np.zeros(own.shape[1], dtype=np.bool_)
    falling = np.argsort(-score, kind="stable")
    near = own.max(axis=1, initial=0) >= FOREGROUND
    for row in falling[near[falling]]:
        free = np.where(taken, 0, own[row])
        if free.max() >= FOREGROUND:
            hit[row] = True
            taken[free.argmax()] = True
    return hit, taken


def _in_crowd(truth: BoxTable, detections: BoxTable, same: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Detections of which half or more lies in a crowd of their class, as COCO ignores them."""
    crowd = truth.crowd
    boxes = detections.boxes
    shared = intersect_boxes(boxes, truth.boxes[crowd])
    area = np.broadcast_to(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)[:, None], shared.shape)
    return np.asarray(((divide_areas(shared, area) >= FOREGROUND) & same[:, crowd]).any(axis=1))


def _rows(image: NDArray[np.int64], images: int) -> Iterator[NDArray[np.intp]]:
    """The rows of each image, in the order of the table."""
    order = np.argsort(image, kind="stable")
    ends = np.searchsorted(image[order], np.arange(images + 1))
    return (order[begin:end] for begin, end in pairwise(ends))


@dataclass(frozen=True, eq=False)
class _Judged:
    """Objects that count, and the verdicts on detections: (n,) `hit`, `ignored`."""

    truth: BoxTable
    detections: BoxTable
    hit: NDArray[np.bool_]
    ignored: NDArray[np.bool_]

    def group_flags(self, images: int, classes: int) -> Matched:
        """The flags in the order that AP reads, at IoU 0.5 alone."""
        truth, detections = self.truth, self.detections
        keys = ((truth.image, truth.label), (detections.image, detections.label))
        groups = group_boxes(*keys, detections.score, images, classes)
        hit, ignored = (flags[groups.row].astype(np.uint16) for flags in (self.hit, self.ignored))
        return Matched(groups, hit, ignored, np.diff(groups.truth_first))


def gains(images: Frames) -> tuple[Result, ...]:
    """ΔAP of each of `KINDS` in their order: mAP with that kind put right, less mAP, at IoU 0.5.

    A classification error is given the class of the object it was meant for, a localization error
    its box; of several meant for one object the most confident is put right and the others go, as
    all go whose object was found. Errors of both kinds, duplicates and those on background go.
    Missed objects are struck from the ground truth; a class that has none left counts as 0. The
    100 best detections of an image and class count. Value None without objects; intervals as of
    mAP, of the difference where each video is left out of both.
    """
    rows = np.sort(images.match_detections().groups.row)
    truth, detections = images.truth, take(images.detections, rows)
    size = (len(images.rows), images.classes)
    kinds = errors(truth, detections, size[0])
    plain = _Judged(
        take(truth, np.flatnonzero(~truth.crowd)), detections, kinds.kind == -1, kinds.kind == -2
    )
    before = plain.group_flags(*size)
    after = [
        _fix_errors(truth, plain, kinds, kind).group_flags(*size) for kind in range(len(KINDS))
    ]
    n = size[0]
    plain_ap = spread_of(before, ap(IOU), images.videos)
    results = []
    for kind, fixed in zip(KINDS, after, strict=True):
        mended = spread_of(before, _in_its_classes(before, fixed), images.videos)
        gain = mean_difference(less(mended, plain_ap), n)
        results.append(Result(kind, gain.value, gain.low, gain.high, n, gain.method))
    return tuple(results)


def _in_its_classes(before: Matched, fixed: Matched) -> Table:
    """AP of corrected detections over the original classes, 0 for one without remaining objects."""

    def table(_: Matched, weight: NDArray[np.int64] | None) -> NDArray[np.float64]:
        has_objects = ~np.isnan(dataset_ap(before, IOU, weight))
        return np.where(has_objects, np.nan_to_num(dataset_ap(fixed, IOU, weight)), np.nan)

    return table


def _fix_errors(truth: BoxTable, judged: _Judged, kinds: Errors, kind: int) -> _Judged:
    """The judged boxes with one kind of error corrected."""
    if KINDS[kind] == "missed":
        return replace(judged, truth=take(truth, np.flatnonzero(~truth.crowd & ~kinds.missed)))
    fixable = _select_most_confident(judged.detections, kinds) & (kinds.kind == kind)
    remaining = np.flatnonzero((kinds.kind != kind) | fixable)
    detections = judged.detections
    # at IoU 0.5 a box that is put right differs from the object's own in nothing that AP reads
    label = np.where(fixable, np.append(truth.label, 0)[kinds.target], detections.label)
    mended = take(replace(detections, label=label), remaining)
    return replace(
        judged,
        detections=mended,
        hit=(judged.hit | fixable)[remaining],
        ignored=judged.ignored[remaining],
    )


def _select_most_confident(detections: BoxTable, kinds: Errors) -> NDArray[np.bool_]:
    """(n,) of the errors meant for each object that was not found the most confident one."""
    meant = np.flatnonzero((kinds.target >= 0) & ~np.append(kinds.taken, True)[kinds.target])
    meant = meant[np.argsort(-detections.score[meant], kind="stable")]
    _, first = np.unique(kinds.target[meant], return_index=True)
    is_best = np.zeros(len(detections), dtype=np.bool_)
    is_best[meant[first]] = True
    return is_best
