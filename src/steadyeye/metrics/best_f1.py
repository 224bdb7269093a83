"""The highest F1 of a detector over all score thresholds."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.trials import Statistic, compare_by
from steadyeye.core.types import Result, needs
from steadyeye.metrics.detection.best_threshold import BestThreshold, choose, find_best
from steadyeye.metrics.detection.operating_point import (
    Ranked,
    f1,
    name_result,
    note_absent,
    rank_predictions,
)


def outcomes(predictions: Predictions, iou: float = 0.5) -> Statistic:
    """The images that count, for resampling, each time with its own threshold."""
    every = rank_predictions(predictions, iou)

    def resample(weights: NDArray[np.float32]) -> NDArray[np.float64]:
        wins, totals = f1(choose(every, np.ascontiguousarray(weights, dtype=np.float64)).counts)
        with np.errstate(invalid="ignore"):
            return np.asarray(wins / totals, dtype=np.float64)

    value = float(resample(np.ones((1, len(every.videos)), dtype=np.float32))[0])
    return Statistic(value, every.videos, resample, lambda: find_best(every).f1)


@needs("boxes", "detections")
@compare_by(outcomes)
def best_f1(predictions: Predictions, iou: float = 0.5) -> Result:
    """The highest F1 over all score thresholds, over all classes together.

    `cells`: the threshold, the highest of equal ones, and precision and recall there. The threshold
    is chosen on the evaluated images, so that F1 is higher than on other images: a note gives the
    difference, and the interval is lowered by it. Every replicate of the bootstrap chooses its own
    threshold. `iou` as of `f1_at`. n images. Value None without objects.

    Example with invented predictions:

        >>> from steadyeye.testing import example_detections
        >>> print(best_f1(example_detections()))
        best_f1 93.3 % (95 % interval 70.3–99.2 %, n = 30)
    """
    every = rank_predictions(predictions, iou)
    name, n = name_result("best_f1", {}, iou), len(every.videos)
    if not len(every.object_image):
        return Result(name, None, None, None, n, "none: there are no objects")
    best = find_best(every)
    cells = (
        Result.of("score", replace(best.score, n=n), unit="score"),
        Result.of("precision", best.precision),
        Result.of("recall", best.recall),
    )
    return Result.of(name, replace(best.f1, n=n), notes=_note(every, best), cells=cells)


def _note(every: Ranked, best: BestThreshold) -> tuple[str, ...]:
    """That the threshold is chosen on the same images, and what `map` leaves out."""
    apart = best.optimism * 100
    amount = f"about {apart:.1f}" if apart >= 0.05 else "less than 0.1"
    chosen = (
        f"the threshold is chosen on these images: on others F1 is lower, by {amount} percentage "
        "points"
    )
    return chosen, *note_absent(every)
