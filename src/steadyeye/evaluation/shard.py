"""The predictions of one span of a source: decode, ask the model, map to the data's classes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.classes import mapping
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.table import true_rank, true_score
from steadyeye.core.types import Sample, Scores, Tag, detects
from steadyeye.evaluation import detect
from steadyeye.evaluation.asking import ask
from steadyeye.evaluation.tasks import Task
from steadyeye.predictions.rows import TOP, Rows

REDUCE = {"max": mapping.reduce_max, "sum": mapping.reduce_sum}


def predict(task: Task, span: range, stopped: Callable[[], bool]) -> Rows | None:
    """The rows of `span`, in batches that depend on the span alone; None where stopped."""
    if detects(task.model):
        return detect.predict(task, span, stopped)
    samples: list[Sample] = []
    errors: list[str] = []
    tags: list[dict[str, Tag]] = []
    batches: list[Scores] = []
    size = task.identity["batch"]
    for start in range(span.start, span.stop, size):
        if stopped():
            return None
        batch = [task.source[i] for i in range(start, min(start + size, span.stop))]
        scores, failed, measured = _batch(task, batch)
        samples += batch
        errors += failed
        tags += measured
        batches.append(scores)
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
    keep = task.identity["keep"] == "scores"
    return Rows(
        ids=[sample.id for sample in samples],
        groups=[sample.group for sample in samples],
        truths=[sample.truth for sample in samples],
        tags=tags or [dict(sample.tags) for sample in samples],
        errors=errors,
        scores=mapped if keep else mapped[:, :0],
        answers=_answers(samples, errors, mapped),
        top=top,
        top_scores=np.take_along_axis(scores, top, axis=1),
    )


def best(scores: Scores, most: int) -> NDArray[np.int32]:
    """The `most` best classes of each row, falling; ties go to the lower index."""
    most = min(most, scores.shape[1])
    picked = np.sort(np.argpartition(-scores, most - 1, axis=1)[:, :most], axis=1)
    order = np.argsort(-np.take_along_axis(scores, picked, axis=1), axis=1, kind="stable")
    return np.take_along_axis(picked, order, axis=1).astype(np.int32)


def _answers(
    samples: Sequence[Sample], errors: Sequence[str], scores: Scores
) -> dict[str, NDArray[Any]]:
    """What is kept of the scores of each row, derived in fp32."""
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


def _batch(task: Task, samples: Sequence[Sample]) -> tuple[Scores, list[str], list[dict[str, Tag]]]:
    """The scores of a batch, NaN where a sample failed; each sample's error or ''; and its tags."""
    found, errors, tags = ask(task, samples)
    width = len(task.identity["model"]["classes"])
    there = [i for i, error in enumerate(errors) if not error]
    if found.shape != (len(there), width):
        raise UsageError(
            f"{task.model.name} gave scores of shape {found.shape} for {len(there)} images and "
            f"{width} classes; return one row an image and one column a class"
        )
    _refuse_sum_of_logits(task, found)
    scores = np.full((len(samples), width), np.nan, dtype=np.float32)
    scores[there] = found
    _refuse_nan(task, samples, there, scores, errors)
    return scores, errors, tags


def _refuse_sum_of_logits(task: Task, scores: Scores) -> None:
    if task.identity["reduce"] != "sum" or not np.isfinite(scores).all():
        return
    if (scores < 0).any() or (scores.sum(axis=1) > 1.01).any():
        raise UsageError(
            f"reduce='sum' adds probabilities, but {task.model.name} gives other scores; "
            "return probabilities, or use reduce='max'"
        )


def _refuse_nan(
    task: Task,
    samples: Sequence[Sample],
    there: Sequence[int],
    scores: Scores,
    errors: list[str],
) -> None:
    for i in there:
        if not np.isnan(scores[i]).any():
            continue
        text = f"{task.model.name} gave NaN scores for '{samples[i].id}'"
        if task.identity["on_error"] != "skip":
            raise SampleError(f"{text}; check the model, or go on with --on-error skip")
        errors[i] = text
        scores[i] = np.nan
