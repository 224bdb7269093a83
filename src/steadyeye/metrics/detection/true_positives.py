"""True positives of each image and category, as recall counts them."""

from weakref import WeakKeyDictionary

import numpy as np
from numba import njit

from steadyeye.core.disk_columns import DiskColumn, split_spans
from steadyeye.metrics.detection.box_groups import Ints, Rows
from steadyeye.metrics.detection.matching import IOUS, PIECE, Flags, Matched

_HITS: WeakKeyDictionary[Matched, dict[int, tuple[Flags, Rows, Rows]]] = WeakKeyDictionary()
"""What `find_hits` returned, since a resample only weighs it."""


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
    """(bits, classes) true positives, an image counted so many times."""
    out = np.zeros((counts.shape[1], classes), dtype=np.int64)
    for g in range(len(counts)):
        for i in range(counts.shape[1]):
            out[i, label[g]] += counts[g, i] * times[image[g]]
    return out
