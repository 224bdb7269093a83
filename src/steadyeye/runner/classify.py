"""The predictions of one span of a source: inferred, and mapped to the data's classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.predictions import true_rank, true_score
from steadyeye.core.types import Scores
from steadyeye.predictions.schema import TOP, Rows
from steadyeye.runner import detect
from steadyeye.runner.infer import InferenceItem, infer_items
from steadyeye.runner.task import Task
from steadyeye.runner.threads import WorkerThread


def predict(task: Task, span: range, worker: WorkerThread) -> Rows | None:
    """The rows of `span`, in batches that depend on the span alone; None where stopped."""
    items = infer_items(task, span, worker)
    if items is None:
        return None
    return detect.build_rows(task, items) if task.detects else build_rows(task, items)


def build_rows(task: Task, items: Sequence[InferenceItem]) -> Rows:
    """The rows of items: scores over the data's classes and the model's own best classes."""
    scores = _stack_scores(task, items)
    top = find_best(scores, TOP)
    mapped = task.class_map.apply(scores, task.identity["reduce"])
    others = scores[:, list(task.class_map.others)]
    competing = np.concatenate([mapped, others], axis=1)
    return Rows(
        ids=[item.sample.id for item in items],
        groups=[item.sample.group for item in items],
        truths=[item.sample.truth for item in items],
        tags=[item.tags for item in items],
        errors=[item.error for item in items],
        scores=mapped if task.identity["keep"] == "scores" else mapped[:, :0],
        answers=_derive_answers(items, competing) | _summarize_scores(scores),
        top=top,
        top_scores=np.take_along_axis(scores, top, axis=1),
    )


def _summarize_scores(scores: Scores) -> dict[str, NDArray[Any]]:
    """The values derived from a row's scores over the model's own classes: see `ANSWERS`."""
    with np.errstate(invalid="ignore"):
        shifted = scores.astype(np.float64) - scores.max(axis=1, keepdims=True)
        best = 1 / np.exp(shifted).sum(axis=1)
    return {"softmax": best.astype(np.float32), "least": scores.min(axis=1)}


def find_best(scores: Scores, most: int) -> NDArray[np.int32]:
    """The `most` best classes of each row, falling; ties go to the lower index."""
    most = min(most, scores.shape[1])
    picked = np.sort(np.argpartition(-scores, most - 1, axis=1)[:, :most], axis=1)
    order = np.argsort(-np.take_along_axis(scores, picked, axis=1), axis=1, kind="stable")
    return np.take_along_axis(picked, order, axis=1).astype(np.int32)


def _derive_answers(items: Sequence[InferenceItem], scores: Scores) -> dict[str, NDArray[Any]]:
    """The values derived in fp32 from the scores of each row over all competing classes."""
    truth = np.zeros(scores.shape, dtype=np.bool_)
    for row, item in enumerate(items):
        if not item.error:
            truth[row, list(item.sample.truth)] = True
    answered = np.array([item.error == "" for item in items])
    predicted = np.where(answered[:, None], scores, -np.inf).argmax(axis=1)
    return {
        "predicted": np.where(answered, predicted, -1).astype(np.int32),
        "confidence": scores[np.arange(len(scores)), predicted],
        "rank": true_rank(scores, truth),
        "probability": true_score(scores, truth),
    }


def _stack_scores(task: Task, items: Sequence[InferenceItem]) -> Scores:
    """(n, width) the scores of the items, NaN where a sample failed."""
    scores = np.full((len(items), task.width), np.nan, dtype=np.float32)
    for row, item in enumerate(items):
        if isinstance(item.answer, np.ndarray):
            scores[row] = item.answer
    return scores
