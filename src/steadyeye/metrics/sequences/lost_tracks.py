"""True objects that a detector loses from one frame to the next, and what goes with it."""

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import intersect_boxes
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.metrics.covariates.breakage import VIDEOS, Effects, Outcomes, fit_effects
from steadyeye.metrics.covariates.measures import Measure
from steadyeye.metrics.sequences.true_tracks import TrueTracks

MEASURES = (
    Measure("motion", "motion", "% of its size a frame", 100, 1),
    Measure("sharpness", "sharpness", ratio=True),
    Measure("size", "size", ratio=True),
    Measure("occlusion", "share covered by other objects", "%", 100, 1),
    Measure("truncation", "touching the edge of the image"),
    Measure("brightness", "brightness", "grey values", digits=1),
    Measure("contrast", "contrast", "grey values", digits=1),
)
"""Of an object in the frame in which it is lost or kept, those first that are asked for first."""


def list_losses(predictions: Predictions, objects: TrueTracks) -> Outcomes:
    """Every frame of an object after one in which it is found; `broken`: whether it is lost.

    `rows` are rows of the `TrueTracks`, `anchors` those of the frames before; `clusters` the video,
    or the object where there are fewer than ten videos.
    """
    step = np.asarray(predictions.tags["step"], dtype=np.int64)[objects.row]
    after = np.flatnonzero(
        (objects.track[1:] == objects.track[:-1])
        & (objects.frame[1:] - objects.frame[:-1] == step[1:])
        & objects.is_found[:-1]
    )
    places = after + 1
    videos = objects.video[objects.track[places]]
    several = len(np.unique(videos))
    clusters = videos if several >= VIDEOS else objects.track[places].astype(np.str_)
    within = "" if several >= VIDEOS else f"within these {number_of(several, 'video')} only"
    lost = ~objects.is_found[places]
    return Outcomes(places, places - 1, lost, np.asarray(clusters, dtype=np.str_), within)


def measure_losses(
    predictions: Predictions, objects: TrueTracks, losses: Outcomes
) -> list[NDArray[np.float64]]:
    """(n,) each of `MEASURES` of the object in the second frame of each pair; NaN: not known."""
    truth = predictions.boxes
    assert truth is not None, "they were followed"
    own = truth.boxes[objects.box[losses.rows]]
    before = truth.boxes[objects.box[losses.anchors]]
    sides = own[:, 2:] - own[:, :2]
    length = np.sqrt(np.maximum(sides.prod(axis=1), 1e-9))
    moved = np.hypot(*((own - before).reshape(-1, 2, 2).mean(axis=1).T)) / length
    inside = {
        name: _find_inside(predictions, objects, losses, f"box_{name}")
        for name in ("sharpness", "at_edge", "brightness", "contrast")
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        sharpness = np.log(np.maximum(inside["sharpness"], 1e-3))
    covered = _cover(predictions, objects, losses)
    return [
        moved,
        sharpness,
        np.log(length),
        covered,
        inside["at_edge"],
        inside["brightness"],
        inside["contrast"],
    ]


def _find_inside(
    predictions: Predictions, objects: TrueTracks, losses: Outcomes, name: str
) -> NDArray[np.float64]:
    """The measurements inside each box; NaN if the run has none."""
    if name not in predictions.tags:
        return np.full(len(losses.rows), np.nan)
    assert predictions.boxes is not None, "they were followed"
    row, box = objects.row[losses.rows], objects.box[losses.rows]
    # the vector of a frame is in the order of its boxes
    first = np.searchsorted(predictions.boxes.image, row)
    return np.asarray(predictions.tags[name][row, box - first], dtype=np.float64)


def _cover(predictions: Predictions, objects: TrueTracks, losses: Outcomes) -> NDArray[np.float64]:
    """The largest share of each box that another true box covers, ignored ones among them, 0…1."""
    truth = predictions.boxes
    assert truth is not None, "they were followed"
    shares = np.zeros(len(losses.rows))
    for at, place in enumerate(losses.rows):
        first, last = np.searchsorted(truth.image, [objects.row[place], objects.row[place] + 1])
        others = np.delete(np.arange(first, last), objects.box[place] - first)
        box = truth.boxes[[objects.box[place]]]
        area = float(np.prod(box[0, 2:] - box[0, :2]))
        if len(others) and area > 0:
            shares[at] = intersect_boxes(box, truth.boxes[others]).max() / area
    return shares


def fit_losses(predictions: Predictions, objects: TrueTracks, losses: Outcomes) -> Effects:
    """How each of `MEASURES` goes with losing an object, as `breakage.fit_effects` fits it."""
    return fit_effects(MEASURES, measure_losses(predictions, objects, losses), losses)
