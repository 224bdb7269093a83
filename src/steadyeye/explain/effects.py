"""The effect of a probe on the probability of its targets, per target, with intervals."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import paired_iou
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import bootstrap
from steadyeye.core.stats.intervals import Interval

FEW = "none: too few"
"""Prefix of the method of a difference without an interval, because of too few images or videos."""


@dataclass(frozen=True, eq=False)
class TargetMatches:
    """The detection that matches the target of each row, n rows.

    `probability`: (n,) float64, the score of the detection that overlaps the target's box best
    among those of the target's class; 0 if there is none. `row`: (n,) the row of that detection, −1
    for none.
    """

    probability: NDArray[np.float64]
    row: NDArray[np.intp]

    @property
    def is_vanished(self) -> NDArray[np.bool_]:
        """(n,) True if no detection of the target's class overlaps its box."""
        return np.asarray(self.row < 0)


def match_targets(predictions: Predictions) -> TargetMatches:
    """The best-overlapping detection of the target's class in every row of a probe.

    DEFINITIONS.md, "NAO analyses": a detection must overlap the box at all; ties go to the more
    confident. A row with an error has NaN for its probability.
    """
    detections, tags = predictions.detections, predictions.tags
    assert detections is not None, "a probe is asked of a detector"
    boxes = np.column_stack([tags[name] for name in ("x0", "y0", "x1", "y1")]).astype(np.float64)
    probability, row = np.zeros(len(predictions)), np.full(len(predictions), -1, dtype=np.intp)
    own = np.flatnonzero(detections.label == np.asarray(tags["own_label"])[detections.image])
    image = detections.image[own]
    overlap = paired_iou(detections.boxes[own], boxes[image])
    order = np.lexsort((-detections.score[own], -overlap, image))
    order = order[overlap[order] > 0]
    images, first = np.unique(image[order], return_index=True)
    row[images] = own[order[first]]
    probability[images] = detections.score[row[images]]
    return TargetMatches(np.where(predictions.valid, probability, np.nan), row)


@dataclass(frozen=True, eq=False)
class ProbeEffects:
    """The targets whose unchanged image and at least one change have predictions, m rows.

    `plain`: (m,) the row of the unchanged image. `changed`: for each, the rows of its changes.
    `change`: (m,) mean |Δ probability| over the changes, 0…1; a target without a matching detection
    counts as probability 0. `vanished`: (m,) share of the changes without a matching detection.
    `confident`: (m,) share of the changes in which the detection is above the score threshold.
    `cause`: (m,) "" for the control. `label`: (m,) the detector's own class. `cluster`: (m,) the
    unit of resampling, the video or else the image; `of`: "videos" or "images". `lost`: number of
    targets left out because of errors. `matches`: of every row of the probe. `bounds`: least and
    most of every change.
    """

    plain: NDArray[np.intp]
    changed: tuple[NDArray[np.intp], ...]
    change: NDArray[np.float64]
    vanished: NDArray[np.float64]
    confident: NDArray[np.float64]
    cause: NDArray[np.str_]
    label: NDArray[np.int64]
    cluster: NDArray[np.str_]
    of: str
    lost: int
    matches: TargetMatches
    bounds: tuple[float, float] = (0.0, 1.0)

    @cached_property
    def mistake(self) -> NDArray[np.bool_]:
        """(m,) True for a mistake, False for the control."""
        return np.asarray(self.cause != "")


def effects(predictions: Predictions, plain: NDArray[np.bool_]) -> ProbeEffects:
    """The effect of a probe on each of its targets; `plain`: (n,) rows of unchanged images."""
    matches, tags = match_targets(predictions), predictions.tags
    firsts, changed, lost = [], [], 0
    kinds = np.asarray(tags["cause"]) == ""
    keys = np.char.add(np.where(kinds, "control/", ""), np.asarray(tags["target"], dtype=np.str_))
    for rows_of_target in _group_rows(keys):
        rows = rows_of_target[predictions.valid[rows_of_target]]
        first, rest = rows[plain[rows]], rows[~plain[rows]]
        if len(first) and len(rest):
            firsts.append(int(first[0]))
            changed.append(rest)
        else:
            lost += 1
    at = np.array(firsts, dtype=np.intp)
    p = matches.probability
    cluster, of = cluster_targets(predictions, at)
    return ProbeEffects(
        plain=at,
        changed=tuple(changed),
        change=np.array([np.abs(p[r] - p[i]).mean() for i, r in zip(at, changed, strict=True)]),
        vanished=np.array([matches.is_vanished[rows].mean() for rows in changed]),
        confident=np.array([(p[rows] > predictions.probe["score"]).mean() for rows in changed]),
        cause=np.asarray(tags["cause"])[at],
        label=np.asarray(tags["own_label"])[at],
        cluster=cluster,
        of=of,
        lost=lost,
        matches=matches,
    )


