"""The predictions of one span of a source: decode, ask the model, map to the data's classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.abilities import detects
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import true_rank, true_score
from steadyeye.core.types import Sample, Scores, Tag
from steadyeye.data.classes import class_mapping
from steadyeye.predictions.schema import TOP, Rows
from steadyeye.runner import detect
from steadyeye.runner.infer import InferenceItem, Pipeline
from steadyeye.runner.task import Task
from steadyeye.runner.worker_thread import WorkerThread

REDUCE = {"max": class_mapping.reduce_max, "sum": class_mapping.reduce_sum}


def predict(task: Task, span: range, worker: WorkerThread) -> Rows | None:
    """The rows of `span`, in batches that depend on the span alone; None where stopped."""
    if detects(task.model):
        return detect.predict(task, span, worker)
    samples: list[Sample] = []
    errors: list[str] = []
    tags: list[dict[str, Tag]] = []
    batches: list[Scores] = []
    for batch in Pipeline(task, worker).infer_span(span):
        samples += [item.sample for item in batch]
        errors += [item.error for item in batch]
        tags += [item.tags for item in batch]
        batches.append(_scores(task, batch))
        if len(samples) < len(span) and worker.stopped():
            return None
    return rows(task, samples, errors, np.concatenate(batches), tags)


def rows(
    task: Task,
    samples: Sequence[Sample],
    errors: Sequence[str],
    scores: Scores,
    tags: Sequence[dict[str, Tag]] = (),
) -> Rows:
    """The rows of samples: scores over the data's classes and the model's own best classes.

    `tags`: those of each sample, measures included; the samples' own if left out.
    """
    top = best(scores, TOP)
    mapped = REDUCE[task.identity["reduce"]](task.class_map, scores)
    others = scores[:, list(task.class_map.others)]
    keep = task.identity["keep"] == "scores"
    return Rows(
        ids=[sample.id for sample in samples],
        groups=[sample.group for sample in samples],
        truths=[sample.truth for sample in samples],
        tags=tags or [dict(sample.tags) for sample in samples],
        errors=errors,
        scores=mapped if keep else mapped[:, :0],
        answers=_answers(samples, errors, np.concatenate([mapped, others], axis=1)) | _own(scores),
        top=top,
        top_scores=np.take_along_axis(scores, top, axis=1),
    )


def _own(scores: Scores) -> dict[str, NDArray[Any]]:
    """What is kept of a row's scores over the model's own classes: see `ANSWERS`."""
    with np.errstate(invalid="ignore"):
        shifted = scores.astype(np.float64) - scores.max(axis=1, keepdims=True)
        best = 1 / np.exp(shifted).sum(axis=1)
    return {"softmax": best.astype(np.float32), "least": scores.min(axis=1)}


def best(scores: Scores, most: int) -> NDArray[np.int32]:
    """The `most` best classes of each row, falling; ties go to the lower index."""
    most = min(most, scores.shape[1])
    picked = np.sort(np.argpartition(-scores, most - 1, axis=1)[:, :most], axis=1)
    order = np.argsort(-np.take_along_axis(scores, picked, axis=1), axis=1, kind="stable")
    return np.take_along_axis(picked, order, axis=1).astype(np.int32)


def _answers(
    samples: Sequence[Sample], errors: Sequence[str], scores: Scores
) -> dict[str, NDArray[Any]]:
    """What is kept of the scores of each row over all classes that compete, derived in fp32."""
    truth = np.zeros(scores.shape, dtype=np.bool_)
    for row, sample in enumerate(samples):
        if not errors[row]:
            truth[row, list(sample.truth)] = True
    there = np.array([error == "" for error in errors])
    predicted = np.where(there[:, None], scores, -np.inf).argmax(axis=1)
    return {
        "predicted": np.where(there, predicted, -1).astype(np.int32),
        "confidence": scores[np.arange(len(scores)), predicted],
        "rank": true_rank(scores, truth),
        "probability": true_score(scores, truth),
    }


def _scores(task: Task, batch: Sequence[InferenceItem]) -> Scores:
    """The scores of a batch, NaN where a sample failed."""
    scores = np.full((len(batch), task.width), np.nan, dtype=np.float32)
    for row, item in enumerate(batch):
        if isinstance(item.answer, np.ndarray):
            scores[row] = item.answer
    _refuse_sum_of_logits(task, scores[[item.answer is not None for item in batch]])
    return scores


def _refuse_sum_of_logits(task: Task, scores: Scores) -> None:
    if task.identity["reduce"] != "sum" or not np.isfinite(scores).all():
        return
    if (scores < 0).any() or (scores.sum(axis=1) > 1.01).any():
        raise UsageError(
            f"reduce='sum' adds probabilities, but {task.model.name} returns other scores; "
            "return probabilities, or use reduce='max'"
        )
