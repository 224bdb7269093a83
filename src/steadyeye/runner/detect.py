"""The rows of a detector's answers: its boxes mapped to the data's classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
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
    joined = _join(detections)
    mapped, left_out = _map_classes(joined, np.asarray(task.class_map.destinations, dtype=np.int32))
    competing, _ = _map_classes(joined, np.asarray(task.class_map.places, dtype=np.int32))
    top, top_scores = _find_best(joined)
    samples = [item.sample for item in items]
    return Rows(
        ids=[sample.id for sample in samples],
        groups=[sample.group for sample in samples],
        truths=[sample.truth for sample in samples],
        tags=[item.tags for item in items],
        errors=[item.error for item in items],
        scores=np.zeros((len(samples), 0), dtype=np.float32),
        answers=_derive_answers(samples, competing) | _summarize_scores(len(detections)),
        top=top[:, None],
        top_scores=top_scores[:, None],
        boxes=[sample.boxes or EMPTY for sample in samples],
        detections=_split(mapped),
        # the size that was seen goes before the one that the annotations say
        sizes=[item.size or item.sample.size or (0, 0) for item in items],
        left_out=left_out,
        raw_detections=detections,
        # the column is there in every shard of a source or in none
        verified=[entry.verified for entry in samples] if "verified" in task.source.columns else (),
    )


@dataclass(frozen=True, eq=False)
class _Joined:
    """The detections of `count` images one after the other; `image`: (n,) rising."""

    image: NDArray[np.int64]
    labels: NDArray[np.int32]
    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    count: int


def _join(detections: Sequence[Detections]) -> _Joined:
    return _Joined(
        np.repeat(np.arange(len(detections)), [len(image) for image in detections]),
        np.concatenate([image.labels for image in detections]),
        np.concatenate([image.boxes for image in detections]),
        np.concatenate([image.scores for image in detections]),
        len(detections),
    )


def _split(joined: _Joined) -> list[Detections]:
    ends = np.searchsorted(joined.image, np.arange(joined.count + 1)).tolist()
    return [
        Detections(joined.boxes[a:b], joined.labels[a:b], joined.scores[a:b])
        for a, b in pairwise(ends)
    ]


def _map_classes(
    joined: _Joined, places: NDArray[np.int32]
) -> tuple[_Joined, list[NDArray[np.int32]]]:
    """The detections over other classes, and of each image the own classes that have none there.

    `places`: the other class of each of the detector's own, below 0 for none: those of the data, or
    those that compete, numbered as `Predictions.predicted_class` is.
    """
    labels = places[joined.labels]
    has_place = labels >= 0
    mapped = _Joined(
        joined.image[has_place],
        labels[has_place],
        joined.boxes[has_place],
        joined.scores[has_place],
        joined.count,
    )
    ends = np.searchsorted(joined.image[~has_place], np.arange(joined.count + 1)).tolist()
    left_out = joined.labels[~has_place]
    return mapped, [left_out[a:b] for a, b in pairwise(ends)]


def _summarize_scores(images: int) -> dict[str, NDArray[Any]]:
    """The score of a box is a probability, and never a logit."""
    none = np.full(images, np.nan, dtype=np.float32)
    return {"softmax": none, "least": np.zeros(images, dtype=np.float32)}


def _find_best(joined: _Joined) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """(images,) each: the class and score of the most confident box; −1 and 0 for none."""
    top, score = np.full(joined.count, -1, np.int32), np.zeros(joined.count, np.float32)
    # written from the last to the first: the most confident of an image, of equals the first
    order = np.lexsort((-np.arange(len(joined.image)), joined.scores))
    top[joined.image[order]], score[joined.image[order]] = (
        joined.labels[order],
        joined.scores[order],
    )
    return top, score


def _derive_answers(samples: Sequence[Sample], joined: _Joined) -> dict[str, NDArray[Any]]:
    """A detector as a classifier: the class of its most confident box, and its score.

    `joined`: the detections of the classes that compete. `rank`: how many classes have a more
    confident box than the best of the true ones, −1 without labels; `probability`: the score of
    the best box of a true class, 0 without one, NaN without labels.
    """
    predicted, confidence = _find_best(joined)
    has_label = np.array([bool(sample.truth) for sample in samples], dtype=np.bool_)
    is_true = _find_true(samples, joined)
    own = np.zeros(joined.count)
    np.maximum.at(own, joined.image[is_true], joined.scores[is_true])
    has_true = np.bincount(joined.image[is_true], minlength=joined.count) > 0
    above = ~is_true & (joined.scores > np.where(has_true, own, -1.0)[joined.image])
    pairs = np.unique(np.stack([joined.image[above], joined.labels[above]]), axis=1)
    rank = np.bincount(pairs[0], minlength=joined.count)
    return {
        "predicted": predicted,
        "confidence": confidence,
        "rank": np.where(has_label, rank, -1).astype(np.int32),
        "probability": np.where(has_label, own, np.nan).astype(np.float32),
    }


def _find_true(samples: Sequence[Sample], joined: _Joined) -> NDArray[np.bool_]:
    """(n,) whether a detection is of one of the true classes of its image."""
    truths = [sample.truth for sample in samples]
    image = np.repeat(np.arange(len(truths)), [len(truth) for truth in truths])
    label = np.fromiter((label for truth in truths for label in truth), np.int64, len(image))
    width = 1 + max(label.max(initial=0), joined.labels.max(initial=0))
    return np.isin(joined.image * width + joined.labels, image * width + label)
