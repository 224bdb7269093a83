"""Objects outside the classes: what reads boxes does not see them, `map_without_ood` excuses."""

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
from test_metrics import table

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.boxes import OOD, BoxTable, boxes, in_classes, present
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec, parse
from steadyeye.core.types import Evaluated
from steadyeye.detection.matching import match
from steadyeye.evaluation.collect import ask, evaluated
from steadyeye.evaluation.plan import readable
from steadyeye.measurement.objects import box_changes

SETS, REACH = 12, 2
COLUMNS = ("boxes", "detections")


def rows(entries):
    """A `BoxTable` of (image, label, x0, y0, x1, y1, score)."""
    found = np.array(entries, dtype=float).reshape(-1, 7)
    sides = found[:, 4:6] - found[:, 2:4]
    return BoxTable(
        found[:, 0].astype(np.int64),
        found[:, 1].astype(np.int64),
        found[:, 2:6],
        found[:, 6],
        np.zeros(len(found), dtype=bool),
        np.prod(sides, axis=1),
    )


def sets(outside):
    """Sets of five frames with an object or two; with `outside`, some with an object of no class.

    The detector finds most objects, and most of those outside as one of its classes.
    """
    rng = np.random.default_rng(0)
    n = SETS * (2 * REACH + 1)
    offset = np.tile(np.arange(-REACH, REACH + 1), SETS)
    truth, said, beyond = [], [], []
    for i in range(n):
        for label in {i % 3, i // 5 % 3}:
            box = [10 * label, 5, 10 * label + 8, 13]
            truth.append((i, label, *box, 1))
            if rng.random() < 0.8:
                said.append((i, label, *box, rng.uniform(0.3, 1)))
        if i % 2:
            beyond.append((i, OOD, 50, 50, 90, 80, 1))
            if rng.random() < 0.8:
                said.append((i, i % 3, 50, 51, 90, 80, rng.uniform(0.5, 1)))
    label = np.array([i % 3 for i in range(n)])
    groups = [f"g{i // 5:02}" for i in range(n)]
    plain = table(np.eye(3)[label], [[each] for each in label], groups, offset)
    truth += beyond if outside else []
    return replace(
        plain,
        columns=(*plain.columns, *COLUMNS),
        boxes=rows(truth),
        detections=rows(said),
        fingerprint="f",
    )


OF_BOXES = [
    (kind, name)
    for kind in ("metrics", "analyses")
    for name in plugins.names(kind)
    if "detections" in getattr(plugins.load(kind, name), "needs", ())
]
ABOUT_OOD = ("map_without_ood", "published_nao")


@pytest.fixture(scope="module")
def both():
    return [evaluated(sets(outside)) for outside in (True, False)]


@pytest.mark.parametrize(("kind", "name"), [p for p in OF_BOXES if p[1] not in ABOUT_OOD])
def test_what_reads_boxes_sees_the_image_without_the_objects_outside(both, kind, name):
    plugin = plugins.load(kind, name)
    seen, plain = both
    assert (seen.predictions.boxes.label == OOD).sum() == 30
    assert readable(plugin, seen.predictions.columns)
    if kind == "metrics":
        asked = ask(Spec(name))
        found, expected = asked.metric(seen.predictions), asked.metric(plain.predictions)
        assert found == expected
        assert found.value is not None
        pair = [asked.outcomes(each.predictions) for each in both]
        assert pair[0].value == pair[1].value
        return
    found, expected = plugin([seen]), plugin([plain])
    assert found == expected
    assert found is not None


def test_classes_that_are_there_are_none_outside():
    found = boxes([[0, 0, 5, 5], [1, 1, 6, 6], [2, 2, 3, 3]], [2, OOD, 0])
    assert present(found) == (0, 2)
    assert present(boxes([[0, 0, 5, 5]], [OOD])) == ()
    assert in_classes(rows([(0, OOD, 0, 0, 1, 1, 1), (0, 1, 0, 0, 1, 1, 1)])).label.tolist() == [1]


def test_the_kernel_refuses_a_label_that_nobody_took_out():
    with pytest.raises(AssertionError, match="an index below 0"):
        match(rows([(0, OOD, 0, 0, 1, 1, 1)]), rows([]), 1, 2)


def test_a_change_of_size_is_that_of_an_object_of_a_class():
    anchor = boxes([[0, 0, 90, 90], [10, 10, 20, 20]], [OOD, 1])
    frame = boxes([[0, 0, 10, 10], [10, 10, 30, 30]], [OOD, 1])
    assert box_changes(anchor, frame, 100)["box_area_change"] == pytest.approx(np.log(4))
    only = boxes([[0, 0, 90, 90]], [OOD])
    assert np.isnan(box_changes(only, frame, 100)["box_area_change"])


# ---------------------------------------------------------------- from the file to the numbers


def instances(folder, **more):
    """Two images: a cat beside an object of no class; and that alone."""
    content = {
        "images": [{"id": n, "file_name": f"{n}.png"} for n in (1, 2)],
        "categories": [
            {"id": 2, "name": "ood"},
            {"id": 5, "name": "dog"},
            {"id": 1, "name": "cat"},
        ],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 20, 20]},
            {"id": 2, "image_id": 1, "category_id": 2, "bbox": [30, 0, 10, 20]},
            {"id": 3, "image_id": 2, "category_id": 2, "bbox": [5, 5, 20, 20]},
        ],
        **more,
    }
    for image in content["images"]:
        cv2.imwrite(str(folder / image["file_name"]), np.zeros((32, 40, 3), np.uint8))
    (folder / "instances.json").write_text(json.dumps(content))
    return f"coco(annotations='{folder / 'instances.json'}', images='{folder}'"


