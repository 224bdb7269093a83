"""What a detector loses between an anchor and the worst frame near it, counted and in pictures."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steadyeye.charts.style import percent
from steadyeye.core.boxes import BoxTable, select
from steadyeye.core.pm_sets import farthest, pm_sets
from steadyeye.core.results import find, reach
from steadyeye.core.sections import Exhibit, Mark, Picture, Section, Table
from steadyeye.core.table import Predictions
from steadyeye.core.types import Evaluated, needs
from steadyeye.detection.errors import KINDS, frame_errors
from steadyeye.detection.frames import frame_quality, worst

SHOWN = 12
CONFIDENT = 0.5


@needs("boxes", "detections", "group", "offset")
def lost_boxes(evaluated: Sequence[Evaluated]) -> Section | None:
    """Kinds of errors on anchors and on worst frames, and the pairs that lose most frame AP.

    Detections of a score above 0.5. None where no model has `pm_k_map`. Kinds as in TIDE (Bolya
    et al. 2020); pictures as in Shankar et al., Figure 4.
    """
    found = [_lost(one) for one in evaluated if find(one.results, "pm_k_map")]
    if not found:
        return None
    tables = tuple(table for table, _ in found)
    longest = max(len(exhibits) for _, exhibits in found)
    exhibits = [each[i] for i in range(longest) for _, each in found if i < len(each)]
    return Section(
        place=21,
        title="What is lost on the worst frame",
        text=(
            "Errors an image among detections with a score above 0.5: the right place with the "
            "wrong name (classification), the right name in a place that is off (localization), "
            "both, an object found twice (duplicate), nothing there (background), and objects "
            "that nothing found (missed). In the pictures: white what is there, green found, red "
            "false.",
        ),
        tables=tables,
        exhibits=tuple(exhibits[:SHOWN]),
    )


def _lost(one: Evaluated) -> tuple[Table, list[Exhibit]]:
    predictions, sets = one.predictions, pm_sets(one.predictions)
    asked = find(one.results, "pm_k_map")
    k = farthest(sets, reach(asked) if asked else None)
    quality = frame_quality(predictions, 0.5)
    rows, members = worst(sets, quality, k)
    anchors = sets.anchors[members]
    loss = np.nan_to_num(quality[anchors]) - quality[rows]
    order = np.lexsort((predictions.ids[anchors], -loss))
    pairs = [(int(anchors[i]), int(rows[i])) for i in order if loss[i] > 0]
    exhibits = [_exhibit(predictions, quality, anchor, row) for anchor, row in pairs]
    # first those whose anchor was found with confidence: there the loss is to be seen
    exhibits.sort(key=lambda each: all(mark.kind != "right" for mark in each.pictures[0].marks))
    return _table(predictions, anchors, rows), exhibits[:SHOWN]


def _table(predictions: Predictions, anchors: NDArray[np.intp], rows: NDArray[np.intp]) -> Table:
    counts = [_counts(predictions, each) for each in (anchors, rows)]
    n = max(len(rows), 1)
    body = tuple(
        (kind, f"{a / n:.2f}", f"{b / n:.2f}", f"{(b - a) / n:+.2f}")
        for kind, a, b in zip(("found", *KINDS), *counts, strict=True)
    )
    header = ("an image", "anchors", "worst frames", "difference")
    return Table(f"Errors of {predictions.model}, {len(rows)} sets", header, body)


def _counts(predictions: Predictions, rows: NDArray[np.intp]) -> list[int]:
    """True positives, then errors of every kind, over frames."""
    total = np.zeros(len(KINDS) + 1, dtype=np.int64)
    for row in rows:
        truth, said = _of(predictions, int(row))
        errors = frame_errors(truth, said)
        total[0] += int((errors.kind == -1).sum())
        for i in range(len(KINDS) - 1):
            total[i + 1] += int((errors.kind == i).sum())
        total[-1] += int(errors.missed.sum())
    return [int(each) for each in total]


def _of(predictions: Predictions, row: int) -> tuple[BoxTable, BoxTable]:
    """The true boxes and the confident detections of a row."""
    truth, found = predictions.boxes, predictions.detections
    assert truth is not None, "checked by needs"
    assert found is not None, "checked by needs"
    said = select(found, np.array([row]))
    strong = said.score > CONFIDENT
    kept = BoxTable(
        said.image[strong],
        said.label[strong],
        said.boxes[strong],
        said.score[strong],
        said.crowd[strong],
        said.area[strong],
    )
    return select(truth, np.array([row])), kept


def _exhibit(
    predictions: Predictions, quality: NDArray[np.float64], anchor: int, row: int
) -> Exhibit:
    offset = int(predictions.tags["offset"][row])
    side = "later" if offset > 0 else "earlier"
    frames = "frame" if abs(offset) == 1 else "frames"
    return Exhibit(
        title=f"frame AP {percent(quality[anchor], 0)} → {percent(quality[row], 0)}",
        model=predictions.model,
        data=predictions.data,
        pictures=(
            _picture(predictions, anchor, "anchor"),
            _picture(predictions, row, f"{abs(offset)} {frames} {side}"),
        ),
    )


def _picture(predictions: Predictions, row: int, title: str) -> Picture:
    truth, said = _of(predictions, row)
    errors = frame_errors(truth, said)
    marks = [Mark("truth", tuple(box), "") for box in truth.boxes.tolist()]
    lines = []
    for i, box in enumerate(said.boxes.tolist()):
        name = f"{predictions.classes[said.label[i]]} {said.score[i]:.2f}"
        right = errors.kind[i] == -1
        marks.append(Mark("right" if right else "wrong", tuple(box), name))
        lines.append(name if errors.kind[i] < 0 else f"{name}: {KINDS[errors.kind[i]]}")
    missed = [predictions.classes[label] for label in truth.label[errors.missed]]
    lines += [f"missed: {', '.join(missed)}"] if missed else []
    wrong = bool(missed) or bool((errors.kind >= 0).any())
    return Picture(
        sample=str(predictions.ids[row]),
        title=title,
        lines=tuple(lines[:5]) or ("nothing above 0.5",),
        right=not wrong,
        marks=tuple(marks),
    )
