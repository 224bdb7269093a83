"""Pictures of the frames that break sets."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.film_frames import (
    answer_picture,
    away,
    list_labels,
    name_lead,
    set_film,
    take_turns,
)
from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import PmSets, pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Exhibit, Picture, Section, Topic
from steadyeye.core.types import Evaluated, needs
from steadyeye.report.subsets import distance

SHOWN = 24


@dataclass(frozen=True)
class _Failure:
    """`k`: how far from the anchor a frame counts."""

    predictions: Predictions
    k: int
    anchor: int
    frame: int
    confidence: float


@needs("truth", "group", "offset")
def failures(evaluated: Sequence[Evaluated]) -> Section | None:
    """Right anchors with the frame that breaks them, the most confident mistake first.

    The most confident of an anchor's wrong neighbours is shown (ties: smallest |offset|, then the
    earlier); a frame that breaks several anchors is shown once per model. At most 24 over all
    models, every model in turn. None if no set breaks.

    Example with invented predictions:

        >>> from steadyeye.testing import example_models, example_predictions
        >>> print(failures(example_models(example_predictions(margin=0.5))).title)
        The frames that break a model
    """
    broken_sets = {entry.predictions.model: _failures(entry) for entry in evaluated}
    if not any(broken_sets.values()):
        return None
    distinct = [_distinct(broken) for broken in broken_sets.values()]
    total = sum(map(len, distinct))
    chosen = take_turns(distinct, SHOWN)
    right = [int((pm_sets(entry.predictions).breaks_at > 0).sum()) for entry in evaluated]
    counts = "; ".join(
        f"{model} {len(broken)} of {n:,}"
        for (model, broken), n in zip(broken_sets.items(), right, strict=True)
    )
    return Section(
        topic=Topic.WHAT,
        place=20,
        title="The frames that break a model",
        text=(
            "Each pair: an anchor that the model gets right, and the neighbour that it gets wrong "
            "with the highest confidence. Of the sets with a right anchor, these break: "
            f"{counts}. A frame that breaks several sets is shown once per model"
            + (f": {len(chosen)} of {number_of(total, 'pair')}." if len(chosen) < total else "."),
        ),
        exhibits=tuple(map(_exhibit, chosen)),
        lead=_lead(chosen) if evaluated[0].predictions.raw_detections is None else None,
    )


def _failures(model: Evaluated) -> list[_Failure]:
    predictions, sets = model.predictions, pm_sets(model.predictions)
    k, anchors = distance(model, sets), sets.anchor_of
    broken = [
        _Failure(predictions, k, int(anchors[row]), row, float(predictions.confidence[row]))
        for row in _worst(predictions, sets, k).tolist()
    ]
    return sorted(broken, key=lambda f: (-f.confidence, str(predictions.ids[f.frame])))


def _worst(predictions: Predictions, sets: PmSets, k: int) -> NDArray[np.intp]:
    """(broken sets,) the row of the wrong neighbour to show for each set with a right anchor."""
    broken = (sets.breaks_at > 0) & (sets.breaks_at <= k)
    near = (sets.set_of >= 0) & (abs(sets.offsets) <= k) & ~predictions.right
    rows = np.flatnonzero(near)
    rows = rows[broken[sets.set_of[rows]]]
    offsets, numbers = sets.offsets[rows], sets.set_of[rows]
    rows = rows[np.lexsort((offsets, abs(offsets), -predictions.confidence[rows], numbers))]
    _, first = np.unique(sets.set_of[rows], return_index=True)
    return np.asarray(rows[first], dtype=np.intp)


def _distinct(broken: Sequence[_Failure]) -> list[_Failure]:
    """The failures without repeats: the first of those that share the breaking frame."""
    firsts: dict[tuple[str, int], _Failure] = {}
    for failure in broken:
        tags, frame = failure.predictions.tags, failure.frame
        video = tags.get("video", failure.predictions.groups)[frame]
        number = tags["frame"][frame] if "frame" in tags else frame
        firsts.setdefault((str(video), int(number)), failure)
    return list(firsts.values())


def _exhibit(failure: _Failure) -> Exhibit:
    predictions, anchor, frame = failure.predictions, failure.anchor, failure.frame
    wrong = predictions.answer(frame)
    where = away(int(predictions.tags["offset"][frame]))
    return Exhibit(
        title=f"{predictions.answer(anchor)} → {wrong}",
        model=predictions.model,
        data=predictions.data,
        pictures=(_picture(predictions, anchor, "anchor"), _picture(predictions, frame, where)),
        film=set_film(predictions, anchor, frame, failure.k),
        labels=list_labels(predictions, anchor),
        kinds=(f"predicts {wrong}",),
    )


def _lead(chosen: Sequence[_Failure]) -> Exhibit | None:
    """The break with the highest confidence in both frames: the lower of the two counts."""
    clearest = max(chosen, key=lambda f: min(f.confidence, f.predictions.confidence[f.anchor]))
    return name_lead([_exhibit(clearest)], "The clearest break")


def _picture(predictions: Predictions, row: int, title: str) -> Picture:
    answer = predictions.answer(row)
    own = (
        predictions.model_classes[predictions.top[row, 0]] if predictions.top[row, 0] >= 0 else "—"
    )
    sure, best = float(predictions.confidence[row]), float(predictions.top_scores[row, 0])
    # of a detector whose classes are those of the data it is the same twice
    whole = () if (own, best) == (answer, sure) else (f"{own}, {predictions.format_score(best)}",)
    more = (
        *(f"top model class: {text}" for text in whole),
        f"label {', '.join(list_labels(predictions, row)) or 'none'}",
    )
    return answer_picture(predictions, row, title, more)
