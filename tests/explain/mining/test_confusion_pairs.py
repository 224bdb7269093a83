"""Confused classes: pairs by hand, their control and their pictures."""

from dataclasses import replace

import numpy as np
import pytest
from mining_toys import ANIMAL, BEAR, CAR, KITE, PARENTS, table

from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.core.types import Evaluated
from steadyeye.explain.mining.error_rates import confusions
from steadyeye.report.analyses.confident_mistakes import confident_mistakes
from steadyeye.report.analyses.confusion_pairs import confusion_pairs

ANIMALS, BEARS, CARS, GOATS = range(4)
BOX, BESIDE, APART = (0, 0, 10, 10), (1, 0, 11, 10), (50, 50, 60, 60)


@pytest.fixture
def zoo():
    """Six goats, of which three are surely a bear and one more is unsurely; two cars."""
    truths = [[(BOX, GOATS)]] * 5 + [[(BOX, GOATS), (APART, CARS)], [(BOX, CARS)]]
    detections = [
        [(BOX, BEAR, 0.9), (BESIDE, BEAR, 0.99)],
        [(BESIDE, BEAR, 0.85)],
        [(BOX, BEAR, 0.81), (BOX, CAR, 0.9)],
        [(BOX, BEAR, 0.5)],
        [(APART, BEAR, 0.95)],
        [(APART, CAR, 0.9)],
        [(BOX, CAR, 0.9), (BOX, KITE, 0.95)],
    ]
    return table(truths, detections)


def test_pairs_count_objects_once_and_name_the_class_of_the_data(zoo):
    bear, kite, car = pairs = confusions(zoo)
    # ties by name
    assert [(p.true, p.predicted) for p in pairs] == [
        ("goat", "bear"),
        ("car", "kite"),
        ("goat", "car"),
    ]
    assert (bear.true, bear.predicted, len(bear.rows)) == ("goat", "bear", 3)
    # the most confident of the two on the first goat, then by falling score
    assert [float(zoo.raw_detections.score[row]) for row in bear.rows] == [0.99, 0.85, 0.81]
    assert bear.places == (0, 1, 2)
    assert bear.foreign
    assert (bear.sure.value, bear.sure.n) == (3 / 6, 6)
    assert (bear.sure.low, bear.sure.high) == clopper_pearson(3, 6)
    # the control: one goat more is a bear at 0.5
    assert bear.unsure.value == 4 / 6
    assert (kite.foreign, car.foreign) == (False, True)


def test_a_parent_class_and_a_right_box_are_no_confusion():
    # an animal is no mistake for a goat below it, and a bear beside a goat is a bear
    truths = [[(BOX, GOATS)], [(BOX, GOATS), (BESIDE, BEARS)]]
    detections = [[(BOX, ANIMAL, 0.9)], [(BOX, BEAR, 0.9)]]
    assert confusions(table(truths, detections, parents=PARENTS)) == []
    assert confusions(table(truths, detections))[0].predicted == "animal"


def test_objects_outside_the_classes_are_named_so_and_crowds_do_not_count():
    truths = [[(BOX, -1)], [(BOX, CARS, True), (APART, CARS)]]
    detections = [[(BOX, BEAR, 0.9)], [(BOX, BEAR, 0.9), (APART, BEAR, 0.9)]]
    first, second = confusions(table(truths, detections))
    assert (first.true, first.predicted) == ("OOD object", "bear")
    assert (second.true, second.predicted, second.sure.n) == ("car", "bear", 1)


def test_intervals_are_over_videos():
    truths, detections = [[(BOX, GOATS)]] * 40, [[(BOX, BEAR, 0.9)]] * 20 + [[]] * 20
    films = np.repeat(["a", "b", "c", "d"], 10)
    by_image = confusions(table(truths, detections))[0].sure
    by_video = confusions(table(truths, detections, tags={"video": films}))[0].sure
    assert by_image.value == by_video.value == 0.5
    assert by_video.high - by_video.low > 2 * (by_image.high - by_image.low)
    assert by_video.method == "Gaffke's bounds over 4 videos"


def test_the_section_says_shares_control_and_shows_marks(zoo):
    section = confusion_pairs([Evaluated(zoo, {})])
    # three against one and one is no lead: the title counts, it does not name
    assert section.title == "Confusions: 3 pairs of classes"
    row = section.tables[0].rows[0]
    assert row[:2] == ("goat → bear", "3")
    assert row[2] == "50.0\u202f% (11.8–88.2\u202f%)"
    assert row[3].startswith("66.7\u202f%")
    assert row[4:6] == ("6", "no")
    assert "confidently confuses 4 of 8 objects, in 3 pairs" in section.text[1]
    first = [exhibit for exhibit in section.exhibits if exhibit.title == "goat → bear: 3 objects"]
    assert [exhibit.pictures[0].sample for exhibit in first] == ["i0", "i1", "i2"]
    # still images have no neighbours to play
    assert all(exhibit.film is None for exhibit in section.exhibits)
    truth, wrong = first[0].pictures[0].marks
    assert (truth.kind, truth.text, truth.box) == ("truth", "goat", BOX)
    assert (wrong.kind, wrong.text, wrong.box) == ("wrong", "bear 0.99", BESIDE)
    assert confusion_pairs([Evaluated(zoo, {})]) == section


def test_a_picture_of_each_video_is_shown():
    truths, detections = [[(BOX, GOATS)]] * 6, [[(BOX, BEAR, 0.99 - 0.01 * i)] for i in range(6)]
    films = np.array(["a", "a", "a", "a", "b", "c"])
    section = confusion_pairs([Evaluated(table(truths, detections, tags={"video": films}), {})])
    samples = [exhibit.pictures[0].sample for exhibit in section.exhibits]
    assert samples == ["i0", "i4", "i5"]
    assert section.exhibits[0].title == "goat → bear: 6 objects"


def test_the_frames_of_its_video_play_around_a_mistake():
    """The mistake fades on the next frames; it stays on the film as long as it is above 0.3."""
    truths = [[(BOX, GOATS)]] * 6
    detections = [[(BOX, BEAR, score)] for score in (0.2, 0.4, 0.9, 0.5, 0.1, 0.7)]
    tags = {"video": np.array(["a"] * 5 + ["b"]), "frame": np.array([0, 2, 4, 6, 8, 4])}
    (exhibit,) = confusion_pairs([Evaluated(table(truths, detections, tags=tags), {})]).exhibits
    film = exhibit.film
    assert [frame.sample for frame in film.frames] == ["i0", "i1", "i2", "i3", "i4"]
    assert film.frames[film.start].sample == exhibit.pictures[0].sample == "i2"
    assert [frame.score for frame in film.frames] == [0, 0.4, 0.9, 0.5, 0]
    assert [frame.right for frame in film.frames] == [True, False, False, False, True]
    assert film.frames[0].line == "no false bear above 0.3"
    assert film.frames[1].line == "false bear, score 0.40"
    assert [mark.kind for mark in film.frames[1].marks] == ["truth", "wrong"]
    mistakes = confident_mistakes([Evaluated(table(truths, detections, tags=tags), {})])
    assert [mistake.film for mistake in mistakes.exhibits] == [film]


def test_nothing_confused_is_no_section(zoo):
    right = table([[(BOX, CARS)]], [[(BOX, CAR, 0.9)]])
    assert confusion_pairs([Evaluated(right, {})]) is None
    assert confusion_pairs([Evaluated(replace(zoo, raw_detections=None), {})]) is None
