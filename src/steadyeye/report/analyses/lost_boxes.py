"""Detection errors on anchors and on worst frames, counted and in pictures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable, exceed_score, in_classes, select, take
from steadyeye.core.claims import higher
from steadyeye.core.film_frames import away, name_lead, set_film, take_turns
from steadyeye.core.format import format_difference, number_of, percent, points
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import (
    Exhibit,
    FilmFrame,
    Mark,
    Picture,
    Section,
    Table,
    Topic,
)
from steadyeye.core.result_lookup import find, limit
from steadyeye.core.types import Evaluated, Result, needs
from steadyeye.metrics.detection.error_types import KINDS, errors, frame_errors, gains
from steadyeye.metrics.detection.frame_ap import Frames, frame_quality, frames, worst
from steadyeye.report.subsets import distance

SHOWN = 12
CONFIDENT = 0.5
NAMED = 5  # detections of a picture with a label, and lines below it


@needs("boxes", "detections", "group", "offset")
def lost_boxes(evaluated: Sequence[Evaluated]) -> Section | None:
    """Kinds of errors on anchors and on worst frames, and the pairs that lose most frame AP.

    Counts are of detections with a score above 0.5, gains in AP of all. None where no model has
    `pm_k_map`. Kinds and gains as in TIDE (Bolya et al. 2020); pictures as in Shankar et al.,
    Figure 4.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections, example_models
        >>> print(lost_boxes(example_models(example_detections())).title)
        Detection errors on anchors and worst frames
    """
    losses = [_describe_losses(model) for model in evaluated if find(model.results, "pm_k_map")]
    if not losses:
        return None
    exhibits = take_turns([pictures for *_, pictures in losses])
    return Section(
        topic=Topic.WHAT,
        place=21,
        title="Detection errors on anchors and worst frames",
        text=(
            "Errors per image among detections with a score above 0.5: right place, wrong class "
            "(classification); right class, inexact box (localization); both; a second "
            "detection of one object (duplicate); no object there (background); and objects "
            "without a detection (missed). ΔAP: the gain in mAP at IoU 0.5, over all scores, if "
            "this kind of error alone were corrected. In the pictures: white the true box, "
            "green a true positive, dashed orange a false positive. The frame AP over a pair "
            "counts detections with any score, so it can be high where a picture says missed.",
            *(sentence for _, sentence, _ in losses if sentence),
        ),
        tables=tuple(table for table, *_ in losses),
        exhibits=tuple(exhibits[:SHOWN]),
        lead=name_lead(exhibits, "The largest drop"),
    )


def _describe_losses(model: Evaluated) -> tuple[Table, str, list[Exhibit]]:
    predictions, sets = model.predictions, pm_sets(model.predictions, labels=False)
    k = distance(model, sets, "pm_k_map")
    quality = frame_quality(predictions, 0.5)
    rows, members = worst(sets, quality, k)
    anchors = sets.anchors[members]
    loss = np.nan_to_num(quality[anchors]) - quality[rows]
    order = np.lexsort((predictions.ids[anchors], -loss))
    pairs = [(int(anchors[i]), int(rows[i])) for i in order if loss[i] > 0]
    # first those whose anchor was found with confidence: there the loss is to be seen
    pairs.sort(
        key=lambda pair: not any(m.kind == "right" for m in _mark_frame(predictions, pair[0]).marks)
    )
    exhibits = [_exhibit(predictions, quality, item, k) for item in pairs[:SHOWN]]
    sides = tuple(frames(predictions, item) for item in (anchors, rows))
    gained = tuple(gains(side) for side in sides)
    sentence = _describe_cost(predictions.model, *gained)
    return _table(predictions.model, sides, gained), sentence, exhibits


def _table(model: str, sides: tuple[Frames, ...], gained: tuple[tuple[Result, ...], ...]) -> Table:
    counts = [_counts(side) for side in sides]
    n = max(len(sides[0].rows), 1)
    gain_cells = [("—", "—"), *zip(*(map(format_difference, side) for side in gained), strict=True)]
    body = tuple(
        (kind, f"{a / n:.2f}", f"{b / n:.2f}", f"{(b - a) / n:+.2f}".replace("-", "−"), *cells)
        for kind, a, b, cells in zip(("found", *KINDS), *counts, gain_cells, strict=True)
    )
    header = (
        "per image",
        "anchors",
        "worst frames",
        "difference",
        "ΔAP anchors (pp)",
        "ΔAP worst (pp)",
    )
    bare = [r.interval for side in gained for r in side if r.value is not None and r.low is None]
    why = f"; ΔAP has {limit(bare[0]) or 'no interval'}" if bare else ""
    caption = f"Errors of {model}, {number_of(len(sides[0].rows), 'set')}{why}"
    return Table(caption, header, body)


def _describe_cost(model: str, anchors: Sequence[Result], rows: Sequence[Result]) -> str:
    """The kind of error that costs most on the worst frames, if it is clear; empty if no object."""
    order = sorted(range(len(KINDS)), key=lambda i: -(rows[i].value or 0))
    before, after, other = anchors[order[0]], rows[order[0]], rows[order[1]]
    if not after.value:
        return ""
    if higher("", after, other).is_supported:
        begin = f"the most costly errors on the worst frames are {after.name} errors"
    else:
        begin = (
            f"{after.name} errors cost most on the worst frames, with no clear difference from "
            f"{other.name}"
        )
    return (
        f"{model}: {begin}. Corrected, they would change mAP by {points(after.value)} "
        f"percentage points there{_ends(after)}, and by {points(before.value)}{_ends(before)} on "
        "the anchors."
    )


def _ends(result: Result) -> str:
    """The interval of a gain in brackets, or why there is none."""
    if result.low is None or result.high is None:
        return f" ({limit(result.interval) or 'no interval'})"
    return f" ({points(result.low)} to {points(result.high)})"


def _counts(side: Frames) -> list[int]:
    """True positives, then errors of every kind, of the confident detections."""
    strong = take(side.detections, np.flatnonzero(exceed_score(side.detections.score, CONFIDENT)))
    mistakes = errors(side.truth, strong, len(side.rows))
    counts = [int((mistakes.kind == kind).sum()) for kind in range(-1, len(KINDS) - 1)]
    return [*counts, int(mistakes.missed.sum())]


def _of(predictions: Predictions, row: int) -> tuple[BoxTable, BoxTable]:
    """The true boxes of the classes and the confident detections of a row."""
    truth, detections = predictions.boxes, predictions.detections
    assert truth is not None, "checked by needs"
    assert detections is not None, "checked by needs"
    selected = select(detections, np.array([row]))
    objects = in_classes(select(truth, np.array([row])))
    return objects, take(selected, np.flatnonzero(exceed_score(selected.score, CONFIDENT)))


@dataclass(frozen=True)
class _MarkedFrame:
    """The detections and the true boxes of a frame.

    `lines`: its detections, one each; `missed`: the classes of objects without a detection;
    `kinds`: the kinds of errors; `labels`: the classes of the objects.
    """

    marks: tuple[Mark, ...]
    lines: tuple[str, ...]
    missed: tuple[str, ...]
    kinds: tuple[str, ...]
    labels: tuple[str, ...]


def _mark_frame(predictions: Predictions, row: int) -> _MarkedFrame:
    truth, detections = _of(predictions, row)
    judged = frame_errors(truth, detections)
    marks = [Mark("truth", tuple(box), "") for box in truth.boxes.tolist()]
    lines = []
    for i, box in enumerate(detections.boxes.tolist()):
        name = f"{predictions.classes[detections.label[i]]} {detections.score[i]:.2f}"
        right = judged.kind[i] == -1
        # labels of more boxes would cover each other
        text = name if i < NAMED else ""
        marks.append(Mark("right" if right else "wrong", tuple(box), text))
        lines.append(name if judged.kind[i] < 0 else f"{name}: {KINDS[judged.kind[i]]}")
    missed = tuple(predictions.classes[label] for label in truth.label[judged.missed])
    kinds = [KINDS[kind] for kind in sorted(set(judged.kind[judged.kind >= 0].tolist()))]
    kinds += ["missed"] if missed else []
    labels = tuple(predictions.classes[label] for label in np.unique(truth.label))
    return _MarkedFrame(tuple(marks), tuple(lines), missed, tuple(kinds), labels)


def _exhibit(
    predictions: Predictions, quality: NDArray[np.float64], pair: tuple[int, int], k: int
) -> Exhibit:
    anchor, row = pair
    where = away(int(predictions.tags["offset"][row]))
    worst = _mark_frame(predictions, row)
    film = set_film(predictions, *pair, k, partial(_frame, predictions, quality))
    return Exhibit(
        title=f"frame AP {percent(quality[anchor], 0)}, then {percent(quality[row], 0)}",
        model=predictions.model,
        data=predictions.data,
        pictures=(_picture(predictions, anchor, "anchor"), _picture(predictions, row, where)),
        film=replace(film, bar="frame AP") if film else None,
        labels=_mark_frame(predictions, anchor).labels,
        kinds=worst.kinds,
    )


def _frame(predictions: Predictions, quality: NDArray[np.float64], row: int, at: str) -> FilmFrame:
    frame, share = _mark_frame(predictions, row), quality[row]
    quality_shown = percent(None if np.isnan(share) else float(share), 0)
    return FilmFrame(
        sample=str(predictions.ids[row]),
        at=at,
        line=f"frame AP {quality_shown}, errors: {', '.join(frame.kinds) or 'none'}",
        score=None if np.isnan(share) else round(float(share), 3),
        right=not frame.kinds,
        marks=frame.marks,
    )


def _picture(predictions: Predictions, row: int, title: str) -> Picture:
    frame = _mark_frame(predictions, row)
    missed = (f"missed: {', '.join(frame.missed)}",) if frame.missed else ()
    return Picture(
        sample=str(predictions.ids[row]),
        title=title,
        lines=(*frame.lines, *missed)[:NAMED] or ("no detection above 0.5",),
        right=not frame.kinds,
        marks=frame.marks,
    )
