"""Detections as COCO's results: pycocotools measures the same mAP from the file."""

import json
import shutil

import numpy as np
import pytest
from forked import refused, steadyeye
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.predictions.coco_results import list_results
from steadyeye.testing import example_detections, example_predictions


@pytest.fixture(scope="module")
def run(test_data, tmp_path_factory):
    """YOLOX-nano on 32 pictures of COCO."""
    root, out = test_data / "coco" / "tinycoco", tmp_path_factory.mktemp("coco") / "run"
    annotations = root / "annotations" / "instances_train2017.json"
    se.evaluate(
        f"onnx_detector(path='{test_data / 'models' / 'yolox_nano.onnx'}', decoder='yolox')",
        f"coco(annotations='{annotations}', images='{root / 'images' / 'train2017'}')",
        out=out,
    )
    return out, annotations


def measure_map(annotations, results):
    """mAP 0.50:0.95 by pycocotools."""
    truth = COCO(str(annotations))
    evaluation = COCOeval(truth, truth.loadRes(str(results)), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats[0]


@pytest.mark.slow
def test_pycocotools_measures_the_same_from_the_file(run, tmp_path):
    out, annotations = run
    file = tmp_path / "results.json"
    done = steadyeye("rows", str(out), "--out", str(file))
    assert done.returncode == 0, done.stderr
    assert "categories numbered as in the annotations" in done.stdout
    expected = se.open_run(out).map(iou="coco").value
    assert measure_map(annotations, file) == pytest.approx(expected, abs=1e-9)
    known = {category["id"] for category in json.loads(annotations.read_text())["categories"]}
    results = json.loads(file.read_text())
    assert {entry["category_id"] for entry in results} <= known
    assert max(known) > len(known), "the numbers of COCO have gaps, which a plain count would miss"
    numbered_results = se.open_run(out).coco_results(sorted(known))
    assert numbered_results == results


def test_the_file_can_be_scored_again(run, tmp_path):
    out, annotations = run
    file = tmp_path / "results.json"
    assert steadyeye("rows", str(out), "--out", str(file)).returncode == 0
    data = f"coco(annotations='{annotations}')"
    done = steadyeye("score", str(file), "--data", data, "--out", str(tmp_path / "again"))
    assert done.returncode == 0, done.stderr
    first, second = (se.open_run(folder).map() for folder in (out, tmp_path / "again"))
    assert first.value == pytest.approx(second.value, abs=1e-9)


def test_boxes_are_corner_and_size_in_the_order_of_the_samples():
    table = example_detections()
    results = list_results(table, range(10, 10 + len(table.classes)))
    assert len(results) == len(table.detections)
    order = {id_: i for i, id_ in enumerate(table.ids.tolist())}
    places = [order[str(entry["image_id"])] for entry in results]
    assert places == sorted(places)
    detections = table.detections
    row = int((detections.image == places[0]).argmax())
    x0, y0, x1, y1 = detections.boxes[row].tolist()
    assert results[0]["bbox"] == [x0, y0, x1 - x0, y1 - y0]
    assert results[0]["category_id"] == 10 + detections.label[row]


def test_predictions_that_coco_results_cannot_hold_are_refused(run):
    with pytest.raises(UsageError, match="COCO's results are of detectors"):
        list_results(example_predictions())
    with pytest.raises(UsageError, match="2 category ids for 3 classes"):
        list_results(example_detections(), [1, 2])
    out, _ = run
    shutil.copytree(out, out.parent / "again")
    message = refused("rows", str(out), str(out.parent / "again"), "--out", "results.json")
    assert "a file of COCO results is for one model on one data set" in message


def see_ants(images):
    return [([[1.0, 1, 30, 30]], [0.5], ["ant"]) for _ in images]


@pytest.fixture
def pictures():
    """Two images with boxes, of Python."""
    pixels = np.random.default_rng(0).integers(0, 255, (2, 60, 60, 3), dtype=np.uint8)
    return [(image, {"boxes": [[1, 1, 30, 30]], "labels": ["ant"]}) for image in pixels]


def test_data_of_python_have_classes_numbered_by_their_order(pictures, tmp_path):
    run = se.evaluate(see_ants, pictures, out=tmp_path / "run")
    done = steadyeye("rows", str(tmp_path / "run"), "--out", str(tmp_path / "results.json"))
    assert done.returncode == 0, done.stderr
    assert "categories numbered 1, 2, … in the order of the classes" in done.stdout
    assert json.loads((tmp_path / "results.json").read_text()) == run.coco_results()
    message = refused("mine", str(tmp_path / "run"), "--out", str(tmp_path / "mined"))
    assert "data of Python, which no later command can open" in message


def test_degraded_images_have_no_ids_in_annotations(pictures, tmp_path):
    se.evaluate(see_ants, pictures, out=tmp_path / "run", operators="jpeg", levels="0,20")
    message = refused("rows", str(tmp_path / "run"), "--out", str(tmp_path / "results.json"))
    assert (
        "has predictions of degraded or edited images, which have no ids in COCO's annotations"
        in message
    )
