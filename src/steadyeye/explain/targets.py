"""Targets of explanations: confident mistakes of a detector and, as control, correct detections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from steadyeye.core.predictions import Predictions
from steadyeye.core.seeds import stream
from steadyeye.core.types import Tag
from steadyeye.explain.mining.causes import CAUSES, IOU, MISTAKES, RIGHT, SCORE, judge_detections

OVERLAP = IOU
"""IoU above which a detection matches an object."""

CONTROL = 50
"""Least number of control detections, if there are as many and the limit allows."""

COLUMNS = (
    *("target", "cause", "image", "video"),
    *("x0", "y0", "x1", "y1", "own_label", "score"),
)
"""The tags of `tags`."""


@dataclass(frozen=True)
class Target:
    """One detection to explain.

    `id`: stable and unique. `row`: of the data, or of the reference for a control if there is a
    reference. `box`: x0 y0 x1 y1 in pixels. `own_label`: among the detector's own classes. `cause`:
    why it is a mistake; "" for the control.
    """

    id: str
    row: int
    box: tuple[float, float, float, float]
    own_label: int
    score: float
    cause: str


def targets(
    predictions: Predictions,
    reference: Predictions | None = None,
    score: float = SCORE,
    limit: int | None = None,
    seed: int = 0,
) -> tuple[Target, ...]:
    """The confident mistakes in the data, then the control, each in the order of its rows.

    The control are correct detections of the reference, or of the data without one: as many as
    mistakes, and at least `CONTROL` if there are as many. `limit`: most of either; more are
    sampled, by `seed` and the ids alone.
    """
    wrong = draw_targets(mistakes(predictions, score), limit, seed)
    most = max(len(wrong), CONTROL if limit is None else min(CONTROL, limit))
    right = draw_targets(correct(reference or predictions, score), most, seed)
    return (*wrong, *right)


def mistakes(predictions: Predictions, score: float = SCORE) -> list[Target]:
    """The confident detections with no true box of their class at IoU > 0.5.

    A detection with half its area in a crowd of its class is left out.
    """
    return [target for target in _confident(predictions, score) if target.cause]


def correct(predictions: Predictions, score: float = SCORE) -> list[Target]:
    """The confident detections with a true box of their class at IoU > 0.5."""
    return [target for target in _confident(predictions, score) if not target.cause]


def draw_targets(available: Sequence[Target], most: int | None, seed: int) -> list[Target]:
    """A random sample of at most `most` targets, in their order."""
    if most is None or len(available) <= most:
        return list(available)
    draw = stream(seed, "targets", *(target.id for target in available))
    rows = draw.choice(len(available), size=most, replace=False)
    return [available[row] for row in sorted(rows.tolist())]


def tags(target: Target, image: str, video: str) -> Mapping[str, Tag]:
    """The tags of a target, of the image with this id and of this video."""
    x0, y0, x1, y1 = target.box
    return {
        "target": target.id,
        "cause": target.cause,
        "image": image,
        "video": video,
        **{"x0": x0, "y0": y0, "x1": x1, "y1": y1},
        "own_label": target.own_label,
        "score": target.score,
    }


def _confident(predictions: Predictions, score: float) -> list[Target]:
    """Every confident mistake and correct detection, in the order of rows and falling scores."""
    kinds = judge_detections(predictions, score)
    raw = predictions.raw_detections
    assert raw is not None, "judged asked for it"
    cause = dict(zip(kinds.detection.tolist(), kinds.cause.tolist(), strict=True))
    order = np.lexsort((-raw.score, raw.image))
    starts = np.searchsorted(raw.image[order], raw.image[order])
    names = {RIGHT: "", **{CAUSES.index(mistake_kind): mistake_kind for mistake_kind in MISTAKES}}
    confident = []
    for place, (detection, start) in enumerate(zip(order.tolist(), starts.tolist(), strict=True)):
        kind = cause.get(detection)
        if kind in names:
            row = int(raw.image[detection])
            x0, y0, x1, y1 = map(float, raw.boxes[detection])
            own, sure = int(raw.label[detection]), float(raw.score[detection])
            name = f"{predictions.ids[row]}#{place - start}"
            confident.append(Target(name, row, (x0, y0, x1, y1), own, sure, names[kind]))
    return confident
