"""The annotations of a COCO file as columns, where every one of them is as it should be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, from_sides
from steadyeye.core.storage.json_lists import decode_in_pieces


class _Annotation(msgspec.Struct, gc=False):
    image_id: int | str
    category_id: int
    bbox: tuple[float, float, float, float]
    area: float | msgspec.UnsetType = msgspec.UNSET
    iscrowd: int = 0
    segmentation: msgspec.Raw = msgspec.Raw(b"")


class _File(msgspec.Struct):
    images: list[dict[str, Any]]
    categories: list[Any]
    annotations: list[msgspec.Raw]


@dataclass(frozen=True, eq=False)
class Columns:
    """n annotations in the order of their file, and the entries of images and categories.

    `image`: (n,) which of `image_ids`; `category`: (n,) the category id; `corners`: (n, 4) x0 y0
    x1 y1 in pixels; `area`: (n,) in square pixels; `crowd`: (n,) bool. An annotation that stands
    there twice is left out the second time: `repeats` of `total`.
    """

    images: Sequence[Mapping[str, Any]]
    categories: Sequence[Any]
    image_ids: Sequence[int | str]
    image: NDArray[np.int64]
    category: NDArray[np.int64]
    corners: NDArray[np.float64]
    area: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    repeats: int
    total: int

    def boxes(self, position: Mapping[int, int]) -> Mapping[int | str, Boxes]:
        """Image id → its boxes; `position`: the label of each category id."""
        order = np.argsort(self.image, kind="stable")
        kinds, kind = np.unique(self.category, return_inverse=True)
        label = np.array([position[number] for number in kinds.tolist()], dtype=np.int32)[kind]
        corners, area, crowd = self.corners[order], self.area[order], self.crowd[order]
        label = label[order]
        ends = np.searchsorted(self.image[order], np.arange(len(self.image_ids) + 1)).tolist()
        return {
            name: Boxes(corners[a:b], label[a:b], crowd[a:b], area[a:b])
            for name, (a, b) in zip(self.image_ids, pairwise(ends), strict=True)
        }


def parse(text: str) -> Columns | None:
    """The columns of a file; None where anything in it needs a closer look or has no box."""
    try:
        content = msgspec.json.decode(text, type=_File)
        known: dict[int | str, int] = {}
        parts, masks = [], []
        for entries in decode_in_pieces(content.annotations, _Annotation):
            parts.append(_columns(entries, known))
            masks += [bytes(entry.segmentation) for entry in entries]
        if not parts:
            return None
        image, category, sides, area, crowd = map(np.concatenate, zip(*parts, strict=True))
        is_first = ~_find_repeats([image, category, *sides.T, crowd], masks)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    corners = from_sides(sides)
    if (sides[:, 2:] < 0).any() or not np.isfinite(corners).all():
        return None
    if (area < 0).any() or not np.isin(crowd, (0, 1)).all():
        return None
    own = np.prod(corners[:, 2:] - corners[:, :2], axis=1)
    return Columns(
        content.images,
        content.categories,
        list(known),
        image[is_first],
        category[is_first],
        corners[is_first],
        np.where(np.isnan(area), own, area)[is_first],
        crowd[is_first] == 1,
        int((~is_first).sum()),
        len(is_first),
    )


def _columns(
    entries: Sequence[_Annotation], known: dict[int | str, int]
) -> tuple[NDArray[Any], ...]:
    for entry in entries:
        known.setdefault(entry.image_id, len(known))
    n = len(entries)
    sides = chain.from_iterable(entry.bbox for entry in entries)
    areas = (np.nan if isinstance(e.area, msgspec.UnsetType) else e.area for e in entries)
    return (
        np.fromiter((known[entry.image_id] for entry in entries), np.int64, n),
        np.fromiter((entry.category_id for entry in entries), np.int64, n),
        np.fromiter(sides, np.float64, 4 * n).reshape(-1, 4),
        np.fromiter(areas, np.float64, n),
        np.fromiter((entry.iscrowd for entry in entries), np.int64, n),
    )


def _find_repeats(columns: Sequence[NDArray[Any]], masks: Sequence[bytes]) -> NDArray[np.bool_]:
    """(n,) whether an earlier annotation has the same image, class, box, crowd and mask."""
    order = np.lexsort(columns)  # stable: of the same ones the first comes first
    same = np.logical_and.reduce([column[order][1:] == column[order][:-1] for column in columns])
    is_repeat = np.zeros(len(masks), dtype=np.bool_)
    earlier: set[bytes] = set()
    previous = -2
    for place in np.flatnonzero(same).tolist():
        first, second = order[place], order[place + 1]
        if place != previous + 1:
            earlier = {_rewrite(masks[first])}
        mask = _rewrite(masks[second])
        is_repeat[second] = mask in earlier
        earlier.add(mask)
        previous = place
    return is_repeat


def _rewrite(mask: bytes) -> bytes:
    """The JSON of a mask without blanks, so that equal masks are equal bytes."""
    return msgspec.json.encode(msgspec.json.decode(mask)) if mask else b"null"
