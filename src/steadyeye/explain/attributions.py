"""Attributions of targets from sealed detections, and their shares inside the boxes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import paired_iou
from steadyeye.core.format import format_share, percent, points, span
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Table
from steadyeye.core.stats.intervals import Interval
from steadyeye.core.types import Image, Tag
from steadyeye.explain.context import Step
from steadyeye.explain.effects import ProbeEffects, cluster_targets, difference, match_targets, mean
from steadyeye.explain.saliency import (
    SIDE,
    area,
    evenly,
    occlusion,
    random_mask,
    rise,
    share,
    weigh_mask,
    weigh_patches,
)
from steadyeye.explain.targets import Target

MEASURED: Mapping[str, Tag] = {"height": nan, "width": nan}
"""The values of `sizes` if it failed."""

INSIDE: Mapping[str, Tag] = {
    **MEASURED,
    **{"inside": nan, "without": nan, "residual": nan, "steps": nan},
    "map": np.full(SIDE * SIDE, nan, dtype=np.float32),
}
"""The values of integrated gradients if they failed."""

COMPLETE = 0.01
"""The residual up to which integrated gradients count as complete: within 1 %."""

CONTROL = "correct detections (control)"


def sizes(image: Image, target: Target, step: Step) -> Mapping[str, Tag]:
    """The height and width of an image, to compare a box with."""
    return {"height": float(image.shape[0]), "width": float(image.shape[1])}


@dataclass(frozen=True, eq=False)
class Attribution:
    """The attribution of one detection.

    `row`: of the predictions, for the unchanged image. `cause`: "" for the control. `share`: share
    of Σ|attribution| in the box, NaN for an empty map. `area`: share of the image that the box
    covers, which `share` would be for a uniform map. `even`: the share with the same masks for a
    score that depends only on the hidden part of the box; masks are coarse, so that black boxes do
    not reach 1. `map`: (SIDE, SIDE) float64. `residual`, `steps`: of integrated gradients.
    `agreement`: of RISE, the correlation of the maps of even and of odd masks; otherwise NaN.
    `gone`: share of masked images in which no detection of the class overlaps the box.
    """

    row: int
    cause: str
    share: float
    area: float
    map: NDArray[np.float64]
    even: float = 1.0
    residual: float = nan
    steps: float = nan
    agreement: float = nan
    gone: float = nan


def attributions(predictions: Predictions) -> tuple[Attribution, ...]:
    """The attribution of every target of a probe, in the order of its rows.

    Masked images without a prediction are left out; a target whose unchanged image has no
    prediction has no attribution.
    """
    first = np.flatnonzero((predictions.tags["mask"] == 0) & predictions.valid).tolist()
    if "map" in predictions.tags:
        return tuple(_inside(predictions, row) for row in first)
    left = similarity(predictions)
    names = zip(predictions.tags["cause"].tolist(), predictions.groups.tolist(), strict=True)
    rows_of: dict[tuple[str, str], list[int]] = {}
    for row, name in enumerate(names):
        if predictions.valid[row]:
            rows_of.setdefault(name, []).append(row)
    members = {rows[0]: rows for rows in rows_of.values()}
    return tuple(_attribute_masks(predictions, left, members[row]) for row in first)


def method(predictions: Predictions) -> str:
    """The name of the method: `integrated_gradients`, `rise` or `occlusion`."""
    return str(predictions.tags["attribution"][0])


def similarity(predictions: Predictions) -> NDArray[np.float64]:
    """(n,) the similarity to the target in every row of a probe: the best IoU × score, 0…1.

    Over the detections of the target's class; 0 where none overlaps. Petsiuk et al., "Black-box
    Explanation of Object Detectors via Saliency Maps" (D-RISE), 2021, equation 3, with a fixed
    class and the score as objectness, because sealed detections hold nothing else.
    """
    detections, tags = predictions.detections, predictions.tags
    assert detections is not None, "a probe is asked of a detector"
    boxes = np.column_stack([tags[name] for name in ("x0", "y0", "x1", "y1")])[detections.image]
    same = detections.label == np.asarray(tags["own_label"])[detections.image]
    score = np.where(same, paired_iou(detections.boxes, boxes) * detections.score, 0.0)
    best = np.zeros(len(predictions))
    np.maximum.at(best, detections.image, score)
    return best


def _inside(predictions: Predictions, row: int) -> Attribution:
    tags = predictions.tags
    return Attribution(
        **_about(predictions, row),
        share=float(tags["inside"][row]),
        map=np.asarray(tags["map"][row], dtype=np.float64).reshape(SIDE, SIDE),
        residual=float(tags["residual"][row]),
        steps=float(tags["steps"][row]),
    )


def _attribute_masks(
    predictions: Predictions, left: NDArray[np.float64], rows: Sequence[int]
) -> Attribution:
    """The attribution from a target's rows, of which the first is the unchanged image."""
    tags = predictions.tags
    whole, under = rows[0], np.asarray(rows[1:], dtype=np.intp)
    about = _about(predictions, whole)
    wide, tall = float(tags["width"][whole]) / SIDE, float(tags["height"][whole]) / SIDE
    x0, y0, x1, y1 = (float(tags[name][whole]) for name in ("x0", "y0", "x1", "y1"))
    box = (x0 / wide, y0 / tall, x1 / wide, y1 / tall)
    stack = _stack(predictions, under)
    agreement = nan
    if method(predictions) == "rise":
        saliency = rise(left[under], stack)
        even = rise((stack * evenly(box)).sum(axis=(1, 2)), stack)
        halves = [rise(left[under[half::2]], stack[half::2]).ravel() for half in (0, 1)]
        # a uniform map has no correlation
        if all(half.std() for half in halves):
            agreement = float(np.corrcoef(halves[0], halves[1])[0, 1])
    else:
        saliency = occlusion(left[whole] - left[under], stack)
        even = occlusion((stack * evenly(box)).sum(axis=(1, 2)), stack)
    return Attribution(
        **about,
        share=share(saliency, box),
        map=saliency,
        even=share(even, box),
        agreement=agreement,
        gone=float((left[under] == 0).mean()) if len(under) else nan,
    )