def cluster_targets(
    predictions: Predictions, rows: NDArray[np.intp]
) -> tuple[NDArray[np.str_], str]:
    """`cluster` and `of` as in `ProbeEffects`, of the targets with these rows, (m,)."""
    names = ("video", "image", "cause")
    video, image, cause = (np.asarray(predictions.tags[name])[rows] for name in names)
    # the control's images are other images, even with equal ids
    apart = (cause == "") & (predictions.probe.get("reference") is not None)
    cluster = np.char.add(np.where(apart, "control/", ""), video)
    return cluster, "images" if np.array_equal(video, image) else "videos"


def mean(
    effects: ProbeEffects, mask: NDArray[np.bool_], values: NDArray[np.float64] | None = None
) -> Interval:
    """The mean change of some targets, (m,) bool, with Gaffke's bounds.

    Over images or videos. `values`: (m,) other values than the change, within the same bounds. None
    without targets; no interval for one target.
    """
    n = int(mask.sum())
    if n == 0:
        return Interval(None, None, None, 0, "none: n = 0")
    changes = (effects.change if values is None else values)[mask]
    if n == 1:
        return Interval(float(changes[0]), None, None, 1, "none: a single detection")
    if np.isnan(changes).any():
        return Interval(float(changes.mean()), None, None, n, "none: some values are missing")
    interval = bootstrap.mean_interval(changes, effects.cluster[mask], effects.bounds)
    return replace(interval, method=_method(effects, mask, interval.method))


def difference(effects: ProbeEffects) -> Interval:
    """Mean change of the mistakes minus that of the control, both resampled together.

    The interval includes one further, unseen image or video, on which mistakes and control differ
    as much as possible, in either direction. There is no interval with so few that even mistakes at
    one bound and a control at the other would not differ clearly, with one video each below six.
    """
    wrong = effects.mistake
    n = len(wrong)
    if not wrong.any() or wrong.all():
        return Interval(None, None, None, n, "none: mistakes or correct detections are missing")
    value = float(effects.change[wrong].mean() - effects.change[~wrong].mean())
    of_mistakes, of_control = (bootstrap.draws(effects.cluster, of) for of in (wrong, ~wrong))
    least, most = effects.bounds

    def ends(values: NDArray[np.float64]) -> tuple[float, float]:
        low = of_mistakes.means(values, least) - of_control.means(values, most)
        high = of_mistakes.means(values, most) - of_control.means(values, least)
        return bootstrap.ends(low)[0], bootstrap.ends(high)[1]

    several = min(len(np.unique(effects.cluster[of])) for of in (wrong, ~wrong))
    if several < 2 or ends(np.where(wrong, most, least))[0] <= 0:
        few = f"{several} {effects.of if several > 1 else effects.of.removesuffix('s')}"
        return Interval(value, None, None, n, f"{FEW}: one group has only {few}")
    low, high = ends(effects.change)
    # the sums are in single precision, and may end just beyond the possible range
    low, high = max(low, least - most), min(high, most - least)
    method = _method(effects, np.ones(n, dtype=np.bool_), of_mistakes.method)
    return Interval(value, min(low, value), max(high, value), n, method)


def _method(effects: ProbeEffects, mask: NDArray[np.bool_], method: str) -> str:
    """The method of the interval, with its detections, images or videos."""
    several = len(np.unique(effects.cluster[mask]))
    kind, _, _ = method.partition(" over ")
    if several == 1:
        unit = effects.of.removesuffix("s")
        return f"{kind} over {number_of(int(mask.sum()), 'detection')}, within this one {unit} only"
    return f"{kind} over {several} {effects.of}"


def _group_rows(keys: NDArray[np.str_]) -> list[NDArray[np.intp]]:
    """The rows of each key, keys in the order in which they first come."""
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(group, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(group))[:-1])
    return [parts[number] for number in np.argsort(first)]
