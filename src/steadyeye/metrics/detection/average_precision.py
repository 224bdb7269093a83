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

from steadyeye.core.disk_columns import DiskColumn, split_spans
from steadyeye.metrics.detection.box_groups import MOST, Floats, Ints, Rows
from steadyeye.metrics.detection.matching import IOUS, Flags, Matched
from steadyeye.metrics.detection.true_positives import find_hits, sum_hits

RECALLS = np.linspace(0, 1, 101)
BLOCK = 512
"""Detections that are looked at at one threshold after the other: they stay in the inner cache."""
PIECE = 500_000
"""Detections that are counted, or one category, before their pages are given back."""


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
    image, bits = np.repeat(groups.image, np.diff(groups.first)), _bits((iou,))
    flags = (hit, ignored, np.zeros(len(hit), dtype=np.bool_))
    ranked = _rank(image, flags, groups.first, matched.positives, bits, groups.images)
    by_group = (groups.image, groups.first, matched.positives)
    return np.asarray(_frames(ranked, by_group, bits, groups.images))


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
    times, bits = _times(matched, weight), _bits(ious)
    ranked, positives = _rank_set(matched, bits), _positives(matched, times)
    bounds, out = matched.groups.bounds, np.full((len(bits), len(positives)), np.nan)
    room = np.append(times, 0), *_allocate(bounds)
    for spans in split_spans(bounds, PIECE):
        _sets(ranked, (bounds, spans), bits, room, (positives, out))
    return out


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
    counts, image, label = find_hits(matched, max_detections)
    hits = np.asarray(sum_hits(counts, image, label, times, groups.classes))[_places(ious)]
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
    image, label, positives = _list_positives(matched)
    return np.asarray(_sums(positives, image, label, times, matched.groups.classes))


_POSITIVES: WeakKeyDictionary[Matched, tuple[Rows, Rows, Rows]] = WeakKeyDictionary()
"""What `_list_positives` returned: of most groups there are detections alone."""


def _list_positives(matched: Matched) -> tuple[Rows, Rows, Rows]:
    """Image, class and number of objects of the groups that have objects to be found."""
    if matched not in _POSITIVES:
        groups, some = matched.groups, np.flatnonzero(matched.positives)
        _POSITIVES[matched] = groups.image[some], groups.label[some], matched.positives[some]
    return _POSITIVES[matched]


@njit(nogil=True, cache=True)
def _sums(values: Rows, image: Rows, label: Rows, times: Ints, classes: int) -> Ints:
    out = np.zeros(classes, dtype=np.int64)
    for g in range(len(values)):
        out[label[g]] += values[g] * times[image[g]]
    return out


_EVENTS: WeakKeyDictionary[Matched, dict[bytes, Any]] = WeakKeyDictionary()
"""What `_rank` returned of whole sets, since a resample only weighs it."""


def _rank_set(matched: Matched, bits: Flags) -> Any:
    known = _EVENTS.setdefault(matched, {})
    key = bits.tobytes()
    if key not in known:
        known[key] = _rank_classes(matched, bits)
    return known[key]


def _rank_classes(matched: Matched, bits: Flags) -> Any:
    """What `_rank` returns of all categories, which it is given in pieces."""
    groups, positives = matched.groups, _positives(matched, _times(matched, None))
    # counted images, events and their images
    columns = tuple(DiskColumn(np.int32) for _ in range(3))
    first = [np.zeros(1, dtype=np.int64)]
    for begin, end in split_spans(groups.bounds, PIECE):
        bounds = groups.bounds[begin : end + 1]
        span = slice(bounds[0], bounds[-1])
        flags = (matched.hit[span], matched.ignored[span], groups.tied[span])
        own = (bounds - bounds[0], positives[begin:end], bits, groups.images)
        counted, *_, event, image, ends = _rank(groups.row_image[span], flags, *own)
        for column, part in zip(columns, (counted, event + bounds[0], image), strict=True):
            column.append(part)
        first.append(first[-1][-1] + ends[1:])
    counted, event, image = (column.array() for column in columns)
    flags = matched.hit, matched.ignored, groups.tied
    return counted, *flags, event, image, np.concatenate(first)


@njit(nogil=True, cache=True)
def _rank(image: Rows, flags: Any, bounds: Any, positives: Any, bits: Flags, images: int) -> Any:
    """Detections that fall in score within each span of `bounds`, as `_aps` reads them.

    `flags`: hit, ignored and tied; `positives`: (spans,); a span without any is left out. Returns
    the image of each, `images` where it is ignored at every threshold; the flags; the first of the
    tied ones, or the only one, where not all are false at every threshold, and its image; where
    those of each span begin.
    """
    hit, ignored, tied = flags
    every = np.uint16(0)
    for bit in bits:
        every |= bit
    counted = np.empty(len(image), dtype=np.int32)
    event = np.empty(len(image), dtype=np.int32)
    first = np.zeros(len(bounds), dtype=np.int64)
    events = 0
    for c in range(len(bounds) - 1):
        end = bounds[c] if positives[c] else bounds[c + 1]
        while end < bounds[c + 1]:
            begin, end = end, end + 1
            while tied[end - 1]:
                end += 1
            some = np.uint16(0)
            for d in range(begin, end):
                counted[d] = images
                if ignored[d] & every != every:
                    counted[d] = image[d]
                    some |= (hit[d] | ignored[d]) & every
            if some:
                event[events] = begin
                events += 1
        first[c + 1] = events
    event = event[:events].copy()
    return counted, hit, ignored, tied, event, image[event].astype(np.int32), first


