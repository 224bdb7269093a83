"""Regions of images for embedding, cut out as squares, with the cause of a mistake in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.seeds import stream
from steadyeye.core.types import Image
from steadyeye.explain.mining.causes import (
    CAUSES,
    IN_CROWD,
    IOU,
    MISTAKES,
    Judged,
    judge_detections,
)
from steadyeye.explain.mining.mistakes import name_of

NOTHING = "nothing"
MISSED = "missed"
MISTAKEN = "mistake"

WRONG = (*MISTAKES, MISSED, MISTAKEN)
"""The causes that count as mistakes; "" is right, and `unverified` is neither."""

ENLARGE = 0.2
GREY = 127


@dataclass(frozen=True, repr=False)
class Region:
    """A region of one image of a set.

    `id`: unique in the set and stable. `row`: of the table. `box`: x0 y0 x1 y1 in pixels, None for
    the whole image. `own_label`, `score`: of the detection, −1 and 0 without one. `cause`: one of
    `explain.mining.causes.CAUSES`, or of `WRONG`, "" for no mistake. `predicted`, `true`: the
    classes in words.
    """

    id: str
    row: int
    box: tuple[float, float, float, float] | None
    own_label: int
    score: float
    cause: str
    predicted: str
    true: str

    def __repr__(self) -> str:
        """The form in the fingerprints of sealed cells, in which `predicted` is called `said`."""
        values = {{"predicted": "said"}.get(name, name): text for name, text in vars(self).items()}
        return f"Region({', '.join(f'{name}={value!r}' for name, value in values.items())})"


Listing = Callable[[Predictions, float], list[Region]]


def detections(predictions: Predictions, score: float) -> list[Region]:
    """Every confident detection, without those in a crowd of their class."""
    raw, verdicts = _select_detections(predictions), judge_detections(predictions, score)
    falling = np.lexsort((-raw.score[verdicts.detection], raw.image[verdicts.detection]))
    return [
        _detection(predictions, verdicts, place)
        for place in falling.tolist()
        if verdicts.cause[place] != IN_CROWD
    ]


def truth(predictions: Predictions, score: float) -> list[Region]:
    """Every true box, with the confident detection that overlaps it, if there is one.

    Of several it is the one of highest IoU; a right one comes before a wrong one. An object without
    one is `MISSED`. Crowds are left out.
    """
    boxes, verdicts = predictions.boxes, judge_detections(predictions, score)
    raw = _select_detections(predictions)
    assert boxes is not None, "checked by needs"
    on = verdicts.iou > IOU
    order = np.lexsort((verdicts.iou, verdicts.cause < 0, on))
    upon = dict(zip(verdicts.object[order].tolist(), order.tolist(), strict=True))
    regions = []
    for place in np.flatnonzero(~boxes.crowd).tolist():
        row, verdict = int(boxes.image[place]), upon.get(place, -1)
        id_ = f"{predictions.ids[row]}#t{place - int(np.searchsorted(boxes.image, row))}"
        true = name_of(predictions, int(boxes.label[place]))
        region = Region(id_, row, _corners(boxes, place), -1, 0.0, MISSED, NOTHING, true)
        if verdict >= 0 and on[verdict]:
            detection = verdicts.detection[verdict]
            region = replace(
                region,
                own_label=int(raw.label[detection]),
                score=float(raw.score[detection]),
                cause=_cause(verdicts, verdict),
                predicted=predictions.model_classes[raw.label[detection]],
            )
        regions.append(region)
    return regions


def images(predictions: Predictions, score: float) -> list[Region]:
    """Every image as a whole, with its most confident mistake, if any."""
    raw, verdicts = _select_detections(predictions), judge_detections(predictions, score)
    wrong = np.isin(verdicts.cause, [CAUSES.index(cause) for cause in MISTAKES])
    order = np.lexsort((raw.score[verdicts.detection], wrong))
    most = dict(zip(raw.image[verdicts.detection[order]].tolist(), order.tolist(), strict=True))
    regions = []
    for row in np.flatnonzero(predictions.valid).tolist():
        id_, place = str(predictions.ids[row]), most.get(row)
        if place is None:
            regions.append(Region(id_, row, None, -1, 0.0, "", NOTHING, NOTHING))
        else:
            region = _detection(predictions, verdicts, place)
            cause = MISTAKEN if wrong[place] else ""
            regions.append(replace(region, id=id_, box=None, cause=cause))
    return regions


LISTINGS: Mapping[str, Listing] = {"detections": detections, "truth": truth, "images": images}


def draw_regions(regions: list[Region], most: int, seed: int, name: str) -> list[Region]:
    """A random sample of at most `most` regions, in their order; `name`: of the set."""
    if len(regions) <= most:
        return regions
    rows = stream(seed, "regions", name).choice(len(regions), size=most, replace=False)
    return [regions[row] for row in sorted(rows.tolist())]


def _detection(predictions: Predictions, verdicts: Judged, place: int) -> Region:
    raw, truth = _select_detections(predictions), predictions.boxes
    assert truth is not None, "checked by needs"
    detection, thing = int(verdicts.detection[place]), int(verdicts.object[place])
    row = int(raw.image[detection])
    on = verdicts.iou[place] > IOU
    return Region(
        f"{predictions.ids[row]}#d{detection - int(np.searchsorted(raw.image, row))}",
        row,
        _corners(raw, detection),
        int(raw.label[detection]),
        float(raw.score[detection]),
        _cause(verdicts, place),
        predictions.model_classes[raw.label[detection]],
        name_of(predictions, int(truth.label[thing])) if on else NOTHING,
    )


def _select_detections(predictions: Predictions) -> BoxTable:
    assert predictions.raw_detections is not None, "asked for by judged"
    return predictions.raw_detections


def _cause(verdicts: Judged, place: int) -> str:
    return CAUSES[verdicts.cause[place]] if verdicts.cause[place] >= 0 else ""


def _corners(table: BoxTable, place: int) -> tuple[float, float, float, float]:
    x0, y0, x1, y1 = map(float, table.boxes[place])
    return x0, y0, x1, y1


@dataclass(frozen=True)
class CropRule:
    """How a box is cut out: `enlarge`, the share of its longer side that is added in total.

    Raises `UsageError` for a share below 0 or above 4.
    """

    enlarge: float = ENLARGE

    def __post_init__(self) -> None:
        if not 0 <= self.enlarge <= 4:
            raise UsageError(f"enlarge={self.enlarge:g}: give a share from 0 to 4")

    def __str__(self) -> str:
        return f"the square around the box, {self.enlarge:.0%} longer than its longer side"


def crop_image(image: Image, box: NDArray[np.float64], crop: CropRule) -> Image:
    """The square around a box, (s, s, 3) uint8, whole pixels, s at least 1.

    `box`: (4,) x0 y0 x1 y1 in pixels. The square has the box in its centre and (1 + `enlarge`)
    times its longer side; where it leaves the image it is moved back in, and where it is larger
    than the image the rest is grey. Squaring keeps the shape of the object, which resizing to a
    network's input would change.
    """
    height, width = image.shape[:2]
    x0, y0, x1, y1 = box.tolist()
    side = max(round(max(x1 - x0, y1 - y0) * (1 + crop.enlarge)), 1)
    left = _start((x0 + x1) / 2, side, width)
    top = _start((y0 + y1) / 2, side, height)
    inside = image[max(top, 0) : top + side, max(left, 0) : left + side]
    if inside.shape[:2] == (side, side):
        return np.ascontiguousarray(inside)
    out = np.full((side, side, 3), GREY, dtype=np.uint8)
    above, beside = max(-top, 0), max(-left, 0)
    out[above : above + inside.shape[0], beside : beside + inside.shape[1]] = inside
    return out


def _start(middle: float, side: int, length: int) -> int:
    """The start of a window of `side` pixels: within the image, or around it if it is larger."""
    if side >= length:
        return (length - side) // 2
    return min(max(round(middle - side / 2), 0), length - side)
