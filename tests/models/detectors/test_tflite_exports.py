"""Detectors in .tflite files by their path alone, through LiteRT's own interpreter."""

import numpy as np
import pytest

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.data.classes.class_lists import COCO_IDS
from steadyeye.runner.short_forms import expand_model

pytest.importorskip("ai_edge_litert")

from tiny_tflite import save_ssd, save_ultralytics

IMAGE = np.zeros((32, 64, 3), np.uint8)
BOX = [8.0, 4.0, 24.0, 20.0]
SHARES = [[4 / 32, 8 / 64, 20 / 32, 24 / 64], [0.7, 0.7, 0.9, 0.9]]
SCORES = [[0.1, 0.0, 0.8, 0.1], [0.6, 0.3, 0.1, 0.0]]
"""The background, then cat, dog and bird."""
SECOND = [f"StatefulPartitionedCall:{n}" for n in (3, 2, 1, 0)]
"""How TensorFlow 2 names boxes, classes, scores and number; sorted in the file."""


def load(path):
    return plugins.build("models", parse(expand_model(path)))


def check_box(detections, model):
    assert detections.boxes[0] == pytest.approx(BOX, abs=1e-4)
    assert detections.scores[0] == pytest.approx(0.8, abs=1e-6)
    assert model.classes.names[detections.labels[0]] == "dog"


@pytest.mark.parametrize("names", [None, SECOND])
def test_the_last_step_of_tensorflow_lite_is_read(names, tmp_path):
    (tmp_path / "classes.txt").write_text("cat\ndog\nbird")
    path = save_ssd(tmp_path / "m.tflite", SHARES, SCORES, names=names)
    assert "litert(path=" in expand_model(path)
    model = load(path)
    detections = model([IMAGE])[0]
    check_box(detections, model)
    assert [model.classes.names[i] for i in detections.labels] == ["dog", "cat"]
    assert model.recipe["decoder"] == "tensorflow_lite"
    # floats get −1…1
    batch = model.settings.prepare(np.full((4, 4, 3), 255, np.uint8))[0]
    assert batch.shape == (1, 3, 64, 64)
    assert np.all(batch == 1)


def test_bytes_go_in_as_they_are(tmp_path):
    """A quantised input of (pixel − 128) ÷ 128 takes the pixel."""
    (tmp_path / "classes.txt").write_text("cat\ndog\nbird")
    file = tmp_path / "m.tflite"
    path = save_ssd(file, SHARES, SCORES, kind=np.uint8, scale=(1 / 128, 128))
    model = load(path)
    image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    batch = model.settings.prepare(image)[0][0].transpose(1, 2, 0)
    assert np.array_equal(np.rint(batch * 128) + 128, image)
    check_box(model([IMAGE])[0], model)


def test_labels_without_a_list_are_those_of_cocos_ids(tmp_path):
    """Label n is the category n + 1, among 90 of which ten are of no class."""
    scores = np.zeros((2, 91), np.float32)
    scores[0, 90], scores[1, 12] = 0.9, 0.8  # toothbrush, and an id that no category has
    path = save_ssd(tmp_path / "m.tflite", SHARES, scores)
    # the spec that is printed says so
    assert parse(expand_model(path)).kwargs["classes"] == "coco"
    model = load(path)
    assert [model.classes.names[i] for i in model([IMAGE])[0].labels] == ["toothbrush"]
    assert 12 not in COCO_IDS


METADATA = {"task": "detect", "imgsz": [64, 64], "names": {"0": "cat", "1": "dog", "2": "bird"}}


@pytest.mark.parametrize("is_last", [False, True])
def test_ultralytics_boxes_are_shares_of_the_input(is_last, tmp_path):
    """A letterbox of 64 × 64: the box lies 16 pixels lower."""
    rows = np.zeros((1, 7, 84), np.float32)
    rows[0, :, 5] = [16 / 64, 28 / 64, 16 / 64, 16 / 64, 0.1, 0.8, 0.2]
    model = load(save_ultralytics(tmp_path / "m.tflite", rows, METADATA, is_last=is_last))
    assert model.recipe["decoder"] == "ultralytics"
    check_box(model([IMAGE])[0], model)


@pytest.mark.parametrize(("is_last", "scale"), [(False, 1), (True, 64)])
def test_ultralytics_end_to_end_is_in_pixels_unless_tensorflow_made_it(is_last, scale, tmp_path):
    rows = np.zeros((1, 300, 6), np.float32)
    rows[0, 0] = [8 / scale, 20 / scale, 24 / scale, 36 / scale, 0.8, 1]
    metadata = {**METADATA, "end2end": True}
    model = load(save_ultralytics(tmp_path / "m.tflite", rows, metadata, is_last=is_last))
    assert model.recipe["decoder"] == "end_to_end"
    check_box(model([IMAGE])[0], model)


def test_yolov5_and_the_metadata_of_earlier_exports(tmp_path):
    """A dict of Python's that names no task; a row a box, and an objectness."""
    rows = np.zeros((1, 3 * 84, 8), np.float32)
    rows[0, 5] = [16 / 64, 28 / 64, 16 / 64, 16 / 64, 1, 0.1, 0.8, 0.2]
    metadata = {"stride": 32, "names": {0: "cat", 1: "dog", 2: "bird"}}
    file = tmp_path / "m.tflite"
    model = load(save_ultralytics(file, rows, metadata, is_last=True, name="temp_meta.txt"))
    assert model.recipe["decoder"] == "yolox_decoded"
    check_box(model([IMAGE])[0], model)


def test_boxes_that_may_be_shares_or_pixels_are_refused(tmp_path):
    (tmp_path / "classes.txt").write_text("cat\ndog\nbird")
    rows = np.zeros((1, 7, 84), np.float32)
    rows[0, :, 5] = [16, 28, 16, 16, 0.1, 0.8, 0.2]
    path = save_ultralytics(tmp_path / "m.tflite", rows, {})
    with pytest.raises(UsageError, match="may be shares of the image or pixels") as error:
        load(path)
    assert "\n" not in str(error.value)
    classes = tmp_path / "classes.txt"
    spec = f"litert(path={path!r}, decoder='ultralytics', classes={str(classes)!r})"
    model = plugins.build("models", parse(spec))
    check_box(model([IMAGE])[0], model)
