"""The drop without I-, P- or B-frames."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from steadyeye.core.claims import Claim, above, below, every, first
from steadyeye.core.format import format_unsigned_points, list_some, number_of
from steadyeye.core.pm_sets import pm_sets
from steadyeye.core.report_types import Section, Topic
from steadyeye.core.types import Evaluated, needs
from steadyeye.report.subsets import Loss, PublishedLosses, distance, loss, show_losses

DATA = Path(__file__).resolve().parent / "data" / "published_frame_type.csv"
ALL = "all frames"
WITHOUT = {kind: f"without {kind}-frames" for kind in "IPB"}
PARTS = {"all": ALL, **{f"without {kind.lower()}-frames": WITHOUT[kind] for kind in "IPB"}}
PUBLISHED = PublishedLosses(
    DATA, "subset", PARTS, "anchors", "Grey: ImageNet-Vid-Robust, Shankar et al., Table 7."
)


@needs("truth", "group", "offset", "frame_type")
def frame_types(evaluated: Sequence[Evaluated]) -> Section | None:
    """Accuracy, pm-k and drop without I-, without P- and without B-frames of the video's codec.

    An anchor stays while its own frame remains; neighbours of the type are dropped. None on data
    without anchors. Shankar et al., Table 7, is shown for comparison.
    """
    losses = [row for model in evaluated for row in _losses(model)]
    if not losses or losses[0].original.value is None:
        return None
    types = np.unique(evaluated[0].predictions.tags["frame_type"])
    absent = [kind for kind in WITHOUT if kind not in types]
    texts = ("Accuracy and pm-k without frames of a type, with 95 % intervals.", "frames")
    bars, listing = show_losses(evaluated[0], losses, PUBLISHED, "frame_types", texts)
    claim = first([_none_alone(losses), *_goes(losses)])
    return Section(
        topic=Topic.SURE,
        place=60,
        title=claim.text if claim else _question(losses),
        claim=claim,
        text=(
            "A video codec stores complete frames (I), frames predicted from earlier ones (P) "
            "and frames predicted from both sides (B). If compression artefacts caused the "
            "drop, it would disappear without frames of one type. Drop in percentage points: "
            f"{_sentence(losses)} "
            "Leaving out neighbours can only raise pm-k, and each row has other anchors: "
            "compare the intervals."
            + (f" The data have no {', no '.join(absent)}-frames." if absent else ""),
        ),
        figures=(bars,),
        tables=(listing,),
    )


def _losses(model: Evaluated) -> list[Loss]:
    predictions = model.predictions
    sets, kinds = pm_sets(predictions), predictions.tags["frame_type"]
    k = distance(model, sets)
    losses = [loss(predictions.model, ALL, sets, k)]
    for kind, name in WITHOUT.items():
        rest = kinds != kind
        if not rest.all():
            losses.append(loss(predictions.model, name, pm_sets(predictions, rest), k))
    return losses


def _drop(row: Loss) -> float:
    return row.drop.value or 0.0


def _none_alone(losses: Sequence[Loss]) -> Claim:
    """The claim that without any one type more than half of every model's drop remains.

    Half of the upper end of the drop's interval, because the drop is not known exactly.
    """
    half = {e.model: e.drop.high / 2 for e in losses if e.part == ALL and e.drop.high is not None}
    parts = [row for row in losses if row.part != ALL and row.drop.n]
    text = "Most of the drop remains without any one frame type"
    return every(text, [above(text, row.drop, half.get(row.model, 1.0)) for row in parts])


def _goes(losses: Sequence[Loss]) -> list[Claim]:
    """For a single model, the claim that without one type less than half of the drop remains.

    The intervals of both must not overlap, which keeps the error below 5 % over three types
    together.
    """
    whole, *parts = losses
    if whole.drop.low is None or len({row.model for row in losses}) > 1:
        return []
    return [
        below(f"Most of the drop disappears {row.part}", row.drop, whole.drop.low / 2)
        for row in parts
    ]


def _question(losses: Sequence[Loss]) -> str:
    whole = [row for row in losses if row.part == ALL]
    if not any(map(_drop, whole)):
        return f"None of {number_of(whole[0].drop.n, 'set')} breaks, whatever the frame type"
    return "Does one frame type cause the drop?"


def _sentence(losses: Sequence[Loss]) -> str:
    sentences = []
    for model in dict.fromkeys(row.model for row in losses):
        own = [row for row in losses if row.model == model]
        parts = ", ".join(f"{format_unsigned_points(row.drop.value)} {row.part}" for row in own[1:])
        sentences.append(
            f"{model} {format_unsigned_points(_drop(own[0]))}" + (f" ({parts})" if parts else "")
        )
    return f"{list_some(sentences)}."
