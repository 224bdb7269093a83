"""Metrics of steadyeye as a `Metric` of MAITE, for classification and for detection."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Detections, detection_table, truth_table
from steadyeye.core.boxes import boxes as make_boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.core.spec import parse
from steadyeye.core.types import Result
from steadyeye.data.python_boxes import BoxRow, holds_boxes, read_boxes, to_array
from steadyeye.data.python_labels import read_scores
from steadyeye.runner.collect import ask
from steadyeye.runner.detect import find_best
from steadyeye.runner.validate import lacks, metric

TAGS = ("offset", "frame", "video", "scene", "seconds", "fps", "step")
"""The metadata of a datum that become columns of the same names."""


class MaiteMetric:
    """A metric by its spec, for `maite.tasks.evaluate(metric=…)`, with the numbers of a run.

    `spec`: such as "pm_k(k=10)" or "map(iou='coco')". `classes`: the names of the classes, in the
    order of the scores. The metadata of a datum give its pm-set (`set`), its frames from the anchor
    (`offset`), and its `video` and `frame`, if a metric needs them. `compute` returns the value by
    the metric's name, and its interval and n; NaN without a value. Raises `UsageError` for an
    unknown metric and for invalid arguments.

    Example in which two of three images are right:

        >>> import numpy as np
        >>> accuracy = MaiteMetric("accuracy", ["cat", "dog"])
        >>> cat, dog = np.eye(2)
        >>> accuracy.update([cat, cat, dog], [cat, dog, dog], [{"id": i} for i in range(3)])
        >>> round(accuracy.compute()["accuracy"], 3)
        0.667
    """

    def __init__(self, spec: str, classes: Sequence[str]) -> None:
        self.spec, self.classes = parse(spec), tuple(classes)
        metric(self.spec)
        if not self.classes:
            raise UsageError(f"{spec}: classes is empty; give the names of the classes")
        self.metadata = {"id": f"steadyeye {self.spec}"}
        self.reset()

    def reset(self) -> None:
        """Forgets all data."""
        self._answers: list[Any] = []
        self._targets: list[Any] = []
        self._metadata: list[Mapping[str, Any]] = []

    def update(
        self,
        pred_batch: Sequence[Any],
        target_batch: Sequence[Any],
        metadata_batch: Sequence[Mapping[str, Any]],
        /,
    ) -> None:
        """Adds n data.

        For classification (classes,) scores, and (classes,) targets, one-hot or scores, of which
        the highest count, several if equal; for detection the inputs of
        `data.python_boxes.read_boxes`. Raises `UsageError` for batches of different lengths.
        """
        lengths = {len(pred_batch), len(target_batch), len(metadata_batch)}
        if len(lengths) > 1:
            raise UsageError(
                f"{len(pred_batch):,} predictions, {len(target_batch):,} targets and "
                f"{len(metadata_batch):,} metadata; give one each"
            )
        self._answers += pred_batch
        self._targets += target_batch
        self._metadata += metadata_batch

    def compute(self) -> dict[str, Any]:
        """The value by the metric's name, and its `low`, `high`, `n` and `interval`."""
        result = self.result()
        numbers = {result.name: result.value, "low": result.low, "high": result.high}
        known = {key: float("nan") if v is None else v for key, v in numbers.items()}
        return {**known, "n": result.n, "interval": result.interval}

    def result(self) -> Result:
        """The number with its interval and its parts, as that metric of a run returns it."""
        if not self._answers:
            return Result(str(self.spec), None, None, None, 0, "none: n = 0")
        is_detector = holds_boxes(self._answers[0])
        table = self._build_detections() if is_detector else self._build_scores()
        missing = lacks(metric(self.spec), table.columns)
        if missing:
            raise UsageError(
                f"{self.spec} needs {', '.join(missing)}; give them in the metadata of each datum"
            )
        return ask(self.spec).metric(table)

    def _build_scores(self) -> Predictions:
        scores = self._stack(self._answers, "prediction").astype(np.float32)
        targets = self._stack(self._targets, "target")
        truth = np.zeros(targets.shape, dtype=np.bool_)
        for i, row in enumerate(targets):
            truth[i, list(read_scores(row, len(row), f"target {i}"))] = True
        return self._build(scores, truth, ("truth",))

    def _build_detections(self) -> Predictions:
        answers = [read_boxes(row, f"prediction {i}") for i, row in enumerate(self._answers)]
        objects = [read_boxes(row, f"target {i}") for i, row in enumerate(self._targets)]
        n = len(answers)
        table = self._build(
            np.zeros((n, len(self.classes)), np.float32),
            np.zeros((n, len(self.classes)), np.bool_),
            ("boxes", "detections"),
        )
        detections = []
        for i, row in enumerate(answers):
            if row.scores is None:
                raise UsageError(f"prediction {i} has no scores; give one for each box")
            if np.isnan(row.scores).any():
                raise UsageError(f"prediction {i} has a score that is no number; correct it")
            detections.append(Detections(row.corners, self._number(row), row.scores))
        true_boxes = [make_boxes(r.corners, self._number(r), r.crowd, r.area) for r in objects]
        detected = detection_table(detections)
        best, score = find_best(detected, n)
        return replace(
            table,
            boxes=truth_table(true_boxes),
            detections=detected,
            top=best[:, None],
            top_scores=score[:, None],
            stored={"predicted": best, "confidence": score},
        )

    def _number(self, row: BoxRow) -> NDArray[np.int32]:
        """The labels of boxes as indices of the classes."""
        places = {name: place for place, name in enumerate(self.classes)}
        numbers = [places.get(x, -1) if isinstance(x, str) else int(x) for x in row.labels]
        for number, label in zip(numbers, row.labels, strict=True):
            if not 0 <= number < len(self.classes):
                raise UsageError(
                    f"the label {label!r} is no class; give a name or 0…{len(self.classes) - 1}"
                )
        return np.array(numbers, dtype=np.int32)

    def _stack(self, rows: Sequence[Any], name: str) -> NDArray[np.float64]:
        arrays = [to_array(row) for row in rows]
        for i, array in enumerate(arrays):
            if array.shape != (len(self.classes),):
                raise UsageError(
                    f"{name} {i} has the shape {array.shape}; give ({len(self.classes)},), one "
                    "number a class"
                )
        return np.stack(arrays).astype(np.float64)

    def _build(
        self, scores: NDArray[np.float32], truth: NDArray[np.bool_], columns: tuple[str, ...]
    ) -> Predictions:
        """The rows with the columns of their metadata."""
        n = len(scores)
        entries = self._metadata
        for tag in (*TAGS, "set"):
            some = sum(tag in entry for entry in entries)
            if 0 < some < n:
                raise UsageError(
                    f"the metadata of {some:,} of {n:,} data have '{tag}'; give it in all, or none"
                )
        names = [tag for tag in TAGS if tag in entries[0]]
        tags = {tag: np.asarray([entry[tag] for entry in entries]) for tag in names}
        in_sets = "set" in entries[0]
        groups = [str(entry["set"]) if in_sets else "" for entry in entries]
        failed = np.isnan(scores).any(axis=1)
        best = np.where(failed, 0, np.nan_to_num(scores).argmax(axis=1))
        return Predictions(
            model="model",
            data="data",
            classes=self.classes,
            model_classes=self.classes,
            columns=(*columns, *(("group",) if in_sets else ()), *tags),
            ids=np.asarray([str(entry.get("id", i)) for i, entry in enumerate(entries)]),
            groups=np.asarray(groups, dtype=np.str_),
            truth=truth,
            scores=scores,
            top=best[:, None].astype(np.int32),
            top_scores=scores[np.arange(n), best][:, None],
            errors=np.where(failed, "not predicted", ""),
            tags=tags,
        )
