"""Objects outside the classes: other metrics ignore them, `map_without_ood` excuses them."""

import json
import re
from dataclasses import replace

import cv2
import numpy as np
import pytest
from ap_reference import reference
from ood_tables import build_predictions, rows, sets

import steadyeye as se
from steadyeye import testing
from steadyeye.core import plugins
from steadyeye.core.boxes import OOD, BoxTable, boxes, in_classes, iou, present, take
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec, parse
from steadyeye.core.stats.class_means import FEWEST
from steadyeye.metrics.covariates.pm_set_measures import box_changes
from steadyeye.metrics.detection.average_precision import dataset_ap
from steadyeye.metrics.detection.frame_ap import (
    by_class,
    frames,
    frames_without_ood,
    measure_by_class,
    recall,
    select_counted_rows,
)
from steadyeye.metrics.detection.iou_thresholds import IOUS
from steadyeye.metrics.detection.matching import ignore_detections_on, match
from steadyeye.metrics.map_without_ood import map_without_ood
from steadyeye.runner.collect import ask, evaluate_metrics
from steadyeye.runner.validate import readable

OF_BOXES = [
    (kind, name)
    for kind in ("metrics", "analyses")
    for name in plugins.names(kind)
    if {"boxes", "detections"} <= {*(plugins.declaration(kind, name).columns or ())}
]
ABOUT_OOD = ("confusion_pairs", "map_without_ood", "published_nao")


@pytest.fixture(scope="module")
def both():
    return [evaluate_metrics(sets(outside)) for outside in (True, False)]


@pytest.fixture(scope="module")
def pairs(both):
    """Pm-sets, videos with true tracks and a sweep: each with objects outside, and without."""
    others = [testing.example_true_tracks(frames=40), testing.example_detector_sweep()]
    evaluated = [[evaluate_metrics(add_outside(t)), evaluate_metrics(t)] for t in others]
    return [both, *evaluated]


def add_outside(table):
    """The table with an object of no class in every second image, a detection on each it has."""
    true = table.boxes
    image = np.arange(0, len(table), 2)
    first = np.searchsorted(table.detections.image, image)
    first = np.minimum(first, len(table.detections) - 1)
    joined = BoxTable(
        np.concatenate([true.image, image]),
        np.concatenate([true.label, np.full(len(image), OOD)]),
        np.concatenate([true.boxes, table.detections.boxes[first] + [1.0, 0, 1, 0]]),
        np.ones(len(true) + len(image)),
        np.concatenate([true.crowd, np.zeros(len(image), dtype=bool)]),
        np.concatenate([true.area, np.full(len(image), 900.0)]),
        None if true.track is None else np.concatenate([true.track, np.full(len(image), 99)]),
    )
    return replace(table, boxes=take(joined, np.argsort(joined.image, kind="stable")))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [p for p in OF_BOXES if p[1] not in ABOUT_OOD])
def test_plugins_do_not_see_the_objects_outside_the_classes(pairs, kind, name):
    plugin = plugins.load(kind, name)
    with_ood, plain = next(p for p in pairs if readable(plugin, p[0].predictions.columns))
    assert (with_ood.predictions.boxes.label == OOD).sum() >= 30
    if kind == "metrics":
        bound = ask(Spec(name))
        result, expected = bound.metric(with_ood.predictions), bound.metric(plain.predictions)
        assert without_notes(result) == without_notes(expected)
        assert with_ood is not pairs[0][0] or result == expected
        # no failure level is within the four of the sweep
        assert (result.value is None) == name.endswith("failure_points")
        if bound.outcomes is None:
            return
        pair = [bound.outcomes(evaluated.predictions) for evaluated in (with_ood, plain)]
        assert pair[0].value == pair[1].value
        return
    result, expected = plugin([with_ood]), plugin([plain])
    assert result is not None
    if name == "lost_tracks":  # an object outside covers others as well as one of a class
        result, expected = (
            replace(analysis, tables=analysis.tables[:1]) for analysis in (result, expected)
        )
    assert result == expected


def without_notes(result):
    """The numbers of a result; the objects left out are named in its notes."""
    return replace(result, notes=(), cells=tuple(without_notes(cell) for cell in result.cells))


