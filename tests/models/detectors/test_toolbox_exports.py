"""Exports of toolboxes: their preprocessing, and networks that are no detectors."""

import json
import warnings

import cv2
import numpy as np
import pytest
from onnx import TensorProto
from test_output_formats import (
    CELLS,
    SIDE,
    case_mmdeploy,
    case_paddle,
    case_tensorflow,
    case_yolo_nas_flat,
    case_yolov6,
    case_yolov7,
    load,
    raw,
    write,
)

from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.runner.short_forms import expand_model

IMAGE = np.random.default_rng(5).integers(0, 256, (45, 70, 3), dtype=np.uint8)
"""Fits into 64 × 64 with sides of 41.14 and 64 pixels."""


def prepare(path):
    """What the network of a file gets of `IMAGE`, (h, w, 3), and the model."""
    model = load(path)[1]
    return model.settings.prepare(IMAGE)[0][0].transpose(1, 2, 0), model


def pad_to(image, top, value):
    padded = np.empty((SIDE, SIDE, 3), np.float32)
    padded[:] = value
    padded[top : top + len(image), : image.shape[1]] = image
    return padded


def test_yolov6_and_yolov7_get_rgb_of_0_to_1_in_a_centred_letterbox(tmp_path):
    # 64 − 41 = 23 rows of padding, of which Ultralytics' rounding puts 11 above
    resized = cv2.resize(IMAGE, (64, 41)).astype(np.float32)
    for make in (case_yolov6, case_yolov7):
        batch, _ = prepare(make(tmp_path / "m.onnx"))
        assert batch == pytest.approx(pad_to(resized, 11, 114) / 255, abs=1e-6)


def test_super_gradients_gets_bytes_where_the_network_divides_them(tmp_path):
    resized = cv2.resize(IMAGE, (64, 41)).astype(np.float32)
    batch, model = prepare(case_yolo_nas_flat(tmp_path / "m.onnx"))
    assert batch.tobytes() == pad_to(resized, 11, 114).tobytes()
    assert model([IMAGE])[0].scores.tolist() == pytest.approx([0.8])
    rows = np.array([[0, 8, 20, 24, 36, 0.8, 1]], np.float32)
    batch, _ = prepare(write(tmp_path / "f.onnx", {"flat_predictions*": rows}))
    assert batch == pytest.approx(pad_to(resized, 11, 114) / 255, abs=1e-6)


def test_tensorflow_resizes_in_the_network(tmp_path):
    batch, _ = prepare(case_tensorflow(tmp_path / "m.onnx"))
    assert np.array_equal(batch, IMAGE)


def test_mmdeploy_gets_what_its_pipeline_says(tmp_path):
    """BGR, sides rounded to whole pixels, 114 below them, then the mean and std."""
    batch, _ = prepare(case_mmdeploy(tmp_path / "m.onnx"))
    resized = cv2.resize(IMAGE[..., ::-1].copy(), (64, 41)).astype(np.float32)
    expected = (pad_to(resized, 0, 114) - [1, 2, 3]) / [4, 5, 6]
    assert batch == pytest.approx(expected, abs=1e-5)


def test_mmdeploy_may_pad_after_it_normalises(tmp_path):
    path = case_mmdeploy(tmp_path / "m.onnx")
    file = tmp_path / "pipeline.json"
    pipeline = json.loads(file.read_text())
    del pipeline["pipeline"]["tasks"][0]["transforms"][2]
    file.write_text(json.dumps(pipeline))
    batch, _ = prepare(path)
    assert np.all(batch[41:] == 0)
    assert np.any(batch[:41] != 0)


def test_paddle_gets_what_its_configuration_says(tmp_path):
    """Stretched by a bicubic spline, RGB, shares of 255 less the mean, by the std."""
    batch, model = prepare(case_paddle(tmp_path / "m.onnx"))
    shares = cv2.resize(IMAGE, (64, 64), interpolation=cv2.INTER_CUBIC).astype(np.float64) / 255
    expected = (shares - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    assert batch == pytest.approx(expected, abs=1e-5)
    assert model.classes.names == ("cat", "dog", "bird")


@pytest.mark.parametrize(
    ("make", "file"), [(case_mmdeploy, "pipeline.json"), (case_paddle, "infer_cfg.yml")]
)
@pytest.mark.parametrize("content", [None, "", "{}", "[1"])
def test_the_file_next_to_the_model_is_needed(make, file, content, tmp_path):
    path = make(tmp_path / "m.onnx")
    if content is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_text(content)
    with pytest.raises(UsageError, match=f"{file} next to it.* is missing or of another") as error:
        load(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("shape", [("batch", 3, SIDE, SIDE), ("batch", 3, "h", "w")])
def test_a_classifier_of_seven_classes_is_one(shape, tmp_path):
    """Its rows are free as those of detections are, but one an image."""
    import torch

    network = torch.nn.Sequential(
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 7)
    )
    path = tmp_path / "m.onnx"
    axes = {i: name for i, name in enumerate(shape) if isinstance(name, str)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            network,
            torch.zeros(1, 3, SIDE, SIDE),
            str(path),
            output_names=["output"],
            dynamic_axes={"input": axes, "output": {0: "batch"}},
            input_names=["input"],
            dynamo=False,
        )
    (tmp_path / "classes.txt").write_text("\n".join("abcdefg"))
    assert parse(expand_model(str(path))).name == "onnx"


@pytest.mark.parametrize(
    ("kind", "width", "is_plain"),
    [("deformable_detr", 3, False), ("rt_detr_v2", 3, True), ("d_fine", 3, True),
     ("", 91, False), ("", 80, True)],
)  # fmt: skip
def test_the_detr_family_differs_in_its_mean(kind, width, is_plain, tmp_path):
    """RT-DETR and D-FINE take shares of 255, the others ImageNet's mean and std."""
    names = {str(index): f"class {index}" for index in range(width)}
    if kind:
        config = {"model_type": kind, "id2label": names}
        (tmp_path / "config.json").write_text(json.dumps(config))
    logits, boxes = np.full((1, 5, width), -9, np.float32), np.full((1, 5, 4), 0.5, np.float32)
    path = write(tmp_path / "m.onnx", {"logits": logits, "pred_boxes": boxes})
    batch, _ = prepare(path)
    shares = cv2.resize(IMAGE, (64, 64)).astype(np.float64) / 255
    normalised = (shares - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    assert batch == pytest.approx(shares if is_plain else normalised, abs=1e-5)


def test_bytes_are_not_made_of_what_is_no_pixel(tmp_path):
    """An input of bytes would take 0…1 for black."""
    outputs = {"output0": raw(3 * CELLS, 8)}
    path = write(tmp_path / "m.onnx", outputs, {"names": "['a', 'b', 'c']"}, kind=TensorProto.UINT8)
    with pytest.raises(UsageError, match=r"takes pixels of 0…255, and .* makes 0[.0-9]*…0"):
        load(path)[1]([IMAGE])


def test_the_classes_that_are_assumed_are_in_the_spec(tmp_path):
    path = case_yolov7(tmp_path / "m.onnx")
    (tmp_path / "classes.txt").unlink()
    assert parse(expand_model(path)).kwargs["classes"] == "coco"