def _stack(predictions: Predictions, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """(n, SIDE, SIDE) the visible part under each mask, or the part that each patch hides."""
    tags, settings = predictions.tags, predictions.probe["settings"]
    masks = []
    for row in rows.tolist():
        number = int(tags["mask"][row])
        if method(predictions) == "rise":
            names = str(tags["cause"][row]), str(tags["target"][row]), str(number)
            how = settings["cells"], settings["keep"], predictions.probe["seed"]
            masks.append(weigh_mask(random_mask(*how, *names)))
        else:
            masks.append(weigh_patches(number - 1, settings["patches"]))
    return np.array(masks).reshape(-1, SIDE, SIDE)


def _about(predictions: Predictions, row: int) -> dict[str, Any]:
    tags = predictions.tags
    box = [float(tags[name][row]) for name in ("x0", "y0", "x1", "y1")]
    return {
        "row": row,
        "cause": str(tags["cause"][row]),
        "area": area(box, float(tags["height"][row]), float(tags["width"][row])),
    }


@dataclass(frozen=True, eq=False)
class InsideShares:
    """A model with the attributions of its targets; targets without a map are left out and counted.

    `effects`: the shares inside the box as effects of the probe.
    """

    predictions: Predictions
    attributions: tuple[Attribution, ...]
    effects: ProbeEffects

    @property
    def model(self) -> str:
        """The detector."""
        return str(self.predictions.probe["model"])

    @property
    def area(self) -> NDArray[np.float64]:
        """(m,) the area of each box as a share of its image."""
        return np.array([item.area for item in self.attributions])

    @property
    def even(self) -> NDArray[np.float64]:
        """(m,) the share for a score that depends on the box alone, with the same masks."""
        return np.array([item.even for item in self.attributions])

    @property
    def excess(self) -> ProbeEffects:
        """The shares minus the areas, which are the shares of a uniform map."""
        change = self.effects.change - self.area
        return replace(self.effects, change=change, bounds=(-1.0, 1.0))


def measure_inside_shares(
    predictions: Predictions, attributions: Sequence[Attribution]
) -> InsideShares:
    """The attributions of a model, for targets with a map."""
    finite = tuple(item for item in attributions if np.isfinite(item.share))
    rows, tags = np.array([item.row for item in finite], dtype=np.intp), predictions.tags
    targets = zip(tags["cause"].tolist(), tags["target"].tolist(), strict=True)
    cluster, of = cluster_targets(predictions, rows)
    effects = ProbeEffects(
        plain=rows,
        changed=(),
        change=np.array([item.share for item in finite]),
        vanished=np.array([item.gone for item in finite]),
        confident=np.full(len(finite), np.nan),
        cause=np.asarray(tags["cause"])[rows],
        label=np.asarray(tags["own_label"])[rows],
        cluster=cluster,
        of=of,
        lost=len(set(targets)) - len(finite),
        matches=match_targets(predictions),
    )
    return InsideShares(predictions, finite, effects)


def format_gap(share: Interval) -> str:
    """A difference in percentage points with its interval, `−12.0 (−20.1 to −4.0)`."""
    return f"{points(share.value)} ({span(share.low, share.high, 'difference')})"


def table(shares: InsideShares) -> Table:
    """Mistakes, each of their causes, and the control: share inside, area, and their difference."""
    effects = shares.effects
    body = []
    for name, mask in groups(effects):
        inside = mean(effects, mask)
        body.append(
            (
                name,
                f"{inside.n:,}",
                f"{len(np.unique(effects.cluster[mask])):,}",
                format_share(inside),
                format_share(mean(effects, mask, shares.area)),
                percent(mean(effects, mask, shares.even).value),
                format_gap(mean(shares.excess, mask)),
                inside.method,
            )
        )
    both = difference(effects)
    cells = ("mistakes − correct detections (pp)", f"{both.n:,}", "—", format_gap(both), "—", "—")
    body.append((*cells, format_gap(difference(shares.excess)), both.method))
    header = (
        *("", "n", effects.of, "inside the box", "uniform map", "box only"),
        *("inside − uniform (pp)", "interval"),
    )
    caption = f"{shares.model}: share of Σ|attribution| inside the box"
    return Table(caption, header, tuple(body), open=True)


def groups(effects: ProbeEffects) -> list[tuple[str, NDArray[np.bool_]]]:
    """Mistakes together, each of their causes where there are several, and the control."""
    causes = sorted(set(effects.cause.tolist()) - {""})
    rows = [("mistakes", effects.mistake)] if len(causes) != 1 else []
    rows += [(cause, effects.cause == cause) for cause in causes]
    return [*rows, (CONTROL, ~effects.mistake)]
