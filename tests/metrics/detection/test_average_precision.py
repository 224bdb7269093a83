"""AP and AR against pycocotools, and by hand."""

import json
import re
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import count, pairwise

import numpy as np
import pytest
from ap_reference import random_set, reference, table
from hypothesis import given
from hypothesis import strategies as st

from steadyeye.core import disk_columns
from steadyeye.core.boxes import take
from steadyeye.core.disk_columns import release_pages
from steadyeye.metrics.detection import average_precision, box_groups, matching, positives
from steadyeye.metrics.detection.average_precision import average_recall, dataset_ap, frame_ap
from steadyeye.metrics.detection.box_groups import MOST, group_boxes
from steadyeye.metrics.detection.iou_thresholds import IOUS
from steadyeye.metrics.detection.matching import ALL, EVERY, by_area, match

SETS = 150
FIRST = {"image_id": 0}


def frames(truth, detections, images, classes):
    """AP at IoU 0.5 of each image as pycocotools sees it alone: each has categories of its own."""
    apart = [
        [r | FIRST | {"category_id": r["image_id"] * classes + r["category_id"]} for r in rows]
        for rows in (truth, detections)
    ]
    only = {"iouThrs": [0.5], "maxDets": [100]}
    (ap,), _ = reference(*apart, 1, images * classes, (ALL,), **only)
    ap = ap.reshape(images, classes)
    return [np.nan if np.isnan(row).all() else np.nanmean(row) for row in ap]


def compute_ap(truth, detections, images, classes):
    """AP and AR as in `reference`, and AP of each image."""
    matches = by_area(table(truth), table(detections), images, classes)
    recall = [[average_recall(matched, most) for most in (1, 10, 100)] for matched in matches]
    return [dataset_ap(matched) for matched in matches], recall, frame_ap(matches[0])


@cache
def expect(seed):
    """AP and AR of a random set, and AP of each of its images, by pycocotools."""
    rows = random_set(seed)
    return *reference(*rows), frames(*rows)


def repeated(rows, times):
    """The rows of a set in which each image stands `times` of it in a row."""
    copies = np.split(np.arange(times.sum()), np.cumsum(times)[:-1])
    return [row | {"image_id": int(i)} for row in rows for i in copies[row["image_id"]]]


@pytest.fixture(scope="module")
def real(test_data):
    """val2014_100 with images and categories numbered from 0, and its published statistics."""
    folder = test_data / "coco" / "val2014_100"
    annotations = json.loads((folder / "instances_val2014_100.json").read_text())
    results = json.loads((folder / "instances_val2014_fakebbox100_results.json").read_text())
    kinds = (("image_id", "images"), ("category_id", "categories"))
    ids = {key: sorted(entry["id"] for entry in annotations[kind]) for key, kind in kinds}
    truth, detections = (
        [row | {key: ids[key].index(row[key]) for key in ids} for row in rows]
        for rows in (annotations["annotations"], results)
    )
    statistics = re.findall(r"\] = (\S+)", (folder / "val2014_fake_eval_res.txt").read_text())
    # after as many of masks
    return (truth, detections, *map(len, ids.values())), [float(text) for text in statistics[12:24]]


