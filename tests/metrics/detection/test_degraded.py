"""Degraded detectors: mPC and rPC against pycocotools, objects found, failure levels."""

from dataclasses import replace

import ap_reference
import numpy as np
import pytest

from steadyeye import testing
from steadyeye.core.boxes import Detections, boxes, detection_table, select, take, truth_table
from steadyeye.core.errors import UsageError
from steadyeye.core.stats.class_means import spread as find_spread
from steadyeye.core.types import Evaluated
from steadyeye.degradation.operator import Operator, move_boxes
from steadyeye.metrics.degraded_recall import degraded_recall
from steadyeye.metrics.detection.degraded import find_objects, retain
from steadyeye.metrics.detection.iou_thresholds import IOUS
from steadyeye.metrics.map_failure_points import map_failure_points
from steadyeye.metrics.mpc import mpc
from steadyeye.metrics.recall_failure_points import recall_failure_points
from steadyeye.metrics.rpc import rpc
from steadyeye.report.analyses.degradation_profiles import degradation_profiles
from steadyeye.report.analyses.failure_levels import failure_levels
from steadyeye.report.render.headline import headline
from steadyeye.runner.failure_point_search import next_levels


@pytest.fixture(scope="module")
def sweep():
    return testing.example_detector_sweep(images=10, levels=3, seed=3)


def rows_at(table, operator, level):
    tags = table.tags
    rows = np.flatnonzero((tags["operator"] == operator) & (tags["level"] == level))
    return rows[np.argsort(tags["image"][rows])]


def score(table, operator, level):
    """mAP 0.50:0.95 of a level by pycocotools."""
    rows = rows_at(table, operator, level)

    def list_boxes(boxes):
        boxes = select(boxes, rows)
        for i in range(len(boxes)):
            x0, y0, x1, y1 = boxes.boxes[i]
            yield {
                "image_id": int(boxes.image[i]),
                "category_id": int(boxes.label[i]),
                "bbox": [x0, y0, x1 - x0, y1 - y0],
                "score": float(boxes.score[i]),
                "iscrowd": int(boxes.crowd[i]),
            }

    truth, detected = list(list_boxes(table.boxes)), list(list_boxes(table.detections))
    ap, _ = ap_reference.reference(truth, detected, len(rows), len(table.classes))
    return float(np.nanmean(ap[0]))


def test_mpc_and_rpc_are_those_of_pycocotools(sweep):
    result = mpc(sweep)
    by_name = {cell.name: cell for cell in result.cells}
    means = []
    for operator in ("blur", "noise"):
        expected = [score(sweep, operator if level else "", level) for level in range(4)]
        values = [cell.value for cell in by_name[operator].cells]
        assert values == pytest.approx(expected, abs=1e-12)
        assert by_name[operator].value == pytest.approx(np.mean(expected[1:]))
        means.append(np.mean(expected[1:]))
    assert result.value == pytest.approx(np.mean(means))
    clean = score(sweep, "", 0)
    left = rpc(sweep)
    assert left.value == pytest.approx(np.mean(means) / clean)
    assert [cell.value for cell in left.cells] == pytest.approx(np.array(means) / clean)
    assert left.low < left.value < left.high
    assert len(IOUS) == 10


@pytest.fixture(scope="module")
def tied(sweep):
    """The sweep with scores of one decimal."""
    scores = np.round(sweep.detections.score, 1)
    return replace(sweep, detections=replace(sweep.detections, score=scores))


def rename_images(table):
    """A table with other names of the images, whose order is not that of the data."""
    names = np.array([f"{ord('9') - ord(name[-1])}" for name in table.tags["image"]])
    assert len(np.unique(names)) == len(np.unique(table.tags["image"]))
    return replace(table, tags={**table.tags, "image": names})


def test_equal_scores_are_ranked_in_the_order_of_the_data_whatever_the_images_are_called(tied):
    expected = [score(tied, "blur", level) for level in (1, 2, 3)]
    levels = mpc(rename_images(tied)).cells[0].cells[1:]
    assert [level.value for level in levels] == pytest.approx(expected, abs=1e-12)


def test_a_search_ranks_equal_scores_in_the_order_of_the_data(tied):
    """At thresholds just above the mAP of each level, another order has other failure points."""
    clean = score(tied, "", 0)
    ratios = [score(tied, "noise", level) / clean for level in (1, 2, 3)]
    thresholds = sorted((ratio + sign * 1e-4 for ratio in ratios for sign in (1, -1)), reverse=True)
    cells = map_failure_points(make_search(rename_images(tied)), tuple(thresholds)).cells[1].cells
    for threshold, cell in zip(thresholds, cells, strict=True):
        first = next((i for i, ratio in enumerate(ratios, 1) if ratio < threshold), None)
        assert cell.value == first


