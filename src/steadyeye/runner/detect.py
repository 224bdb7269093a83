"""The rows of a detector's answers: its boxes mapped to the data's classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import EMPTY, Detections
from steadyeye.core.types import Sample
from steadyeye.predictions.schema import Rows
from steadyeye.runner.infer import InferenceItem
from steadyeye.runner.task import Task

NOTHING = Detections(np.zeros((0, 4)), np.zeros(0, dtype=np.int32), np.zeros(0))


def build_rows(task: Task, items: Sequence[InferenceItem]) -> Rows:
    """The rows of items with what was detected in each, over the detector's own classes.

    Detections of classes that the data does not have are left out, and counted in the notes; where
    the data's list is open they still compete for the answer of the image as a whole.
    """
    detections = [item.answer if isinstance(item.answer, Detections) else NOTHING for item in items]
    destinations = np.asarray(task.class_map.destinations, dtype=np.int32)
    mapped, left_out = zip(*(_map_classes(destinations, e) for e in detections), strict=True)
    top, top_scores = _find_best(detections)
    in_competition = np.asarray(task.class_map.places, dtype=np.int32)
    competing = [_map_classes(in_competition, entry)[0] for entry in detections]
    samples = [item.sample for item in items]
    return Rows(
        ids=[sample.id for sample in samples],
        groups=[sample.group for sample in samples],
        truths=[sample.truth for sample in samples],
        tags=[item.tags for item in items],
        errors=[item.error for item in items],
        scores=np.zeros((len(samples), 0), dtype=np.float32),
        answers=_derive_answers(samples, competing) | _summarize_scores(len(detections)),
        top=top,
        top_scores=top_scores,
        boxes=[sample.boxes or EMPTY for sample in samples],
        detections=mapped,
        # the size that was seen goes before the one that the annotations say
        sizes=[item.size or item.sample.size or (0, 0) for item in items],
        left_out=left_out,
        raw_detections=detections,
        # the column is there in every shard of a source or in none
        verified=[entry.verified for entry in samples] if "verified" in task.source.columns else (),
    )


def _map_classes(
    places: NDArray[np.int32], detections: Detections
) -> tuple[Detections, NDArray[np.int32]]:
    """The detections over other classes, and the own classes of those that have none there.

    `places`: the other class of each of the detector's own, below 0 for none: those of the data, or
    those that compete, numbered as `Predictions.predicted_class` is.
    """
    labels = places[detections.labels]
    has_place = labels >= 0
    mapped = Detections(
        detections.boxes[has_place], labels[has_place], detections.scores[has_place]
    )
    return mapped, detections.labels[~has_place]


def _summarize_scores(images: int) -> dict[str, NDArray[Any]]:
    """The score of a box is a probability, and never a logit."""
    none = np.full(images, np.nan, dtype=np.float32)
    return {"softmax": none, "least": np.zeros(images, dtype=np.float32)}


def _find_best(detections: Sequence[Detections]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """(n, 1) each: the class and score of the most confident box; −1 and 0 for none."""
    top, score = (
        np.full((len(detections), 1), -1, np.int32),
        np.zeros((len(detections), 1), np.float32),
    )
    for row, boxes in enumerate(detections):
        if len(boxes):
            best = int(boxes.scores.argmax())
            top[row], score[row] = boxes.labels[best], boxes.scores[best]
    return top, score


def _derive_answers(
    samples: Sequence[Sample], detections: Sequence[Detections]
) -> dict[str, NDArray[Any]]:
    """A detector as a classifier: the class of its most confident box, and its score.

    `detections`: of each image the boxes of the classes that compete.
    """
    predicted, confidence = _find_best(detections)
    rank = [
        _find_rank(sample.truth, boxes) if sample.truth else -1
        for sample, boxes in zip(samples, detections, strict=True)
    ]
    own = [
        max(boxes.scores[np.isin(boxes.labels, sample.truth)], default=0.0)
        if sample.truth
        else np.nan
        for sample, boxes in zip(samples, detections, strict=True)
    ]
    return {
        "predicted": predicted[:, 0],
        "confidence": confidence[:, 0],
        "rank": np.array(rank, dtype=np.int32),
        "probability": np.array(own, dtype=np.float32),
    }


def _find_rank(truth: Sequence[int], detections: Detections) -> int:
    """How many classes have a more confident box than the best of the true ones."""
    mine = detections.scores[np.isin(detections.labels, truth)]
    above = detections.labels[detections.scores > (mine.max() if len(mine) else -1.0)]
    return len(set(above.tolist()) - set(truth))
