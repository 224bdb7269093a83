"""Decoders on outputs made by hand: each box is returned unchanged."""

import numpy as np
import pytest

from steadyeye.core.errors import UsageError
from steadyeye.models.detectors.decoders import DECODERS
from steadyeye.models.detectors.onnx_detector import InputFrame

FRAME = InputFrame(scale=(0.5, 0.25), size=(64, 96), image=(256, 192))
BOX = np.array([20.0, 40.0, 100.0, 200.0])  # in the image
INNER = BOX * [0.5, 0.25, 0.5, 0.25]  # in the input
CENTRE, SIDE = (INNER[:2] + INNER[2:]) / 2, INNER[2:] - INNER[:2]
WHOLE = np.array([96.0, 64.0])


def decoded(name, *outputs, frame=FRAME):
    detections = DECODERS[name]([np.asarray(output, dtype=np.float32) for output in outputs], frame)
    best = int(detections.scores.argmax())
    return detections.boxes[best], int(detections.labels[best]), float(detections.scores[best])


def cells(strides):
    shapes = [(-(-64 // s), -(-96 // s)) for s in strides]
    return [(s, y, x) for s, (h, w) in zip(strides, shapes, strict=True)
            for y in range(h) for x in range(w)]  # fmt: skip


def test_the_output_of_boxes_is_decoded():
    box, label, score = decoded("boxes", [[INNER, INNER / 2]], [[0.9, 0.2]], [[3, 1]])
    assert box == pytest.approx(BOX)
    assert (label, score) == (3, pytest.approx(0.9))


def test_the_output_of_detr_is_decoded():
    logits = np.log([[[0.1, 0.7, 0.2], [0.1, 0.1, 0.8]]])
    shares = [[[*(CENTRE / WHOLE), *(SIDE / WHOLE)], [0.5, 0.5, 0.1, 0.1]]]
    box, label, score = decoded("detr", logits, shares)
    assert box == pytest.approx(BOX, abs=1e-4)
    assert (label, score) == (1, pytest.approx(0.7))


def test_the_output_of_ssd_is_decoded():
    shares = [[INNER / np.tile(WHOLE, 2), [0, 0, 1, 1]]]
    box, label, score = decoded("ssd", shares, [[[0.1, 0.2, 0.7], [0.9, 0.05, 0.05]]])
    assert box == pytest.approx(BOX, abs=1e-4)
    assert (label, score) == (1, pytest.approx(0.7))


def test_the_output_of_yolox_is_decoded():
    places = cells((8, 16, 32))
    rows = np.zeros((1, len(places), 7))
    at = places.index((16, 1, 2))
    rows[0, at] = [*(CENTRE / 16 - [2, 1]), *np.log(SIDE / 16), 0.9, 0.2, 0.8]
    box, label, score = decoded("yolox", rows)
    assert box == pytest.approx(BOX, abs=1e-3)
    assert (label, score) == (1, pytest.approx(0.72))


def test_the_output_of_nanodet_is_decoded():
    places = cells((8, 16, 32, 64))
    rows = np.zeros((1, len(places), 2 + 32))
    stride, y, x = 16, 2, 2
    at = places.index((stride, y, x))
    centre = np.array([x, y]) * stride
    distances = np.concatenate([centre - INNER[:2], INNER[2:] - centre]) / stride
    # all the weight on the two whole distances around each side
    spread = np.full((4, 8), 1e-9)
    for side, distance in enumerate(distances):
        low = int(distance)
        spread[side, low], spread[side, low + 1] = 1 - (distance - low), distance - low + 1e-12
    rows[0, at] = [0.1, 0.6, *np.log(spread).ravel()]
    box, label, score = decoded("nanodet", rows)
    assert box == pytest.approx(BOX, abs=1e-3)
    assert (label, score) == (1, pytest.approx(0.6))


def test_the_output_of_fastestdet_is_decoded():
    output = np.full((1, 7, 4, 6), -9.0)
    output[0, 0] = 0
    output[0, 5:] = 0
    y, x = 1, 2
    offset = CENTRE / WHOLE * [6, 4] - [x, y]
    shares = SIDE / WHOLE
    output[0, :, y, x] = [0.8, *np.arctanh(offset), *np.log(shares / (1 - shares)), 0.3, 0.5]
    box, label, score = decoded("fastestdet", output)
    assert box == pytest.approx(BOX, abs=1e-3)
    assert (label, score) == (1, pytest.approx(0.8**0.6 * 0.5**0.4))


@pytest.mark.parametrize(
    ("name", "outputs", "message"),
    [
        ("yolox", [np.zeros((1, 10, 85))], "not 10"),
        ("detr", [np.zeros((1, 10, 92))], "reads logits and boxes"),
        ("ssd", [np.zeros((10, 4)), np.zeros((10, 3))], "reads boxes and scores"),
        ("boxes", [np.zeros((1, 10, 4))], "reads boxes, scores and labels; this has 1 outputs"),
    ],
)
def test_outputs_of_another_family_are_reported(name, outputs, message):
    with pytest.raises(UsageError, match=message):
        decoded(name, *outputs)