def same(computed, expected):
    for a, b in zip(computed, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_real_detections_are_as_pycocotools_has_them_and_as_published(real):
    rows, published = real
    ap, ar, quality = compute_ap(*rows)
    same((ap, ar, quality), (*reference(*rows), frames(*rows)))
    single_class = [[row | {"category_id": 0} for row in both] for both in rows[:2]]
    same(compute_ap(*single_class, rows[2], 1)[:2], reference(*single_class, rows[2], 1))
    statistics = [
        ap[0],
        ap[0][0],
        ap[0][IOUS.index(0.75)],
        *ap[1:],
        *ar[0],
        *(a[2] for a in ar[1:]),
    ]
    assert [round(float(np.nanmean(values)), 3) for values in statistics] == published


@pytest.mark.slow
def test_random_sets_are_as_pycocotools_has_them():
    for seed in range(SETS):
        same(compute_ap(*random_set(seed)), expect(seed))


@pytest.mark.parametrize(
    ("piece", "span", "every"), [(1, 1, 50), (1, 7, 25), (7, 1, 25), (20, 20, 25)]
)
def test_sets_in_pieces_on_the_disk_are_as_pycocotools_has_them(monkeypatch, piece, span, every):
    """Ranked, grouped, matched and counted a few at a time; pages are given back in between."""
    pieces = count()

    def release_at_times():
        # a page that is read again is the same whichever piece it was given back after
        if next(pieces) % 101 == 0:
            release_pages()

    monkeypatch.setattr(disk_columns, "release_pages", release_at_times)
    for module in (average_precision, box_groups, disk_columns, matching, positives):
        monkeypatch.setattr(module, "PIECE", piece)
    monkeypatch.setattr(box_groups, "PIECES", 1 << 30)
    monkeypatch.setattr(matching, "SPAN", span)
    monkeypatch.setattr(matching, "SPANS", 1 << 30)
    monkeypatch.setattr(disk_columns, "LARGE", 1)
    for seed in range(0, SETS, every):
        same(compute_ap(*random_set(seed)), expect(seed))
    assert next(pieces) > 1_000


def group_by_hand(truth, detections, images, classes):
    """The fields of `Groups` from what each says, an image and a category at a time."""
    objects, detected = (
        {
            (i, c): np.flatnonzero((boxes.image == i) & (boxes.label == c)).tolist()
            for i in range(images)
            for c in range(classes)
        }
        for boxes in (truth, detections)
    )
    for key, rows in detected.items():
        detected[key] = sorted(rows, key=lambda row: (-detections.score[row], row))[:MOST]
    keys = [key for key in sorted(objects) if objects[key] or detected[key]]

    def rank(row):
        return detections.label[row], -detections.score[row], detections.image[row], row

    ranked = sorted((row for key in keys for row in detected[key]), key=rank)
    members = [ranked.index(row) for key in keys for row in detected[key]]
    return {
        "image": [i for i, _ in keys],
        "label": [c for _, c in keys],
        "truth": [row for key in keys for row in objects[key]],
        "truth_first": np.cumsum([0, *(len(objects[key]) for key in keys)]).tolist(),
        "row": ranked,
        "row_image": [detections.image[row] for row in ranked],
        "tied": [rank(a)[:3] == rank(b)[:3] for a, b in pairwise(ranked)] + [False] * bool(ranked),
        "bounds": [sum(detections.label[row] < c for row in ranked) for c in range(classes + 1)],
        "members": members,
        "member_row": [ranked[place] for place in members],
        "first": np.cumsum([0, *(len(detected[key]) for key in keys)]).tolist(),
    }


@pytest.mark.parametrize("piece", [2, 1000])
def test_boxes_are_grouped_by_image_and_class(monkeypatch, piece):
    """Of rows in the order of their images, as files have them, and of rows in any order."""
    for module in (box_groups, disk_columns):
        monkeypatch.setattr(module, "PIECE", piece)
    monkeypatch.setattr(box_groups, "PIECES", 1 << 30)
    monkeypatch.setattr(disk_columns, "LARGE", 1)
    for seed in range(0, SETS, 10):
        truth, detections, images, classes = random_set(seed)
        tables = [table(truth), table(detections)]
        if seed % 20:
            tables = [take(boxes, np.argsort(boxes.image, kind="stable")) for boxes in tables]
        keys = [(boxes.image, boxes.label) for boxes in tables]
        groups = group_boxes(*keys, tables[1].score, images, classes)
        release_pages()
        for name, expected in group_by_hand(*tables, images, classes).items():
            assert getattr(groups, name).tolist() == expected, (seed, name)


def test_the_random_sets_hold_what_is_hard():
    sets = [random_set(seed) for seed in range(SETS)]
    boxes = [table(rows) for _, rows, _, _ in sets]
    objects = [row for truth, *_ in sets for row in truth]
    assert sum(row["iscrowd"] for row in objects) > 150
    assert sum(0 in row["bbox"][2:] for row in objects) > 30
    assert (
        sum(len(np.unique(detections.score)) < len(detections.score) for detections in boxes) > 30
    )
    assert sum(len({r["image_id"] for r in truth}) < images for truth, _, images, _ in sets) > 15
    groups = [np.unique(np.stack([b.image, b.label]), axis=1, return_counts=True)[1] for b in boxes]
    assert sum(counts.max(initial=0) > MOST for counts in groups) > 3
    assert not all(truth and detections for truth, detections, _, _ in sets)


@pytest.mark.parametrize("seed", range(12))
def test_weights_are_as_repeated_images(seed):
    truth, detections, images, classes = random_set(seed)
    times = np.random.default_rng(seed).integers(0, 4, images)
    matched = match(table(truth), table(detections), images, classes)
    # a set of no images at all is none to pycocotools
    size = max(int(times.sum()), 1)
    ap, ar = reference(repeated(truth, times), repeated(detections, times), size, classes)
    same([dataset_ap(matched, weight=times.astype(np.float32))], ap[:1])
    same([average_recall(matched, most, weight=times) for most in (1, 10, 100)], ar[0])


def box(image, bbox, score=1.0):
    return {"image_id": image, "category_id": 0, "bbox": bbox, "score": score}


def one_image(*detections, places=(0, 50)):
    """Objects of 10 × 10 pixels at these x, and such detections: (score, x)."""
    truth = [box(0, [x, 0, 10, 10]) for x in places]
    return match(table(truth), table([box(0, [x, 0, 10, 10], s) for s, x in detections]), 1, 1)


@pytest.mark.slow
def test_average_precision_by_hand():
    # right, wrong, right: precision 1 up to recall 1/2 and 2/3 beyond, at 51 and 50 recalls
    matched = one_image((0.9, 0), (0.8, 20), (0.7, 50))
    for ap in (dataset_ap(matched, (0.5,))[0, 0], frame_ap(matched)[0]):
        assert ap == pytest.approx((51 + 50 * 2 / 3) / 101)
    assert [average_recall(matched, most, (0.5,))[0, 0] for most in (1, 2, 3)] == [0.5, 0.5, 1]
    # a shift of 2 leaves 80 of 120 pixels in common: IoU 2/3 reaches 0.5 … 0.65
    matched = one_image((0.9, 2))
    assert matched.hit.tolist() == [0b1111]
    assert dataset_ap(matched)[:, 0] == pytest.approx([51 / 101] * 4 + [0] * 6)
    # of two detections of one object the surer is right
    matched = one_image((0.9, 0), (0.95, 1))
    assert matched.groups.row.tolist() == [1, 0]
    assert (matched.hit & 1).tolist() == [1, 0]
    # of two objects equally near it takes the later one, which leaves the earlier to the next
    assert one_image((0.9, 2), (0.8, 0), places=(0, 4)).hit.tolist() == [0b1111, EVERY]
    # the 101st detection of an image and category does not count
    crowd = one_image(*((1 - i / 1000, 100) for i in range(100)), (0.5, 0))
    assert len(crowd.hit) == MOST
    assert not crowd.hit.any()


ROWS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 2),
        st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(1, 9), st.integers(1, 9)),
        st.sampled_from((0.1, 0.3, 0.5, 0.7, 0.9)),
        st.booleans(),
    ),
    max_size=14,
)


