"""Boxes of shards against lists of Python, and columns that are equal in both tables."""

import weakref
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest

from steadyeye.core.boxes import Detections, areas, boxes, detection_table, truth_table
from steadyeye.predictions.box_columns import split_boxes
from steadyeye.predictions.schema import Rows, to_arrow

COLUMNS = ("image", "label", "boxes", "score", "area")


def detections(rng, images):
    """Up to three boxes an image."""
    several = []
    for _ in range(images):
        n = int(rng.integers(0, 4))
        corners = np.sort(rng.uniform(0, 9, (n, 2, 2)), axis=1).reshape(n, 4)
        labels = rng.integers(0, 5, n).astype(np.int32)
        several.append(Detections(corners, labels, rng.random(n)))
    return several


def make_shard(first, truth, of_data, of_model):
    """A shard of images from the number `first` on."""
    n = len(truth)
    return to_arrow(
        Rows(
            ids=[f"{first + i}" for i in range(n)],
            groups=[""] * n,
            truths=[()] * n,
            tags=[{"frame": i} for i in range(n)],
            errors=[""] * n,
            scores=np.zeros((n, 0), np.float32),
            answers={
                name: np.zeros(n, np.float32)
                for name in ("predicted", "confidence", "rank", "probability", "softmax", "least")
            },
            top=np.zeros((n, 1), np.int32),
            top_scores=np.zeros((n, 1), np.float32),
            boxes=truth,
            detections=detection_table(of_data),
            raw_detections=None if of_model is None else detection_table(of_model),
        )
    )


def change(rng, several, kind):
    """The detections with one column changed, or one of them left out."""
    place = next((i for i, some in enumerate(several) if len(some)), None)
    if place is None:
        return several
    corners, labels, scores = (
        column.copy()
        for column in (several[place].boxes, several[place].labels, several[place].scores)
    )
    if kind == "label":
        labels[-1] += 1
    elif kind == "score":
        scores[0] = np.nextafter(scores[0], 2)
    elif kind == "boxes":
        corners[0, 2] += 1
    else:
        corners, labels, scores = corners[:-1], labels[:-1], scores[:-1]
    return [*several[:place], Detections(corners, labels, scores), *several[place + 1 :]]


def read_singly(shards):
    """The shards one after the other; of those before the last none is in memory any more."""
    read = []
    while shards:
        read.append(weakref.ref(shards[0]))
        yield shards.pop(0)
        assert sum(shard() is not None for shard in read) == 1


@pytest.mark.parametrize("kind", ["", "label", "score", "boxes", "fewer"])
@pytest.mark.parametrize("seed", range(6))
def test_boxes_of_shards_are_those_that_were_written(kind, seed):
    """Shards of several sizes; the two tables of detections differ in one shard."""
    rng = np.random.default_rng(seed)
    counts = [5, 1, *rng.integers(1, 9, 3).tolist()]
    odd = int(rng.integers(0, len(counts)))
    truth, of_data, of_model, shards = [], [], [], []
    for number, count in enumerate(counts):
        real = [boxes(d.boxes, d.labels, rng.random(len(d)) < 0.3) for d in detections(rng, count)]
        data_boxes = detections(rng, count)
        model_boxes = change(rng, data_boxes, kind) if kind and number == odd else data_boxes
        shards.append(make_shard(len(truth), real, data_boxes, model_boxes))
        truth, of_data, of_model = truth + real, of_data + data_boxes, of_model + model_boxes
    rest, read = split_boxes(read_singly(shards))
    assert rest["id"].to_pylist() == [str(i) for i in range(len(truth))]
    assert not [
        name for name in rest.column_names if name.partition("_")[0] in ("box", "found", "said")
    ]
    tables = (
        (read.truth, truth_table(truth)),
        (read.detections, detection_table(of_data)),
        (read.raw_detections, detection_table(of_model)),
    )
    for mine, its in tables:
        for field in fields(its):
            column, expected = getattr(mine, field.name), getattr(its, field.name)
            assert (column is None) == (expected is None)
            assert column is None or (column.dtype, column.shape, column.tobytes()) == (
                expected.dtype,
                expected.shape,
                expected.tobytes(),
            )
    for name in COLUMNS:
        mine, its = getattr(read.detections, name), getattr(read.raw_detections, name)
        assert (mine is its) == np.array_equal(mine, its)


def test_tables_without_detections_or_without_what_was_said():
    rng = np.random.default_rng(0)
    data_boxes = detections(rng, 4)
    real = [boxes(d.boxes, d.labels) for d in data_boxes]
    _, read = split_boxes([make_shard(0, real, data_boxes, None)])
    assert read.raw_detections is None
    assert np.array_equal(read.detections.area, areas(detection_table(data_boxes).boxes))
    both = [make_shard(4, real, data_boxes, data_boxes), make_shard(0, real, data_boxes, None)]
    for shards in (both, both[::-1]):
        rest, read = split_boxes(shards)
        assert read.raw_detections is None
        assert len(read.detections) == 2 * len(detection_table(data_boxes))
        assert not [name for name in rest.column_names if name.startswith("said")]
    rest, read = split_boxes([pa.table({"id": ["a", "b"]})])
    assert (read.truth, read.detections, read.raw_detections) == (None, None, None)
    assert rest.num_rows == 2
