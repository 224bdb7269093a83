"""Objects to be found and true positives of each image and category, as recall counts them."""

from weakref import WeakKeyDictionary

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.disk_columns import DiskColumn, split_entries, split_spans
from steadyeye.metrics.detection.box_groups import Ints, Rows
from steadyeye.metrics.detection.iou_thresholds import IOUS
from steadyeye.metrics.detection.matching import PIECE, Flags, Matched


def sum_positives(matched: Matched, times: Ints) -> Ints:
    """(classes,) number of objects, with images weighted."""
    out = np.zeros(matched.groups.classes, dtype=np.int64)
    columns = list_positives(matched)
    for part in split_entries(len(columns[0])):
        image, label, positives = (column[part] for column in columns)
        _add_products(positives, image, label, times, out)
    return out


_POSITIVES: WeakKeyDictionary[Matched, tuple[Rows, Rows, Rows]] = WeakKeyDictionary()
"""Cache of `list_positives`; most groups have detections only."""


def list_positives(matched: Matched) -> tuple[Rows, Rows, Rows]:
    """Image, class and number of objects of the groups that have objects to be found."""
    if matched not in _POSITIVES:
        groups, columns = matched.groups, tuple(DiskColumn(np.int32) for _ in range(3))
        for part in split_entries(len(matched.positives)):
            positives = matched.positives[part]
            some = np.flatnonzero(positives)
            for column, values in zip(
                columns, (groups.image[part], groups.label[part], positives), strict=True
            ):
                column.append(values[some])
        image, label, positives = (column.array() for column in columns)
        _POSITIVES[matched] = image, label, positives
    return _POSITIVES[matched]


def find_presence(
    matched: Matched, images: int, rows: NDArray[np.intp] | None = None
) -> NDArray[np.uint8]:
    """(images, ⌈classes ÷ 8⌉) a bit for each class of which an image has an object to be found.

    As `np.packbits` of (images, classes). `rows`: which of `images` each image of `matched` is;
    None: the same in order.
    """
    presence = np.zeros((images, -(-matched.groups.classes // 8)), dtype=np.uint8)
    columns = list_positives(matched)[:2]
    for part in split_entries(len(columns[0])):
        image, label = (column[part] for column in columns)
        at = image if rows is None else rows[image]
        np.bitwise_or.at(presence, (at, label >> 3), (0x80 >> (label & 7)).astype(np.uint8))
    return presence


@njit(nogil=True, cache=True)
def _add_products(values: Rows, image: Rows, label: Rows, times: Ints, out: Ints) -> None:
    for g in range(len(values)):
        out[label[g]] += values[g] * times[image[g]]


_HITS: WeakKeyDictionary[Matched, dict[int, tuple[Flags, Rows, Rows]]] = WeakKeyDictionary()
"""Cache of `find_hits`, because a resample only weighs it."""


def find_hits(matched: Matched, most: int) -> tuple[Flags, Rows, Rows]:
    """(n, thresholds) true positives among the first `most` of each group that has one there.

    And image and class of these n groups, (n,) each. `most`: at most `MOST`.
    """
    known = _HITS.setdefault(matched, {})
    if most not in known:
        known[most] = _list_hits(matched, most)
    return known[most]


def _list_hits(matched: Matched, most: int) -> tuple[Flags, Rows, Rows]:
    groups, several = matched.groups, DiskColumn(np.uint16, len(IOUS))
    columns = DiskColumn(np.int32), DiskColumn(np.int32)
    for begin, end in split_spans(groups.first, PIECE):
        first = groups.first[begin : end + 1]
        hit = matched.hit[groups.members[first[0] : first[-1]]]
        counts = np.asarray(_count_hits(hit, first - first[0], most, len(IOUS)))
        some = np.flatnonzero(counts.any(axis=1))
        several.append(counts[some])
        for column, values in zip(columns, (groups.image, groups.label), strict=True):
            column.append(values[begin:end][some])
    return several.array(), columns[0].array(), columns[1].array()


@njit(nogil=True, cache=True)
def _count_hits(hit: Flags, first: Rows, most: int, bits: int) -> Flags:
    """(groups, bits) true positives among the first `most`, at most `MOST`, of each group."""
    out = np.zeros((len(first) - 1, bits), dtype=np.uint16)
    for g in range(len(first) - 1):
        for d in range(first[g], min(first[g + 1], first[g] + most)):
            for i in range(bits):
                out[g, i] += hit[d] >> i & 1
    return out


@njit(nogil=True, cache=True)
def sum_hits(counts: Flags, image: Rows, label: Rows, times: Ints, classes: int) -> Ints:
    """(bits, classes) true positives, with images weighted."""
    out = np.zeros((counts.shape[1], classes), dtype=np.int64)
    for g in range(len(counts)):
        for i in range(counts.shape[1]):
            out[i, label[g]] += counts[g, i] * times[image[g]]
    return out
