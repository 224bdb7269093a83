"""What is embedded: regions of images, with what a detector makes of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable
from steadyeye.core.predictions import Predictions
from steadyeye.core.seeds import stream
from steadyeye.explain.mining.candidates import name_of
from steadyeye.explain.mining.causes import (
    CAUSES,
    IN_CROWD,
    IOU,
    MISTAKES,
    Judged,
    judge_detections,
)

NOTHING = "nothing"
MISSED = "missed"
MISTAKEN = "mistake"

WRONG = (*MISTAKES, MISSED, MISTAKEN)
"""The causes that count as mistakes; "" is right, and `unverified` is neither."""


@dataclass(frozen=True)
class Region:
    """A region of one image of a set.

    `id`: unique in the set and stable. `row`: of the table. `box`: x0 y0 x1 y1 in pixels, None for
    the whole image. `own_label`, `score`: of the detection, −1 and 0 without one. `cause`: one of
    `explain.mining.causes.CAUSES`, or of `WRONG`, "" where nothing is wrong. `said`, `true`: in
    words.
    """

    id: str
    row: int
    box: tuple[float, float, float, float] | None
    own_label: int
    score: float
    cause: str
    said: str
    true: str


Listing = Callable[[Predictions, float], list[Region]]


def detections(predictions: Predictions, score: float) -> list[Region]:
    """Every confident detection; those that a crowd excuses are left out."""
    said, found = _select_detections(predictions), judge_detections(predictions, score)
    falling = np.lexsort((-said.score[found.detection], said.image[found.detection]))
    return [
        _detection(predictions, found, place)
        for place in falling.tolist()
        if found.cause[place] != IN_CROWD
    ]


def truth(predictions: Predictions, score: float) -> list[Region]:
    """Every true box, with the confident detection that lies on it, if one does.

    Of several the one of highest IoU; of a right one and a wrong one the right one. An object on
    which none lies is `MISSED`. Crowds are left out.
    """
    boxes, found = predictions.boxes, judge_detections(predictions, score)
    assert boxes is not None, "checked by needs"
    on = found.iou > IOU
    order = np.lexsort((found.iou, found.cause < 0, on))
    upon = dict(zip(found.object[order].tolist(), order.tolist(), strict=True))
    regions = []
    for place in np.flatnonzero(~boxes.crowd).tolist():
        row, which = int(boxes.image[place]), upon.get(place, -1)
        known = which >= 0 and bool(on[which])
        regions.append(
            Region(
                f"{predictions.ids[row]}#t{place - int(np.searchsorted(boxes.image, row))}",
                row,
                _corners(boxes, place),
                int(_select_detections(predictions).label[found.detection[which]]) if known else -1,
                float(_select_detections(predictions).score[found.detection[which]])
                if known
                else 0.0,
                _cause(found, which) if known else MISSED,
                _answer(predictions, found, which) if known else NOTHING,
                _name_class(predictions, place),
            )
        )
    return regions


def images(predictions: Predictions, score: float) -> list[Region]:
    """Every image as a whole, with its most confident mistake, if it has one."""
    said, found = _select_detections(predictions), judge_detections(predictions, score)
    wrong = np.isin(found.cause, [CAUSES.index(cause) for cause in MISTAKES])
    order = np.lexsort((said.score[found.detection], wrong))
    most = dict(zip(said.image[found.detection[order]].tolist(), order.tolist(), strict=True))
    regions = []
    for row in np.flatnonzero(predictions.valid).tolist():
        which = most.get(row, -1)
        mistaken = which >= 0 and bool(wrong[which])
        one = _detection(predictions, found, which) if which >= 0 else None
        regions.append(
            Region(
                str(predictions.ids[row]),
                row,
                None,
                one.own_label if one else -1,
                one.score if one else 0.0,
                MISTAKEN if mistaken else "",
                one.said if one else NOTHING,
                one.true if one else NOTHING,
            )
        )
    return regions


LISTINGS: Mapping[str, Listing] = {"detections": detections, "truth": truth, "images": images}


def draw_regions(found: list[Region], most: int, seed: int, name: str) -> list[Region]:
    """At most so many regions, drawn evenly, in the order they came; `name`: of the set."""
    if len(found) <= most:
        return found
    rows = stream(seed, "regions", name).choice(len(found), size=most, replace=False)
    return [found[row] for row in sorted(rows.tolist())]


def _detection(predictions: Predictions, found: Judged, place: int) -> Region:
    said = _select_detections(predictions)
    which = int(found.detection[place])
    row = int(said.image[which])
    on = found.iou[place] > IOU
    return Region(
        f"{predictions.ids[row]}#d{which - int(np.searchsorted(said.image, row))}",
        row,
        _corners(said, which),
        int(said.label[which]),
        float(said.score[which]),
        _cause(found, place),
        _answer(predictions, found, place),
        _name_class(predictions, int(found.object[place])) if on else NOTHING,
    )


def _select_detections(predictions: Predictions) -> BoxTable:
    assert predictions.raw_detections is not None, "asked for by judged"
    return predictions.raw_detections


def _cause(found: Judged, place: int) -> str:
    return CAUSES[found.cause[place]] if found.cause[place] >= 0 else ""


def _answer(predictions: Predictions, found: Judged, place: int) -> str:
    return predictions.model_classes[
        int(_select_detections(predictions).label[found.detection[place]])
    ]


def _name_class(predictions: Predictions, place: int) -> str:
    """The class of a true box in words."""
    assert predictions.boxes is not None, "checked by needs"
    return name_of(predictions, int(predictions.boxes.label[place]))


def _corners(table: BoxTable, place: int) -> tuple[float, float, float, float]:
    corners: NDArray[np.float64] = table.boxes[place]
    x0, y0, x1, y1 = map(float, corners)
    return x0, y0, x1, y1
