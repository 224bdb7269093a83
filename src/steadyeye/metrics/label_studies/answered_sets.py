"""The sets that a question is about, what models answer on each, and where two can differ."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import exceed_score
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.pm_sets import farthest, pm_sets
from steadyeye.core.predictions import Predictions
from steadyeye.data.classes.synonyms import squeeze
from steadyeye.metrics.label_studies.question import OF_IMAGES, Question
from steadyeye.metrics.sequences.answer_runs import (
    choose_distance,
    in_time,
    steady_sets,
    steady_windows,
)

UNKNOWN = "?"
"""The label of a single image whose classes nobody could tell."""


@dataclass(frozen=True, eq=False)
class AnsweredSets:
    """Sets of frames, or images of a detector, m of them.

    `ids`: (m,) what names each: its group, or the id of the frame or image. `answers`: (m,) the
    predicted classes that are compared with the labels: of a set the anchor's, of an image all
    detected ones. `candidates`: (m,) bool, those that can count; the others contribute nothing for
    any labels, the `exempt` ones, (m,) bool, only if each shows one class on all its frames.
    `videos`, `scenes`: (m,). `confidence`: (m,) mean score of the answers, 0 without any. `k`: the
    distance of sets in frames. `notes`: on sets left out.
    """

    ids: NDArray[np.str_]
    answers: tuple[tuple[str, ...], ...]
    candidates: NDArray[np.bool_]
    exempt: NDArray[np.bool_]
    videos: NDArray[np.str_]
    scenes: NDArray[np.str_]
    confidence: NDArray[np.float64]
    k: int | None = None
    notes: tuple[str, ...] = ()


def find_sets(predictions: Predictions, question: Question) -> AnsweredSets:
    """The sets of a question with the model's answers, in the order of the predictions.

    Of pm-k those are candidates whose frames within ±k all have one class, judged among the classes
    that compete; of drop the others; of accuracy all. Raises `UsageError` for predictions that the
    question is not about.
    """
    if question.of_images:
        return _images(predictions, question)
    if predictions.detections is not None and "offset" not in predictions.tags:
        raise UsageError(
            f"{question.name} is about classes of whole frames, and {predictions.model} detects "
            "boxes; ask for false_positive_rate or image_error_rate"
        )
    if predictions.competing < 2:
        raise UsageError(f"{question.name}: only one class competes, so every prediction is right")
    if "offset" in predictions.tags:
        return _pm_sets(predictions, question)
    if {"group", "frame"} <= set(predictions.columns):
        return _windows(predictions, question)
    raise UsageError(
        f"{question.name} needs sets of frames, and {predictions.data} has single images; run on "
        "videos"
    )


def _pm_sets(predictions: Predictions, question: Question) -> AnsweredSets:
    sets = pm_sets(predictions, labels=False)
    k = 0 if question.metric == "accuracy" else farthest(sets, question.k)
    near = np.flatnonzero((sets.set_of >= 0) & (np.abs(sets.offsets) <= k))
    set_of = sets.set_of[near]
    steady = steady_sets(sets, predictions.predicted_class, k)
    counts = np.bincount(set_of, minlength=len(sets))
    sums = np.bincount(set_of, predictions.confidence[near], minlength=len(sets))
    return _of_anchors(
        predictions,
        question,
        predictions.groups[sets.anchors],
        sets.anchors,
        (steady, sums / np.maximum(counts, 1)),
        (k, sets.note_lost()),
    )


def _windows(predictions: Predictions, question: Question) -> AnsweredSets:
    """Every frame as an anchor, with the frames within ±k of its scene."""
    alone = question.metric == "accuracy" or question.k == 0
    k = 0 if alone else choose_distance(predictions, question.k)[0]
    rows = in_time(predictions)
    steady = steady_windows(predictions, rows, predictions.predicted_class, k)
    confidence = predictions.confidence[rows].astype(np.float64)
    lost = int((~predictions.valid).sum())
    notes = (f"{number_of(lost, 'frame')} left out: no prediction",) if lost else ()
    ids = predictions.ids[rows]
    return _of_anchors(predictions, question, ids, rows, (steady, confidence), (k, notes))


def _of_anchors(
    predictions: Predictions,
    question: Question,
    ids: NDArray[np.str_],
    anchors: NDArray[np.intp],
    columns: tuple[NDArray[np.bool_], NDArray[np.float64]],
    about: tuple[int, tuple[str, ...]],
) -> AnsweredSets:
    steady, confidence = columns
    k, notes = about
    # a detector that finds nothing is never right
    some = predictions.predicted_class[anchors] >= 0
    kinds = {"pm_k": steady & some, "drop": ~steady & some, "accuracy": some}
    candidates = np.asarray(kinds[question.metric], dtype=np.bool_)
    videos = predictions.videos[anchors]
    scenes = videos
    if "scene" in predictions.tags:
        scenes = np.char.add(
            np.char.add(videos.astype(np.str_), "/scene "),
            predictions.tags["scene"][anchors].astype(np.str_),
        )
    return AnsweredSets(
        ids=ids,
        answers=tuple((predictions.answer(row),) for row in anchors.tolist()),
        candidates=candidates,
        exempt=np.asarray(some & ~candidates, dtype=np.bool_),
        videos=np.asarray(videos, dtype=np.str_),
        scenes=np.asarray(scenes, dtype=np.str_),
        confidence=np.nan_to_num(confidence),
        k=None if question.metric == "accuracy" else k,
        notes=notes,
    )


def _images(predictions: Predictions, question: Question) -> AnsweredSets:
    """The images of a detector with the classes of its boxes above the threshold."""
    boxes = predictions.detections
    if boxes is None:
        raise UsageError(
            f"{question.name} is about boxes, and {predictions.model} classifies whole images; "
            "ask for accuracy, pm_k or drop"
        )
    assert question.score is not None, "a question about boxes has a threshold"
    rows = np.flatnonzero(predictions.valid)
    above = np.flatnonzero(exceed_score(boxes.score, question.score))
    classes: list[set[str]] = [set() for _ in range(len(predictions))]
    sums = np.bincount(boxes.image[above], boxes.score[above], minlength=len(predictions))
    counts = np.bincount(boxes.image[above], minlength=len(predictions))
    for image, label in zip(boxes.image[above].tolist(), boxes.label[above].tolist(), strict=True):
        classes[image].add(predictions.classes[label])
    answers = tuple(tuple(sorted(classes[row])) for row in rows.tolist())
    # without a box above the threshold there is no false positive; an object may be missed anywhere
    some = np.array([bool(names) for names in answers], dtype=np.bool_)
    every = question.metric == "image_error_rate"
    videos = predictions.videos[rows] if "group" in predictions.columns else predictions.ids[rows]
    lost = len(predictions) - len(rows)
    return AnsweredSets(
        ids=predictions.ids[rows],
        answers=answers,
        candidates=np.ones(len(rows), dtype=np.bool_) if every else some,
        exempt=np.zeros(len(rows), dtype=np.bool_),
        videos=np.asarray(videos, dtype=np.str_),
        scenes=np.asarray(videos, dtype=np.str_),
        confidence=(sums / np.maximum(counts, 1))[rows],
        notes=(f"{number_of(lost, 'image')} left out: no prediction",) if lost else (),
    )


def counts_as(metric: str, answers: tuple[str, ...], labels: tuple[str, ...]) -> bool:
    """Whether a candidate counts for a metric once its labels are known.

    `labels`: of a set the classes that all its frames show, of an image all that it shows. An image
    has a false positive if a detected class is not in it, and an error if the detected classes are
    not those in it. Names are compared as `fold_name` says.
    """
    names, known = set(map(fold_name, answers)), set(map(fold_name, labels))
    if metric == "false_positive_rate":
        return not names <= known
    if metric == "image_error_rate":
        return names != known
    return bool(names & known)


def count_at_least_and_most(
    metric: str, answers: tuple[str, ...], labels: Iterable[str]
) -> tuple[bool, bool]:
    """Whether a labelled candidate counts for sure, and whether it may.

    They differ for a set that nobody could label, which has no class, for an image with the label
    `UNKNOWN`, and for a drop where all frames show several classes, the anchor's prediction among
    them: predictions that differ may then be right on all frames.
    """
    known = tuple(labels)
    if UNKNOWN in known if metric in OF_IMAGES else not known:
        return False, True
    counts = counts_as(metric, answers, known)
    return counts and not (metric == "drop" and names_several(known)), counts


def names_several(labels: Iterable[str]) -> bool:
    """Whether labels name more than one class."""
    return len(set(map(fold_name, labels))) > 1


# the names of a study are compared anew at every label
@lru_cache(maxsize=100_000)
def fold_name(name: str) -> str:
    """A class name as names are compared, without capitals, blanks, hyphens and underscores."""
    return squeeze(name)


METRIC = "pm_k"
"""The metric that a difference is found of."""


@dataclass(frozen=True)
class SharedSets:
    """The sets that two models have a prediction for, and where they can differ.

    `names`: all. `answers`: of each model set → its class. `pools`: of each model the sets that it
    may get right and where the two can differ, in their order.
    """

    names: tuple[str, ...]
    answers: tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]
    pools: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def differing(self) -> frozenset[str]:
        """The sets where the two can differ."""
        return frozenset(self.pools[0]) | frozenset(self.pools[1])


def find_shared_sets(first: AnsweredSets, second: AnsweredSets) -> SharedSets:
    """The sets that two models have in common, in the order of the first."""
    own = [dict(zip(sets.ids.tolist(), sets.answers, strict=True)) for sets in (first, second)]
    steady = [set(sets.ids[np.flatnonzero(sets.candidates)].tolist()) for sets in (first, second)]
    names = tuple(name for name in own[0] if name in own[1])

    def can_differ(name: str) -> bool:
        if not (name in steady[0] and name in steady[1]):
            return True
        classes, others = (set(map(fold_name, answers[name])) for answers in own)
        return classes != others

    pools = [tuple(n for n in names if n in candidates and can_differ(n)) for candidates in steady]
    return SharedSets(names, (own[0], own[1]), (pools[0], pools[1]))