def test_classes_that_are_there_are_none_outside():
    objects = boxes([[0, 0, 5, 5], [1, 1, 6, 6], [2, 2, 3, 3]], [2, OOD, 0])
    assert present(objects) == (0, 2)
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
        "1 image without any object of the classes, first '2'",
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
    with pytest.raises(UsageError, match="has no category other than 'ood'"):
        built(f"{instances(tmp_path, categories=[{'id': 2, 'name': 'ood'}])})")


def test_objects_outside_are_sealed_and_count_for_no_present_number(tmp_path):
    spec = f"{instances(tmp_path)})"
    run = se.evaluate("callable_detector(path='test_ood:cats')", spec, out=tmp_path / "run")
    predictions = run.predictions
    assert predictions.boxes.label.tolist() == [0, OOD, OOD]
    assert predictions.truth.tolist() == [[True, False], [False, False]]
    # by falling score a false positive, the true one, a false one
    assert run.map().value == pytest.approx(0.5)
    assert run.map_without_ood().value == pytest.approx(1.0)
    assert ask(parse("mar")).metric(predictions).value == pytest.approx(1.0)
    assert not any("reach out" in note for note in predictions.notes)


# ---------------------------------------------------------------- map_without_ood


CAT = (0, 0, 0, 0, 10, 10, 1)
FOUND = (0, 0, 0, 0, 10, 10, 0.5)
OTHER = (0, OOD, 50, 50, 60, 60, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "detections", "excusing", "plain"),
    [
        # matched to an object outside and to nothing else: ignored, so that the cat comes first
        ([CAT, OTHER], [FOUND, (0, 0, 50, 50, 60, 60, 0.9)], 1, 0.5),
        # any number of detections of one object outside
        ([CAT, OTHER], [FOUND, *[(0, 0, 50, 50, 60, 60, 0.9)] * 3], 1, 0.25),
        # also overlapping a true box of its class: a true positive, the later one is no second
        ([CAT, (0, OOD, 0, 0, 10, 11, 1)], [FOUND], 1, 1),
        # a second box on the cat, which also overlaps the object outside: matched to nothing else
        ([CAT, (0, OOD, 0, 0, 10, 11, 1)], [(0, 0, 0, 0, 10, 9, 0.9), FOUND], 1, 1),
        # overlapping nothing: a false positive
        ([CAT, OTHER], [FOUND, (0, 0, 80, 80, 90, 90, 0.9)], 0.5, 0.5),
        # touching the object outside by less than the threshold: a false positive
        ([CAT, OTHER], [FOUND, (0, 0, 50, 50, 60, 54, 0.9)], 0.5, 0.5),
        # overlapping a true box of another class only: a false positive
        ([CAT, (0, 1, 50, 50, 60, 60, 1)], [FOUND, (0, 0, 50, 50, 60, 60, 0.9)], 0.25, 0.25),
        # overlapping an object outside in another image: a false positive
        ([CAT, (1, OOD, 50, 50, 60, 60, 1)], [FOUND, (0, 0, 50, 50, 60, 60, 0.9)], 0.5, 0.5),
    ],
)
def test_detections_of_objects_outside_are_ignored_by_hand(truth, detections, excusing, plain):
    predictions = build_predictions(truth, detections, images=2)
    assert map_without_ood(predictions).value == pytest.approx(excusing)
    assert ask(parse("map")).metric(predictions).value == pytest.approx(plain)


def test_a_detection_ignored_at_a_low_iou_is_a_false_positive_at_a_higher_one():
    # IoU 0.8 with the object outside: ignored at 0.5 … 0.8, false at 0.85, 0.9 and 0.95
    predictions = build_predictions([CAT, OTHER], [FOUND, (0, 0, 50, 50, 60, 58, 0.9)])
    assert map_without_ood(predictions, iou=0.8).value == pytest.approx(1)
    assert map_without_ood(predictions, iou=0.85).value == pytest.approx(0.5)
    assert map_without_ood(predictions, iou="coco").value == pytest.approx((7 + 3 * 0.5) / 10)


