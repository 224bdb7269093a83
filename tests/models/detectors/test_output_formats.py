"""Detectors are recognised by their files alone: names, shapes, metadata, other files."""

import json

import cv2
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from steadyeye.core import plugins
from steadyeye.core.boxes import iou
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.data.classes.class_lists import COCO_IDS
from steadyeye.models.detectors.onnx_detector import DetectorRecipe
from steadyeye.runner.short_forms import expand_model

SIDE = 64
CELLS = 8 * 8 + 4 * 4 + 2 * 2
IMAGE = np.zeros((32, 64, 3), np.uint8)
BOX = [8.0, 4.0, 24.0, 20.0]
"""Of `IMAGE`; with a letterbox of 64 × 64 centred it lies 16 pixels lower."""


def write(path, outputs, metadata=(), shape=(1, 3, SIDE, SIDE), kind=TensorProto.FLOAT, more=()):
    """An ONNX file that gives these arrays whatever its image shows.

    `shape`, `kind`: of the image; `more`: further inputs, name → shape; an output whose name ends
    in "*" declares the number of its rows as free.
    """
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in dict(more).items()]
    inputs.append(helper.make_tensor_value_info("images", kind, list(shape)))
    nodes, values, constants = [], [], []
    for output, array in outputs.items():
        name, is_free = output.removesuffix("*"), output.endswith("*")
        constants.append(numpy_helper.from_array(array, f"{name}_constant"))
        nodes += pick_rows(name) if is_free else [pass_on(name)]
        of_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        declared = ["rows", *array.shape[1:]] if is_free else array.shape
        values.append(helper.make_tensor_value_info(name, of_type, declared))
        constants.append(numpy_helper.from_array(np.array([len(array)]), f"{name}_rows"))
    constants.append(numpy_helper.from_array(np.float32(-1e9), "lowest"))
    graph = helper.make_graph(nodes, "constant", inputs, values, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, dict(metadata))
    onnx.save(model, str(path))
    return str(path)


def pass_on(name):
    return helper.make_node("Identity", [f"{name}_constant"], [name])


