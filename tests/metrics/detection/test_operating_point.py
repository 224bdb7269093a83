"""Precision, recall and F1 at a score against the definition and pycocotools, and the best F1."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from ap_reference import coco, random_set, table
from detection_tables import score as score_file
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import steadyeye as se
from steadyeye import testing
from steadyeye.core.boxes import take
from steadyeye.core.stats.trials import Statistic
from steadyeye.metrics import best_f1 as best_module
from steadyeye.metrics.best_f1 import best_f1
from steadyeye.metrics.detection.best_threshold import choose, find_best
from steadyeye.metrics.detection.operating_point import Ranked, rank_predictions
from steadyeye.metrics.f1_at import f1_at
from steadyeye.metrics.map import map as mean_ap
from steadyeye.metrics.precision_at import precision_at
from steadyeye.metrics.recall_at import recall_at

METRICS = (precision_at, recall_at, f1_at)
CLASSES = ("bird", "cat", "dog")


def predict(truth, detected_rows, images=7):
    """The rows as predictions of so many anchors, whose neighbours have neither object nor box."""
    whole = testing.example_detections(sets=images)
    anchors = np.flatnonzero(whole.tags["offset"] == 0)
    boxes, detections = (
        replace(rows, image=anchors[rows.image]) for rows in map(table, (truth, detected_rows))
    )
    return replace(whole, boxes=boxes, detections=detections)


def overlap(first, second, crowd):
    """IoU of two boxes x, y, w, h; with a crowd the share of the first inside it."""
    x, y, w, h = first
    u, v, a, b = second
    sides = [min(x + w, u + a) - max(x, u), min(y + h, v + b) - max(y, v)]
    if min(sides) <= 0:
        return 0
    inside = sides[0] * sides[1]
    return inside / (w * h) if crowd else inside / (w * h + a * b - inside)


def judge(truth, detections, threshold, iou=0.5):
    """(class, image, score, whether right) of the detections that count, by the definition."""
    judged = []
    for image, label in {(row["image_id"], row["category_id"]) for row in detections}:
        detected, present = (
            [row for row in rows if (row["image_id"], row["category_id"]) == (image, label)]
            for rows in (detections, truth)
        )
        detected = sorted(detected, key=lambda row: -row["score"])[:100]
        free = [row for row in present if not row["iscrowd"]]
        crowds = [row for row in present if row["iscrowd"]]
        for row in detected:
            if row["score"] < threshold:
                continue
            near = [overlap(row["bbox"], target["bbox"], crowd=False) for target in free]
            if max(near, default=0) >= iou:
                # of equal ones pycocotools takes the last
                del free[len(near) - 1 - near[::-1].index(max(near))]
                judged.append((label, image, row["score"], True))
            elif all(overlap(row["bbox"], c["bbox"], crowd=True) < iou for c in crowds):
                judged.append((label, image, row["score"], False))
    return judged


def divide(wins, total):
    return wins / total if total else None


def ratios(judged, objects):
    """Precision, recall and F1, None for 0 ÷ 0."""
    right = sum(row[3] for row in judged)
    return (
        divide(right, len(judged)),
        divide(right, objects),
        divide(2 * right, len(judged) + objects),
    )


def count_objects(truth, label=None):
    return sum(not r["iscrowd"] and label in {None, r["category_id"]} for r in truth)


def thresholds(detections):
    """Scores that are there, so that ties lie at the threshold, between them, below and above."""
    own = np.unique([row["score"] for row in detections])
    some = own[:: max(len(own) // 4, 1)]
    return [*map(float, some), *map(float, (own[1:] + own[:-1])[:1] / 2), -2.0, 2.0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 500, 45))
def test_every_number_is_that_of_the_definition(seed):
    truth, detections, *_ = random_set(seed)
    predictions = predict(truth, detections)
    iou = (0.5, 0.75)[seed % 2]
    for score in thresholds(detections):
        judged = judge(truth, detections, score, iou)
        for at, metric in enumerate(METRICS):
            result = metric(predictions, score, iou)
            assert result.value == ratios(judged, count_objects(truth))[at]
            by_class = {
                name: ratios([j for j in judged if j[0] == i], count_objects(truth, i))[at]
                for i, name in enumerate(CLASSES)
            }
            present = {name: value for name, value in by_class.items() if value is not None}
            cells = {cell.name: cell.value for cell in result.cells}
            assert cells == (present if result.value is not None else {})
            if result.value is not None:
                assert 0 <= result.low <= result.value <= result.high <= 1
                assert result.n > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 500, 45))
def test_the_best_threshold_is_that_of_all_thresholds(seed):
    truth, detections, *_ = random_set(seed)
    objects, predictions = count_objects(truth), predict(truth, detections)
    result = best_f1(predictions)
    if not objects:
        assert (result.value, result.interval) == (None, "none: there are no objects")
        return
    every = sorted({row["score"] for row in detections}, reverse=True)
    by_score = {s: ratios(judge(truth, detections, s), objects) for s in every}
    best = max([0.0, *(values[2] for values in by_score.values())])
    score, precision, recall = result.cells
    assert result.value == best
    assert result.low <= best <= result.high
    if best == 0:
        assert (score.value, precision.value, recall.value) == (None, None, 0)
        assert result.high > 0, "a further image may hold what is detected"
        return
    assert score.value == next(s for s in every if by_score[s][2] == best)
    assert (precision.value, recall.value) == by_score[score.value][:2]
    # what a user deploys at the threshold is what was promised of it
    assert f1_at(predictions, score.value).value == result.value
    assert score.low <= score.value <= score.high
    for cell in (precision, recall):
        assert cell.low <= cell.value <= cell.high


@pytest.mark.slow
@pytest.mark.parametrize("seed", [s for s in range(0, 300, 35) if s % 25])
def test_pairs_are_points_of_the_curve_of_pycocotools(seed):
    truth, detections, images, classes = random_set(seed)
    rng = np.random.default_rng(seed)
    # no two alike, for a curve of pycocotools goes through every detection, ours through scores
    for row, score in zip(detections, rng.permutation(len(detections)), strict=True):
        row["score"] = float(score + 1) / 1_000
    scored = COCOeval(coco(truth, images, classes), coco(detections, images, classes), "bbox")
    scored.evaluate()
    scored.accumulate()
    curves = (scored.eval[name][0, :, :, 0, -1] for name in ("precision", "scores"))
    recalls = scored.params.recThrs
    predictions = predict(truth, detections)

    @cache
    def measure_pair(point):
        """By metric, class name → value at a score; many recalls are reached at one score."""
        return {m: {c.name: c.value for c in m(predictions, point).cells} for m in METRICS[:2]}

    compared = 0
    for label, (curve, scores) in enumerate(zip(*(c.T for c in curves), strict=True)):
        # at recall 0 theirs is the score of the first detection, which may lie on a crowd
        reached = [at for at in range(1, 101) if curve[at] > 0]
        for at in reached:
            pair = measure_pair(float(scores[at]))
            # theirs is the best precision at that recall or a higher one
            assert pair[recall_at][CLASSES[label]] >= recalls[at] - 1e-12
            assert pair[precision_at][CLASSES[label]] <= curve[at] + 1e-12
            compared += 1
        if reached:
            # the last true positive: no higher recall has a better one
            pair = measure_pair(float(scores[reached[-1]]))
            assert [pair[metric][CLASSES[label]] for metric in (precision_at, recall_at)] == [
                pytest.approx(curve[reached[-1]], abs=1e-9),
                pytest.approx(scored.eval["recall"][0, label, 0, -1], abs=1e-9),
            ]
    assert compared or not any(row[3] for row in judge(truth, detections, 0))


def box(image, label, x, score=None):
    row = {"image_id": image, "category_id": label, "bbox": [float(x), 0.0, 10.0, 10.0]}
    return row | ({"iscrowd": 0} if score is None else {"score": score})


def test_ties_at_the_threshold_count_and_so_does_single_precision():
    truth = [box(0, 0, 0), box(1, 0, 0)]
    single = float(np.float32(0.7))
    assert single < 0.7
    detections = [box(0, 0, 0, 0.5), box(1, 0, 0, single), box(2, 0, 0, 0.5)]
    predictions = predict(truth, detections)
    assert precision_at(predictions, 0.5).value == 2 / 3
    assert precision_at(predictions, np.nextafter(0.5, 1).item() + 1e-7).value == 1
    assert (recall_at(predictions, 0.7).value, recall_at(predictions, 0.71).value) == (0.5, 0)


def test_classes_without_objects_are_wrong_and_are_reported():
    truth = [box(0, 0, 0)]
    predictions = predict(truth, [box(0, 0, 0, 0.9), box(1, 2, 0, 0.8), box(2, 2, 0, 0.8)])
    result = precision_at(predictions)
    assert (result.value, result.n) == (1 / 3, 3)
    assert {cell.name: cell.value for cell in result.cells} == {"bird": 1, "dog": 0}
    assert result.notes == (
        "2 of 3 detections are of classes without an object here: false positives, which map "
        "leaves out",
    )
    assert mean_ap(predictions).value == 1
    assert [cell.name for cell in recall_at(predictions).cells] == ["bird"]
    assert precision_at(predictions, 0.85).notes == ()


def test_nothing_detected_and_nothing_to_detect():
    nothing, objects, detections = predict([], []), predict([box(0, 0, 0)], []), [box(0, 0, 0, 0.9)]
    for metric, why in (
        (precision_at, "none: no detection has this score"),
        (recall_at, "none: there are no objects"),
        (f1_at, "none: there are neither detections nor objects"),
    ):
        result = metric(nothing)
        assert (result.value, result.low, result.interval, result.cells) == (None, None, why, ())
    assert precision_at(objects).value is None
    assert (recall_at(objects).value, f1_at(objects).value, best_f1(objects).value) == (0, 0, 0)
    wrong = predict([], detections)
    assert (precision_at(wrong).value, f1_at(wrong).value) == (0, 0)
    assert (recall_at(wrong).value, best_f1(wrong).value) == (None, None)


def test_neighbours_do_not_count():
    whole = testing.example_detections()
    is_anchor = (whole.tags["offset"] == 0)[whole.detections.image]
    anchors = replace(whole, detections=take(whole.detections, np.flatnonzero(is_anchor)))
    for metric in (*METRICS, best_f1):
        assert metric(whole) == metric(anchors)


@pytest.mark.parametrize("metric", METRICS)
def test_other_values_are_refused(metric):
    predictions = testing.example_detections(sets=3)
    for wrong, why in (
        ({"score": float("nan")}, "score=nan: give a number, such as 0.5"),
        ({"score": "high"}, "score='high': give a number, such as 0.5"),
        ({"score": True}, "score=True: give a number, such as 0.5"),
        ({"iou": 0.52}, "iou=0.52: give 0.5, 0.55 … 0.95"),
        ({"iou": "coco"}, "iou='coco': give one of 0.5, 0.55 … 0.95"),
    ):
        with pytest.raises(se.UsageError, match=why):
            metric(predictions, **wrong)


def test_names_hold_what_was_asked():
    predictions = testing.example_detections(sets=3)
    assert f1_at(predictions, 0.3).name == "f1_at(score=0.3)"
    assert f1_at(predictions, 0.3, iou=0.75).name == "f1_at(score=0.3, iou=0.75)"
    assert (best_f1(predictions).name, best_f1(predictions, 0.6).name) == (
        "best_f1",
        "best_f1(iou=0.6)",
    )


@pytest.mark.parametrize("seed", range(0, 100, 9))
def test_weights_are_as_repeated_images(seed):
    truth, detections, *_ = random_set(seed)
    predictions = predict(truth, detections)
    times = np.random.default_rng(seed).integers(0, 4, 7)
    truth, detections = (
        [row for row in rows for _ in range(times[row["image_id"]])] for rows in (truth, detections)
    )
    objects = count_objects(truth)
    weight = times[None].astype(np.float32)
    pairs = [
        (ratios(weigh(predictions, 0.3, times), objects)[0], precision_at.outcomes, (0.3,)),
        (ratios(weigh(predictions, 0.3, times), objects)[2], f1_at.outcomes, (0.3,)),
        (best_of(predictions, times, objects), best_module.outcomes, ()),
    ]
    for expected, outcomes, arguments in pairs:
        statistic = outcomes(predictions, *arguments)
        assert isinstance(statistic, Statistic)
        value = float(statistic.resampled(weight)[0])
        assert value == pytest.approx(np.nan if expected is None else expected, nan_ok=True)


def weigh(predictions, score, times):
    """The detections of a score, each so often as its image."""
    every = rank_predictions(predictions, 0.5)
    rows = zip(every.label, every.image, every.score, every.hit, strict=True)
    return [row for row in rows if row[2] >= score for _ in range(times[row[1]])]


def best_of(predictions, times, objects):
    scores = np.unique(rank_predictions(predictions, 0.5).score)
    values = [ratios(weigh(predictions, s, times), objects)[2] for s in scores]
    return max([value for value in values if value is not None], default=None)


def make_world(images, rng):
    """Ranked detections of images that are more or less easy, about three objects in each."""
    ease = rng.normal(0, 0.7, images)
    objects = np.repeat(np.arange(images), rng.poisson(2.5, images))
    right = objects[rng.random(len(objects)) < 1 / (1 + np.exp(-2 - ease[objects]))]
    wrong = np.repeat(np.arange(images), rng.poisson(4, images))
    score = np.append(rng.normal(1.5 + ease[right], 1), rng.normal(-1, 1, len(wrong)))
    hit = np.append(np.ones(len(right), bool), np.zeros(len(wrong), bool))
    order = np.argsort(-score, kind="stable")
    image = np.append(right, wrong)[order]
    label = np.zeros(len(order), dtype=np.int64)
    return Ranked(
        score[order],
        image,
        label,
        hit[order],
        objects,
        np.zeros(len(objects), dtype=np.int64),
        np.arange(images).astype(str),
    )


def find_f1(world, score):
    some = world.select_from(score)
    return 2 * some.hit.sum() / (len(some.hit) + len(some.object_image))


@pytest.mark.parametrize("images", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_the_interval_holds_on_other_images(images):
    """Of a threshold chosen on few images: F1 on 20,000 others, below the interval or above it."""
    others = make_world(20_000, np.random.default_rng(9))
    rng = np.random.default_rng(images)
    below, above, apart, optimisms = 0, 0, [], []
    samples = 100
    for _ in range(samples):
        best = find_best(make_world(images, rng))
        true = find_f1(others, best.score.value)
        below, above = below + (true < best.f1.low), above + (true > best.f1.high)
        apart.append(best.f1.value - true)
        optimisms.append(best.optimism)
    assert below + above <= 8, "of 100 at 95 %, at most as often as in 1 of 20 such tests"
    assert np.mean(apart) > 0, "a chosen threshold looks better than it is"
    assert np.mean(optimisms) == pytest.approx(np.mean(apart), abs=0.02)


def test_equal_choices_take_the_highest_score():
    truth = [box(0, 0, 0), box(1, 0, 0)]
    # F1 2/3 with one detection, and again with four
    detections = [box(0, 0, 0, 0.9), box(2, 0, 0, 0.8), box(3, 0, 0, 0.7), box(1, 0, 0, 0.6)]
    every = rank_predictions(predict(truth, detections), 0.5)
    assert every.score[choose(every, np.ones((1, 7))).end - 1].tolist() == [0.9]


def test_saved_results_of_coco(test_data, tmp_path):
    root = test_data / "coco" / "val2014_100"
    results = root / "instances_val2014_fakebbox100_results.json"
    annotations = root / "instances_val2014_100.json"
    run = score_file(results, f"coco(annotations='{annotations}')", tmp_path)
    truth, detections = COCO(str(annotations)), json.loads(results.read_text())
    for score in (0.0, 0.5, 0.9):
        some = [row for row in detections if row["score"] >= score]
        scored = COCOeval(truth, truth.loadRes(some), "bbox")
        scored.params.areaRng, scored.params.areaRngLbl = [[0, 1e10]], ["all"]
        scored.evaluate()
        of_images = [image for image in scored.evalImgs if image]
        counted = sum(int((~image["dtIgnore"][0]).sum()) for image in of_images)
        right = sum(
            int(((image["dtMatches"][0] > 0) & ~image["dtIgnore"][0]).sum()) for image in of_images
        )
        objects = sum(int((image["gtIgnore"] == 0).sum()) for image in of_images)
        assert run.precision_at(score=score).value == right / counted
        assert run.recall_at(score=score).value == right / objects
        assert run.f1_at(score=score).value == 2 * right / (counted + objects)
