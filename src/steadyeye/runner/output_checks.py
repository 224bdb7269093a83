"""What a model gave for a batch, checked and taken apart into the answer to each image."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steadyeye.core.abilities import detects
from steadyeye.core.boxes import Detections
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.runner.cache.codec import Answer
from steadyeye.runner.task import Task


def split(task: Task, said: Any, images: int) -> Sequence[Answer]:
    """The answer to each of the images. Raises `UsageError` where there is not one for each."""
    if not images:
        return []
    if detects(task.model):
        if len(said) != images:
            raise UsageError(
                f"{task.model.name} returned {len(said)} results for {number_of(images, 'image')}; "
                "return boxes, scores and labels for every image"
            )
        return list(said)
    width = classes(task)
    if said.shape != (images, width):
        raise UsageError(
            f"{task.model.name} returned scores of shape {said.shape} for "
            f"{number_of(images, 'image')} and {number_of(width, 'class')}; return one row per "
            "image and one column per class, or name the model's own classes with "
            "classes='…' in its spec"
        )
    return list(said)


def fault(task: Task, answer: Answer, id_: str) -> str:
    """What is wrong with the answer to a sample and what to do; '' where nothing is."""
    if isinstance(answer, Detections):
        wrong = detections_fault(answer, classes(task))
        return f"{task.model.name} returned {wrong} for '{id_}'" if wrong else ""
    return f"{task.model.name} returned NaN scores for '{id_}'" if np.isnan(answer).any() else ""


def detections_fault(found: Detections, classes: int) -> str:
    """What is wrong with detections, with how many and the first; '' where nothing is.

    Boxes that reach out of the image are no fault: detectors give them, and they are matched as
    they are; `predictions.caveats` counts them.
    """
    boxes, scores, labels = found.boxes, found.scores, found.labels
    inverted = (boxes[:, 2] < boxes[:, 0]) | (boxes[:, 3] < boxes[:, 1])
    tests = (
        ("NaN boxes", ~np.isfinite(boxes).all(axis=1), boxes),
        ("inverted boxes", inverted, boxes),
        ("scores outside 0…1", ~((scores >= 0) & (scores <= 1)), scores),
        ("class numbers outside its classes", (labels < 0) | (labels >= classes), labels),
    )
    for what, bad, values in tests:
        if bad.any():
            first = np.asarray(values)[int(bad.argmax())]
            return f"{int(bad.sum())} {what}, first {np.round(first, 3).tolist()},"
    return ""


def classes(task: Task) -> int:
    """How many classes the model has."""
    return len(task.identity["model"]["classes"])