@pytest.fixture(scope="module")
def moved(sweep):
    """The sweep where blur moves outside: half of the objects at 2, at 3 all but one class."""
    operator, level = (sweep.tags[name][sweep.boxes.image] for name in ("operator", "level"))
    half, class_0 = np.arange(len(sweep.boxes)) % 2 == 0, sweep.boxes.label == 0
    outside = (operator == "blur") & ((level == 2) & half | (level == 3) & ~class_0)
    return replace(sweep, boxes=replace(sweep.boxes, crowd=outside))


def test_map_is_that_of_the_objects_that_an_operator_leaves_in_the_image(moved):
    clean = score(moved, "", 0)
    by_operator = {
        name: np.array([score(moved, name, level) for level in (1, 2, 3)])
        for name in ("blur", "noise")
    }
    expected = np.mean([values.mean() for values in by_operator.values()])
    assert mpc(moved).value == pytest.approx(expected)
    left = rpc(moved)
    assert left.value == pytest.approx(expected / clean)
    assert left.low < left.value < left.high
    blur, _ = map_failure_points(moved, thresholds=(0.5,)).cells
    below = np.flatnonzero(by_operator["blur"] / clean < 0.5)
    assert blur.cells[0].value == (below[0] + 1 if len(below) else None)


def test_a_detection_where_an_object_was_that_an_operator_moved_outside_is_a_false_positive():
    right = Operator("shift", lambda image, _: lambda _: image, move=lambda b, *_: b + [60, 0] * 2)
    objects = [boxes([[50, 10, 90, 50]], [0]), boxes([[5, 10, 35, 50]], [0])]
    after = [move_boxes(right, own, 1, (100, 100), np.uint64(0)) for own in objects]
    # the second object is found wherever it is, the first where it was before too
    places = [([50, 10, 90, 50], 0.9), ([5, 10, 35, 50], 0.8)]
    places += [([50, 10, 90, 50], 0.9), ([65, 10, 95, 50], 0.8)]
    answers = [
        Detections(np.array([place], dtype=float), np.zeros(1, np.int32), np.array([score]))
        for place, score in places
    ]
    table = replace(
        testing.example_sweep(2, 1, operators=("shift",)),
        boxes=truth_table([*objects, *after]),
        detections=detection_table(answers),
    )
    clean, shifted = mpc(table).cells[0].cells
    assert (clean.value, shifted.value) == (1, pytest.approx(0.5))


def test_an_object_that_an_operator_moves_outside_is_ignored_and_not_lost(moved):
    rows = [rows_at(moved, "blur" if level else "", level) for level in range(4)]
    hits = [find_objects(moved, 0.5)[np.isin(moved.boxes.image, row)] for row in rows]
    inside = [~moved.boxes.crowd[np.isin(moved.boxes.image, row)] for row in rows]
    expected = [hit[hits[0] & present].mean() for hit, present in zip(hits, inside, strict=True)]
    blur, _, every = degraded_recall(moved).cells
    assert [cell.value for cell in blur.cells] == pytest.approx(expected)
    assert [cell.n for cell in blur.cells] == [(hits[0] & present).sum() for present in inside]
    levels = np.where(inside[1:], hits[1:], np.nan)[:, hits[0]]
    assert blur.value == pytest.approx(np.nanmean(np.nanmean(levels, axis=0)))
    assert every.low < every.value < every.high
    outside = (~np.array(inside))[:, hits[0]].any(axis=0).sum()
    note = f"{outside} objects ignored at some level: moved outside the image"
    assert note in degraded_recall(moved).notes
    for table in (moved, make_search(moved)):
        for threshold in (0.9, 0.7, 0.5):
            below = [level for level, share in enumerate(expected) if share < threshold]
            cell = recall_failure_points(table, thresholds=(threshold,)).cells[0].cells[0]
            assert cell.value == (below[0] if below else None)


def test_the_headline_names_an_operator_that_leaves_objects_in_the_image(sweep):
    operator = sweep.tags["operator"][sweep.boxes.image]
    nothing = replace(sweep, boxes=replace(sweep.boxes, crowd=operator == "blur"))
    (sentence,) = headline([Evaluated(nothing, {"rpc": rpc(nothing)})])
    assert "; least under noise, " in sentence


def test_a_sweep_that_leaves_no_object_in_the_image_has_no_value(sweep):
    level = sweep.tags["level"][sweep.boxes.image]
    nothing = replace(sweep, boxes=replace(sweep.boxes, crowd=level > 0))
    for metric in (mpc, rpc, degraded_recall):
        assert metric(nothing).value is None
        assert [cell.value for cell in metric(nothing).cells][:2] == [None, None]
    for metric in (map_failure_points, recall_failure_points):
        for table in (nothing, make_search(nothing)):
            assert {cell.value for of in metric(table).cells for cell in of.cells} == {None}


