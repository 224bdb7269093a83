"""The rows of predictions as tables: every value against the predictions, in each format."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steadyeye.core.boxes import OOD
from steadyeye.core.errors import UsageError
from steadyeye.metrics.pm_k import pm_k
from steadyeye.predictions.sample_rows import build_table, encode_rows, join_tables
from steadyeye.testing import example_detections, example_predictions


def with_a_failed_and_an_unlabelled_row():
    table = example_predictions(margin=0.5)
    errors, truth, scores = table.errors.astype("U20"), table.truth.copy(), table.scores.copy()
    errors[3], truth[4], scores[3] = "=cut off", False, np.nan
    return replace(table, errors=errors, truth=truth, scores=scores)


def test_pm_k_follows_from_the_rows():
    table = example_predictions(margin=0.5)
    sets = {}
    for row in build_table(table).select(["set", "right"]).to_pylist():
        sets.setdefault(row["set"], []).append(row["right"])
    assert np.mean([all(rights) for rights in sets.values()]) == pm_k(table, 2).value < 1


def test_unknown_values_are_null():
    table = with_a_failed_and_an_unlabelled_row()
    rows = build_table(table).to_pylist()
    assert rows[3]["error"] == "=cut off"
    assert [rows[3][name] for name in ("predicted", "confidence", "right", "probability")] == [
        None
    ] * 4
    assert rows[3]["labels"] == [table.classes[int(table.truth[3].argmax())]]
    assert [rows[4][name] for name in ("labels", "right", "rank", "error")] == [None] * 4
    assert rows[4]["predicted"] == table.answer(4)
    for i in (0, 1, 2, 5):
        assert (rows[i]["id"], rows[i]["right"]) == (table.ids[i], bool(table.right[i]))
        assert rows[i]["rank"] == (table.scores[i] > table.scores[i][table.truth[i]][0]).sum()
        assert rows[i]["offset"] == table.tags["offset"][i]


def test_all_formats_hold_the_same_rows():
    table = build_table(with_a_failed_and_an_unlabelled_row())
    assert pq.read_table(pa.BufferReader(encode_rows(table, ".parquet"))).equals(table)
    with pa.ipc.open_file(encode_rows(table, ".arrow")) as file:
        assert file.read_all().equals(table)
        about = json.loads(file.schema.metadata[b"steadyeye"])
    assert about["provenance"]["steadyeye"]
    read = list(csv.DictReader(io.StringIO(encode_rows(table, ".csv").decode())))
    assert [row["right"] for row in read] == [
        "" if right is None else str(right) for right in table["right"].to_pylist()
    ]
    assert read[3]["error"] == "'=cut off"  # a spreadsheet takes it for a text
    with pytest.raises(UsageError, match=r"cannot write rows as '.xls'; known: .parquet, .arrow"):
        encode_rows(table, ".xls")


def test_boxes_are_lists_of_named_structures():
    p = example_detections(sets=4)
    # two to an image, in another order than the images
    p = replace(p, detections=replace(p.detections, image=p.detections.image[::-1] // 2))
    rows = build_table(p).to_pylist()
    for name, table, last in (("boxes", p.boxes, "crowd"), ("detections", p.detections, "score")):
        expected = [[] for _ in rows]
        for i in range(len(table)):
            corners = dict(zip(("x0", "y0", "x1", "y1"), table.boxes[i].tolist(), strict=True))
            value = getattr(table, last)[i].item()
            entry = {"label": p.classes[table.label[i]], **corners, last: value}
            expected[table.image[i]].append(entry)
        assert [row[name] for row in rows] == expected
        assert len(table)
    read = next(csv.DictReader(io.StringIO(encode_rows(build_table(p), ".csv").decode())))
    assert json.loads(read["boxes"]) == rows[0]["boxes"]


def test_detections_of_classes_that_the_data_do_not_have_are_rows_too():
    """A detector of more classes, in another order: the data's words, else the detector's own."""
    p = example_detections(sets=4)
    count = len(p.classes)
    shared = replace(p.detections, label=count - p.detections.label)
    n = len(shared)
    raw = replace(
        shared,
        image=np.repeat(shared.image, 2),
        label=np.stack([shared.label, np.zeros(n, np.int64)], 1).ravel(),
        **{
            name: np.repeat(getattr(shared, name), 2, axis=0)
            for name in ("boxes", "score", "crowd", "area")
        },
    )
    own = np.array([-1, *range(count - 1, -1, -1)])
    names = ("lamp", *(f"a {p.classes[k]}" for k in own[1:]))
    rows = build_table(
        replace(p, raw_detections=raw, model_to_data_class=own, model_classes=names)
    ).to_pylist()
    assert [[entry["label"] for entry in row["detections"]] for row in rows] == [
        [
            word
            for k in p.detections.label[p.detections.image == i]
            for word in (p.classes[k], "lamp")
        ]
        for i in range(len(p))
    ]


def test_rows_of_several_runs_have_the_columns_of_all():
    few = build_table(example_predictions(sets=1))
    both = join_tables([few, few.drop_columns(["offset"])])
    assert both.num_rows == 2 * few.num_rows
    assert both["offset"].null_count == few.num_rows
    other = few.set_column(few.column_names.index("offset"), "offset", few["id"])
    with pytest.raises(UsageError, match="do not fit into one table"):
        join_tables([few, other])


def test_objects_outside_the_classes_have_boxes_without_a_label():
    p = example_detections(sets=4)
    label = p.boxes.label.copy()
    label[1] = OOD
    rows = build_table(replace(p, boxes=replace(p.boxes, label=label))).to_pylist()
    labels = [box["label"] for row in rows for box in row["boxes"]]
    assert labels == [None if i == 1 else p.classes[k] for i, k in enumerate(label)]
