"""The rows of a detector's answers: its boxes mapped to the data's classes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import EMPTY, BoxTable, Detections, detection_table, take, take_where
from steadyeye.core.types import Sample
from steadyeye.predictions.schema import Rows
from steadyeye.runner.infer import InferenceItem
from steadyeye.runner.task import Task

NOTHING = Detections(np.zeros((0, 4)), np.zeros(0, dtype=np.int32), np.zeros(0))


def build_rows(task: Task, items: Sequence[InferenceItem]) -> Rows:
    """The rows of items with their detections, over the detector's own classes."""
    answers = (item.answer for item in items)
    detections = [some if isinstance(some, Detections) else NOTHING for some in answers]
    return build_rows_of_table(task, items, detection_table(detections))


def build_rows_of_table(task: Task, items: Sequence[InferenceItem], table: BoxTable) -> Rows:
    """The rows of items; `table`: what was detected, image i in item i, over the own classes.

    Detections of classes that the data does not have are left out, and counted in the notes; where
    the data's list is open they still compete for the answer of the image as a whole.
    """
    images = len(items)
    in_data = _map_classes(table, task.class_map.destinations)
    left_out = take(table, np.flatnonzero(in_data.label < 0))
    competing = _map_classes(table, task.class_map.places)
    top, top_scores = find_best(table, images)
    samples = [item.sample for item in items]
    return Rows(
        ids=[sample.id for sample in samples],
        groups=[sample.group for sample in samples],
        truths=[sample.truth for sample in samples],
        tags=[item.tags for item in items],
        errors=[item.error for item in items],
        scores=np.zeros((len(samples), 0), dtype=np.float32),
        answers=_derive_answers(samples, _drop_unmapped(competing)) | _summarize_scores(images),
        top=top[:, None],
        top_scores=top_scores[:, None],
        boxes=[EMPTY if (own := sample.boxes) is None else own for sample in samples],
        detections=_drop_unmapped(in_data),
        # the size that was seen goes before the one that the annotations say
        sizes=[item.size or item.sample.size or (0, 0) for item in items],
        left_out=left_out,
        raw_detections=table,
        # the column is there in every shard of a source or in none
        verified=[entry.verified for entry in samples] if "verified" in task.source.columns else (),
    )


def _map_classes(table: BoxTable, places: Sequence[int]) -> BoxTable:
    """The detections with other labels, below 0 where a class of the detector has none there.

    `places`: the other label of each of the detector's classes: among those of the data, or among
    those that compete, numbered as `Predictions.predicted_class` is.
    """
    return replace(table, label=np.asarray(places, dtype=np.int64)[table.label])


def _drop_unmapped(table: BoxTable) -> BoxTable:
    return take_where(table, table.label >= 0)


def _summarize_scores(images: int) -> dict[str, NDArray[Any]]:
    """The score of a box is a probability, and never a logit."""
    none = np.full(images, np.nan, dtype=np.float32)
    return {"softmax": none, "least": np.zeros(images, dtype=np.float32)}


def find_best(table: BoxTable, images: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """(images,) each: the class and score of the most confident box; −1 and 0 for none."""
    top, score = np.full(images, -1, np.int32), np.zeros(images, np.float32)
    if not len(table):
        return top, score
    begins = np.flatnonzero(np.diff(table.image, prepend=-1))
    best = np.maximum.reduceat(table.score, begins)
    # the images of the table rise; the last that is written stays: of equal ones the first
    most = np.repeat(best, np.diff(begins, append=len(table)))
    order = np.flatnonzero(table.score == most)[::-1]
    image = table.image[order]
    top[image], score[image] = table.label[order], table.score[order]
    return top, score


def _derive_answers(samples: Sequence[Sample], table: BoxTable) -> dict[str, NDArray[Any]]:
    """A detector as a classifier: the class of its most confident box, and its score.

    `table`: the detections of the classes that compete. `rank`: how many classes have a more
    confident box than the best of the true ones, −1 without labels; `probability`: the score of
    the best box of a true class, 0 without one, NaN without labels.
    """
    images = len(samples)
    predicted, confidence = find_best(table, images)
    has_label = np.array([bool(sample.truth) for sample in samples], dtype=np.bool_)
    is_true = _find_true(samples, table)
    own = np.zeros(images)
    np.maximum.at(own, table.image[is_true], table.score[is_true])
    has_true = np.bincount(table.image[is_true], minlength=images) > 0
    above = ~is_true & (table.score > np.where(has_true, own, -1.0)[table.image])
    pairs = np.unique(np.stack([table.image[above], table.label[above]]), axis=1)
    rank = np.bincount(pairs[0], minlength=images)
    return {
        "predicted": predicted,
        "confidence": confidence,
        "rank": np.where(has_label, rank, -1).astype(np.int32),
        "probability": np.where(has_label, own, np.nan).astype(np.float32),
    }


def _find_true(samples: Sequence[Sample], table: BoxTable) -> NDArray[np.bool_]:
    """(n,) whether a detection is of one of the true classes of its image."""
    truths = [sample.truth for sample in samples]
    image = np.repeat(np.arange(len(truths)), [len(truth) for truth in truths])
    label = np.fromiter((label for truth in truths for label in truth), np.int64, len(image))
    width = 1 + max(label.max(initial=0), table.label.max(initial=0))
    return np.isin(table.image * width + table.label, image * width + label)
