"""Sweeps of a detector over true boxes: mAP, a search by levels, boxes that an operator moves."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from steadyeye.core.errors import UsageError
from steadyeye.data.images.image_file import encode
from steadyeye.metrics.degraded_recall import degraded_recall
from steadyeye.metrics.map_failure_points import map_failure_points
from steadyeye.metrics.mpc import mpc
from steadyeye.predictions.read import cells, read
from steadyeye.report.build import document
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent, run
from steadyeye.runner.sweep import metrics
from steadyeye.runner.validate import check

OPERATORS = '''"""Operators of the test."""

from dataclasses import replace

import numpy as np

from steadyeye.degradation.operator import of_original


def slide():
    """The image moves by 8 pixels a level to the right, and its boxes with it."""
    moved = of_original("slide", lambda image, level: np.roll(image, 8 * level, axis=1))
    return replace(moved, last=9, move=lambda boxes, level, size, key: boxes + [8 * level, 0] * 2)


def darken():
    """A fiftieth of the light goes with a level: a square of 250 is of another class from 5 on."""
    dark = of_original("darken", lambda image, level: (image * (1 - level / 50)).astype(np.uint8))
    return replace(dark, last=9)
'''
IMAGES, WIDTH, HEIGHT = 3, 96, 64


@pytest.fixture
def job(tmp_path):
    """Pictures with a bright square each, and one without."""
    (tmp_path / "images").mkdir()
    rows = []
    for number in range(IMAGES + 1):
        image = np.full((HEIGHT, WIDTH, 3), 30, dtype=np.uint8)
        if number < IMAGES:
            x = 4 + 8 * number
            image[20:40, x : x + 20] = 250
            rows.append(
                {
                    "id": number + 1,
                    "image_id": number + 1,
                    "category_id": 1,
                    "bbox": [x, 20, 20, 20],
                    "area": 400,
                    "iscrowd": 0,
                }
            )
        (tmp_path / f"images/{number}.png").write_bytes(encode(image, ".png"))
    names = [{"id": 1, "name": "bright"}, {"id": 2, "name": "dim"}]
    images = [
        {"id": i + 1, "file_name": f"{i}.png", "width": WIDTH, "height": HEIGHT}
        for i in range(IMAGES + 1)
    ]
    content = {"images": images, "annotations": rows, "categories": names}
    (tmp_path / "boxes.json").write_text(json.dumps(content))
    (tmp_path / "classes.json").write_text('["dim", "bright"]')
    (tmp_path / "moves.py").write_text(OPERATORS)
    return Job(
        (f"callable_detector(path='object_toys:bright', classes='{tmp_path}/classes.json')",),
        (f"coco(annotations='{tmp_path}/boxes.json', images='{tmp_path}/images')",),
        str(tmp_path / "run"),
        operators=f"{tmp_path}/moves.py:slide, {tmp_path}/moves.py:darken",
        levels="0:9",
        workers=1,
    )


def finish(job, **changes):
    changed = replace(job, **changes)
    changed = replace(changed, metrics=metrics("right", "0.9,0.5", changed.fast, changed))
    folder = run(check(changed), Silent())
    return folder, read(*cells(Path(str(folder)))[0])


def test_operators_that_need_a_gradient_are_for_classifiers(job):
    message = "gradient_descent needs the gradient of the true class .* leave the operator out"
    with pytest.raises(UsageError, match=message):
        check(replace(job, operators="gradient_descent", levels="1"))


def test_boxes_move_with_the_image_and_objects_fail_where_they_should(job):
    folder, table = finish(job)
    # 4 images, level 0 and nine levels of two operators; a picture without objects counts as well
    assert len(table) == 4 * 19
    curves = {cell.name: [c.value for c in cell.cells] for cell in degraded_recall(table).cells}
    # the square of image 2 begins at 20 and leaves the picture of 96 pixels after level 9
    slid = table.boxes.boxes[np.isin(table.boxes.image, np.flatnonzero(table.ids == "1@slide-05"))]
    assert slid.tolist() == [[44, 20, 64, 40]]
    assert curves["darken"] == [1] * 5 + [0] * 5
    assert curves["slide"][:7] == [1] * 7
    by_name = {cell.name: [c.value for c in cell.cells] for cell in mpc(table).cells}
    assert by_name["darken"] == [1] * 5 + [0] * 5
    (headline,) = document([folder]).headline
    assert "of its mAP on 4 images" in headline
    assert "Right means" not in headline


def test_a_search_finds_the_levels_of_the_sweep_with_fewer_passes(job, tmp_path):
    _, whole = finish(job)
    folder, searched = finish(job, fast=True, out=str(tmp_path / "fast"))
    assert len(searched) < len(whole)
    for first, second in zip(
        map_failure_points(searched).cells, map_failure_points(whole).cells, strict=True
    ):
        assert [cell.value for cell in first.cells] == [cell.value for cell in second.cells]
    (headline,) = document([folder]).headline
    assert "has less than 50\u202f% of its mAP from level 5 of darken" in headline