@njit(nogil=True, cache=True)
def _allocate(bounds: Ints) -> Any:
    """Room for a number a detection of the longest span, and for a block of `_add_block`.

    Once for all spans: fresh memory costs more than what is written into it.
    """
    longest = 0
    for i in range(len(bounds) - 1):
        longest = max(longest, bounds[i + 1] - bounds[i])
    hits, passes = np.empty(BLOCK, dtype=np.uint16), np.empty(BLOCK, dtype=np.uint16)
    ranks, steps = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    return np.empty(longest, dtype=np.int64), (hits, passes, ranks, steps)


@njit(nogil=True, cache=True)
def _frames(ranked: Any, groups: Any, bits: Flags, images: int) -> Floats:
    (image, first, positives), events = groups, ranked[-1]
    total, present = np.zeros(images), np.zeros(images, dtype=np.int64)
    once = np.append(np.ones(images, dtype=np.int64), 0)
    weights = (once, *_allocate(first))
    for g in range(len(image)):
        if positives[g]:
            present[image[g]] += 1
        if positives[g] and events[g] < events[g + 1]:
            total[image[g]] += _aps(ranked, g, first, bits, weights, positives[g])[0]
    mean: Floats = np.where(present > 0, total / np.maximum(present, 1), np.nan)
    return mean


@njit(nogil=True, cache=True)
def _sets(ranked: Any, spans: Any, bits: Flags, weights: Any, sums: Any) -> None:
    """Writes AP of some spans of `bounds`, from the first on, to `out`; `weights`: as in `_aps`."""
    (bounds, (begin, end)), (positives, out) = spans, sums
    for c in range(begin, end):
        if positives[c]:
            out[:, c] = _aps(ranked, c, bounds, bits, weights, positives[c])


@njit(nogil=True, cache=True)
def _aps(ranked: Any, span: int, bounds: Ints, bits: Flags, weights: Any, positives: int) -> Floats:
    """(bits,) AP of the detections of a span; `positives`: copies included.

    `weights`: (images + 1,) copies of each image, the last 0: what is ignored does not count; and
    what `_allocate` returns.
    """
    times, counts, block = weights
    hits, passes, ranks, steps = block
    image, hit, ignored, tied, event, event_image, first = ranked
    begin = bounds[span]
    # counts[d]: copies that are counted up to detection begin + d; most are false everywhere, and
    # of those nothing else matters
    counted, size = 0, 0
    for d in range(bounds[span + 1] - begin):
        counted += times[image[begin + d]]
        counts[d] = counted
    # best[:, r]: the highest precision where recall reaches RECALLS[r] and not yet RECALLS[r + 1]
    best, states = np.zeros((len(bits), len(RECALLS))), np.zeros((6, len(bits)), dtype=np.int64)
    states[4:] = 1
    for e in range(first[span], first[span + 1]):
        start, end = event[e], event[e] + 1
        while tied[end - 1]:
            end += 1
        # of equal scores, one copy of an image comes whole before the next; a detection alone
        # takes all its copies in one step, for its precision is best after the last
        rounds, step = times[event_image[e]], 1
        if end == start + 1:
            rounds, step = min(rounds, 1), rounds
        counted = counts[start - begin] - times[image[start]]
        for _ in range(rounds):
            for d in range(start, end):
                if image[d] < len(times) - 1:
                    counted += step
                    if size == BLOCK:
                        _add_block(block, size, bits, positives, (states, best))
                        size = 0
                    hits[size], passes[size] = hit[d] & ~ignored[d], ignored[d]
                    ranks[size], steps[size] = counted, step
                    size += 1
    _add_block(block, size, bits, positives, (states, best))
    return _areas(best)


@njit(nogil=True, cache=True)
def _add_block(block: Any, size: int, bits: Flags, positives: int, sums: Any) -> None:
    """Adds detections, those that are false at every threshold left out, to what is known of each.

    `block`: the first `size` of each count: hit, ignored, how many were counted up to it, and how
    many copies it is. `sums`: `states`, (6, bits) copies that are right and that were passed over,
    the recall that is reached, the best precision since as numerator and denominator, and from how
    many right copies on the next recall is reached; `best` as in `_aps`.
    """
    (hits, passes, ranks, steps), (states, best) = block, sums
    for i in range(len(bits)):
        right, passed, reached, top, under, least = states[:, i]
        shift = 0
        while bits[i] >> shift != 1:
            shift += 1
        # hardly a branch: whether a detection is right is hard to foresee
        for e in range(size):
            right += steps[e] * (hits[e] >> shift & 1)
            passed += steps[e] * (passes[e] >> shift & 1)
            counted = ranks[e] - passed
            if right >= least:
                best[i, reached] = max(best[i, reached], top / under)
                reached, least = _find_recall(right, reached, positives)
                top, under = right, counted
            # rounding keeps the order of fractions, and a division is slow; precision only rises
            # with what is right
            is_better = right * under > top * counted
            top = right if is_better else top
            under = counted if is_better else under
        best[i, reached] = max(best[i, reached], top / under)
        states[0, i], states[1, i], states[2, i] = right, passed, reached
        states[3, i], states[4, i], states[5, i] = top, under, least


@njit(nogil=True, cache=True)
def _find_recall(right: int, reached: int, positives: int) -> tuple[int, int]:
    """The last of `RECALLS` that so many reach, from `reached` on, and how many reach the next."""
    while reached < len(RECALLS) - 1 and RECALLS[reached + 1] <= right / positives:
        reached += 1
    if reached == len(RECALLS) - 1:
        return reached, np.iinfo(np.int64).max
    least = int(RECALLS[reached + 1] * positives)
    while least / positives < RECALLS[reached + 1]:
        least += 1
    return reached, max(least, right + 1)


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
