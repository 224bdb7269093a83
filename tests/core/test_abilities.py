"""The abilities of a source that are read before its images."""

import json
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from steadyeye.core.abilities import may_have_files
from steadyeye.data.sources.coco import coco


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SimpleNamespace(), True),  # images of an object of Python
        (SimpleNamespace(files=lambda: None), True),
        (SimpleNamespace(files=lambda: ["a.png"]), True),
        (SimpleNamespace(files=list), False),
    ],
)
def test_images_may_be_read_unless_no_file_is_known(source, expected):
    assert may_have_files(source) is expected


def test_annotations_have_images_where_their_folder_is_given(tmp_path):
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((9, 9, 3), np.uint8))
    content = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 4, 4]}],
    }
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(content))
    assert not may_have_files(coco(str(path)))
    assert may_have_files(coco(str(path), images=str(tmp_path)))