def test_objects_of_classes_that_the_model_has_not_lie_outside():
    # the model's classes are a cat and something that the data has not; a goat is its cat
    goat = (0, 1, 50, 50, 60, 60, 1)
    predictions = build_predictions(
        [CAT, goat], [FOUND, (0, 0, 50, 50, 60, 60, 0.9)], data_classes=[0, -1]
    )
    result = map_without_ood(predictions)
    assert result.value == pytest.approx(1)
    assert [(cell.name, cell.n) for cell in result.cells] == [(predictions.classes[0], 1)]
    assert result.notes[0] == "1 object of classes that the model does not have (OOD), in 1 image"
    assert ask(parse("map")).metric(predictions).value == pytest.approx(0.25)
    everything = replace(predictions, model_to_data_class=np.array([0, 1]))
    assert map_without_ood(everything).value == pytest.approx(0.25)


def test_a_crowd_outside_excuses_what_lies_in_it():
    predictions = build_predictions([CAT, OTHER], [FOUND, (0, 0, 52, 52, 54, 54, 0.9)])
    assert map_without_ood(predictions).value == pytest.approx(0.5)
    crowd = replace(predictions.boxes, crowd=np.array([False, True]))
    assert map_without_ood(replace(predictions, boxes=crowd)).value == pytest.approx(1)


def test_without_objects_there_is_no_value():
    result = map_without_ood(build_predictions([OTHER], [FOUND]))
    assert (result.value, result.cells) == (None, ())


def crowded(rng, images=4, classes=3):
    """Random objects, some outside, and detections near them and elsewhere."""

    def near(box, shift):
        return [max(side + rng.integers(-shift, shift + 1), 0) for side in box]

    truth, detections = [], []
    for i in range(images):
        for _ in range(rng.integers(0, 7)):
            x, y = rng.integers(0, 20, 2)
            box = [x, y, x + rng.integers(5, 14), y + rng.integers(5, 14)]
            truth.append((i, rng.integers(OOD, classes), *box, 1))
            for _ in range(rng.integers(0, 4)):
                x0, y0, x1, y1 = near(box, 1)
                if x1 > x0 and y1 > y0:
                    label, score = rng.integers(0, classes), rng.integers(1, 99) / 100
                    detections.append((i, label, x0, y0, x1, y1, score))
    return truth, detections


def naive(truth, detections, images, classes, bar):
    """Flags of each detection, straight from the definition: 1 true, 0 false, −1 ignored."""
    flags = np.zeros(len(detections), dtype=int)
    for i in range(images):
        for c in range(classes):
            mine = [d for d in range(len(detections)) if tuple(detections[d][:2]) == (i, c)]
            free = [t for t in range(len(truth)) if tuple(truth[t][:2]) == (i, c)]
            outside = [t for t in range(len(truth)) if tuple(truth[t][:2]) == (i, OOD)]
            for d in sorted(mine, key=lambda d: -detections[d][6]):
                overlap = {t: one_iou(detections[d], truth[t]) for t in free + outside}
                # of equals the last, as pycocotools
                best = max(free, key=lambda t: (overlap[t], t), default=None)
                if best is not None and overlap[best] >= bar:
                    flags[d] = 1
                    free.remove(best)
                elif any(overlap[t] >= bar for t in outside):
                    flags[d] = -1
    return flags


def one_iou(first, second):
    sides = [np.array([row[2:6]], dtype=float) for row in (first, second)]
    return float(iou(*sides)[0, 0])


@pytest.mark.parametrize("bar", [0.5, 0.75])
def test_random_sets_match_as_the_definition_says(bar):
    rng, counts = np.random.default_rng(1), np.zeros(3)
    bit = IOUS.index(bar)
    for _ in range(60):
        truth, detections = crowded(rng)
        predictions = build_predictions(truth, detections, classes=3, images=4)
        matches = frames_without_ood(
            predictions, select_counted_rows(predictions)
        ).match_detections()
        flags = np.zeros(len(detections), dtype=int)
        flags[matches.groups.row[(matches.hit >> bit & 1) == 1]] = 1
        flags[matches.groups.row[(matches.ignored >> bit & 1) == 1]] = -1
        assert flags.tolist() == naive(truth, detections, 4, 3, bar).tolist()
        counts += [(flags == flag).sum() for flag in (-1, 0, 1)]
    assert (counts > 50).all()


