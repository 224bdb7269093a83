"""Predictions as fields of a FiftyOne dataset."""

from typing import Any

import numpy as np

from steadyeye.core.boxes import BoxTable
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions


def add_to_dataset(predictions: Predictions, dataset: Any, field: str) -> None:
    """Adds the predictions to the samples of a dataset or view of FiftyOne, under `field`.

    For a classifier it is a `Classification` with its confidence, and `FIELD_right` holds whether
    it is a true class; for a detector it is `Detections`. Samples without a prediction get none.
    The samples must be the evaluated ones in the same order or, if the ids of a run are paths,
    files whose paths end with them. Raises `UsageError` for other samples.
    """
    import fiftyone  # the user's own install, which made the dataset

    samples = _match_samples(predictions, dataset)
    if predictions.detections is None:
        answers: list[Any] = [
            fiftyone.Classification(label=predictions.answer(i), confidence=float(confidence))
            if valid
            else None
            for i, (confidence, valid) in enumerate(
                zip(predictions.confidence.tolist(), predictions.valid.tolist(), strict=True)
            )
        ]
        known = predictions.has_label & predictions.valid
        pairs = zip(predictions.right.tolist(), known.tolist(), strict=True)
        right = [is_right if is_known else None for is_right, is_known in pairs]
        _set_values(dataset, f"{field}_right", samples, right)
    else:
        dataset.compute_metadata(skip_failures=False)
        names, widths, heights = dataset.values(["id", "metadata.width", "metadata.height"])
        sizes = dict(zip(names, zip(widths, heights, strict=True), strict=True))
        answers = _list_detections(fiftyone, predictions, [sizes[name] for name in samples])
    _set_values(dataset, field, samples, answers)


def _match_samples(predictions: Predictions, dataset: Any) -> list[str]:
    """The FiftyOne id of each row."""
    names, paths = dataset.values(["id", "filepath"])
    rows = predictions.ids.tolist()
    numbers = [row.rpartition("/")[2] for row in rows]
    if all(map(str.isdecimal, numbers)) and list(map(int, numbers)) == list(range(len(names))):
        return list(names)
    matching: dict[str, list[str]] = {row: [] for row in rows}
    for name, path in zip(names, paths, strict=True):
        parts = str(path).replace("\\", "/").split("/")
        for start in range(len(parts)):
            matching.get("/".join(parts[start:]), []).append(name)
    unclear = [row for row, samples in matching.items() if len(samples) != 1]
    if unclear or len(matching) < len(rows):
        raise UsageError(
            f"{predictions.data} has {len(rows):,} samples and the dataset {len(names):,}, and "
            f"'{(unclear or rows)[0]}' does not match exactly one of its files; give the dataset "
            "that was evaluated"
        )
    return [matching[row][0] for row in rows]


def _list_detections(
    fiftyone: Any, predictions: Predictions, sizes: list[tuple[int, int]]
) -> list[Any]:
    """`Detections` of each row, with boxes relative to the image; None for failed rows."""
    table = predictions.detections
    assert isinstance(table, BoxTable), "a detector has a table of boxes"
    rows: list[list[Any]] = [[] for _ in sizes]
    for i in np.argsort(table.image, kind="stable").tolist():
        image = int(table.image[i])
        width, height = sizes[image]
        x0, y0, x1, y1 = (table.boxes[i] / [width, height, width, height]).tolist()
        rows[image].append(
            fiftyone.Detection(
                label=predictions.classes[table.label[i]],
                bounding_box=[x0, y0, x1 - x0, y1 - y0],
                confidence=float(table.score[i]),
            )
        )
    valid = predictions.valid.tolist()
    return [
        fiftyone.Detections(detections=row) if is_valid else None
        for row, is_valid in zip(rows, valid, strict=True)
    ]


def _set_values(dataset: Any, field: str, samples: list[str], values: list[Any]) -> None:
    dataset.set_values(field, dict(zip(samples, values, strict=True)), key_field="id")
