"""Detections of classes that the data do not have are sealed with the others."""

import json
from dataclasses import replace

import cv2
import numpy as np
import pyarrow as pa
import pytest

import steadyeye as se
from steadyeye.core.review_filter import select_reviewed
from steadyeye.core.storage.files import sha256
from steadyeye.predictions.json_record import read_content, write_record
from steadyeye.predictions.read import cells, read
from steadyeye.predictions.shard_store import open_cell

PERSON, KITE = 0, 33


def talkative(images):
    """A kite, which the data does not have, before a person."""
    boxes = [[1, 1, 9, 9], [10.25, 10, 30, 30]]
    return [(boxes, [0.9, 0.6], [KITE, PERSON]) for _ in images]


@pytest.fixture
def folder(tmp_path):
    for i in range(40):
        cv2.imwrite(str(tmp_path / f"{i}.png"), np.full((40, 40, 3), i, np.uint8))
    content = {
        "images": [{"id": i, "file_name": f"{i}.png"} for i in range(40)],
        "categories": [{"id": 1, "name": "gnome"}, {"id": 7, "name": "person"}],
        "annotations": [{"id": 1, "image_id": 0, "category_id": 7, "bbox": [10, 10, 20, 20]}],
    }
    (tmp_path / "truth.json").write_text(json.dumps(content))
    data = f"coco(annotations='{tmp_path / 'truth.json'}', images='{tmp_path}')"
    se.evaluate("callable_detector(path='test_said:talkative')", data, out=tmp_path / "run")
    return tmp_path / "run"


def strip(cell, shards):
    """Makes shards what an earlier version wrote, and seals them again."""
    seal = read_content(cell / "seal.json")
    for entry in seal["shards"][:shards]:
        path = cell / entry["file"]
        table = pa.ipc.open_file(path.read_bytes()).read_all()
        old = table.drop_columns(["said", "said_label", "said_score"])
        with pa.ipc.new_file(str(path), old.schema) as writer:
            writer.write_table(old)
        entry |= {"bytes": path.stat().st_size, "sha256": sha256(path)}
    write_record(cell / "seal.json", seal)


def test_all_that_was_said_is_read_back(folder):
    table = read(*cells(folder)[0])
    assert len(table.raw_detections) == 80
    assert table.raw_detections.label[:2].tolist() == [KITE, PERSON]
    assert table.raw_detections.boxes[:2].tolist() == talkative([0])[0][0]
    assert table.raw_detections.score[:2].tolist() == [0.9, 0.6]
    assert table.raw_detections.image[[0, 1, 79]].tolist() == [0, 0, 39]
    assert len(table.model_to_data_class) == 80
    assert table.model_to_data_class[[KITE, PERSON]].tolist() == [-1, 1]
    assert (table.model_to_data_class >= 0).sum() == 1
    # the numbers read what they read before
    assert table.detections.label.tolist() == [1] * 40
    assert any("40 detections left out: their 1 class" in note for note in table.notes)


@pytest.mark.parametrize("old", [1, None])
def test_shards_of_earlier_versions_are_read_without(folder, old):
    (cell,) = cells(folder)[0]
    assert open_cell(cell).shards == 3
    before = read(cell)
    strip(cell, old)
    after = read(cell)
    assert after.raw_detections is None
    assert np.array_equal(after.detections.boxes, before.detections.boxes)
    assert np.array_equal(after.ids, before.ids)


def test_raw_detections_follow_the_rows_of_a_review(folder):
    table = read(*cells(folder)[0])
    accepted = (np.arange(40) % 2).astype(int)
    reviewed_table = select_reviewed(replace(table, tags={**table.tags, "accepted": accepted}))
    assert len(reviewed_table.raw_detections) == 40
    assert reviewed_table.raw_detections.image[[0, 1, 39]].tolist() == [0, 0, 19]