def test_equal_to_pycocotools_with_the_objects_outside_ignored_in_every_category():
    # no crowd but too large to count: pycocotools ignores what takes it, each copy once
    rng = np.random.default_rng(2)
    for _ in range(25):
        truth, detections = crowded(rng)
        entries = [entry(row) for row in truth if row[1] != OOD]
        outside = [entry(row) | {"area": 1e12} for row in truth if row[1] == OOD]
        copies = [
            annotation | {"category_id": c}
            for annotation in outside
            for c in range(3)
            for _ in detections
        ]
        scored = [entry(row) | {"score": row[6]} for row in detections]
        if not scored or not entries:
            continue
        expected = reference(entries + copies, scored, 4, 3, ((0, 1e10),))[0][0]
        predictions = build_predictions(truth, detections, classes=3, images=4)
        matches = frames_without_ood(
            predictions, select_counted_rows(predictions)
        ).match_detections()
        assert dataset_ap(matches) == pytest.approx(expected, abs=1e-9, nan_ok=True)


def entry(row):
    image, label, x0, y0, x1, y1, _ = (int(value) for value in row)
    box = {"bbox": [x0, y0, x1 - x0, y1 - y0], "iscrowd": 0}
    return {"image_id": image, "category_id": label, **box}


@pytest.mark.parametrize("threshold", [0.5, "coco"])
def test_without_objects_outside_it_is_map(threshold):
    predictions = sets(outside=False)
    result = map_without_ood(predictions, iou=threshold)
    plain = ask(Spec("map", {"iou": threshold})).metric(predictions)
    assert (result.value, result.low, result.high) == pytest.approx(
        (plain.value, plain.low, plain.high)
    )
    assert (result.n, result.interval) == (plain.n, plain.interval)
    assert result.notes[0] == "no OOD objects: the same as mAP"


def test_every_class_has_its_objects_and_an_interval():
    predictions = sets(outside=True)
    result = map_without_ood(predictions)
    objects = in_classes(predictions.boxes)
    anchors = np.isin(objects.image, select_counted_rows(predictions))
    assert [cell.n for cell in result.cells] == np.bincount(objects.label[anchors]).tolist()
    # a class on fewer than five images has none
    images = [len(np.unique(objects.image[anchors & (objects.label == c)])) for c in range(3)]
    for cell, several in zip(result.cells, images, strict=True):
        assert (cell.low is None) == (several < FEWEST)
        assert cell.low is None or cell.low <= cell.value <= cell.high
    assert result.low < result.value < result.high
    assert np.mean([cell.value for cell in result.cells]) == pytest.approx(result.value)
    assert result.value > ask(parse("map")).metric(predictions).value


def test_recall_of_every_class_makes_mean_recall():
    predictions = sets(outside=True)
    of_classes = measure_by_class(frames(predictions, select_counted_rows(predictions)), recall)
    result = by_class("mar", of_classes, predictions.classes)
    whole = ask(parse("mar")).metric(predictions)
    assert (result.value, result.low, result.high) == pytest.approx(
        (whole.value, whole.low, whole.high)
    )


def test_models_are_compared_on_it():
    predictions = sets(outside=True)
    asked_of = ask(parse("map_without_ood"))
    assert asked_of.outcomes(predictions).value == pytest.approx(asked_of.metric(predictions).value)


def test_data_without_objects_outside_the_classes_get_no_note(both):
    with_ood, plain = (set(evaluated.results) for evaluated in both)
    assert with_ood - plain == {"map_without_ood(iou=0.5)"}


def test_nothing_outside_changes_no_flag():
    predictions = sets(outside=False)
    anchors = frames(predictions, select_counted_rows(predictions))
    plain = anchors.match_detections()
    same = ignore_detections_on(plain, anchors.detections, rows([]))
    assert np.array_equal(same.ignored, plain.ignored)


def test_the_class_map_of_the_run_says_what_lies_outside(tmp_path):
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "goat"}]
    spec = f"{instances(tmp_path, categories=categories)})"
    run = se.evaluate("callable_detector(path='test_ood:cats')", spec, out=tmp_path / "run")
    assert run.predictions.model_to_data_class[15] == 0
    assert np.delete(run.predictions.model_to_data_class, 15).max() == -1
    assert run.map_without_ood().value == pytest.approx(1.0)
    assert run.map().value == pytest.approx(0.25)
    assert re.search(r"goat: no class of cats maps to it", " ".join(run.predictions.notes))