def test_without_an_interval_rpc_gives_the_reason_of_the_data():
    """All six images have objects, and each class is on three of them."""
    table = testing.example_detector_sweep(images=6, levels=3, seed=3)
    images = table.tags["image"][table.boxes.image]
    by_class = [len(set(images[table.boxes.label == label])) for label in range(3)]
    assert len(set(images)) == 6
    left = rpc(table)
    assert left.low is None
    assert left.interval == (
        f"none: too few images: the median class has objects in {np.median(by_class):g} images, "
        f"the rarest in {min(by_class)}"
    )
    assert {cell.interval for cell in left.cells} == {left.interval}


def test_objects_still_found_are_counted_one_by_one(sweep):
    """Each object of level 0 by its place in the image, matched by trying both ways."""

    def find(row):
        truth, detected = (
            select(sweep.boxes, np.array([row])),
            select(sweep.detections, np.array([row])),
        )
        strong = [j for j in range(len(detected)) if detected.score[j] >= 0.5]
        fits = [
            [
                j
                for j in strong
                if truth.label[i] == detected.label[j]
                and overlap(truth.boxes[i], detected.boxes[j]) >= 0.5
            ]
            for i in range(2)
        ]
        # the two objects of an image are far apart, so that no detection fits both
        return [bool(some) for some in fits]

    first = [find(row) for row in rows_at(sweep, "", 0)]
    expected = []
    for operator in ("blur", "noise"):
        for level in (1, 2, 3):
            later = [find(row) for row in rows_at(sweep, operator, level)]
            expected.append(np.mean(np.array(later)[np.array(first)]))
    result = degraded_recall(sweep)
    assert result.value == pytest.approx(np.mean(expected))
    assert result.n == np.sum(first)
    assert result.n == 19
    assert result.notes == ("1 object left out: not found at level 0",)
    everything = degraded_recall(sweep, objects="all")
    assert everything.n == 20
    assert everything.cells[0].cells[0].value == pytest.approx(np.mean(first))
    with pytest.raises(UsageError, match="objects='some': give 'found'"):
        degraded_recall(sweep, objects="some")


def test_a_detector_that_finds_nothing_has_numbers_without_a_value_and_no_failure_point(sweep):
    """Nothing is there to lose: not a failure, and nothing that is kept either."""
    none = np.zeros(0, dtype=int)
    blind = replace(sweep, detections=take(sweep.detections, none))
    assert mpc(blind, iou=0.5).value == 0
    search = make_search(blind)
    for table in (blind, search):
        for metric in (map_failure_points, recall_failure_points):
            points = metric(table)
            assert (points.value, points.n, points.cells) == (None, 0, ())
            assert points.interval.startswith("none: ")
            with pytest.raises(UsageError, match="give shares above 0"):
                metric(table, thresholds=(50,))
    for metric in (rpc, degraded_recall):
        assert metric(blind).value is None
    assert degraded_recall(blind, objects="all").value == 0
    results = {"map_failure_points": map_failure_points(search)}
    model = Evaluated(search, results)
    assert failure_levels([model]) is None
    (line,) = headline([model])
    assert line.endswith("has no mAP that degradation could lower: mAP is 0 at level 0.")
    empty = replace(search, boxes=take(sweep.boxes, none))
    assert map_failure_points(empty).interval == "none: there are no objects"
    assert degraded_recall(sweep, score=0.9999).interval == "none: no object is found at level 0"


def test_the_headline_of_a_search_names_the_threshold_that_was_asked_for(sweep):
    """Beside 90 % alone nothing is known of a half."""
    search = make_search(sweep)
    points = map_failure_points(search, (0.9,), iou=0.5)
    first = min(operator.cells[0].value for operator in points.cells)
    (line,) = headline([Evaluated(search, {"map_failure_points": points})])
    assert f"has less than 90\u202f% of its mAP from level {first} of" in line


def make_search(sweep):
    """The same rows as those of a search by `--fast`."""
    return replace(
        sweep,
        columns=tuple(name for name in sweep.columns if name != "profile"),
        sweep={"levels": {"blur": [0, 1, 2, 3], "noise": [0, 1, 2, 3]}, "seed": 0},
    )


