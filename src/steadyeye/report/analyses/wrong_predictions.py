"""Wrong predictions of a classifier on still images, in pictures."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from steadyeye.core.film_frames import describe_answer, list_labels, take_turns
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.report_types import Exhibit, Picture, Section, Topic
from steadyeye.core.types import Evaluated, needs

SHOWN = 24
LEADS = 3


@needs("truth")
def wrong_predictions(evaluated: Sequence[Evaluated]) -> Section | None:
    """Images that a classifier gets wrong, the most confident mistake first.

    Each label → prediction is shown once per video, or once per image without a video. At most 24
    over all models, every model in turn. None if nothing is wrong, and for data of other sections:
    sets with neighbours, videos frame by frame, degraded images and detectors.
    """
    tables = [model.predictions for model in evaluated]
    if not all(map(_still, tables)):
        return None
    wrong = [_wrong(table) for table in tables]
    if not any(wrong):
        return None
    pairs = zip(tables, wrong, strict=True)
    every = take_turns([[(table, row) for row in _distinct(table, rows)] for table, rows in pairs])
    exhibits = [_exhibit(table, row) for table, row in every[:SHOWN]]
    return Section(
        topic=Topic.WHAT,
        place=20,
        title=_title(tables, wrong),
        text=(
            "Images with a wrong prediction, the highest confidence first: label → prediction. "
            "A labelling error looks the same."
            + (f" Shown: {len(exhibits)} of {len(every):,}." if len(exhibits) < len(every) else ""),
        ),
        exhibits=tuple(exhibits),
        lead=_lead(every),
    )


def _still(table: Predictions) -> bool:
    """Whether these are a classifier's predictions of single images."""
    lone = "offset" in table.tags and not np.any(table.tags["offset"])
    filmed = {"offset", "frame"} & set(table.columns)
    return (lone or not filmed) and "operator" not in table.columns and table.raw_detections is None


def _wrong(table: Predictions) -> list[int]:
    """The rows that are labelled, predicted and wrong, the most confident first."""
    rows = np.flatnonzero(table.has_label & table.valid & ~table.right)
    return [int(row) for row in rows[np.argsort(-table.confidence[rows], kind="stable")]]


def _distinct(table: Predictions, rows: Sequence[int]) -> list[int]:
    """The first row of each label → prediction of a video, or of an image without a video."""
    videos = table.tags.get("video", table.ids)
    firsts: dict[tuple[str, str, str], int] = {}
    for row in rows:
        firsts.setdefault((str(videos[row]), _truth(table, row), table.answer(row)), row)
    return list(firsts.values())


def _title(tables: Sequence[Predictions], wrong: Sequence[Sequence[int]]) -> str:
    if len(tables) > 1:
        return f"Images that {number_of(len(tables), 'model')} predict wrongly"
    n = int((tables[0].has_label & tables[0].valid).sum())
    return f"Wrong predictions: {len(wrong[0]):,} of {number_of(n, 'image')}"


def _lead(every: Sequence[tuple[Predictions, int]]) -> Exhibit:
    """The most confident mistakes of the model that makes the most confident one."""
    first = max(every, key=lambda item: float(item[0].confidence[item[1]]))[0]
    rows = [row for table, row in every if table is first][:LEADS]
    pictures = tuple(
        replace(
            _picture(first, row),
            title=f"{_truth(first, row)} → {first.answer(row)}",
            lines=(_write_confidence(first, row),),
        )
        for row in rows
    )
    title = "The most confident mistakes" if len(rows) > 1 else "The most confident mistake"
    return Exhibit(f"{title}: label → prediction", first.model, first.data, pictures)


def _exhibit(table: Predictions, row: int) -> Exhibit:
    return Exhibit(
        title=f"{_truth(table, row)} → {table.answer(row)}",
        model=table.model,
        data=table.data,
        pictures=(_picture(table, row),),
        labels=list_labels(table, row),
        kinds=(f"predicts {table.answer(row)}",),
    )


def _picture(table: Predictions, row: int) -> Picture:
    return Picture(
        sample=str(table.ids[row]),
        title=describe_answer(table, row),
        lines=(f"label {_truth(table, row)}{_score_of_label(table, row)}",),
        right=False,
    )


def _write_confidence(table: Predictions, row: int) -> str:
    score = table.format_score(float(table.confidence[row]))
    return f"confidence {score}" if table.has_probabilities else score


def _score_of_label(table: Predictions, row: int) -> str:
    """The confidence of the label and its rank; empty if the model has no such class."""
    score, before = float(table.probability[row]), int(table.rank[row])
    if not np.isfinite(score) or before < 1:
        return ""
    text = table.format_score(score)
    return f": {text}, after {number_of(before, 'class')} with higher confidence"


def _truth(table: Predictions, row: int) -> str:
    return " or ".join(list_labels(table, row))
