"""What each kind of error costs: the AP gained at IoU 0.5 where one kind is put right.

Bolya et al., "TIDE: A General Toolbox for Identifying Object Detection Errors", ECCV 2020, Sections
2.3 and 3: every kind is put right alone, from the same detections, so that gains do not add up to
what is lacking.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable, take
from steadyeye.core.stats.class_means import less, mean_difference
from steadyeye.core.types import Result
from steadyeye.metrics.detection.average_precision import dataset_ap
from steadyeye.metrics.detection.error_types import FOREGROUND, KINDS, Errors, errors
from steadyeye.metrics.detection.frame_ap import Frames, Table, ap, spread_of
from steadyeye.metrics.detection.grouping import grouped
from steadyeye.metrics.detection.matching import Matched

IOU = (FOREGROUND,)


@dataclass(frozen=True, eq=False)
class _Judged:
    """Objects that count, and detections with what became of each: (n,) `hit`, `ignored`."""

    truth: BoxTable
    detections: BoxTable
    hit: NDArray[np.bool_]
    ignored: NDArray[np.bool_]

    def matched(self, images: int, classes: int) -> Matched:
        """The flags in the order that AP reads, at IoU 0.5 alone."""
        there, said = self.truth, self.detections
        keys = ((there.image, there.label), (said.image, said.label))
        groups = grouped(*keys, said.score, images, classes)
        hit, ignored = (each[groups.row].astype(np.uint16) for each in (self.hit, self.ignored))
        return Matched(groups, hit, ignored, np.diff(groups.truth_first))


def gains(found: Frames) -> tuple[Result, ...]:
    """ΔAP of each of `KINDS` in their order: mAP with that kind put right, less mAP, at IoU 0.5.

    A classification error is given the class of the object it was meant for, a localization error
    its box; of several meant for one object the most confident is put right and the others go, as
    all go whose object was found. Errors of both kinds, duplicates and those on background go.
    Missed objects are struck from the ground truth; a class that has none left counts as 0. The
    100 best detections of an image and class count. Value None without objects; intervals as of
    mAP, of the difference where each video is left out of both.
    """
    rows = np.sort(found.matched().groups.row)
    truth, said = found.truth, take(found.detections, rows)
    size = (len(found.rows), found.classes)
    what = errors(truth, said, size[0])
    plain = _Judged(
        take(truth, np.flatnonzero(~truth.crowd)), said, what.kind == -1, what.kind == -2
    )
    before = plain.matched(*size)
    after = [_fixed(truth, plain, what, kind).matched(*size) for kind in range(len(KINDS))]
    n = size[0]
    plain_ap = spread_of(before, ap(IOU), found.videos)
    results = []
    for kind, fixed in zip(KINDS, after, strict=True):
        mended = spread_of(before, _in_its_classes(before, fixed), found.videos)
        gain = mean_difference(less(mended, plain_ap), n)
        results.append(Result(kind, gain.value, gain.low, gain.high, n, gain.method))
    return tuple(results)


def _in_its_classes(before: Matched, fixed: Matched) -> Table:
    """AP of what was put right over the classes that were there, 0 for one that has none left."""

    def table(_: Matched, weight: NDArray[np.int64] | None) -> NDArray[np.float64]:
        there = ~np.isnan(dataset_ap(before, IOU, weight))
        return np.where(there, np.nan_to_num(dataset_ap(fixed, IOU, weight)), np.nan)

    return table


def _fixed(truth: BoxTable, judged: _Judged, what: Errors, kind: int) -> _Judged:
    """What is judged with one kind of error put right."""
    if KINDS[kind] == "missed":
        return replace(judged, truth=take(truth, np.flatnonzero(~truth.crowd & ~what.missed)))
    chosen = _chosen(judged.detections, what) & (what.kind == kind)
    kept = np.flatnonzero((what.kind != kind) | chosen)
    said = judged.detections
    # at IoU 0.5 a box that is put right differs from the object's own in nothing that AP reads
    label = np.where(chosen, np.append(truth.label, 0)[what.target], said.label)
    mended = take(replace(said, label=label), kept)
    return replace(
        judged, detections=mended, hit=(judged.hit | chosen)[kept], ignored=judged.ignored[kept]
    )


def _chosen(said: BoxTable, what: Errors) -> NDArray[np.bool_]:
    """(n,) of the errors meant for each object that was not found the most confident one."""
    meant = np.flatnonzero((what.target >= 0) & ~np.append(what.taken, True)[what.target])
    meant = meant[np.argsort(-said.score[meant], kind="stable")]
    _, first = np.unique(what.target[meant], return_index=True)
    chosen = np.zeros(len(said), dtype=np.bool_)
    chosen[meant[first]] = True
    return chosen
