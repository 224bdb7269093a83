"""Predictions in memory: one row per sample, columns as arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import notebook
from steadyeye.core.boxes import BoxTable, Verified
from steadyeye.core.format import number_of, percent

FEW_BOXES = 50
"""Detections below which the range of their scores says nothing."""
LOW_SCORE = 0.06
"""Lowest score of detections that is worth a remark; 0.05 is the usual threshold with COCO."""
BINS = 128
"""Columns, and rows, of a frame that its projections tell apart."""
PROJECTIONS = "projections"
"""The tag of a frame: `BINS` means of columns and of rows, 0…255, then its width and height."""
ROUNDING = 1e-6
"""Tolerance of a probability outside 0…1."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """A sealed table of predictions of one model on one source, n rows in the source's order.

    `ids`, `groups`, `errors`: (n,) str; `errors` is empty if the sample was predicted. `truth`: (n,
    classes) bool, the sample's labels; all False: unlabelled. `scores`: (n, classes) float32 over
    the *dataset's* classes (the model's own if the data have none); `-inf` for a class without a
    mapped model class, NaN in rows with an error; (n, 0) if scores were not stored. `top`,
    `top_scores`: (n, m) the model's own best classes and their scores, falling. `others`: (o,) the
    model's own classes that map to no class of the data and compete with them, as in data with an
    open list: a prediction among them is wrong. `tags`: column → (n,) array, or (n, m) if the
    sample has a vector. `columns`: the columns of the source. `fingerprint`: the source's; two
    tables with the same one hold the same samples. `stored`: (n,) arrays of `predicted`,
    `confidence`, `rank` and `probability`, among all competing classes, and of `softmax` and
    `least`: see `predictions.schema.ANSWERS`. `sweep`: of degraded images, `levels` (operator → its
    levels) and `seed`. `probe`: of images made to explain detections, `name`, `data` and
    `reference` (each a name and a fingerprint), `model` (the explained detector), `score`, `limit`,
    `seed`, `settings`: see `steadyeye.explain`. `boxes`, `detections`: of a detector, the true
    boxes and the detections, over the classes of the data; row i of the table is their image i.
    `predicted_class` is then the class of the most confident competing detection, −1: none.
    `candidates`: of a reviewed table, the table with the rejected frames too; this one is then
    without them. `parents`: for each class of the data those directly above it, None if the data
    have no hierarchy. `verified`: the classes whose presence or absence was verified in each image;
    None: all classes in all images. `raw_detections`: of a detector, all detections over
    `model_classes`, also of classes that the data do not have; None if not stored.
    `model_to_data_class`: (model classes,) the data's class of each of the model's own, −1: none;
    None if not known. `model_mark`: the model's fingerprint. `content`: changes with the bytes of
    the images, '' if they were not read. `recipe`: the model's recipe; of a fine-tuned model also
    its base model and its training data. `warning`: the other format that its detections, or
    other order that its classes seem to be in; '' if none.

    Example with invented predictions of 12 pm-sets of five frames:

        >>> from steadyeye.testing import example_predictions
        >>> predictions = example_predictions(margin=0.5)
        >>> predictions.columns
        ('truth', 'group', 'offset', 'frame', 'video')
        >>> predictions.scores.shape, int(predictions.right.sum())
        ((60, 3), 40)
        >>> predictions.tags["offset"][:5].tolist()
        [-2, -1, 0, 1, 2]
    """

    model: str
    data: str
    classes: tuple[str, ...]
    model_classes: tuple[str, ...]
    columns: tuple[str, ...]
    ids: NDArray[np.str_]
    groups: NDArray[np.str_]
    truth: NDArray[np.bool_]
    scores: NDArray[np.float32]
    top: NDArray[np.int32]
    top_scores: NDArray[np.float32]
    errors: NDArray[np.str_]
    tags: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    fingerprint: str = ""
    stored: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    sweep: Mapping[str, Any] = field(default_factory=dict)
    probe: Mapping[str, Any] = field(default_factory=dict)
    boxes: BoxTable | None = None
    detections: BoxTable | None = None
    candidates: "Predictions | None" = None
    parents: tuple[tuple[int, ...], ...] | None = None
    verified: Verified | None = None
    raw_detections: BoxTable | None = None
    model_to_data_class: NDArray[np.int64] | None = None
    model_mark: str = ""
    content: str = ""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    others: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    warning: str = ""

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return notebook.short("Predictions", ", ".join(text for _, text in self._facts()))

    def _repr_html_(self) -> str:
        return notebook.table("Predictions", ("", ""), self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        """The main properties, name and text."""
        lost = int(np.sum(~self.valid))
        return [
            ("", f"{self.model} on {self.data}"),
            ("samples", number_of(len(self), "row")),
            ("classes", number_of(len(self.classes), "class")),
            *([("errors", f"{lost:,} not predicted")] if lost else []),
            ("columns", f"columns {', '.join(self.columns)}"),
        ]

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """(n,) True where the sample was predicted."""
        return np.asarray(self.errors == "", dtype=np.bool_)

    @cached_property
    def distinct_groups(self) -> tuple[NDArray[np.str_], NDArray[np.intp]]:
        """The distinct groups, sorted, and (n,) the index of each row's group."""
        names, number = np.unique(self.groups, return_inverse=True)
        return names, number

    @cached_property
    def videos(self) -> NDArray[np.str_]:
        """(n,) the video of each row; without a `video` tag every group is one."""
        return np.asarray(self.tags.get("video", self.groups), dtype=np.str_)

    @cached_property
    def clusters(self) -> tuple[NDArray[np.str_], NDArray[np.intp]]:
        """The distinct videos, sorted, and (n,) the index of each row's video."""
        if "video" not in self.tags:
            return self.distinct_groups
        names, number = np.unique(self.videos, return_inverse=True)
        return names, number

    @cached_property
    def has_probabilities(self) -> bool:
        """Whether all scores lie in 0…1: they then count as probabilities, not as logits."""
        of_rows = [self.stored.get("least", self.scores), self.own_score]
        of_rows += [
            self.stored[name] for name in sorted({"confidence", "probability"} & self.stored.keys())
        ]
        every = np.concatenate([scores[self.valid].ravel() for scores in of_rows])
        every = every[np.isfinite(every)]
        # by rounding, an average of ones may be a little above 1
        return bool(((every >= -ROUNDING) & (every <= 1 + ROUNDING)).all())

    def format_score(self, score: float) -> str:
        """A score for users: `84.8 %`, or `score 3.78` if it is no probability."""
        return percent(score) if self.has_probabilities else f"score {score:.2f}"

    def find_share(self, score: float) -> float | None:
        """A score as a share, rounded; None if it is no probability."""
        return round(score, 3) if self.has_probabilities and np.isfinite(score) else None

    @property
    def competing(self) -> int:
        """The number of classes that compete: the data's mapped classes, and `others`.

        A class of the data without a mapped model class cannot be predicted.
        """
        if self.model_to_data_class is None:
            return len(self.classes) + len(self.others)
        return len(np.unique(self.model_to_data_class[self.model_to_data_class >= 0])) + len(
            self.others
        )

    @cached_property
    def predicted_class(self) -> NDArray[np.intp]:
        """(n,) the best of the classes that compete: an index into `classes`, then into `others`.

        Ties go to the lower index; −1 in rows with an error.
        """
        if "predicted" in self.stored:
            return np.asarray(self.stored["predicted"], dtype=np.intp)
        if not self.scores.size:
            return np.full(len(self), -1, dtype=np.intp)
        filled = np.where(self.valid[:, None], self.scores, -np.inf)
        return np.where(self.valid, filled.argmax(axis=1), -1)

    @cached_property
    def confidence(self) -> NDArray[np.float32]:
        """(n,) the score of the best class; NaN in rows with an error."""
        if "confidence" in self.stored:
            return np.asarray(self.stored["confidence"], dtype=np.float32)
        best = self.scores[np.arange(len(self)), np.maximum(self.predicted_class, 0)]
        return np.where(self.valid, best, np.float32(np.nan))

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """(n,) True where the best class is one of the sample's own labels."""
        of_data = (self.predicted_class >= 0) & (self.predicted_class < len(self.classes))
        hit = self.truth[np.arange(len(self)), np.where(of_data, self.predicted_class, 0)]
        return np.asarray(hit & self.valid & of_data, dtype=np.bool_)

    def answer(self, row: int) -> str:
        """The name of the best class of a row; `nothing` if a detector has no detection."""
        index = int(self.predicted_class[row])
        if index < len(self.classes):
            return self.classes[index] if index >= 0 else "nothing"
        name = self.model_classes[self.others[index - len(self.classes)]]
        # another class of the model may have the name of a class of the data
        return f"{name} (another)" if name in self.classes else name

    @cached_property
    def own(self) -> NDArray[np.intp]:
        """(n,) the best of all the model's own classes, which needs neither labels nor a class map.

        −1 in rows with an error, and if a detector has no detection.
        """
        if not self.top.shape[1]:
            return self.predicted_class
        return np.where(self.valid, self.top[:, 0], -1).astype(np.intp)

    @cached_property
    def own_score(self) -> NDArray[np.float32]:
        """(n,) the score of `own`; NaN in rows with an error."""
        if not self.top.shape[1]:
            return self.confidence
        return np.where(self.valid, self.top_scores[:, 0], np.float32(np.nan))

    def own_answer(self, row: int) -> str:
        """The name of the model's own best class of a row; `nothing` if there is none."""
        return self.own_name(int(self.own[row]))

    def own_name(self, index: int) -> str:
        """The name of a class by its index in `own`; `nothing` for −1."""
        names = self.model_classes if self.top.shape[1] else self.classes
        return names[index] if index >= 0 else "nothing"

    @cached_property
    def score_range(self) -> tuple[float, float] | None:
        """The lowest and highest score of a detector's boxes; None for few, and of a classifier."""
        table = self.raw_detections or self.detections
        if table is None or len(table) < FEW_BOXES:
            return None
        return float(table.score.min()), float(table.score.max())

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """(n,) the number of classes ranked before the true one (0 = first); −1 without one."""
        if "rank" in self.stored:
            return np.asarray(self.stored["rank"], dtype=np.int32)
        return true_rank(self.scores, self.truth & self.valid[:, None])

    @cached_property
    def probability(self) -> NDArray[np.float32]:
        """(n,) the score of the true class; NaN without one."""
        if "probability" in self.stored:
            return np.asarray(self.stored["probability"], dtype=np.float32)
        return true_score(self.scores, self.truth & self.valid[:, None])

    @cached_property
    def has_label(self) -> NDArray[np.bool_]:
        """(n,) True if the sample has a label."""
        return np.asarray(self.truth.any(axis=1), dtype=np.bool_)