def overlap(a, b):
    wide = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    high = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    both = wide * high
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def test_failure_levels_are_the_first_below(sweep):
    clean = score(sweep, "", 0)
    for operator in map_failure_points(sweep, thresholds=(0.8, 0.4)).cells:
        left = [score(sweep, operator.name, level) / clean for level in (1, 2, 3)]
        for cell, threshold in zip(operator.cells, (0.8, 0.4), strict=True):
            below = [
                level for level, share in zip((1, 2, 3), left, strict=True) if share < threshold
            ]
            assert cell.value == (below[0] if below else None)
            assert cell.notes == (() if below else ("not reached",))
    curves = {cell.name: [c.value for c in cell.cells] for cell in degraded_recall(sweep).cells}
    for operator in recall_failure_points(sweep, thresholds=(0.6,)).cells:
        below = [level for level, share in enumerate(curves[operator.name]) if share < 0.6]
        assert operator.cells[0].value == (below[0] if below else None)
    with pytest.raises(UsageError, match="give shares above 0 and up to 1"):
        map_failure_points(sweep, thresholds=(2,))


@pytest.mark.parametrize("fails_at", [1, 2, 17, 30, None])
def test_bisecting_finds_the_first_level_of_a_falling_profile(fails_at):
    levels, known = range(31), {}
    while chosen := next_levels(levels, known, (0.5,)):
        known |= {level: [0.4 if fails_at and level >= fails_at else 0.9] for level in chosen}
    below = [level for level, (share,) in known.items() if share < 0.5]
    assert min(below, default=None) == fails_at
    assert len(known) <= 5
    if fails_at:
        assert fails_at == 1 or fails_at - 1 in known


def test_a_search_says_the_levels_that_it_knows(sweep):
    """Of the levels 0 and 2 alone: the failure lies above 0 and at 2 at most."""
    rows = np.flatnonzero(np.isin(sweep.tags["level"], (0, 2)))
    searched = replace(
        make_search(testing._rows(sweep, rows)),
        boxes=select(sweep.boxes, rows),
        detections=select(sweep.detections, rows),
    )
    whole = map_failure_points(sweep, thresholds=(0.8,)).cells
    points = map_failure_points(searched, thresholds=(0.8,))
    assert points.notes == ("30 forward passes, 42.9\u202f% of the 70 of a full sweep",)
    for cell, full in zip(points.cells, whole, strict=True):
        assert (cell.cells[0].low, cell.cells[0].high) == (1, 2)
        assert full.cells[0].value <= 2
    assert recall_failure_points(searched, thresholds=(0.99,)).cells[0].cells[0].value == 2


def test_sections_show_map_and_objects(sweep):
    results = [mpc(sweep), rpc(sweep), degraded_recall(sweep), map_failure_points(sweep)]
    evaluated = [Evaluated(sweep, {result.name: result for result in results})]
    profiles = degradation_profiles(evaluated)
    assert profiles.title == "mAP and objects still found by level, for each operator"
    assert [figure.name for figure in profiles.figures] == ["mpc", "degraded_recall"]
    axes = [
        [
            layer["encoding"][axis]["title"]
            for layer in figure.spec["spec"]["layer"]
            for axis in "xy"
        ]
        for figure in profiles.figures
    ]
    assert axes == [["level", "mAP"] * 2, ["level", "objects still found"] * 2]
    failures = failure_levels(evaluated)
    assert failures.title.startswith("Failure points: the level at which a detector falls")
    (table,) = failures.tables
    assert table.caption == "Failure points of example, shares of mAP at level 0"


def test_a_score_is_the_threshold_in_single_precision(sweep):
    """0.7 as float32 is below 0.7: a model that gives just that reaches it."""
    detections = sweep.detections
    for threshold in (0.7, 0.8):
        same = np.full(len(detections), np.float64(np.float32(threshold)))
        table = replace(sweep, detections=replace(detections, score=same))
        assert degraded_recall(table, score=threshold).value > 0
        assert degraded_recall(table, objects="all", score=threshold + 1e-6).value == 0


@pytest.mark.parametrize("classes", [1, 9])
def test_the_interval_of_rpc_is_that_of_a_mean_over_classes(classes):
    """As `mean_difference` of each class's own move; classes are independent, on all images."""
    rng = np.random.default_rng(classes)
    clean, part = rng.uniform(0.5, 1, (2, 40, classes)) * np.array([1, 0.6])[:, None, None]
    presence = np.packbits(np.ones((40, classes), np.bool_), axis=1)
    images = np.arange(40).astype(str)

    def spread_of_means(values):
        def evaluate(weight):
            return np.average(values, axis=0, weights=weight)

        return find_spread(evaluate, presence, images)

    own = retain(spread_of_means(part), spread_of_means(clean), 40)
    ratio = part.mean() / clean.mean()
    assert own.value == pytest.approx(ratio)
    # right or wrong images of each class, halved: at least so much, and little more
    shrunk = (40 * (1 - ratio) + 0.5) / 41
    error = np.sqrt(0.5 * shrunk * (1 - shrunk) / 40 / classes)
    assert (own.high - own.low) / 2 == pytest.approx(2.02 * error, rel=0.35)
