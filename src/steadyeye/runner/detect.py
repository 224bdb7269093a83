"""The detections of one span of a source: decode, ask the detector, map to the data's classes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import EMPTY, Detections
from steadyeye.core.types import Sample, Tag
from steadyeye.predictions.schema import Rows
from steadyeye.runner.infer import InferenceItem, Pipeline
from steadyeye.runner.task import Task
from steadyeye.runner.worker_thread import WorkerThread

NOTHING = Detections(np.zeros((0, 4)), np.zeros(0, dtype=np.int32), np.zeros(0))


def predict(task: Task, span: range, worker: WorkerThread) -> Rows | None:
    """The rows of `span`; None where stopped."""
    samples: list[Sample] = []
    errors: list[str] = []
    tags: list[dict[str, Tag]] = []
    found: list[Detections] = []
    for batch in Pipeline(task, worker).infer_span(span):
        found += [_detections(item) for item in batch]
        # the size that was seen goes before the one that the annotations say
        samples += [replace(each.sample, size=each.size or each.sample.size) for each in batch]
        errors += [item.error for item in batch]
        tags += [item.tags for item in batch]
        if len(samples) < len(span) and worker.stopped():
            return None
    return rows(task, samples, errors, found, tags)


def _detections(item: InferenceItem) -> Detections:
    """What was detected in a sample, nothing where it failed."""
    return item.answer if isinstance(item.answer, Detections) else NOTHING


def rows(
    task: Task,
    samples: Sequence[Sample],
    errors: Sequence[str],
    found: Sequence[Detections],
    tags: Sequence[dict[str, Tag]] = (),
) -> Rows:
    """The rows of samples with what was detected in each, over the detector's own classes.

    Detections of classes that the data does not have are left out, and counted in the notes; where
    the data's list is open they still compete for the answer of the image as a whole. `tags`: the
    samples' own if left out.
    """
    mapped, left_out = zip(*(_mapped(task, each) for each in found), strict=True)
    top, top_scores = _best(found)
    return Rows(
        ids=[sample.id for sample in samples],
        groups=[sample.group for sample in samples],
        truths=[sample.truth for sample in samples],
        tags=tags or [dict(sample.tags) for sample in samples],
        errors=errors,
        scores=np.zeros((len(samples), 0), dtype=np.float32),
        answers=_answers(samples, [_competing(task, each) for each in found]) | _own(len(found)),
        top=top,
        top_scores=top_scores,
        boxes=[sample.boxes or EMPTY for sample in samples],
        detections=mapped,
        sizes=[sample.size or (0, 0) for sample in samples],
        left_out=left_out,
        raw_detections=found,
        # the column is there in every shard of a source or in none
        verified=[each.verified for each in samples] if "verified" in task.source.columns else (),
    )


def _mapped(task: Task, found: Detections) -> tuple[Detections, NDArray[np.int32]]:
    """The detections over the data's classes, and the own classes of those that it has not."""
    labels = np.asarray(task.class_map.destinations, dtype=np.int32)[found.labels]
    there = labels >= 0
    kept = Detections(found.boxes[there], labels[there], found.scores[there])
    return kept, found.labels[~there]


def _competing(task: Task, found: Detections) -> Detections:
    """The detections of the classes that compete, numbered as `Predictions.predicted_class` is."""
    labels = np.asarray(task.class_map.places, dtype=np.int32)[found.labels]
    there = labels >= 0
    return Detections(found.boxes[there], labels[there], found.scores[there])


def _own(images: int) -> dict[str, NDArray[Any]]:
    """The score of a box is a probability, and never a logit."""
    none = np.full(images, np.nan, dtype=np.float32)
    return {"softmax": none, "least": np.zeros(images, dtype=np.float32)}


def _best(found: Sequence[Detections]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """(n, 1) each: the class and score of the most confident box; −1 and 0 for none."""
    top, score = np.full((len(found), 1), -1, np.int32), np.zeros((len(found), 1), np.float32)
    for row, each in enumerate(found):
        if len(each):
            best = int(each.scores.argmax())
            top[row], score[row] = each.labels[best], each.scores[best]
    return top, score


def _answers(samples: Sequence[Sample], found: Sequence[Detections]) -> dict[str, NDArray[Any]]:
    """A detector as a classifier: the class of its most confident box, and its score.

    `found`: of each image the boxes of the classes that compete.
    """
    predicted, confidence = _best(found)
    rank = [
        _rank(sample.truth, each) if sample.truth else -1
        for sample, each in zip(samples, found, strict=True)
    ]
    own = [
        max(each.scores[np.isin(each.labels, sample.truth)], default=0.0)
        if sample.truth
        else np.nan
        for sample, each in zip(samples, found, strict=True)
    ]
    return {
        "predicted": predicted[:, 0],
        "confidence": confidence[:, 0],
        "rank": np.array(rank, dtype=np.int32),
        "probability": np.array(own, dtype=np.float32),
    }


def _rank(truth: Sequence[int], found: Detections) -> int:
    """How many classes have a more confident box than the best of the true ones."""
    mine = found.scores[np.isin(found.labels, truth)]
    above = found.labels[found.scores > (mine.max() if len(mine) else -1.0)]
    return len(set(above.tolist()) - set(truth))
