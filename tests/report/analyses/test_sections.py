"""The sections of the report on small tables worked out by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest
import vl_convert
from hand_tables import HAND, evaluated, table

from steadyeye.core.format import number_of
from steadyeye.core.types import Evaluated
from steadyeye.report.analyses.failures import SHOWN, failures
from steadyeye.report.analyses.flips import flips
from steadyeye.report.analyses.per_class import per_class
from steadyeye.report.analyses.pm_curve import pm_curve
from steadyeye.report.analyses.wrong_predictions import wrong_predictions
from steadyeye.report.sections import sections

ALL = (failures, flips, per_class, pm_curve)


@pytest.fixture
def hand():
    """Set a holds, set b breaks at +2, the anchor of set c is wrong (see test_metrics)."""
    return evaluated(table(**HAND), classes=("<dog>", "cat"), model_classes=("<dog>", "cat"))


def test_pm_curve_draws_the_cells(hand):
    section = pm_curve([hand])
    points = section.figures[0].spec["data"]["values"]
    assert [row["k"] for row in points] == [0, 1, 2]
    assert [row["value"] for row in points] == [2 / 3, 2 / 3, 1 / 3]
    assert [row[0] for row in section.tables[0].rows] == ["0", "1", "2"]
    assert section.tables[0].rows[2][1].startswith("33.3\u202f% (0.8–90.6")


def test_per_class_counts_an_anchor_for_each_of_its_labels():
    # anchor 1 carries both classes and breaks; anchor 2 carries class 1 alone and holds
    predictions = table(
        [[1, 0], [0, 1], [0, 1], [0, 1]],
        [[0, 1], [0], [1], [1]],
        ["a", "a", "b", "b"],
        [0, 1, 0, 1],
    )
    section = per_class([evaluated(predictions)])
    rows = {row[0]: row for row in section.tables[0].rows}
    assert (rows["c0"][2], rows["c1"][2]) == ("1", "2")
    assert rows["c0"][-1] == "100.0"
    assert rows["c1"][-1] == "50.0"
    assert "m 75.0 (" in section.text[0]
    assert [row[0] for row in section.tables[0].rows] == ["c0", "c1"]


def test_the_median_class_has_an_interval_over_videos():
    # four classes, one anchor a video and class: two of them break, so the median of 0, 0, 1, 1
    scores = np.repeat(np.eye(4), 2, axis=0)
    scores[[1, 3]] = scores[[3, 1]]
    groups = np.repeat(list("abcd"), 2)
    predictions = table(scores, [[i // 2] for i in range(8)], groups, [0, 1] * 4)
    section = per_class([evaluated(predictions)])
    row = section.tables[1].rows[0]
    assert row[:2] == ("m", "50.0")
    # of the two classes that hold nothing bounds the loss from below, of the others from above
    method = (
        "Gaffke's bounds over 4 videos, of the half of the classes with the smaller drops and of "
        "the class with the largest"
    )
    assert row[2:6] == ("0.0–100.0", "4", "0", "4")
    assert row[6:] == (method,)


def test_the_median_class_interval_covers_the_truth():
    # eight classes whose anchors break with probability 0.3: the interval of the median holds it
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(40):
        n = 400
        labels = rng.integers(0, 8, n)
        breaks = rng.random(n) < 0.3
        scores = np.zeros((2 * n, 8))
        scores[np.arange(0, 2 * n, 2), labels] = 1
        scores[np.arange(1, 2 * n, 2), (labels + breaks) % 8] = 1
        groups = np.repeat([f"g{i:03}" for i in range(n)], 2)
        predictions = table(scores, [[x] for x in np.repeat(labels, 2)], groups, [0, 1] * n)
        low, high = per_class([Evaluated(predictions, {})]).tables[1].rows[0][2].split("–")
        inside += float(low) <= 30 <= float(high.rstrip("\u202f%"))
    assert inside >= 36


def test_second_labels_are_counted():
    # the first set carries both classes in its two frames; the second answer is the second label
    predictions = table(
        [[1, 0], [0, 1], [0, 1], [1, 0]],
        [[0, 1], [0, 1], [1], [1]],
        ["a", "a", "b", "b"],
        [0, 1, 0, 1],
    )
    section = per_class([evaluated(predictions)])
    assert section.tables[2].rows == (("m", "2", "1", "2", "1"),)
    assert section.text[0].endswith("An anchor with several labels counts for each of them.")
    single = table([[1, 0], [0, 1]], [[0], [0]], ["a", "a"], [0, 1])
    without = per_class([evaluated(single)])
    assert len(without.tables) == 2
    assert "several labels" not in without.text[0]


def test_a_median_drop_over_no_class_says_so():
    predictions = table([[1, 0], [0, 1]], [[0], [0]], ["a", "a"], [0, 1])
    unmapped = replace(predictions, model_to_data_class=np.array([-1, 1]))
    section = per_class([Evaluated(unmapped, {})])
    assert section.tables[1].rows == ()
    assert section.text == ("No model has any of these classes, so that there is no median drop.",)


def broken(confidences, offsets, **more):
    """One set whose anchor is right and whose neighbours are wrong with the given confidences."""
    scores = [[0.9, 0.1], *([1 - c, c] for c in confidences)]
    n = len(scores)
    return table(scores, [[0]] * n, ["a"] * n, [0, *offsets], **more)


def test_failures_show_the_most_confident_mistake():
    section = failures([evaluated(broken([0.6, 0.8, 0.7], [1, 2, 3]))])
    (exhibit,) = section.exhibits
    assert exhibit.title == "c0 → c1"
    assert [picture.sample for picture in exhibit.pictures] == ["s0", "s2"]
    assert exhibit.pictures[1].title == "2 frames later"
    assert exhibit.pictures[1].lines[0] == "predicts c1, 80.0\u202f%"
    assert [picture.right for picture in exhibit.pictures] == [True, False]


@pytest.mark.parametrize(
    ("offsets", "sample"), [([-2, 1, 2], "s2"), ([1, -1, 2], "s2"), ([2, -2, 3], "s2")]
)
def test_ties_go_to_the_nearest_then_to_the_earlier(offsets, sample):
    section = failures([evaluated(broken([0.8, 0.8, 0.8], offsets))])
    assert section.exhibits[0].pictures[1].sample == sample


def test_a_frame_that_breaks_two_anchors_is_shown_once():
    predictions = table(
        [[1, 0], [0, 1], [1, 0], [0, 1]],
        [[0]] * 4,
        ["a", "a", "b", "b"],
        [0, 1, 0, -1],
        video=["v"] * 4,
        frame=[4, 5, 6, 5],
    )
    section = failures([evaluated(predictions)])
    assert len(section.exhibits) == 1
    assert "m 2 of 2." in section.text[0]


def test_failures_take_models_in_turn_and_stop_in_time():
    n = 40
    rows = [[1, 0], [0, 1]] * n
    groups = [f"g{i // 2}" for i in range(2 * n)]
    predictions = table(rows, [[0]] * 2 * n, groups, [0, 1] * n)
    section = failures([evaluated(predictions, model=name) for name in ("one", "two")])
    assert [exhibit.model for exhibit in section.exhibits] == ["one", "two"] * (SHOWN // 2)
    assert "24 of 80 pairs" in section.text[0]


def test_nothing_broken_is_no_section(hand):
    right = table([[1, 0]] * 3, [[0]] * 3, ["a"] * 3, [-1, 0, 1])
    assert failures([evaluated(right)]) is None


def test_flips_do_not_cross_sets_and_count_a_pair_once():
    # frames 5, 6 in two sets; 7 and 8 are neighbours in the video but in different sets (a cut)
    predictions = table(
        [[0.9, 0.1], [0.2, 0.8], [0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]],
        [[]] * 6,
        ["a", "a", "b", "b", "b", "c"],
        [0, 1, -1, 0, 1, 0],
        video=["v"] * 6,
        frame=[5, 6, 5, 6, 7, 8],
    )
    section = flips([Evaluated(predictions, {})])
    assert section.tables[0].rows[0][:4] == ("v", "m", "2", "50.0\u202f%")
    (exhibit,) = section.exhibits
    assert exhibit.title == "c0, then c1"
    assert [picture.sample for picture in exhibit.pictures] == ["s0", "s1"]


@pytest.mark.parametrize("analysis", ALL, ids=lambda a: a.__name__)
def test_sections_repeat_change_nothing_and_draw(analysis, hand):
    other = evaluated(hand.predictions, model="other <b>")
    before = hand.predictions.scores.copy()
    section = analysis([hand, other])
    assert analysis([hand, other]) == section
    np.testing.assert_array_equal(hand.predictions.scores, before)
    for figure in section.figures:
        svg = vl_convert.vegalite_to_svg(json.loads(json.dumps(figure.spec)))
        assert svg.startswith("<svg")
        assert figure.alt


# --- still images


def test_wrong_predictions_of_still_images_are_shown_the_most_confident_first(hand):
    """Two of four are wrong; a video shows each label → prediction once."""

    assert wrong_predictions([hand]) is None, "sets with neighbours have a section of their own"
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.3, 0.7]], dtype=np.float32)
    truths = [[0], [0], [0], [1]]
    alone = table(scores, truths, list("abcd"), [0] * 4, ids=list("abcd"))
    alone = replace(alone, columns=("truth", "group"), tags={})
    section = wrong_predictions([Evaluated(alone, {})])
    assert section.title == "Wrong predictions: 2 of 4 images"
    assert section in sections([Evaluated(alone, {})]), "no one has to ask for it"
    assert [exhibit.pictures[0].sample for exhibit in section.exhibits] == ["b", "c"]
    assert section.exhibits[0].title == "c0 → c1"
    assert section.exhibits[0].pictures[0].lines == (
        "label c0: 20.0\u202f%, after 1 class with higher confidence",
    )
    assert [shot.title for shot in section.lead.pictures] == ["c0 → c1", "c0 → c1"]
    film = replace(alone, tags={"video": np.array(["v"] * 4)})
    (video_mistake,) = wrong_predictions([Evaluated(film, {})]).exhibits
    assert video_mistake.pictures[0].sample == "b"
    right = replace(alone, truth=np.ones_like(alone.truth))
    assert wrong_predictions([Evaluated(right, {})]) is None


def test_a_count_agrees_with_its_noun():

    assert number_of(1, "video") == "1 video"
    assert number_of(0, "video") == "0 videos"
    assert number_of(1200, "class") == "1,200 classes"
    assert number_of(2, "box") == "2 boxes"
    assert number_of(1, "image is", "images are") == "1 image is"
    assert number_of(3, "image is", "images are") == "3 images are"
