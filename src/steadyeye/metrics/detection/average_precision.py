"""Average precision and recall of matched detections, of frames and of whole sets.

Interpolated at 101 recall points, equal to COCOeval(bbox) of pycocotools 2.0 (Lin et al.,
"Microsoft COCO: Common Objects in Context", 2014).
"""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from steadyeye.metrics.detection.matching import IOUS, MOST, Flags, Floats, Ints, Matched

RECALLS = np.linspace(0, 1, 101)


def frame_ap(matched: Matched, iou: float = 0.5) -> Floats:
    """(images,) the mean of AP over the categories present in the image's own ground truth.

    0…1; NaN for images without ground truth that counts. `iou`: one of `IOUS`, or `ValueError`.

    Example, one object and a detection of it, moved by a fifth of its side:

        >>> from steadyeye.core.boxes import Detections, boxes, detection_table, truth_table
        >>> from steadyeye.metrics.detection.matching import match
        >>> truth = truth_table([boxes([[0, 0, 10, 10]], [0])])
        >>> detected = Detections(np.array([[2.0, 0, 12, 10]]), np.array([0]), np.array([0.9]))
        >>> matched = match(truth, detection_table([detected]), images=1, classes=1)
        >>> frame_ap(matched).tolist(), frame_ap(matched, iou=0.7).tolist()
        ([1.0], [0.0])
    """
    groups = matched.groups
    hit, ignored = matched.hit[groups.members], matched.ignored[groups.members]
    ranked = (np.repeat(groups.image, np.diff(groups.first)), hit, ignored)
    return np.asarray(
        _frames(
            (*ranked, np.zeros(len(hit), dtype=np.bool_)),
            (groups.image, groups.first, matched.positives),
            _bits((iou,)),
            groups.images,
        )
    )


def dataset_ap(
    matched: Matched, ious: Sequence[float] = IOUS, weight: ArrayLike | None = None
) -> Floats:
    """(ious, classes) AP of each category over all images; the mean of them is mAP.

    0…1; NaN for categories without ground truth that counts. `ious`: some of `IOUS`, or
    `ValueError`. `weight`: (images,) integers ≥ 0, how often each image counts, as in a bootstrap
    resample: AP of the set in which it stands that many times in a row. None: once.

    Example:
        >>> from steadyeye.testing import example_detections
        >>> from steadyeye.metrics.detection.frame_ap import frames
        >>> matched = frames(example_detections(), np.arange(10)).match_detections()
        >>> dataset_ap(matched, ious=(0.5, 0.75)).shape
        (2, 3)

    """
    groups, times = matched.groups, _times(matched, weight)
    ranked = (groups.row_image, matched.hit, matched.ignored, groups.tied)
    return np.asarray(_sets(ranked, groups.bounds, _bits(ious), times, _positives(matched, times)))


def average_recall(
    matched: Matched,
    max_detections: int = MOST,
    ious: Sequence[float] = IOUS,
    weight: ArrayLike | None = None,
) -> Floats:
    """(ious, classes) the share of objects found; the mean of it is COCO's average recall.

    0…1; NaN for categories without ground truth that counts. `max_detections`: how many of each
    image and category count, the best, at most `MOST`. `ious`, `weight`: as in `dataset_ap`.
    """
    groups, times = matched.groups, _times(matched, weight)
    group, counts = _find_hits(matched, max_detections)
    image, label = groups.image[group], groups.label[group]
    hits = np.asarray(_sum_hits(counts, image, label, times, groups.classes))[_places(ious)]
    positives = _positives(matched, times)
    # 0 ÷ 0 is the NaN of a category without ground truth
    with np.errstate(invalid="ignore"):
        return np.asarray(hits / positives, dtype=np.float64)


def _bits(ious: Sequence[float]) -> Flags:
    return np.asarray(1 << _places(ious), dtype=np.uint16)


def _places(ious: Sequence[float]) -> NDArray[np.intp]:
    near = np.abs(np.asarray(ious, dtype=np.float64)[:, None] - IOUS) < 1e-9
    if not near.any(axis=1).all():
        raise ValueError(f"ious={tuple(ious)}: not among {', '.join(f'{i:.2f}' for i in IOUS)}")
    return np.asarray(near.argmax(axis=1))


def _times(matched: Matched, weight: ArrayLike | None) -> Ints:
    if weight is None:
        return np.ones(matched.groups.images, dtype=np.int64)
    times = np.ascontiguousarray(weight, dtype=np.int64)
    assert times.shape == (matched.groups.images,), "one weight an image"
    assert times.min(initial=0) >= 0, "no image counts less than never"
    return times


def _positives(matched: Matched, times: Ints) -> Ints:
    """(classes,) objects to be found."""
    groups = matched.groups
    return np.asarray(_sums(matched.positives, groups.image, groups.label, times, groups.classes))


