"""Detections in the results format of COCO, which pycocotools and similar tools read."""

from collections.abc import Sequence

import numpy as np

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions


def list_results(
    predictions: Predictions, category_ids: Sequence[int] | None = None
) -> list[dict[str, object]]:
    """One dictionary per detection: `image_id`, `category_id`, `bbox` and `score`.

    `category_ids`: the number of each class, as in the annotations; 1, 2, … if left out.
    `image_id`: the id of the sample, as a number if it is one; `bbox`: x, y, width, height in
    pixels; in the order of the samples. Raises `UsageError` for predictions of a classifier, and if
    the number of ids is not that of the classes.

    Example with an invented detector:

        >>> from steadyeye.testing import example_detections
        >>> sorted(list_results(example_detections())[0])
        ['bbox', 'category_id', 'image_id', 'score']
    """
    table = predictions.detections
    if table is None:
        raise UsageError(
            f"{predictions.model} on {predictions.data} has no detections; COCO's results are of "
            "detectors, other rows go into .parquet, .arrow or .csv"
        )
    ids = category_ids or range(1, len(predictions.classes) + 1)
    if len(ids) != len(predictions.classes):
        raise UsageError(
            f"{number_of(len(ids), 'category id')} for "
            f"{number_of(len(predictions.classes), 'class')}; give one each"
        )
    order = np.argsort(table.image, kind="stable")
    corners = table.boxes[order]
    sides = np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], axis=1)
    images = [int(text) if text.isdecimal() else text for text in predictions.ids.tolist()]
    return [
        {"image_id": images[image], "category_id": ids[label], "bbox": box, "score": score}
        for image, label, box, score in zip(
            table.image[order].tolist(),
            table.label[order].tolist(),
            sides.tolist(),
            table.score[order].tolist(),
            strict=True,
        )
    ]
