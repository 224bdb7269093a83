"""Below which score a detector says nothing, and what that means for a probe."""

from steadyeye.core import model_stages
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.types import Detector
from steadyeye.explain.context import Subject

LOWEST = 0.001
"""Where a probe has detectors cut their scores that can be asked to, as the recipes do."""


def lower_threshold(model: Detector) -> Detector:
    """The detector with its threshold on scores at `LOWEST`, as it is where it has no such seam.

    A probe measures what becomes of a score: one that falls below the threshold of a recipe would
    count as gone, and a background in which much is found below it as empty.
    """
    threshold = model.recipe.get("threshold")
    if threshold is None or float(threshold) <= LOWEST:
        return model
    return model_stages.lower_threshold(model, LOWEST)


def cutoff(model: Detector, predictions: Predictions) -> float:
    """Below which score a detector says nothing, 0 where there is no such score.

    What its recipe says; where that is silent, the lowest score of `predictions`, since detectors
    that do not cut give many low ones.
    """
    threshold = model.recipe.get("threshold")
    if threshold is not None:
        return float(threshold)
    said = predictions.raw_detections
    return float(said.score.min()) if said is not None and len(said.score) else 0.0


def refuse_cut(subject: Subject, probe: str, nothing: float) -> None:
    """Raises `UsageError` where the detector cuts its scores above `nothing`.

    It cannot then say whether anything with more is in an image.
    """
    cut = cutoff(subject.model, subject.predictions)
    if cut > nothing:
        raise UsageError(
            f"{probe}: {subject.model.name} gives no score below {cut:.2f}, so it cannot be "
            f"tested whether it finds nothing above {nothing:g}; lower its own threshold, or if "
            "it has none set function.threshold = 0.0"
        )


def note_cut(subject: Subject, nothing: float) -> tuple[str, ...]:
    """What must be known where the detector cuts its scores above `nothing`."""
    cut = cutoff(subject.model, subject.predictions)
    if cut <= nothing:
        return ()
    return (
        f"{subject.model.name} gives no score below {cut:.2f}: a detection that falls below "
        "counts as gone, with probability 0, so changes are overestimated",
    )
