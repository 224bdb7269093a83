"""Average precision and recall of matched detections, of frames and of whole sets.

Interpolated at 101 recall points, equal to COCOeval(bbox) of pycocotools 2.0 (Lin et al.,
"Microsoft COCO: Common Objects in Context", 2014).
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from steadyeye.core.disk_columns import DiskColumn, release_pages
from steadyeye.metrics.detection.box_groups import MOST, Floats, Ints, Mask, Rows
from steadyeye.metrics.detection.iou_thresholds import IOUS
from steadyeye.metrics.detection.matching import Flags, Matched
from steadyeye.metrics.detection.positives import find_hits, sum_hits, sum_positives

RECALLS = np.linspace(0, 1, 101)
BLOCK = 512
"""Detections that are looked at at one threshold after the other: they stay in the inner cache."""
PIECE = 500_000
"""Detections that are counted before their pages are given back."""


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
    # of the types of `dataset_ap`: what both call is compiled once
    bounds, positives = groups.first.astype(np.int64), matched.positives.astype(np.int64)
    *ranked, first = _rank(image, flags, bounds, positives, bits, groups.images)
    by_group = (groups.image, bounds, positives, first)
    return np.asarray(_frames(tuple(ranked), by_group, bits, groups.images))


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
    times, bits = _times(matched, weight), _bits(tuple(ious))
    ranked, pieces = _rank_set(matched, bits)
    positives = sum_positives(matched, times)
    # a category of which nothing was detected is in no piece
    out = np.where(positives > 0, 0.0, np.nan) * np.ones((len(bits), 1))
    room, progress = (times, _allocate()), _begin(len(bits))
    last = -1
    for spans in pieces:
        last = _sets(ranked, (spans, last), bits, room, (positives, progress, out))
        if len(pieces) > 1:
            release_pages()
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
    positives = sum_positives(matched, times)
    # 0 ÷ 0 is the NaN of a category without ground truth
    with np.errstate(invalid="ignore"):
        return np.asarray(hits / positives, dtype=np.float64)


# of one set AP at some thresholds is computed hundreds of times, once a resample
@cache
def _bits(ious: tuple[float, ...]) -> Flags:
    return np.asarray(1 << _places(ious), dtype=np.uint16)


def _places(ious: Sequence[float]) -> NDArray[np.intp]:
    near = np.abs(np.asarray(ious, dtype=np.float64)[:, None] - IOUS) < 1e-9
    if not near.any(axis=1).all():
        raise ValueError(f"ious={tuple(ious)}: not among {', '.join(f'{i:.2f}' for i in IOUS)}")
    return np.asarray(near.argmax(axis=1))


def _times(matched: Matched, weight: ArrayLike | None) -> Ints:
    """(images + 1,) the weight of each image, and 0 for ignored detections."""
    times = np.zeros(matched.groups.images + 1, dtype=np.int64)
    if weight is None:
        times[:-1] = 1
        return times
    assert np.shape(weight) == (matched.groups.images,), "one weight an image"
    times[:-1] = weight
    assert times.min() >= 0, "no image counts less than never"
    return times


_EVENTS: WeakKeyDictionary[Matched, dict[bytes, Any]] = WeakKeyDictionary()
"""Cache of `_rank` for whole sets, because a resample only changes the weights."""


def _rank_set(matched: Matched, bits: Flags) -> Any:
    known = _EVENTS.setdefault(matched, {})
    key = bits.tobytes()
    if key not in known:
        known[key] = _rank_classes(matched, bits)
    return known[key]


def _rank_classes(matched: Matched, bits: Flags) -> Any:
    """The output of `_rank` for all categories, and the input of `_sets`, piece by piece.

    Of each category in a piece its number, its first event and the first after it, and the same of
    its detections.
    """
    groups, positives = matched.groups, sum_positives(matched, _times(matched, None))
    # counted images, events and their images
    columns = tuple(DiskColumn(np.int32) for _ in range(3))
    pieces, events = [], 0
    for start, stop in _split_ranked(groups.tied):
        begin = np.searchsorted(groups.bounds, start, side="right") - 1
        own = np.arange(begin, np.searchsorted(groups.bounds, stop, side="left"))
        bounds = np.clip(groups.bounds[own[0] : own[-1] + 2], start, stop)
        span = slice(start, stop)
        flags = (matched.hit[span], matched.ignored[span], groups.tied[span])
        of_spans = (bounds - start, positives[own], bits, groups.images)
        counted, *_, event, image, first = _rank(groups.row_image[span], flags, *of_spans)
        for column, part in zip(columns, (counted, event + start, image), strict=True):
            column.append(part)
        ends = first + events
        pieces.append(np.stack([own, ends[:-1], ends[1:], bounds[:-1], bounds[1:]], axis=1))
        events += len(event)
    counted, event, image = (column.array() for column in columns)
    return (counted, matched.hit, matched.ignored, groups.tied, event, image), pieces


def _split_ranked(tied: Mask) -> Iterator[tuple[int, int]]:
    """Pieces of about `PIECE` detections that part none of equal score; each is given back."""
    start = 0
    while start < len(tied):
        stop = min(start + PIECE, len(tied))
        while tied[stop - 1]:
            stop += 1
        yield start, stop
        if stop - start < len(tied):
            release_pages()
        start = stop


@njit(nogil=True, cache=True)
def _rank(image: Rows, flags: Any, bounds: Any, positives: Any, bits: Flags, images: int) -> Any:
    """Detections that fall in score within each span of `bounds`, as `_add_events` reads them.

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
def _allocate() -> Any:
    """Room for a block of `_add_block`, once for all spans."""
    hits, passes = np.empty(BLOCK, dtype=np.uint16), np.empty(BLOCK, dtype=np.uint16)
    return hits, passes, np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK, dtype=np.int64)