def convert_to_coco(rows, crowds):
    """The drawn rows as COCO has them."""
    return [
        {"image_id": image, "category_id": label, "bbox": list(map(float, place)), "score": score}
        | ({"iscrowd": int(crowd)} if crowds else {})
        for image, label, place, score, crowd in rows
    ]


@given(ROWS, ROWS)
def test_any_boxes_score_as_pycocotools_says_and_never_above_one(truth, detections):
    sets = convert_to_coco(truth, crowds=True), convert_to_coco(detections, crowds=False)
    matched = match(*map(table, sets), 4, 3)
    ap, of_frames, recall = dataset_ap(matched), frame_ap(matched), average_recall(matched)
    for values in (ap, of_frames, recall):
        numbers = values[~np.isnan(values)]
        assert ((numbers >= 0) & (numbers <= 1)).all()
    expected, recalls = reference(*sets, 4, 3, (ALL,))
    np.testing.assert_allclose(ap, expected[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(recall, recalls[0, -1], rtol=0, atol=1e-9)


@given(ROWS, st.integers(1, 7))
def test_a_detector_that_repeats_the_truth_is_at_exactly_one(truth, times):
    rows = convert_to_coco(truth, crowds=False)
    # boxes that lie on each other may be taken for one another, but never too few for all
    matched = match(table(rows), table(rows), 4, 3)
    weight = np.full(4, times)
    for precision in (frame_ap(matched), dataset_ap(matched), dataset_ap(matched, weight=weight)):
        numbers = precision[~np.isnan(precision)]
        assert (numbers == 1).all()
        assert numbers.size == 0 or numbers.mean() == 1


def test_frames_without_objects_and_detections_have_no_value():
    none, one_box = table([]), table([box(1, [0, 0, 9, 9])])
    for detections in (none, one_box):
        matched = match(none, detections, 3, 2)
        assert np.array_equal(dataset_ap(matched), np.full((10, 2), np.nan), equal_nan=True)
        assert np.array_equal(average_recall(matched), dataset_ap(matched), equal_nan=True)
        assert np.isnan(frame_ap(matched)).all()
    same([frame_ap(match(one_box, none, 3, 2))], [[np.nan, 0, np.nan]])


def test_frames_and_whole_sets_have_numbers_of_one_type():
    """Functions are compiled for each type of their arguments, which takes seconds."""
    compute_ap(*random_set(0))
    assert len(average_precision._rank.signatures) == 1


def test_deterministic_and_without_traces():
    truth, detections, images, classes = random_set(101)
    tables = table(truth), table(detections)
    before = deepcopy(tables)
    matches = [match(*tables, images, classes) for _ in range(2)]
    for measure in (frame_ap, dataset_ap, average_recall):
        assert np.array_equal(*map(measure, matches), equal_nan=True)
    for rows, copied_rows in zip(tables, before, strict=True):
        assert all(map(np.array_equal, vars(rows).values(), vars(copied_rows).values()))


def test_invalid_thresholds_and_boxes_are_refused():
    matched = one_image((0.9, 0))
    with pytest.raises(ValueError, match=r"0\.52"):
        frame_ap(matched, 0.52)
    row = table([box(0, [0, 0, 0, 0])])
    for column, wrong in (("image", 1), ("label", -1), ("score", np.nan)):
        with pytest.raises(AssertionError):
            match(row, replace(row, **{column: np.array([wrong])}), 1, 1)
