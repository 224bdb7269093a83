"""A target found again: what the detector makes of it in changed images."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import BoxTable
from steadyeye.core.predictions import Predictions
from steadyeye.metrics.detection.error_types import iou


@dataclass(frozen=True, eq=False)
class TargetMatches:
    """What was found of the target of each row, n rows.

    `probability`: (n,) float64, the score of the detection that overlaps the target's box best
    among those of the target's class; 0 where there is none. `row`: (n,) which detection that is,
    −1 for none.
    """

    probability: NDArray[np.float64]
    row: NDArray[np.intp]

    @property
    def vanished(self) -> NDArray[np.bool_]:
        """(n,) True where no detection of the target's class overlaps its box."""
        return np.asarray(self.row < 0)


def match_targets(predictions: Predictions) -> TargetMatches:
    """The best-overlapping detection of the target's class in every row of a probe.

    DEFINITIONS.md, "NAO analyses": a detection must overlap the box at all; ties go to the more
    confident. A row with an error has NaN for its probability.
    """
    found, tags = predictions.detections, predictions.tags
    assert found is not None, "a probe is asked of a detector"
    boxes = np.column_stack([tags[name] for name in ("x0", "y0", "x1", "y1")]).astype(np.float64)
    probability, row = np.zeros(len(predictions)), np.full(len(predictions), -1, dtype=np.intp)
    own = np.flatnonzero(found.label == np.asarray(tags["own_label"])[found.image])
    starts = np.searchsorted(found.image[own], np.arange(len(predictions) + 1))
    for each in range(len(predictions)):
        here = own[starts[each] : starts[each + 1]]
        best = _best(found, here, boxes[each])
        if best >= 0:
            probability[each], row[each] = found.score[best], best
    return TargetMatches(np.where(predictions.valid, probability, np.nan), row)


def _best(found: BoxTable, rows: NDArray[np.intp], box: NDArray[np.float64]) -> int:
    if not len(rows):
        return -1
    overlap = iou(found.boxes[rows], box[None])[:, 0]
    best = np.lexsort((-found.score[rows], -overlap))[0]
    return int(rows[best]) if overlap[best] > 0 else -1