@njit(nogil=True, cache=True)
def _sums(values: Ints, image: Ints, label: Ints, times: Ints, classes: int) -> Ints:
    out = np.zeros(classes, dtype=np.int64)
    for g in range(len(values)):
        out[label[g]] += values[g] * times[image[g]]
    return out


@njit(nogil=True, cache=True)
def _frames(ranked: Any, groups: Any, bits: Flags, images: int) -> Floats:
    image, first, positives = groups
    total, present = np.zeros(images), np.zeros(images, dtype=np.int64)
    once = np.ones(images, dtype=np.int64)
    for g in range(len(image)):
        if positives[g]:
            present[image[g]] += 1
            total[image[g]] += _aps(ranked, (first[g], first[g + 1]), bits, once, positives[g])[0]
    mean: Floats = np.where(present > 0, total / np.maximum(present, 1), np.nan)
    return mean


@njit(nogil=True, cache=True)
def _sets(ranked: Any, bounds: Ints, bits: Flags, times: Ints, positives: Ints) -> Floats:
    out = np.full((len(bits), len(positives)), np.nan)
    for c in range(len(positives)):
        if positives[c]:
            out[:, c] = _aps(ranked, (bounds[c], bounds[c + 1]), bits, times, positives[c])
    return out


@njit(nogil=True, cache=True)
def _aps(ranked: Any, span: Any, bits: Flags, times: Ints, positives: int) -> Floats:
    """(bits,) AP of the detections in `span`, which fall in score; `positives`: copies included."""
    image, hit, ignored, tied = ranked
    every = np.uint16(0)
    for bit in bits:
        every |= bit
    # best[:, r]: the highest precision where recall reaches RECALLS[r] and not yet RECALLS[r + 1]
    best = np.zeros((len(bits), len(RECALLS)))
    right, passed, reached = np.zeros((3, len(bits)), dtype=np.int64)
    counted, end = 0, span[0]
    while end < span[1]:
        begin, end = end, end + 1
        while tied[end - 1]:
            end += 1
        # of equal scores, one copy of an image comes whole before the next; a detection alone
        # takes all its copies in one step, for its precision is best after the last
        rounds, step = times[image[begin]], 1
        if end == begin + 1:
            rounds, step = min(rounds, 1), rounds
        for _ in range(rounds):
            for d in range(begin, end):
                if ignored[d] & every == every:
                    continue
                counted += step
                if not (hit[d] | ignored[d]) & every:
                    continue
                for i in range(len(bits)):
                    if ignored[d] & bits[i]:
                        passed[i] += step
                    elif hit[d] & bits[i]:
                        right[i] += step
                        recall = right[i] / positives
                        while reached[i] < len(RECALLS) - 1 and RECALLS[reached[i] + 1] <= recall:
                            reached[i] += 1
                        precision = right[i] / (counted - passed[i])
                        best[i, reached[i]] = max(best[i, reached[i]], precision)
    return _areas(best)


@njit(nogil=True, cache=True)
def _areas(best: Floats) -> Floats:
    """(n,) means over recalls of the best precision at that recall or a higher one."""
    # summed before it is divided: 101 ones are exactly 101, while 101 shares of 1/101 are above 1
    out = np.zeros(len(best))
    for i in range(len(best)):
        most = 0.0
        for r in range(best.shape[1] - 1, -1, -1):
            most = max(most, best[i, r])
            out[i] += most
    shares: Floats = out / best.shape[1]
    return shares


_HITS: WeakKeyDictionary[Matched, dict[int, tuple[NDArray[np.intp], Flags]]] = WeakKeyDictionary()
"""What `_find_hits` returned, since a resample only weighs it."""


def _find_hits(matched: Matched, most: int) -> tuple[NDArray[np.intp], Flags]:
    """The groups with a true positive among their first `most`, and (n, thresholds) how many."""
    known = _HITS.setdefault(matched, {})
    if most not in known:
        groups = matched.groups
        counts = np.asarray(_count_hits(matched.hit, groups.first, groups.members, most, len(IOUS)))
        group = np.flatnonzero(counts.any(axis=1))
        known[most] = group, counts[group]
    return known[most]


@njit(nogil=True, cache=True)
def _count_hits(hit: Flags, first: Ints, members: Ints, most: int, bits: int) -> Flags:
    """(groups, bits) true positives among the first `most`, at most `MOST`, of each group."""
    out = np.zeros((len(first) - 1, bits), dtype=np.uint16)
    for g in range(len(first) - 1):
        for place in members[first[g] : min(first[g + 1], first[g] + most)]:
            for i in range(bits):
                out[g, i] += hit[place] >> i & 1
    return out


@njit(nogil=True, cache=True)
def _sum_hits(counts: Flags, image: Ints, label: Ints, times: Ints, classes: int) -> Ints:
    """(bits, classes) true positives, an image counted so many times."""
    out = np.zeros((counts.shape[1], classes), dtype=np.int64)
    for g in range(len(counts)):
        for i in range(counts.shape[1]):
            out[i, label[g]] += counts[g, i] * times[image[g]]
    return out
