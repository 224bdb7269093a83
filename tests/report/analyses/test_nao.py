"""NAO's published table, the drop from a reference set, the source, and its statistics."""

import csv
import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
from ood_tables import build_predictions, sets

from steadyeye.core.errors import UsageError
from steadyeye.core.stats.intervals import Interval
from steadyeye.data.sources.nao import nao
from steadyeye.metrics.detection.frame_ap import (
    ap,
    frames,
    measure_by_class,
    relative_drop,
    select_counted_rows,
)
from steadyeye.metrics.detection.iou_thresholds import IOUS
from steadyeye.report.analyses.published_nao import published_nao, read_published
from steadyeye.report.sections import sections
from steadyeye.runner.collect import evaluate_metrics
from steadyeye.testing import check_source

# ---------------------------------------------------------------- Table 2 and Figure 1


def test_the_shipped_table_is_the_published_one(test_data):
    with (test_data.parent / "reference" / "published_nao.csv").open() as file:
        expected = list(csv.DictReader(file))
    assert [detector.model for detector in read_published()] == [row["model"] for row in expected]
    for row, published in zip(expected, read_published(), strict=True):
        reference = row["coco_val_map"] or row["coco_test_dev_map"]
        numbers = (published.plain, published.without, published.recall, published.reference)
        keys = ("nao_map", "nao_map_without_ood", "nao_mar")
        assert [round(100 * value, 1) for value in numbers] == [
            *(float(row[key]) for key in keys),
            float(reference),
        ]


def test_the_printed_drops_rebuild_from_the_table():
    drops = {detector.model: round(100 * detector.drop, 1) for detector in read_published()}
    # printed in the paper's abstract
    assert drops["EfficientDet-D7"] == 74.5
    assert drops == {
        "Faster RCNN": 36.3,
        "RetinaNet-R50": 71.7,
        "YOLOv3": 69.7,
        "Mask RCNN R50": 59.9,
        "EfficientDet-D2": 70.6,
        "EfficientDet-D4": 69.6,
        "EfficientDet-D7": 74.5,
    }
    # "better performance on MSCOCO does not translate": the best on COCO has not the best on NAO
    best = max(read_published(), key=lambda detector: detector.reference)
    assert best.plain < max(detector.plain for detector in read_published())


def test_the_drop_is_of_the_means_and_its_interval_recovered_from_theirs():
    def of(value, margin):
        return Interval(value, value - margin, value + margin, 10, "known")

    exact = relative_drop(of(0.2, 0.1), of(0.5, 0.0))
    assert exact.value == pytest.approx(0.6)
    # of a reference that is known, the ends of its own divided by it
    assert (exact.low, exact.high) == pytest.approx((0.4, 0.8))
    noisy = relative_drop(of(0.2, 0.1), of(0.5, 0.1))
    assert noisy.low < exact.low < noisy.value < exact.high < noisy.high
    # of two normal numbers, as often as 95 intervals in 100 should
    rng = np.random.default_rng(0)
    own, other = rng.normal(0.4, 0.03, 4_000), rng.normal(0.6, 0.02, 4_000)
    drops = [
        relative_drop(of(a, 1.96 * 0.03), of(b, 1.96 * 0.02))
        for a, b in zip(own, other, strict=True)
    ]
    assert 0.94 < np.mean([drop.low <= 1 - 0.4 / 0.6 <= drop.high for drop in drops]) < 0.96
    assert relative_drop(of(0.2, 0.1), of(0.0, 0.0)).value is None
    # a reference that may be at 0 leaves the ratio without an end
    assert relative_drop(of(0.2, 0.1), of(0.1, 0.1)).low is None
    few = Interval(0.2, None, None, 3, "none: too few images")
    assert relative_drop(few, of(0.5, 0.1)).interval == "none: too few images"


def test_a_set_that_is_its_own_reference_may_differ_by_chance():
    own = measure_by_class(frames(sets(True), select_counted_rows(sets(True))), ap(IOUS)).whole
    drop = relative_drop(own, own)
    assert drop.value == 0
    assert drop.low < -0.1 < 0.1 < drop.high


def pair():
    """A model on a set with objects outside, and on another one without."""
    mined, other = sets(True), sets(False)
    return [
        replace(mined, data="mined", fingerprint="a"),
        replace(other, data="val", fingerprint="b", detections=other.boxes),
    ]


