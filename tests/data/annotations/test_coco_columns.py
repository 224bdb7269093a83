"""Files read as columns against the same files read annotation by annotation."""

import json

import numpy as np
import pytest

from steadyeye.core.boxes import EMPTY
from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import coco_columns, coco_file

MASKS = ([[1, 1, 5, 1, 5, 5]], [[1, 1, 5, 1, 5, 6]], None)


def draw(rng, images=40):
    """A file whose annotations are in no order, some of them there two or three times."""
    annotations = []
    for number in range(200):
        x, y = rng.integers(0, 4, 2) * 10.5
        entry = {
            "id": number,
            "image_id": int(rng.integers(0, images)),
            "category_id": int(rng.choice([2, 7, 9])),
            "bbox": [x, y, (20, 20.0)[rng.integers(0, 2)], 30 + int(rng.integers(0, 2))],
            **({"iscrowd": int(rng.integers(0, 2))} if rng.random() < 0.7 else {}),
            **({"area": float(rng.integers(1, 500))} if rng.random() < 0.7 else {}),
        }
        mask = MASKS[rng.integers(0, 3)]
        annotations += [entry | ({"segmentation": mask} if mask else {})] * rng.integers(1, 3)
    rng.shuffle(annotations)
    return {
        "images": [{"id": i, "file_name": f"{i % 39}.jpg", "width": 90} for i in range(images)],
        "categories": [{"id": i, "name": name} for i, name in ((7, "cat"), (2, "ood"), (9, "dog"))],
        "annotations": annotations,
    }


@pytest.mark.parametrize("ood", [None, "ood"])
def test_columns_are_what_each_annotation_says(tmp_path, ood):
    rng = np.random.default_rng(3)
    for _ in range(10):
        path = tmp_path / "a.json"
        path.write_text(json.dumps(draw(rng), indent=int(rng.integers(0, 2))))
        text = path.read_text()
        assert coco_columns.parse(text) is not None
        quick, plain = coco_file.read(path, ood), coco_file._from_entries(path, text, ood)
        assert (quick.classes, quick.category_ids, quick.outside, quick.notes) == (
            plain.classes,
            plain.category_ids,
            plain.outside,
            plain.notes,
        )
        assert len(quick.notes) == 2
        for image in quick.images:
            quick_boxes, plain_boxes = quick.boxes(image), plain.boxes(image)
            if quick_boxes is EMPTY:
                assert plain_boxes is EMPTY
            for name in ("boxes", "labels", "crowd", "area"):
                mine, its = getattr(quick_boxes, name), getattr(plain_boxes, name)
                assert mine.dtype == its.dtype
                assert np.array_equal(mine, its)


@pytest.mark.parametrize(
    "change",
    [
        {"bbox": [1, 2, -3, 4]},
        {"bbox": [1, 2, 3]},
        {"bbox": [1e308, 2, 1e308, 4]},
        {"category_id": 3},
        {"category_id": 2.5},
        {"image_id": 77},
        {"iscrowd": 2},
        {"area": None},
        {"area": -1},
        {"bbox": [1, 2, True, 4]},
        {"bbox": ["1", 2, 3, 4]},
        {"area": 1e40},
    ],
)
def test_what_is_wrong_is_said_as_ever(tmp_path, change):
    content = draw(np.random.default_rng(1))
    content["annotations"][17] = content["annotations"][17] | change
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UsageError) as plain:
        coco_file._from_entries(path, path.read_text(), None)
    with pytest.raises(UsageError) as error:
        coco_file.read(path)
    assert str(error.value) == str(plain.value)


def test_masks_beyond_any_number_are_no_traceback(tmp_path):
    """Two alike, so that their masks are compared."""
    content = draw(np.random.default_rng(2))
    content["annotations"][:2] = [content["annotations"][0] | {"segmentation": [[1, 2]]}] * 2
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content).replace("[[1, 2]]", "[[1e999, 2]]"))
    quick, plain = coco_file.read(path), coco_file._from_entries(path, path.read_text(), None)
    assert quick.notes == plain.notes