def pick_rows(name):
    """All rows, by a condition on the image: how many there are is not known beforehand."""
    return [
        helper.make_node("Cast", ["images"], [f"{name}_1"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", [f"{name}_1"], [f"{name}_2"], keepdims=0),
        helper.make_node("Greater", [f"{name}_2", "lowest"], [f"{name}_3"]),
        helper.make_node("Expand", [f"{name}_3", f"{name}_rows"], [f"{name}_4"]),
        helper.make_node("Compress", [f"{name}_constant", f"{name}_4"], [name], axis=0),
    ]


def load(path):
    spec = expand_model(path)
    return spec, plugins.build("models", parse(spec))


def detect_best(path):
    """The best box, its class and its score, by the path alone, and the decoder."""
    spec, model = load(path)
    detections = model([IMAGE])[0]
    box, label, score = (
        detections.boxes[0],
        model.classes.names[detections.labels[0]],
        detections.scores[0],
    )
    return parse(spec).kwargs["decoder"], box, label, score


def ultralytics(columns, names="{0: 'cat', 1: 'dog', 2: 'bird'}", **more):
    return {"names": names, "task": "detect", "imgsz": "[64, 64]", "head": columns, **more}


def raw(rows, width):
    """(1, n, width) rows of almost nothing, the first ones given."""
    out = np.zeros((1, rows, width), np.float32)
    out[..., :4] = [40, 40, 2, 2]
    return out


def centred(scores):
    """The row of BOX in pixels of the letterboxed input, as centre and sides."""
    return [16, 12 + 16, 16, 16, *scores]


def shares(scores):
    """The same box of a stretched input, in shares."""
    return [16 / 64, 12 / 32, 16 / 64, 16 / 32, *scores]


def logit(share):
    return float(np.log(share / (1 - share)))


def case_ultralytics(path):
    rows = raw(CELLS, 7)
    rows[0, 5] = centred([0.1, 0.8, 0.2])
    # the same box a little lower and of the same class is suppressed
    rows[0, 6] = centred([0.0, 0.7, 0.0])
    return write(path, {"output0": rows.transpose(0, 2, 1)}, ultralytics("Detect"))


def case_end_to_end(path):
    rows = np.zeros((1, 300, 6), np.float32)
    rows[0, 0] = [8, 20, 24, 36, 0.8, 1]
    return write(path, {"output0": rows}, ultralytics("Detect", end2end="True"))


def case_ultralytics_rtdetr(path):
    rows = np.zeros((1, 300, 6), np.float32)
    rows[0, 0] = shares([0.8, 1])
    return write(path, {"output0": rows}, ultralytics("RTDETRDecoder"))


def case_ultralytics_rtdetr_classes(path):
    rows = np.zeros((1, 300, 7), np.float32)
    rows[0, 0] = shares([0.1, 0.8, 0.2])
    metadata = ultralytics("")
    del metadata["head"]
    return write(path, {"output0": rows}, metadata)


def case_yolox_decoded(path):
    rows = raw(3 * CELLS, 8)
    rows[0, 9] = centred([1.0, 0.1, 0.8, 0.2])
    return write(path, {"output0": rows}, ultralytics(""))


def detr_outputs():
    """Logits of two classes and no object, and boxes, of five queries of which one is BOX."""
    logits = np.full((1, 5, 3), -9, np.float32)
    logits[0, :, 2] = 9  # no object
    logits[0, 3] = np.log([0.1, 0.8, 0.1])
    boxes = np.full((1, 5, 4), 0.5, np.float32)
    boxes[0, 3] = shares([])
    return logits, boxes


def case_detr(path):
    (path.parent / "config.json").write_text(
        json.dumps({"model_type": "detr", "id2label": {"0": "cat", "1": "dog"}})
    )
    logits, boxes = detr_outputs()
    return write(path, {"pred_boxes": boxes, "logits": logits})


def case_detr_sigmoid(path):
    (path.parent / "config.json").write_text(
        json.dumps({"model_type": "rt_detr", "id2label": {"0": "cat", "1": "dog", "2": "bird"}})
    )
    logits = np.full((1, 5, 3), -9, np.float32)
    logits[0, 3] = [logit(0.1), logit(0.8), logit(0.6)]
    boxes = np.full((1, 5, 4), 0.5, np.float32)
    boxes[0, 3] = shares([])
    path = write(path, {"logits": logits, "pred_boxes": boxes})
    _, model = load(path)
    # one query is two detections, of two classes
    assert model([IMAGE])[0].labels[:2].tolist() == [1, 2]
    return path


def case_rf_detr(path):
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    logits = np.full((1, 5, 3), -9, np.float32)
    logits[0, 3, 1] = logit(0.8)
    boxes = np.full((1, 5, 4), 0.5, np.float32)
    boxes[0, 3] = shares([])
    return write(path, {"dets": boxes, "labels": logits})


def case_nanodet_heads(path):
    """Distances of whole strides from the centre of cell (0, 1) of stride 16, in either order."""
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    outputs = {}
    for stride in (32, 8, 16):
        side = SIDE // stride
        scores = np.zeros((1, side * side, 3), np.float32)
        spread = np.full((1, side * side, 32), -30, np.float32)
        if stride == 8:
            # centre (12, 28) of the input; sides at 8, 20, 24, 36: half a stride, and more
            cell = 3 * side + 1
            scores[0, cell] = [0.1, 0.8, 0.2]
            table = spread[0, cell].reshape(4, 8)
            for row, strides in enumerate((0.5, 1.0, 1.5, 1.0)):
                low = int(strides)
                table[row, low] = np.log(1 - strides % 1)
                table[row, low + 1] = np.log(max(strides % 1, 1e-12))
        outputs[f"dis_pred_stride_{stride}"] = spread
        outputs[f"cls_pred_stride_{stride}"] = scores
    return write(path, outputs)


def case_boxes(path):
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    corners = np.array([[[8, 8, 24, 40], [0, 0, 1, 1]]], np.float32)
    outputs = {"labels": np.array([[1, 0]]), "boxes": corners}
    return write(path, {**outputs, "scores": np.array([[0.8, 0.1]], np.float32)})


def case_torchvision(path):
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    # labels from 1; a letterbox that begins at the top left
    corners = np.array([[8, 4, 24, 20], [0, 0, 1, 1]], np.float32)
    outputs = {"1234": corners, "1240": np.array([2, 0]), "1250": np.array([0.8, 0.4], np.float32)}
    return write(path, outputs, shape=[3, SIDE, SIDE])


def case_yolov5(path):
    """Its export names the classes, and says no task."""
    rows = raw(3 * CELLS, 8)
    rows[0, 9] = centred([1.0, 0.1, 0.8, 0.2])
    return write(path, {"output0": rows}, {"stride": "32", "names": "['cat', 'dog', 'bird']"})


def case_yolov6(path):
    """A row a cell as YOLOX decoded has it, but an objectness of 1 everywhere."""
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    rows = raw(CELLS, 8)
    rows[..., 4] = 1
    rows[0, 9] = centred([1.0, 0.1, 0.8, 0.2])
    return write(path, {"outputs": rows})


def case_yolov7(path):
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    rows = np.array([[0, 40, 40, 42, 42, 2, 0.3], [0, 8, 20, 24, 36, 1, 0.8]], np.float32)
    return write(path, {"output*": rows})


def case_yolov7_of_any_batch(path):
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    rows = np.array([[0, 8, 20, 24, 36, 1, 0.8]], np.float32)
    return write(path, {"output*": rows}, shape=("batch", 3, SIDE, SIDE))


def case_yolo_nas_flat(path):
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    rows = np.array([[0, 8, 20, 24, 36, 0.8, 1]], np.float32)
    return write(path, {"graph2_flat_predictions*": rows}, kind=TensorProto.UINT8)


def case_yolo_nas_batch(path):
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    boxes, scores = np.full((1, 9, 4), -1, np.float32), np.full((1, 9), -1, np.float32)
    labels = np.full((1, 9), -1, np.int64)
    boxes[0, 0], scores[0, 0], labels[0, 0] = [8, 20, 24, 36], 0.8, 1
    outputs = {"num_predictions": np.array([[1]]), "pred_boxes": boxes, "pred_scores": scores}
    outputs = {f"graph2_{k}": v for k, v in (outputs | {"pred_classes": labels}).items()}
    return write(path, outputs, kind=TensorProto.UINT8)


def case_yolo_nas(path):
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    boxes, scores = np.zeros((1, CELLS, 4), np.float32), np.zeros((1, CELLS, 3), np.float32)
    # the second is suppressed
    boxes[0, 3:5] = [8, 20, 24, 36], [8, 21, 24, 36]
    scores[0, 3:5, 1] = 0.8, 0.7
    return write(path, {"904": boxes, "913": scores})


def case_tensorflow(path):
    """Of any size, classes from 1, y before x."""
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    boxes = np.array([[[4 / 32, 8 / 64, 20 / 32, 24 / 64], [0, 0, 1, 1]]], np.float32)
    outputs = {
        "detection_boxes:0": boxes,
        "detection_classes:0": np.array([[2, 1]], np.float32),
        "detection_scores:0": np.array([[0.8, 0.2]], np.float32),
        "num_detections:0": np.array([2], np.float32),
    }
    return write(path, outputs, shape=(1, "h", "w", 3), kind=TensorProto.UINT8)


def case_mmdeploy(path):
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    transforms = [
        {"type": "LoadImageFromFile"},
        {"type": "Resize", "keep_ratio": True, "size": [SIDE, SIDE]},
        {"type": "Pad", "size": [SIDE, SIDE], "pad_val": {"img": [114, 114, 114]}},
        {"type": "Normalize", "to_rgb": False, "mean": [1, 2, 3], "std": [4, 5, 6]},
        {"type": "Pad", "size_divisor": 32},
    ]
    tasks = [{"module": "Transform", "transforms": transforms}, {"module": "Net"}]
    (path.parent / "pipeline.json").write_text(json.dumps({"pipeline": {"tasks": tasks}}))
    boxes = np.array([[[8, 4, 24, 20, 0.8], [0, 0, 0, 0, 0]]], np.float32)
    return write(path, {"dets": boxes, "labels": np.array([[1, 0]])})


PADDLE = """
arch: YOLO
Preprocess:
- {interp: 2, keep_ratio: false, target_size: [64, 64], type: Resize}
- {is_scale: true, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225], type: NormalizeImage}
- {type: Permute}
label_list: [cat, dog, bird]
"""


def case_paddle(path):
    (path.parent / "infer_cfg.yml").write_text(PADDLE)
    rows = np.array([[1, 0.8, 8, 8, 24, 40], [-1, 0, 0, 0, 0, 0]], np.float32)
    outputs = {"multiclass_nms3_0.tmp_0*": rows, "multiclass_nms3_0.tmp_2": np.array([1])}
    return write(path, outputs, more={"im_shape": [1, 2], "scale_factor": [1, 2]})


def case_original_detr(path):
    (path.parent / "classes.txt").write_text("cat\ndog")
    logits, boxes = detr_outputs()
    return write(path, {"pred_logits": logits, "pred_boxes": boxes})


CASES = {
    "ultralytics": case_ultralytics,
    "end_to_end": case_end_to_end,
    "ultralytics_rtdetr": case_ultralytics_rtdetr,
    "ultralytics_rtdetr_classes": case_ultralytics_rtdetr_classes,
    "yolox_decoded": case_yolox_decoded,
    "detr": case_detr,
    "detr_sigmoid": case_detr_sigmoid,
    "rf_detr": case_rf_detr,
    "nanodet_heads": case_nanodet_heads,
    "boxes": case_boxes,
    "torchvision": case_torchvision,
    "original_detr": case_original_detr,
    "yolov5": case_yolov5,
    "yolov6": case_yolov6,
    "yolov7": case_yolov7,
    "yolov7_of_any_batch": case_yolov7_of_any_batch,
    "yolo_nas": case_yolo_nas,
    "yolo_nas_batch": case_yolo_nas_batch,
    "yolo_nas_flat": case_yolo_nas_flat,
    "tensorflow": case_tensorflow,
    "mmdeploy": case_mmdeploy,
    "paddle": case_paddle,
}
DECODERS = {
    "original_detr": "detr",
    "rf_detr": "detr_sigmoid",
    "yolo_nas_batch": "boxes",
    "yolov5": "yolox_decoded",
    "yolov6": "yolox_decoded",
    "yolov7_of_any_batch": "yolov7",
}


@pytest.mark.parametrize("name", CASES)
def test_a_detector_is_loaded_by_its_path_alone(name, tmp_path):
    path = CASES[name](tmp_path / "model.onnx")
    decoder, box, label, score = detect_best(path)
    assert decoder == DECODERS.get(name, name)
    assert box == pytest.approx(BOX, abs=1e-4)
    assert label == "dog"
    assert score == pytest.approx(0.8, abs=1e-6)
    # the record says by what it was recognised, and the full spec is the same model
    _, model = load(path)
    assert model.recipe["decoder_note"] != "as given"
    if not (tmp_path / "classes.txt").is_file():
        same_model = plugins.build("models", parse(f"onnx_detector(path={path!r})"))
        assert same_model.fingerprint == model.fingerprint


def write_flat(path, labels):
    """Suppression in the network, without a batch axis: boxes, scores and whole labels."""
    (path.parent / "classes.txt").write_text("cat\ndog\nbird")
    outputs = {
        "a": np.array([[8, 8, 24, 40], [0, 0, 1, 1]], np.float32),
        "b": np.array([0.8, 0.1], np.float32),
        "c": np.array(labels),
    }
    return write(path, outputs, shape=[1, 3, SIDE, SIDE])


def test_labels_from_0_are_not_taken_for_those_of_torchvision(tmp_path):
    """A confident label 0 would be its background; `decoder='boxes'` takes labels as they are."""
    path = write_flat(tmp_path / "m.onnx", [0, 2])
    model = load(path)[1]
    with pytest.raises(
        UsageError, match=r"m.onnx' is not read: its labels begin at 0, .* write decoder='boxes'"
    ):
        model([IMAGE])
    classes = str(tmp_path / "classes.txt")
    spec = f"onnx_detector(path={path!r}, decoder='boxes', classes={classes!r})"
    model = plugins.build("models", parse(spec))
    detections = model([IMAGE])[0]
    assert [model.classes.names[i] for i in detections.labels] == ["cat", "bird"]
    assert detections.boxes[0] == pytest.approx(BOX, abs=1e-4)


def test_labels_from_1_with_a_batch_axis_are_read_as_those_of_torchvision(tmp_path):
    path = case_boxes(tmp_path / "m.onnx")
    classes = str(tmp_path / "classes.txt")
    spec = f"onnx_detector(path={path!r}, decoder='torchvision', classes={classes!r})"
    model = plugins.build("models", parse(spec))
    assert [model.classes.names[i] for i in model([IMAGE])[0].labels] == ["cat"]


def test_suppression_comes_before_the_edges(tmp_path):
    """Two boxes that are one only where the image ends are two."""
    rows = raw(CELLS, 7)
    rows[0, 0] = [60, 28, 40, 16, 0.9, 0, 0]
    rows[0, 1] = [80, 28, 80, 16, 0.8, 0, 0]
    path = write(tmp_path / "m.onnx", {"o": rows.transpose(0, 2, 1)}, ultralytics("Detect"))
    detections = load(path)[1]([IMAGE])[0]
    assert detections.boxes[:2].tolist() == [[40, 4, 64, 20], [40, 4, 64, 20]]


def test_ids_of_coco_become_its_classes(tmp_path):
    assert len(COCO_IDS) == 80
    logits = np.full((1, 5, 91), -9, np.float32)
    logits[0, 0, 90], logits[0, 1, 12] = 3, 4  # toothbrush, and an id that no category has
    boxes = np.full((1, 5, 4), 0.5, np.float32)
    path = write(tmp_path / "m.onnx", {"dets": boxes, "labels": logits})
    model = load(path)[1]
    assert [model.classes.names[i] for i in model([IMAGE])[0].labels[:1]] == ["toothbrush"]


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"a": np.zeros((1, 3, 5, 7), np.float32), "b": np.zeros((1, 2), np.float32)},
         r"gives a \(1, 3, 5, 7\), b \(1, 2\), which no decoder reads; name its family"),
        ({"logits": np.zeros((1, 9, 7), np.float32), "pred_boxes": np.zeros((1, 9, 4), np.float32)},
         "which may hold one for no object"),
        ({"labels": np.zeros((1, 9, 7), np.float32), "dets": np.zeros((1, 9, 4), np.float32)},
         "the names of the 7 classes of .* are not known; put a classes.txt"),
    ],
)  # fmt: skip
def test_an_ambiguous_output_is_refused_in_one_line(outputs, message, tmp_path):
    path = write(tmp_path / "m.onnx", outputs)
    with pytest.raises(UsageError, match=message) as error:
        load(path)
    assert "\n" not in str(error.value)


