"""Exports that a decoder would misread silently: other classes, order, batch, scores."""

import numpy as np
import pytest
from test_output_formats import (
    BOX,
    CELLS,
    IMAGE,
    centred,
    load,
    logit,
    raw,
    shares,
    ultralytics,
    write,
)

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse


def build(path, **options):
    words = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return plugins.build("models", parse(f"onnx_detector(path={path!r}, {words})"))


def list_classes(folder, count):
    path = folder / "names.txt"
    path.write_text("\n".join(f"class {number}" for number in range(count)))
    return str(path)


def write_yolov8(path, classes, metadata=()):
    rows = raw(CELLS, 4 + classes)
    rows[0, 5] = centred([0.1, 0.8, *[0.0] * (classes - 2)])
    return write(path, {"output0": rows.transpose(0, 2, 1)}, metadata)


@pytest.mark.parametrize("count", [2, 4, 80])
@pytest.mark.parametrize("metadata", [(), ultralytics("Detect")])
def test_a_list_of_another_length_is_refused(tmp_path, count, metadata):
    """With a background first, each class had the name of its neighbour."""
    path = write_yolov8(tmp_path / "m.onnx", 3, metadata)
    with pytest.raises(UsageError, match=rf"predicts 3 classes, and the list has {count}; give"):
        build(path, classes=list_classes(tmp_path, count))
    assert build(path, classes=list_classes(tmp_path, 3))([IMAGE])[0].labels[0] == 1


@pytest.mark.parametrize("count", [19, 21])
def test_a_list_is_held_against_an_export_of_any_size_too(tmp_path, count):
    rows = raw(CELLS, 25)
    path = write(tmp_path / "m.onnx", {"output": rows}, shape=[1, 3, "height", "width"])
    with pytest.raises(UsageError, match=r"any size \(1, 3, any, any\).*recipe=.'size': \(h, w\)"):
        load(path)
    options = {"decoder": "yolox_decoded", "recipe": {"size": (64, 64)}}
    with pytest.raises(UsageError, match=rf"predicts 20 classes, and the list has {count}"):
        build(path, classes=list_classes(tmp_path, count), **options)
    # without a list they were the first 20 of COCO
    with pytest.raises(UsageError, match=r"the names of the 20 classes of .* are not known"):
        build(path, **options)
    assert len(build(path, classes=list_classes(tmp_path, 20), **options).classes) == 20


@pytest.mark.parametrize("names", [("logits", "pred_boxes"), ("labels", "dets")])
@pytest.mark.parametrize("turned", [False, True])
def test_a_decoder_that_is_written_reads_the_outputs_by_their_names(tmp_path, names, turned):
    logits = np.full((1, 9, 3), -9, np.float32)
    logits[0, 2, 1] = logit(0.8)
    boxes = np.full((1, 9, 4), 0.5, np.float32)
    boxes[0, 2] = shares([])
    outputs = dict(zip(names, (logits, boxes), strict=True))
    path = write(tmp_path / "m.onnx", dict(list(outputs.items())[::-1]) if turned else outputs)
    detections = build(path, decoder="detr_sigmoid", classes=list_classes(tmp_path, 3))([IMAGE])[0]
    assert detections.boxes[0] == pytest.approx(BOX, abs=1e-4)
    assert (detections.labels[0], detections.scores[0]) == (1, pytest.approx(0.8))


@pytest.mark.parametrize(
    ("decoder", "function"), [("detr", "softmax"), ("detr_sigmoid", "sigmoid")]
)
def test_probabilities_are_no_logits(tmp_path, decoder, function):
    """After another sigmoid every query had a score of 0.5 or more."""
    shares_of = np.random.default_rng(0).dirichlet(np.ones(4), (1, 9)).astype(np.float32)
    outputs = {"logits": shares_of, "pred_boxes": np.full((1, 9, 4), 0.5, np.float32)}
    path = write(tmp_path / "m.onnx", outputs)
    model = build(path, decoder=decoder, classes=list_classes(tmp_path, 4 - (decoder == "detr")))
    with pytest.raises(UsageError, match=f"are probabilities .* export it without the {function}"):
        model([IMAGE])


def test_a_batch_of_several_images_is_named(tmp_path):
    path = write(tmp_path / "m.onnx", {"output": raw(CELLS, 8)}, shape=[4, 3, 64, 64])
    for make in (load, lambda path: build(path, decoder="yolox", classes="coco")):
        with pytest.raises(
            UsageError, match="takes batches of 4 images only; export it with a batch size of 1"
        ):
            make(path)


def test_rows_of_another_width_are_not_end_to_end(tmp_path):
    """YOLOv7's have the number of the image before the box, others gave no detection at all."""
    path = write(tmp_path / "m.onnx", {"output": np.ones((1, 9, 7), np.float32)})
    with pytest.raises(UsageError, match=r"does not read \(rows of 7 numbers, not of 6\)"):
        build(path, decoder="end_to_end")([IMAGE])


def test_the_record_has_the_detected_output_format_next_to_the_requested_decoder(tmp_path):
    path = write(tmp_path / "model.onnx", {"output": raw(CELLS, 8)})
    model = build(path, decoder="yolox", classes=list_classes(tmp_path, 3))
    assert "though the file looks like 'yolox_decoded'" in model.recipe["decoder_note"]
    assert "as given" not in build(path, classes=list_classes(tmp_path, 3)).recipe["decoder_note"]
