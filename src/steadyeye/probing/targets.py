"""What is explained: confident mistakes of a detector and, as control, correct detections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.classes import mapping
from steadyeye.core.boxes import BoxTable, select
from steadyeye.core.seeds import stream
from steadyeye.core.table import Predictions
from steadyeye.core.types import Classes, Tag
from steadyeye.detection.errors import iou

SCORE = 0.8
"""Above this a detection is confident. Lau et al. 2021."""

OVERLAP = 0.5
"""Above this IoU a detection lies on an object. Lau et al. 2021."""

CONTROL = 50
"""Control detections at least, where there are so many and no limit says less."""

COLUMNS = (
    *("target", "cause", "image", "video"),
    *("x0", "y0", "x1", "y1", "own_label", "score"),
)
"""The tags of `tags`."""


@dataclass(frozen=True)
class Target:
    """One detection to be explained.

    `id`: stable and unique. `row`: of the data, or of the reference for a control where there is
    one. `box`: x0 y0 x1 y1 in pixels. `own_label`: among the detector's own classes. `cause`: why
    it is a mistake; "" for the control.
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

    The control are correct detections of the reference, or of the data where there is none: as
    many as there are mistakes, and `CONTROL` at least, where there are so many. `limit`: at most
    so many of either. Where there are more, a sample that `seed` and the ids alone decide.
    """
    wrong = drawn(mistakes(predictions, score), limit, seed)
    most = max(len(wrong), CONTROL if limit is None else min(CONTROL, limit))
    right = drawn(correct(reference or predictions, score), most, seed)
    return (*wrong, *right)


def mistakes(predictions: Predictions, score: float = SCORE) -> list[Target]:
    """The confident detections with no true box of their class at IoU > 0.5.

    `cause` is "misclassification" where a true box lies there and "background" where none does.
    A detection that touches a crowd at that IoU is neither.
    """
    return [each for each in _confident(predictions, score) if each.cause]


def correct(predictions: Predictions, score: float = SCORE) -> list[Target]:
    """The confident detections with a true box of their class at IoU > 0.5."""
    return [each for each in _confident(predictions, score) if not each.cause]


def drawn(found: Sequence[Target], most: int | None, seed: int) -> list[Target]:
    """At most so many of the targets, drawn evenly, in the order they came."""
    if most is None or len(found) <= most:
        return list(found)
    draw = stream(seed, "targets", *(each.id for each in found))
    rows = draw.choice(len(found), size=most, replace=False)
    return [found[row] for row in sorted(rows.tolist())]


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
    """Every confident detection as a target; those on a crowd alone are left out."""
    found, truth = predictions.detections, predictions.boxes
    assert found is not None, "checked before"
    assert truth is not None, "checked before"
    own = _own_labels(predictions)
    made = []
    for row in np.unique(found.image[found.score > score]).tolist():
        here = select(found, np.array([row]))
        cause = _causes(here, select(truth, np.array([row])))
        falling = np.argsort(-here.score, kind="stable").tolist()
        for place, which in enumerate(falling):
            if here.score[which] > score and cause[which] is not None:
                x0, y0, x1, y1 = map(float, here.boxes[which])
                made.append(
                    Target(
                        f"{predictions.ids[row]}#{place}",
                        row,
                        (x0, y0, x1, y1),
                        own[int(here.label[which])],
                        float(here.score[which]),
                        str(cause[which]),
                    )
                )
    return made


def _causes(found: BoxTable, truth: BoxTable) -> list[str | None]:
    """Of each detection of an image: its cause, "" for a correct one, None on a crowd."""
    on = iou(found.boxes, truth.boxes) > OVERLAP
    same = found.label[:, None] == truth.label[None, :]

    def any_of(which: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.asarray((which & ~truth.crowd).any(axis=1))

    right, there = any_of(on & same), any_of(on)
    crowd = np.asarray((on & truth.crowd).any(axis=1))
    return [
        "" if right[i] else None if crowd[i] else "misclassification" if there[i] else "background"
        for i in range(len(found))
    ]


def _own_labels(predictions: Predictions) -> list[int]:
    """The first own class of the detector for each class of the data; −1 where there is none."""
    own, data = Classes(predictions.model_classes), Classes(predictions.classes)
    members = mapping.nearest(own, data).members
    return [each[0] if each else -1 for each in members]