def test_the_section_tells_the_drop_from_the_other_data_of_the_report():
    nao_sections = sections(
        [evaluate_metrics(predictions) for predictions in pair()], ["published_nao"]
    )
    (section,) = nao_sections
    own = section.tables[0].rows[0]
    whole = measure_by_class(
        frames(pair()[0], select_counted_rows(pair()[0])), ap(IOUS)
    ).whole.value
    assert own[0] == "m"
    assert own[1].startswith(f"{whole * 100:.1f}")
    # on the other data it finds all there is
    assert own[4] == "val"
    assert own[5].startswith("100.0")
    assert own[6].startswith(f"{(1 - whole) * 100:.1f}")
    assert len(section.tables[0].rows) == 8
    # twelve images of which a third is wrong may be of a set where nothing is lost
    assert (
        section.title
        == "Is mAP lower on natural adversarial objects than on the reference data? · mined"
    )
    classes = section.tables[1]
    assert [row[0] for row in classes.rows] == ["c0", "c1", "c2"]
    values = section.figures[0].spec["data"]["values"]
    assert [row["drop"] for row in values] == sorted((r["drop"] for r in values), reverse=True)
    assert [row["model"] for row in values if row["of"] == "yours"] == ["m"]


def test_a_drop_that_may_be_chance_is_called_so():
    mined, other = pair()
    same = replace(other, detections=mined.detections)
    (section,) = sections([evaluate_metrics(mined), evaluate_metrics(same)], ["published_nao"])
    assert (
        section.title
        == "Is mAP lower on natural adversarial objects than on the reference data? · mined"
    )
    assert "no clear difference" in section.text[0]
    assert "−" in section.tables[0].rows[0][6]
    assert "-" not in section.tables[0].rows[0][6]


def test_without_a_reference_it_says_how_to_get_one():
    (section,) = sections([evaluate_metrics(pair()[0])], ["published_nao"])
    assert section.title == "Natural adversarial objects, compared with published detectors"
    assert any("add another --data to the job" in line for line in section.text)
    assert section.figures == ()
    assert section.tables[0].rows[0][4:] == ("—", "—", "—")


def test_only_the_same_model_is_a_reference():
    mined, other = pair()
    for changed in (replace(other, model="n"), replace(other, model_classes=("a", "b", "c"))):
        (section,) = sections(
            [evaluate_metrics(mined), evaluate_metrics(changed)], ["published_nao"]
        )
        assert section.figures == ()


def test_data_without_objects_outside_has_no_section():
    assert published_nao([evaluate_metrics(pair()[1])]) is None
    predictions = replace(
        build_predictions([(0, 0, 0, 0, 9, 9, 1)], [(0, 0, 0, 0, 9, 9, 0.5)]), data="nao"
    )
    assert published_nao([evaluate_metrics(predictions)]) is not None


# ---------------------------------------------------------------- the source


def release(root, key, ids=(1, 2, 3)):
    """NAO's layout: three files and images named by their id at OpenImages."""
    (root / "annotations").mkdir(parents=True)
    (root / "images").mkdir()
    for number, split in zip(ids, ("train", "validation", "test"), strict=True):
        name = f"{split}{number:04}"
        cv2.imwrite(str(root / "images" / f"{name}.jpg"), np.full((8, 8, 3), number, np.uint8))
        image = {"_image_id": name, **dict([key("id", number, name)])}
        of = dict([key("image_id", number, name)])
        content = {
            "images": [{**image, "file_name": f"https://example.org/{name}.jpg"}],
            "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
            "annotations": [{"id": 1, **of, "category_id": 2, "bbox": [1, 1, 4, 4]}],
        }
        (root / "annotations" / f"instances_{split}.json").write_text(json.dumps(content))
    return root


def standard(key, number, name):
    return key, number


def number_by_name(key, number, name):
    return "_image_id", name


@pytest.mark.parametrize("key", [standard, number_by_name])
def test_the_released_layout_is_read(tmp_path, key):
    root = release(tmp_path / "nao", key)
    source = nao(str(root))
    assert check_source(source)
    assert source.name == "nao"
    assert source.missing() == []
    assert [int(source[i].image()[0, 0, 0]) for i in range(3)] == [1, 2, 3]
    assert source.truths == [(1,)] * 3
    val = nao(str(root), split="val")
    assert (val.name, len(val)) == ("nao-val", 1)
    assert int(val[0].image()[0, 0, 0]) == 2
    assert val.ids == [source.ids[1]]


def test_ids_that_several_files_use_are_distinguished(tmp_path):
    source = nao(str(release(tmp_path / "nao", standard, ids=(5, 5, 5))))
    assert source.ids == ["instances_train/5", "instances_validation/5", "instances_test/5"]


def test_an_incomplete_folder_of_nao_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"lacks annotations/instances_train\.json"):
        nao(str(tmp_path))
    with pytest.raises(UsageError, match="no split named 'validation'; known: all"):
        nao(str(tmp_path), split="validation")
    root = release(tmp_path / "nao", standard)
    (root / "annotations" / "instances_test.json").unlink()
    with pytest.raises(UsageError, match=r"lacks annotations/instances_test\.json"):
        nao(str(root))
    path = root / "annotations" / "instances_validation.json"
    content = json.loads(path.read_text())
    content["categories"].append({"id": 3, "name": "bird"})
    path.write_text(json.dumps(content))
    (root / "annotations" / "instances_test.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match="has other categories than"):
        nao(str(root))
