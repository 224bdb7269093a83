"""True boxes and detections in groups of one image and one category, the detections ranked.

Long columns lie on the disk (`core.disk_columns`). In memory there are at a time the detections of
some categories, `PIECE` of them or one category, and then those of some images.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from steadyeye.core.disk_columns import DiskColumn, split_entries, split_spans
from steadyeye.core.seeds import stream

Ints: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Keys: TypeAlias = tuple[Ints, Ints]
MOST = 100
"""Detections that count: the best of each image and category."""
PIECE = 200_000
"""Detections that are ranked together, and that are grouped together."""
PIECES = 16
"""Pieces of either at most, about: for each of them all detections are looked through."""
SAMPLE = 2_000
"""Scores of a piece by which a category is parted: parts are within a tenth of their size."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Two tables of boxes by image and category, by row number; the tables are not held.

    Of each of g groups, those of one image and one category that either table has, by image and
    then category: `image`, `label`: (g,) int32.
    `truth`: (t,) int32, rows of the ground truth, group by group, in the order of the table;
    group i has those from `truth_first[i]` to `truth_first[i + 1]`.

    Of each of m detections, the best `MOST` of each group, by category, then falling score, then
    image, then row: `row`, `row_image`: (m,) int32. `tied`: (m,) bool, whether the next one has the
    same category, score and image. Category i has those from `bounds[i]` to `bounds[i + 1]`.
    `members`: (m,) int32, their places in `row`, group by group, best first; group i has those
    from `first[i]` to `first[i + 1]`. `member_row`: (m,) int32, the rows there, `row[members]`.
    """

    images: int
    classes: int
    image: Rows
    label: Rows
    truth: Rows
    truth_first: Rows
    row: Rows
    row_image: Rows
    tied: Mask
    bounds: Ints
    members: Rows
    member_row: Rows
    first: Rows


@dataclass(frozen=True, eq=False)
class _Ranking:
    """What `Groups` says of detections by category: `row`, `row_image`, `tied` and `bounds`."""

    row: Rows
    row_image: Rows
    tied: Mask
    bounds: Ints


def group_boxes(truth: Keys, detections: Keys, score: Floats, images: int, classes: int) -> Groups:
    """Both tables in groups; `truth`, `detections`: image and category of each row, (n,) int64.

    `score`: (n,) float64 of the detections. Equal scores keep the order of the table.
    """
    assert max(len(truth[0]), len(score)) < 2**31, "rows are counted in 32 bits"
    ranking = _rank_detections(detections, score, images, classes)
    return _merge_tables(truth, ranking, images, classes)


def _rank_detections(detections: Keys, score: Floats, images: int, classes: int) -> _Ranking:
    """The best of each image and category, by category, then falling score, image and row."""
    piece = max(PIECE, len(score) // PIECES)
    part, category = _split_categories(detections[1], score, classes, piece)
    bounds = _find_bounds(part, len(category))
    order = _order_by_image(detections[0], images)
    columns = DiskColumn(np.int32), DiskColumn(np.int32), DiskColumn(np.bool_)
    sizes = np.zeros(classes, dtype=np.int64)
    # of each image the category that was counted last, and how many detections of it
    counts = np.full(images, -1, dtype=np.int64), np.zeros(images, dtype=np.int64)
    for begin, end in split_spans(bounds, piece):
        keys = detections[0], part, score
        row, image, falling = _find_rows(keys, order, bounds, (begin, end))
        own = np.repeat(np.arange(begin, end), np.diff(bounds[begin : end + 1]))
        places = _sort_by_counting(_order_falling(falling), own - begin, end - begin)
        label = category[own]
        places = places[_find_best(image[places], label[places], counts)]
        label, image, falling = label[places], image[places], falling[places]
        tied = np.zeros(len(places), dtype=np.bool_)
        tied[:-1] = (label[1:] == label[:-1]) & (image[1:] == image[:-1])
        tied[:-1] &= falling[1:] == falling[:-1]
        for column, values in zip(columns, (row[places], image, tied), strict=True):
            column.append(values)
        sizes += np.bincount(label, minlength=classes)
    row, row_image, is_tied = (column.array() for column in columns)
    return _Ranking(row, row_image, is_tied, np.concatenate([[0], np.cumsum(sizes)]))


def _split_categories(
    label: Ints, score: Floats, classes: int, piece: int
) -> tuple[Ints, NDArray[np.intp]]:
    """The part of a category that each detection is in, and the category of each part.

    A category of more than `piece` detections is parted by falling score into parts of about as
    many, of which none has a score of another; any other category is one part.
    """
    parts = -(-np.diff(_find_bounds(label, classes)) // piece)
    edges = {own: np.zeros(0) for own in np.flatnonzero(parts > 1).tolist()}
    if not edges:
        return label, np.arange(classes)
    rng, looked_at = stream(0, "parts of categories"), {own: [np.zeros(0)] for own in edges}
    for entries in split_entries(len(label)):
        some = entries.start + np.flatnonzero(rng.random(len(label[entries])) < SAMPLE / piece)
        for own, scores in looked_at.items():
            scores.append(score[some[label[some] == own]])
    for own, scores in looked_at.items():
        ordered = np.sort(-np.concatenate(scores))
        places = np.arange(1, parts[own]) * len(ordered) // parts[own]
        edges[own] = np.unique(ordered[places]) if len(ordered) else ordered
    several = np.ones(classes, dtype=np.int64)
    several[list(edges)] += [len(own) for own in edges.values()]
    first, column = np.cumsum(several) - several, DiskColumn(np.int64)
    for entries in split_entries(len(label)):
        part = first[label[entries]]
        for own, bars in edges.items():
            mine = label[entries] == own
            part[mine] += np.searchsorted(bars, -score[entries][mine])
        column.append(part)
    return column.array(), np.repeat(np.arange(classes), several)


def _merge_tables(truth: Keys, ranking: _Ranking, images: int, classes: int) -> Groups:
    """The groups of true boxes and ranked detections, the images in pieces."""
    bounds, truth_bounds = (_find_bounds(image, images) for image in (ranking.row_image, truth[0]))
    truth_order = _order_by_image(truth[0], images)
    kinds = {name: DiskColumn(np.int32) for name in ("image", "label", "truth", "truth_first")}
    kinds |= {name: DiskColumn(np.int32) for name in ("members", "member_row", "first")}
    for name in ("truth_first", "first"):
        kinds[name].append(np.zeros(1))
    for begin, end in split_spans(bounds, max(PIECE, len(ranking.row) // PIECES)):
        members, member_row, label = _find_members(ranking, bounds, (begin, end))
        image = np.repeat(np.arange(begin, end), np.diff(bounds[begin : end + 1]))
        some = slice(truth_bounds[begin], truth_bounds[end])
        rows = np.arange(some.start, some.stop) if truth_order is None else truth_order[some]
        true_image, true_label = (column[rows] for column in truth)
        order = _sort_by_counting(np.arange(len(rows), dtype=np.int32), true_label, classes)
        order = _sort_by_counting(order, true_image - begin, end - begin)
        objects = true_image[order], true_label[order]
        groups, (truth_first, first) = _merge_groups(objects, (image, label))
        parts = {
            **dict(zip(("image", "label"), groups, strict=True)),
            "truth": rows[order],
            "truth_first": truth_first[1:] + some.start,
            "members": members,
            "member_row": member_row,
            "first": first[1:] + bounds[begin],
        }
        for name, part in parts.items():
            kinds[name].append(part)
    return Groups(
        images,
        classes,
        row=ranking.row,
        row_image=ranking.row_image,
        tied=ranking.tied,
        bounds=ranking.bounds,
        **{name: column.array() for name, column in kinds.items()},
    )


def _find_rows(
    columns: tuple[Ints, Ints, Floats], order: Rows | None, bounds: Ints, parts: tuple[int, int]
) -> tuple[Rows, Rows, Floats]:
    """Row, image and score of the detections of consecutive parts, by part and image.

    `columns`: image, part and score by row; `order`: as `_order_by_image` returns it; `bounds`: how
    many detections there are up to each part; `parts`: the first, and the first that is left out.
    """
    begin, end = parts
    at = bounds[begin:end] - bounds[begin]
    size = int(bounds[end] - bounds[begin])
    row, image = np.empty((2, size), dtype=np.int32)
    score = np.empty(size)
    for part in split_entries(len(columns[2])):
        rows = np.arange(part.start, part.stop, dtype=np.int32) if order is None else order[part]
        _gather_rows(rows, columns, parts, at, (row, image, score))
    return row, image, score


def _find_members(
    ranking: _Ranking, bounds: Ints, images: tuple[int, int]
) -> tuple[Rows, Rows, Ints]:
    """Of the ranked detections of consecutive images, image by image, the place, row and category.

    Those of an image come as they are ranked. `bounds`: how many there are up to each image;
    `images`: the first, and the first that is left out.
    """
    begin, end = images
    at = bounds[begin:end] - bounds[begin]
    size = int(bounds[end] - bounds[begin])
    members, member_row = np.empty((2, size), dtype=np.int32)
    label = np.empty(size, dtype=np.int64)
    for part in split_entries(len(ranking.row)):
        ranked = ranking.row[part], ranking.row_image[part], part.start, ranking.bounds
        _gather_members(ranked, images, at, (members, member_row, label))
    return members, member_row, label


@njit(nogil=True, cache=True)
def _gather_members(ranked: Any, images: Any, at: Ints, out: Any) -> None:
    """Writes those of the `images` to `out`, each at the place that `at` says for its image.

    `ranked`: row and image of each, the place of the first, and the bounds of the categories.
    """
    (rows, row_image, place, bounds), (members, member_row, label) = ranked, out
    begin, end = images
    own = np.searchsorted(bounds, place, side="right") - 1
    for i in range(len(rows)):
        while place + i >= bounds[own + 1]:
            own += 1
        image = row_image[i]
        if begin <= image < end:
            to = at[image - begin]
            members[to], member_row[to], label[to] = place + i, rows[i], own
            at[image - begin] += 1


def _find_bounds(key: NDArray[np.integer], end: int) -> Ints:
    """(end + 1,) how many entries have a smaller key, all keys below `end`."""
    counts = np.zeros(end + 1, dtype=np.int64)
    for part in split_entries(len(key), end):  # each is counted into an array as long as `end`
        counts[1:] += np.bincount(key[part], minlength=end)
    return np.cumsum(counts)


def _order_by_image(image: Ints, images: int) -> Rows | None:
    """The rows by image, stable; None where they are in that order, as read from files."""
    parts = (image[part.start : part.stop + 1] for part in split_entries(len(image)))
    if all((part[1:] >= part[:-1]).all() for part in parts):
        return None
    return _sort_by_counting(np.arange(len(image), dtype=np.int32), image, images)


@njit(nogil=True, cache=True)
def _gather_rows(rows: Rows, columns: Any, parts: Any, at: Ints, out: Any) -> None:
    """Writes those of the `parts` to `out`, each at the place that `at` says for its part."""
    (image, part, score), (to_row, to_image, to_score) = columns, out
    begin, end = parts
    for row in rows:
        own = part[row] - begin
        if 0 <= own < end - begin:
            to = at[own]
            to_row[to], to_image[to], to_score[to] = row, image[row], score[row]
            at[own] += 1


@njit(nogil=True, cache=True)
def _find_best(image: Rows, label: Ints, counts: Any) -> Mask:
    """Which detections, by category and falling score, are the best `MOST` of their image."""
    last, times = counts
    is_best = np.zeros(len(image), dtype=np.bool_)
    for i in range(len(image)):
        own = image[i]
        if last[own] != label[i]:
            last[own], times[own] = label[i], 0
        is_best[i] = times[own] < MOST
        times[own] += 1
    return is_best


def _order_falling(score: Floats) -> Rows:
    """The places by falling score, stable."""
    keys = -score
    # repairing the ties of an unstable sort takes a fifth of the time of a stable one
    order = np.argsort(keys)
    _sort_ties(order, keys)
    return order.astype(np.int32)


@njit(nogil=True, cache=True)
def _sort_ties(order: Ints, keys: Floats) -> None:
    """Sorts the places of equal keys in `order`."""
    begin = 0
    for i in range(1, len(keys) + 1):
        if i == len(keys) or keys[order[i]] != keys[order[begin]]:
            if i > begin + 1:
                order[begin:i].sort()
            begin = i


@njit(nogil=True, cache=True)
def _sort_by_counting(rows: Rows, key: Ints, end: int) -> Rows:
    """`rows` by `key[row]`, all below `end`, stable: a counting sort."""
    at = np.zeros(end + 1, dtype=np.int64)
    for row in rows:
        at[key[row] + 1] += 1
    for i in range(end):
        at[i + 1] += at[i]
    out = np.empty_like(rows)
    for row in rows:
        out[at[key[row]]] = row
        at[key[row]] += 1
    return out


@njit(nogil=True, cache=True)
def _merge_groups(truth: Any, detections: Any) -> tuple[Any, Any]:
    """The groups of two tables, and where each begins in both.

    `truth`, `detections`: image and category of each row, by both.
    """
    (truth_image, truth_label), (row_image, row_label) = truth, detections
    most = len(truth_image) + len(row_image)
    image, label = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
    truth_first = np.zeros(most + 1, dtype=np.int32)
    first = np.zeros(most + 1, dtype=np.int32)
    g = t = d = 0
    while t < len(truth_image) or d < len(row_image):
        of = own = 0
        if t < len(truth_image):
            of, own = truth_image[t], truth_label[t]
        if d < len(row_image) and (
            t == len(truth_image) or (row_image[d], row_label[d]) < (of, own)
        ):
            of, own = row_image[d], row_label[d]
        image[g], label[g] = of, own
        while t < len(truth_image) and truth_image[t] == of and truth_label[t] == own:
            t += 1
        while d < len(row_image) and row_image[d] == of and row_label[d] == own:
            d += 1
        g += 1
        truth_first[g], first[g] = t, d
    return (image[:g], label[:g]), (truth_first[: g + 1], first[: g + 1])