@njit(nogil=True, cache=True)
def _begin(bits: int) -> Any:
    """What is known of a span before its first detection, as `_add_events` continues it.

    `states` and `best` as in `_add_block`, and how many copies were counted.
    """
    states, counts = np.empty((6, bits), dtype=np.int64), np.empty(1, dtype=np.int64)
    progress = states, np.empty((bits, len(RECALLS))), counts
    _restart(progress)
    return progress


@njit(nogil=True, cache=True)
def _restart(progress: Any) -> None:
    states, best, counts = progress
    states[:4], states[4:], best[:], counts[:] = 0, 1, 0, 0


@njit(nogil=True, cache=True)
def _frames(ranked: Any, groups: Any, bits: Flags, images: int) -> Floats:
    image, first, positives, events = groups
    total, present = np.zeros(images), np.zeros(images, dtype=np.int64)
    once = np.append(np.ones(images, dtype=np.int64), 0)
    room, progress = (once, _allocate()), _begin(len(bits))
    for g in range(len(image)):
        if positives[g]:
            present[image[g]] += 1
        if positives[g] and events[g] < events[g + 1]:
            _restart(progress)
            span = events[g], events[g + 1], first[g], first[g + 1]
            _add_events(ranked, span, bits, room, (positives[g], progress))
            total[image[g]] += _areas(progress[1])[0]
    mean: Floats = np.where(present > 0, total / np.maximum(present, 1), np.nan)
    return mean


@njit(nogil=True, cache=True)
def _sets(ranked: Any, spans: Any, bits: Flags, room: Any, sums: Any) -> Any:
    """Writes AP of the categories of a piece to `out`, of the last one as far as it is in there.

    `spans`: as `_rank_classes` lists them, and the last category of the piece before, which
    `progress` is of. Returns the last one of this piece.
    """
    (of_piece, last), (positives, progress, out) = spans, sums
    for i in range(len(of_piece)):
        c = of_piece[i, 0]
        if c != last:
            _restart(progress)
            last = c
        if positives[c]:
            span = of_piece[i, 1], of_piece[i, 2], of_piece[i, 3], of_piece[i, 4]
            _add_events(ranked, span, bits, room, (positives[c], progress))
            out[:, c] = _areas(progress[1])
    return last


@njit(nogil=True, cache=True)
def _add_events(ranked: Any, span: Any, bits: Flags, room: Any, sums: Any) -> None:
    """Adds the next detections of a category, or of a group, to what `progress` knows of it.

    `span`: the first event and the first after the last, and the same of detections. `room`:
    (images + 1,) copies of each image, the last 0: what is ignored does not count; and what
    `_allocate` returns. `sums`: the objects to be found, copies included, and `progress`.
    """
    (times, block), (positives, progress) = room, sums
    hits, passes, ranks, steps = block
    image, hit, ignored, tied, event, event_image = ranked
    states, best, counts = progress
    first, last, at, stop = span
    # most are false everywhere, and of those nothing but their number matters
    counted, size = counts[0], 0
    for e in range(first, last):
        start, end = event[e], event[e] + 1
        while tied[end - 1]:
            end += 1
        for d in range(at, start):
            counted += times[image[d]]
        at = start
        # of equal scores, one copy of an image comes whole before the next; a detection alone
        # takes all its copies in one step, for its precision is best after the last
        rounds, step = times[event_image[e]], 1
        if end == start + 1:
            rounds, step = min(rounds, 1), rounds
        rank = counted
        for _ in range(rounds):
            for d in range(start, end):
                if image[d] < len(times) - 1:
                    rank += step
                    if size == BLOCK:
                        _add_block(block, size, bits, positives, (states, best))
                        size = 0
                    hits[size], passes[size] = hit[d] & ~ignored[d], ignored[d]
                    ranks[size], steps[size] = rank, step
                    size += 1
    for d in range(at, stop):
        counted += times[image[d]]
    counts[0] = counted
    _add_block(block, size, bits, positives, (states, best))


@njit(nogil=True, cache=True)
def _add_block(block: Any, size: int, bits: Flags, positives: int, sums: Any) -> None:
    """Adds detections, those that are false at every threshold left out, to what is known of each.

    `block`: the first `size` of each count: hit, ignored, how many were counted up to it, and how
    many copies it is. `sums`: `states`, (6, bits) copies that are right and that were passed over,
    the recall that is reached, the best precision since as numerator and denominator, and from how
    many right copies on the next recall is reached; and `best`, (bits, 101) the highest precision
    where recall reaches `RECALLS[r]` and not yet the next.
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
    """The last of `RECALLS` that a count reaches, from `reached` on, and the count for the next."""
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