def built(text):
    return plugins.build("sources", parse(text))


def cats(images):
    """A detector that calls everything a cat: at the cat and at both objects outside."""
    places = ([[0, 0, 20, 20], [30, 0, 40, 20]], [[5, 5, 25, 25]])
    return [(place, [1 - 0.1 * len(place)] * len(place), [15] * len(place)) for place in places]


def test_a_category_says_that_an_object_is_outside_the_classes(tmp_path):
    spec = instances(tmp_path)
    source = built(f"{spec})")
    assert source.classes.names == ("cat", "dog")
    assert source.category_ids == (1, 5)
    assert source[0].boxes.labels.tolist() == [0, OOD]
    assert source[1].boxes.labels.tolist() == [OOD]
    assert source.truths == [(0,), ()]
    assert source.notes == (
        "2 images with 3 boxes, 0 of them crowds, 2 of objects outside the classes; "
        "1 images without any object of the classes, first '2'",
    )
    plain = built(f"{spec}, ood=None)")
    assert plain.classes.names == ("cat", "ood", "dog")
    assert plain.truths == [(0, 1), (1,)]
    assert plain.fingerprint != source.fingerprint
    assert built(f"{spec}, ood='dog')").classes.names == ("cat", "ood")
    with pytest.raises(UsageError, match="no category named 'odd'"):
        built(f"{spec}, ood='odd')")


def test_a_file_without_that_category_is_read_as_ever(tmp_path):
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    spec = instances(tmp_path, categories=categories)
    assert built(f"{spec})").fingerprint == built(f"{spec}, ood=None)").fingerprint
    with pytest.raises(UsageError, match="has no category beside 'ood'"):
        built(f"{instances(tmp_path, categories=[{'id': 2, 'name': 'ood'}])})")


def test_objects_outside_are_sealed_and_count_for_no_present_number(tmp_path):
    spec = f"{instances(tmp_path)})"
    run = se.evaluate("callable_detector(path='test_ood:cats')", spec, out=tmp_path / "run")
    found = run.predictions
    assert found.boxes.label.tolist() == [0, OOD, OOD]
    assert found.truth.tolist() == [[True, False], [False, False]]
    # by falling score a false positive, the true one, a false one
    assert run.map().value == pytest.approx(0.5)
    assert ask(parse("mar")).metric(found).value == pytest.approx(1.0)
    assert not any("reach out" in note for note in found.notes)
