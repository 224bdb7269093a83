"""Predictions in memory: one row a sample, columns as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Predictions:
    """A sealed table of predictions of one model on one source, n rows in the source's order.

    `ids`, `groups`, `errors`: (n,) str; `errors` is empty where the sample was predicted.
    `truth`: (n, classes) bool, the sample's own labels; all False: unlabelled.
    `scores`: (n, classes) float32 over the *dataset's* classes (the model's own where the data
    has none); `-inf` for a class no model class maps to, NaN in rows with an error.
    `top`, `top_scores`: (n, m) the model's own best classes and their scores, falling.
    `tags`: column → (n,) array. `columns`: what the source said its samples carry. `fingerprint`:
    the source's; two tables with the same one hold the same samples.
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

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """(n,) True where the sample was predicted."""
        return np.asarray(self.errors == "", dtype=np.bool_)

    @cached_property
    def predicted(self) -> NDArray[np.intp]:
        """(n,) the best class; ties go to the lower index; −1 in rows with an error."""
        if not self.scores.size:
            return np.full(len(self), -1, dtype=np.intp)
        filled = np.where(self.valid[:, None], self.scores, -np.inf)
        return np.where(self.valid, filled.argmax(axis=1), -1)

    @cached_property
    def confidence(self) -> NDArray[np.float32]:
        """(n,) the score of the best class; NaN in rows with an error."""
        best = self.scores[np.arange(len(self)), np.maximum(self.predicted, 0)]
        return np.where(self.valid, best, np.float32(np.nan))

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """(n,) True where the best class is one of the sample's own labels."""
        hit = self.truth[np.arange(len(self)), np.maximum(self.predicted, 0)]
        return np.asarray(hit & self.valid, dtype=np.bool_)

    @cached_property
    def labelled(self) -> NDArray[np.bool_]:
        """(n,) True where the sample carries a label."""
        return np.asarray(self.truth.any(axis=1), dtype=np.bool_)
