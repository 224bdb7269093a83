"""Tables whose frames people judged: what they accepted, with the candidates kept beside it."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable, select
from steadyeye.core.errors import UsageError
from steadyeye.core.table import Predictions


def reviewed(predictions: Predictions) -> Predictions:
    """The rows that people accepted, `candidates` being the whole table.

    The tag `accepted` is 1 or 0; without it the table is returned as it is. A set whose anchor was
    not accepted leaves with all its frames. Raises `UsageError` for another value.
    """
    if "accepted" not in predictions.tags:
        return predictions
    accepted = np.asarray(predictions.tags["accepted"])
    if not np.isin(accepted, (0, 1)).all():
        odd = accepted[~np.isin(accepted, (0, 1))][0]
        raise UsageError(f"the tag accepted of '{predictions.data}' is '{odd}'; write 1 or 0")
    kept = accepted == 1
    if "offset" in predictions.tags:
        anchor = predictions.tags["offset"] == 0
        kept &= ~np.isin(predictions.groups, predictions.groups[anchor & ~kept])
    left = int(np.sum(~kept))
    note = f"{left:,} of {len(kept):,} candidate frames left out: not accepted by review"
    return replace(
        rows(predictions, np.flatnonzero(kept)),
        candidates=predictions,
        notes=(*predictions.notes, note) if left else predictions.notes,
    )


def rows(predictions: Predictions, which: NDArray[np.intp]) -> Predictions:
    """Some rows of a table, in the order of `which`."""

    def boxes(found: BoxTable | None) -> BoxTable | None:
        return None if found is None else select(found, which)

    def columns(found: Any) -> dict[str, NDArray[Any]]:
        return {name: values[which] for name, values in found.items()}

    return replace(
        predictions,
        ids=predictions.ids[which],
        groups=predictions.groups[which],
        truth=predictions.truth[which],
        scores=predictions.scores[which],
        top=predictions.top[which],
        top_scores=predictions.top_scores[which],
        errors=predictions.errors[which],
        tags=columns(predictions.tags),
        stored=columns(predictions.stored),
        boxes=boxes(predictions.boxes),
        detections=boxes(predictions.detections),
        said=boxes(predictions.said),
    )
