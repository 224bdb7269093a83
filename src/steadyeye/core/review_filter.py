"""Reviewed tables: the accepted frames, with all candidates kept beside them."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable, select, select_verified
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions


def select_reviewed(predictions: Predictions) -> Predictions:
    """The rows that count for metrics, `candidates` being the whole table.

    With a tag `sampled`, 1 or 0, the rows with 1: all sampled frames, whatever the review decided.
    Otherwise the accepted rows, by the tag `accepted`; without either tag the unchanged table. If
    an anchor is left out, so is its set. Raises `UsageError` for another value.
    """
    if "sampled" in predictions.tags:
        return _select_marked(predictions, "sampled", "not part of the sample")
    return select_accepted(predictions)


def select_accepted(predictions: Predictions) -> Predictions:
    """The accepted rows, by the tag `accepted`, as `select_reviewed`."""
    if "accepted" not in predictions.tags:
        return predictions
    return _select_marked(predictions, "accepted", "not accepted by review")


def _select_marked(predictions: Predictions, tag: str, why: str) -> Predictions:
    marks = np.asarray(predictions.tags[tag])
    if not np.isin(marks, (0, 1)).all():
        odd = marks[~np.isin(marks, (0, 1))][0]
        raise UsageError(f"the tag {tag} of '{predictions.data}' is '{odd}'; write 1 or 0")
    accepted = marks == 1
    if "offset" in predictions.tags:
        anchor = predictions.tags["offset"] == 0
        accepted &= ~np.isin(predictions.groups, predictions.groups[anchor & ~accepted])
    left = int(np.sum(~accepted))
    note = f"{left:,} of {len(accepted):,} candidate frames left out: {why}"
    return replace(
        rows(predictions, np.flatnonzero(accepted)),
        candidates=predictions,
        notes=(*predictions.notes, note) if left else predictions.notes,
    )


def rows(predictions: Predictions, indices: NDArray[np.intp]) -> Predictions:
    """Some rows of a table, in the order of `indices`."""

    def boxes(table: BoxTable | None) -> BoxTable | None:
        return None if table is None else select(table, indices)

    def columns(arrays: Any) -> dict[str, NDArray[Any]]:
        return {name: values[indices] for name, values in arrays.items()}

    verified = predictions.verified
    return replace(
        predictions,
        ids=predictions.ids[indices],
        groups=predictions.groups[indices],
        truth=predictions.truth[indices],
        scores=predictions.scores[indices],
        top=predictions.top[indices],
        top_scores=predictions.top_scores[indices],
        errors=predictions.errors[indices],
        tags=columns(predictions.tags),
        stored=columns(predictions.stored),
        boxes=boxes(predictions.boxes),
        detections=boxes(predictions.detections),
        raw_detections=boxes(predictions.raw_detections),
        verified=None if verified is None else select_verified(verified, indices),
    )