def samples(tables: Sequence[Predictions]) -> list[str]:
    """A text for the samples of each table; equal texts mean equal samples.

    It is the source's fingerprint, with the content of the images if two tables with the same
    fingerprint have different contents. Contents that were not read, as of saved predictions, and
    contents that cannot be compared, such as an object's version and a file's digest, count as
    equal.
    """
    contents: dict[tuple[str, str], set[str]] = {}
    for table in tables:
        if table.content:
            kind = table.content.partition(" ")[0]
            contents.setdefault((table.fingerprint, kind), set()).add(table.content)
    apart = {mark for (mark, _), digests in contents.items() if len(digests) > 1}
    return [
        f"{table.fingerprint}, images {table.content}"
        if table.fingerprint in apart
        else table.fingerprint
        for table in tables
    ]


def true_rank(scores: NDArray[np.float32], truth: NDArray[np.bool_]) -> NDArray[np.int32]:
    """(n,) the number of classes ranked before the best true class; ties to the lower index.

    `scores`: (n, classes) float32; `truth`: (n, classes) bool. 0 exactly if the best class is a
    true one; −1 in rows without a true class.
    """
    best = _best_true(scores, truth)
    score = np.take_along_axis(scores, best, axis=1)
    before = (scores > score) | ((scores == score) & (np.arange(scores.shape[1]) < best))
    ranks = np.where(truth.any(axis=1), before.sum(axis=1), -1)
    return np.asarray(ranks, dtype=np.int32)


def true_score(scores: NDArray[np.float32], truth: NDArray[np.bool_]) -> NDArray[np.float32]:
    """(n,) the score of the best true class; NaN in rows without one."""
    score = np.take_along_axis(scores, _best_true(scores, truth), axis=1)[:, 0]
    return np.asarray(np.where(truth.any(axis=1), score, np.nan), dtype=np.float32)


def _best_true(scores: NDArray[np.float32], truth: NDArray[np.bool_]) -> NDArray[np.intp]:
    # a true class without a mapped model class has −inf and still ranks before the wrong ones
    rated = np.where(truth, np.maximum(scores, np.finfo(np.float32).min), -np.inf)
    return np.asarray(rated.argmax(axis=1)[:, None], dtype=np.intp)