def test_other_tasks_of_ultralytics_are_named(tmp_path):
    metadata = ultralytics("Segment") | {"task": "segment"}
    path = write(tmp_path / "m.onnx", {"o": np.zeros((1, 39, CELLS), np.float32)}, metadata)
    with pytest.raises(UsageError, match="for the task 'segment'"):
        load(path)


def test_sizes_are_given_to_networks_that_ask_for_them(tmp_path):
    """RT-DETR and D-FINE scale their boxes by a second input, (width, height)."""
    (tmp_path / "classes.txt").write_text("cat\ndog")
    shares = numpy_helper.from_array(np.array([[[0.125, 0.125, 0.375, 0.625]]], np.float32), "s")
    two = numpy_helper.from_array(np.array([2], np.int64), "two")
    axis = numpy_helper.from_array(np.array([1], np.int64), "axis")
    rest = {"labels": np.array([[1]]), "scores": np.array([[0.8]], np.float32)}
    nodes = [
        helper.make_node("Cast", ["orig_target_sizes"], ["sizes"], to=TensorProto.FLOAT),
        helper.make_node("Concat", ["sizes", "sizes"], ["four"], axis=1),
        helper.make_node("Unsqueeze", ["four", "axis"], ["scale"]),
        helper.make_node("Mul", ["s", "scale"], ["boxes"]),
        *(helper.make_node("Identity", [f"{name}_c"], [name]) for name in rest),
    ]
    constants = [shares, two, axis]
    constants += [numpy_helper.from_array(array, f"{name}_c") for name, array in rest.items()]
    float_, whole = TensorProto.FLOAT, TensorProto.INT64
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("images", float_, [1, 3, 64, 128]),
            helper.make_tensor_value_info("orig_target_sizes", whole, [1, 2]),
        ],
        [
            helper.make_tensor_value_info("labels", whole, [1, 1]),
            helper.make_tensor_value_info("boxes", float_, [1, 1, 4]),
            helper.make_tensor_value_info("scores", float_, [1, 1]),
        ],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "m.onnx"))
    detections = load(str(tmp_path / "m.onnx"))[1]([IMAGE])[0]
    assert detections.boxes[0] == pytest.approx(BOX)


@pytest.mark.parametrize("shape", [(333, 200), (31, 77), (1, 900)])
def test_the_centred_letterbox_has_a_way_back(shape):
    """A bright square comes back to where it was, whatever the rounding of sides and margins."""
    image = np.zeros((*shape, 3), np.uint8)
    batch, frame = DetectorRecipe((64, 96), fit="centred_letterbox", order="rgb").prepare(image)
    inside = np.argwhere(batch[0, 0] == 0)
    (top, left), (bottom, right) = inside.min(axis=0), inside.max(axis=0) + 1
    corners = frame.to_image(np.array([[left, top, right, bottom]], float))
    assert iou(corners, np.array([[0, 0, shape[1], shape[0]]], float))[0, 0] > 0.999


@pytest.mark.parametrize("fit", ["letterbox", "centred_letterbox", "stretch"])
@pytest.mark.parametrize("order", ["bgr", "rgb"])
def test_each_value_of_the_input_is_that_of_its_pixel(fit, order):
    """(value − mean) ÷ std in float32, of a pixel or of the padding, where the frame says."""
    image = np.random.default_rng(0).integers(0, 256, (23, 40, 3), dtype=np.uint8)
    mean, std = (123.675, 116.28, 103.53), (58.395, -57.12, 0.5)
    recipe = DetectorRecipe((37, 51), fit, order, mean, std, pad=99)
    batch, frame = recipe.prepare(image)
    width, height = round(40 * frame.scale[0]), round(23 * frame.scale[1])
    left, top = map(int, frame.offset)
    resized = cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)
    expected = np.empty((1, 3, 37, 51), np.float32)
    for channel, y, x in np.ndindex(3, 37, 51):
        is_inside = top <= y < top + height and left <= x < left + width
        source = channel if order == "rgb" else 2 - channel
        value = resized[y - top, x - left, source] if is_inside else 99
        expected[0, channel, y, x] = (np.float32(value) - np.float32(mean[channel])) / np.float32(
            std[channel]
        )
    assert batch.flags.c_contiguous
    assert batch.tobytes() == expected.tobytes()
