"""Objects linked without labels: planted gaps come back; numbers are those of the definition."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyeye import testing
from steadyeye.core.boxes import Detections, detection_table, take
from steadyeye.core.errors import UsageError
from steadyeye.core.format import interval
from steadyeye.core.predictions import PROJECTIONS
from steadyeye.core.types import Evaluated
from steadyeye.data.images.image_file import encode
from steadyeye.metrics.blink_rate import blink_rate
from steadyeye.metrics.box_jitter import box_jitter
from steadyeye.metrics.class_change_rate import class_change_rate
from steadyeye.metrics.confidence_swing import confidence_swing
from steadyeye.metrics.covariates.projections import measure_projections
from steadyeye.metrics.detection_delay import detection_delay
from steadyeye.metrics.flicker_rate import flicker_rate
from steadyeye.metrics.sequences.object_steadiness import find_blinks, find_jitter
from steadyeye.metrics.sequences.scenes import can_follow
from steadyeye.metrics.sequences.tracklets import DETECTED, DIP, MISS, UNSURE, link
from steadyeye.predictions.read import read
from steadyeye.report.analyses.object_steadiness import object_steadiness
from steadyeye.report.analyses.unsteady_objects import unsteady_objects
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent, run
from steadyeye.runner.validate import check

METRICS = (blink_rate, flicker_rate, class_change_rate, box_jitter, confidence_swing)
FRAMES = 30
"""Of each of two videos, at 10 frames a second."""


def film(objects, frames=FRAMES):
    """Two videos; `objects(video, frame)` lists (box, label, score)."""
    table = testing.example_video(frames)
    answers = []
    for video, frame in zip(table.tags["video"], table.tags["frame"], strict=True):
        detections = objects(video, int(frame))
        boxes = np.array([box for box, _, _ in detections], dtype=float).reshape(-1, 4)
        labels, scores = (np.array([detection[i] for detection in detections]) for i in (1, 2))
        answers.append(Detections(boxes, labels.astype(np.int32), scores.astype(float)))
    return replace(table, raw_detections=detection_table(answers))


def square(x, y=20.0, side=40.0):
    return (x, y, x + side, y + side)


def states_of(objects, number=0):
    return objects.state[objects.track == number].tolist()


SCORES = {DETECTED: 0.9, DIP: 0.3}
FATES = st.lists(st.sampled_from([DETECTED] * 4 + [DIP, MISS]), min_size=FRAMES, max_size=FRAMES)


@settings(deadline=None)
@given(st.lists(FATES, min_size=1, max_size=3), st.integers(-4, 4), st.integers(0, 2**16))
def test_planted_gaps_come_back(fates, speed, seed):
    """Far apart objects that move evenly: of each, every frame from the first found to the last."""
    noise = np.random.default_rng(seed).normal(0, 0.5, (len(fates), FRAMES, 4))

    def objects(video, frame):
        if video != "v0":
            return []
        return [
            (
                np.add(square(200 + speed * frame, 100.0 * number), noise[number, frame]),
                number,
                SCORES[fate[frame]],
            )
            for number, fate in enumerate(fates)
            if fate[frame] != MISS
        ]

    linked = link(film(objects))
    tracks = sorted(
        (int(linked.row[linked.track == n][0]), tuple(states_of(linked, n)))
        for n in range(len(linked))
    )
    expected = []
    for fate in fates:
        hits = [frame for frame in range(FRAMES) if fate[frame] == DETECTED]
        # what is not found for more than a second is another object when it comes again
        breaks = [i for i in range(1, len(hits)) if hits[i] - hits[i - 1] > 10]
        for part in np.split(np.array(hits, dtype=int), breaks):
            if len(part):
                expected.append((int(part[0]), tuple(fate[part[0] : part[-1] + 1])))
    assert tracks == sorted(expected)


def test_object_metrics_by_hand():
    def objects(video, frame):
        if video != "v0":
            return [(square(50), 0, 0.9)]
        x = 100 + 2 * frame
        if frame == 6:
            return []
        score = 0.2 if frame in (10, 11) else 0.7 if frame % 2 else 0.9
        real = [(square(x), 1 if frame == 20 else 0, score)]
        return [*real, (square(500), 2, 0.95)] if frame == 15 else real

    table = film(objects)
    linked = link(table)
    assert len(linked) == 3
    blinks = find_blinks(linked)
    assert blinks.state.tolist() == [MISS, DIP]
    assert (blinks.last - blinks.first).tolist() == [0, 1]
    rate = blink_rate(table)
    assert (rate.value, rate.n) == (3 / 60, 60)
    assert [cell.value for cell in rate.cells] == [1 / 60, 2 / 60]
    assert rate.notes == (
        "2 blinks of 2 objects; 0 more are not counted, because the detector may not be their "
        "cause",
    )
    # 27 found of v0 make 26 pairs, 30 of v1 29; frame 20 differs from both its neighbours
    changes = class_change_rate(table)
    assert (changes.value, changes.n) == (pytest.approx(2 / 55), 55)
    # one object is there from the first frame to the last of each video
    flickers = flicker_rate(table)
    assert (flickers.value, flickers.n) == (1.0, 1)
    scores = [0.2 if f in (10, 11) else 0.7 if f % 2 else 0.9 for f in range(FRAMES) if f != 6]
    swing = confidence_swing(table)
    assert swing.value == pytest.approx(np.abs(np.diff(scores)).sum() / (28 + 29))
    assert box_jitter(table).value == pytest.approx(0, abs=1e-9)


def test_a_score_in_single_precision_reaches_its_own_threshold():
    """0.7 of single precision is 0.69999999, as `recall_at(score=0.7)` takes it too."""

    def objects(video, frame):
        return [] if frame == 5 else [(square(100), 0, np.float32(0.7 if frame % 2 else 0.9))]

    rate = blink_rate(film(objects), score=0.7)
    assert (rate.value, rate.n) == (2 / 60, 60)
    assert [cell.value for cell in rate.cells] == [2 / 60, 0]


def test_a_gap_in_which_a_box_of_the_threshold_lies_is_nobodys_fault():
    """Frames 10 to 12: the neighbour's box may as well be the object's, of which it covers half."""

    def objects(video, frame):
        own = [] if 10 <= frame <= 12 else [(square(100), 0, 0.9)]
        return [*own, (square(112), 0, 0.9)] if 5 <= frame <= 11 else own

    linked = link(film(objects))
    assert states_of(linked)[9:14] == [DETECTED, *[UNSURE] * 3, DETECTED]
    assert blink_rate(film(objects)).value == 0


def test_an_object_covered_by_another_is_not_missed():
    def objects(video, frame):
        small = [(square(100, 50, 20), 0, 0.9)] if not 10 <= frame <= 12 else []
        return [*small, ((300 - 20 * frame, 0, 400 - 20 * frame, 120), 1, 0.9)]

    table = film(objects)
    linked = link(table)
    rows = (linked.state != DETECTED).nonzero()[0]
    assert len(rows) == 2 * 3
    assert (linked.state[rows] == UNSURE).all()
    # the same gap in the open is a miss
    alone = link(film(lambda v, f: [item for item in objects(v, f) if item[1] == 0]))
    assert states_of(alone)[10:13] == [MISS] * 3


def test_two_classes_on_one_object_are_one_object():
    def objects(video, frame):
        return [(square(100), 0, 0.9), (square(101), 1, 0.8)]

    assert len(link(film(objects))) == 2
    assert class_change_rate(film(objects)).value == 0


def test_frames_that_were_not_predicted_are_no_gaps_and_scenes_end_objects():
    table = film(lambda video, frame: [(square(100 + 3 * frame), 0, 0.9)])
    errors = table.errors.astype(object)
    errors[5] = "cannot decode"
    lost = replace(table, errors=errors.astype(str))
    assert states_of(link(lost)) == [DETECTED] * (FRAMES - 1)
    groups = np.where(table.tags["frame"] < 12, table.groups, np.char.add(table.groups, ":1"))
    cut = link(replace(table, groups=groups))
    assert len(cut) == 4
    assert cut.starts.all()
    assert cut.ends.all()


def test_jitter_is_the_distance_from_a_parabola():
    rng = np.random.default_rng(4)
    offsets = rng.normal(0, 2, (FRAMES, 4))

    def objects(video, frame):
        box = square(100 + 0.2 * frame**2, 300 - 3 * frame)
        return [(np.add(box, offsets[frame]), 0, 0.3 if frame % 7 == 3 else 0.9)]

    table = film(objects)
    linked = link(table)
    rows, place, size = find_jitter(linked, table.tags["seconds"])
    assert len(rows) == 2 * (FRAMES - 4)
    boxes = linked.boxes[linked.track == 0]
    centres, sides = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
    length = np.sqrt(sides[:, 0] * sides[:, 1])
    steps = np.arange(-2, 3)
    for middle in range(2, FRAMES - 2):
        window = slice(middle - 2, middle + 3)
        smooth = [np.polyval(np.polyfit(steps, centres[window, axis], 2), 0) for axis in (0, 1)]
        distance = np.hypot(*(centres[middle] - smooth)) / length[middle]
        assert place[middle - 2] == pytest.approx(distance)
        log = np.log(length)
        over = log[middle] - np.polyval(np.polyfit(steps, log[window], 2), 0)
        assert size[middle - 2] == pytest.approx(abs(over))
    result = box_jitter(table)
    assert result.value == pytest.approx(place.mean())
    assert result.cells[0].value == pytest.approx(size.mean())
    sides_of = linked.boxes[rows][:, 2:] - linked.boxes[rows][:, :2]
    pixels = place * np.sqrt(sides_of.prod(axis=1))
    assert (result.cells[1].value, result.cells[1].unit) == (pytest.approx(pixels.mean()), "pixels")


@pytest.mark.parametrize(("frames", "has_interval"), [(20, False), (10, True)])
def test_jitter_in_pixels_has_an_interval_of_twenty_videos_or_more(frames, has_interval):
    """Over 5 videos of unlike jitter, the bootstrap of this mean covered 77 %."""
    table = testing.example_tracks()
    part = np.char.mod("%d", table.tags["frame"] // frames)
    videos = np.char.add(table.tags["video"], part)
    cut = replace(table, groups=videos, tags={**table.tags, "video": videos})
    jitter = box_jitter(cut)
    assert jitter.low is not None
    pixels = jitter.cells[1]
    assert (pixels.low is not None) is has_interval, pixels.interval
    assert has_interval or pixels.interval == "none: 12 videos are too few"


def test_steady_motion_at_an_uneven_frame_rate_is_no_jitter():
    """The path is a parabola in time: through frames of a rate that changes it is none."""
    table = film(lambda video, frame: [])
    steps = np.random.default_rng(1).choice([1, 1, 1, 1, 2], FRAMES) / 30
    seconds = np.tile(np.cumsum(steps), 2)
    rows = dict(
        zip(zip(table.tags["video"], table.tags["frame"], strict=True), seconds, strict=True)
    )

    def objects(video, frame):
        return [(square(300 * rows[video, frame]), 0, 0.9)]

    table = replace(film(objects), tags={**table.tags, "seconds": seconds})
    result = box_jitter(table)
    even = [np.ptp(steps[i + 1 : i + 5]) < 1e-9 for i in range(FRAMES - 4)]
    assert result.value == pytest.approx(0, abs=1e-12)
    assert result.n == 2 * sum(even) > 0
    assert result.notes == (
        f"{2 * (len(even) - sum(even))} frames left out: their neighbours are not equally far "
        "apart in time",
    )


def test_objects_move_by_time_where_frames_were_dropped():
    """A quarter of its width a frame; behind a pause of four frames it is where it should be."""
    numbers = np.tile(np.arange(FRAMES) + 3 * (np.arange(FRAMES) // 10), 2)
    lost = (15, 22)

    def objects(video, frame):
        return [(square(100 + 10 * numbers[frame]), 0, 0.3 if frame in lost else 0.9)]

    table = film(objects)
    seconds = numbers / 30
    followed = link(replace(table, tags={**table.tags, "seconds": seconds}))
    expected = [DIP if frame in lost else DETECTED for frame in range(FRAMES)]
    assert [states_of(followed, number) for number in range(len(followed))] == [expected, expected]
    # of times that do not rise the numbers of frames are taken
    again = np.tile(np.arange(FRAMES) // 2, 2) / 30
    assert (
        len(
            link(
                replace(
                    film(lambda v, f: [(square(10 * f), 0, 0.9)]),
                    tags={**table.tags, "seconds": again},
                )
            )
        )
        == 2
    )


def test_times_that_a_container_rounds_are_even():
    table = film(lambda video, frame: [(square(100), 0, 0.9)])
    milliseconds = np.round(table.tags["frame"] / 120, 3)  # 8 and 9 ms
    rounded = replace(table, tags={**table.tags, "seconds": milliseconds})
    assert box_jitter(rounded).n == 2 * (FRAMES - 4)


def test_a_gap_of_a_second_is_one_whenever_it_is():
    """In floating point 1.2 − 0.2 is a second and 1.1 − 0.1 is more."""
    for last in range(5, 15):
        table = film(
            lambda video, frame, last=last: (
                [] if last < frame < last + 10 + (video == "v1") else [(square(100), 0, 0.9)]
            )
        )
        objects = link(table)
        assert np.bincount(objects.row < FRAMES).tolist() == [FRAMES - 10, FRAMES]
        assert len(objects) == 3, "the gap of 1.1 s in the second video makes it two objects"


def test_rows_in_any_order_give_the_same_objects():
    table = testing.example_tracks()
    turned = np.random.default_rng(0).permutation(len(table))
    raw = table.raw_detections
    parts = [np.flatnonzero(raw.image == row) for row in turned]
    answers = [
        Detections(raw.boxes[part], raw.label[part].astype(np.int32), raw.score[part])
        for part in parts
    ]
    other = replace(testing._rows(table, turned), raw_detections=detection_table(answers))
    for metric in METRICS:
        assert metric(other) == metric(table), metric.__name__


def test_frames_that_are_far_apart_are_not_linked():
    """Ten frames a second are close enough, two are not: every object would be a flicker."""
    table = film(lambda video, frame: [(square(100), 0, 0.9)])
    assert can_follow(table)
    # five frames a second are enough, whose times differ by 0.2 and a little more
    five = replace(table, tags={**table.tags, "seconds": table.tags["frame"] / 5})
    assert np.median(np.diff(five.tags["seconds"][:FRAMES])) > 0.2
    assert can_follow(five)
    assert flicker_rate(five) == flicker_rate(table)
    sparse = replace(table, tags={**table.tags, "seconds": 5 * table.tags["seconds"]})
    assert not can_follow(sparse)
    with pytest.raises(UsageError, match=r"are 0\.5 s apart, too far to follow objects; take a"):
        flicker_rate(sparse)
    assert not can_follow(testing.example_video())


def test_a_scene_of_too_few_frames_a_second_is_left_out_next_to_others():
    """A fast object in a video of two frames a second was another object in each frame."""

    def objects(video, frame):
        if video == "v1":
            return [(square(60 * frame), 0, 0.9)]
        return [] if frame == 9 else [(square(5 * frame), frame // 20, 0.9 - frame % 2 / 10)]

    table = film(objects)
    slow = np.asarray(table.tags["video"]) == "v1"
    seconds = np.where(slow, table.tags["frame"] / 2, table.tags["seconds"])
    mixed = replace(table, tags={**table.tags, "seconds": seconds})
    alone = testing._rows(table, np.flatnonzero(~slow))
    part = np.flatnonzero(np.isin(table.raw_detections.image, np.flatnonzero(~slow)))
    assert np.array_equal(np.flatnonzero(~slow), np.arange(FRAMES)), "the rows keep their numbers"
    alone = replace(alone, raw_detections=take(table.raw_detections, part))
    assert can_follow(mixed)
    for metric in (*METRICS, detection_delay):
        other, expected = metric(mixed), metric(alone)
        assert (other.value, other.n) == (expected.value, expected.n)
        assert "1 scene left out: frames more than 0.2 s apart, too far to" in other.notes[-1]
    assert (blink_rate(mixed).value, blink_rate(mixed).n) == (1 / FRAMES, FRAMES)


def test_runs_without_detections_are_refused_or_have_no_value():
    with pytest.raises(UsageError, match="no detections of example are stored"):
        blink_rate(testing.example_video())
    with pytest.raises(UsageError, match=r"score=0\.05: give a score between 0\.1 and 1"):
        blink_rate(testing.example_tracks(), score=0.05)
    nothing = film(lambda video, frame: [])
    for metric in METRICS:
        assert metric(nothing).value is None


@pytest.fixture(scope="module")
def run_of_squares(tmp_path_factory):
    """A run of a detector of bright squares on two videos in which it blinks as planted."""
    root = tmp_path_factory.mktemp("squares")
    for video, hidden in (("a", {8, 9, 10}), ("b", set())):
        (root / "videos" / video).mkdir(parents=True)
        for frame in range(25):
            image = np.full((96, 160, 3), 30, dtype=np.uint8)
            value = 90 if frame in hidden else 200 if frame == 15 else 250
            image[30:60, 20 + 3 * frame : 50 + 3 * frame] = value
            (root / "videos" / video / f"{frame:03d}.png").write_bytes(encode(image, ".png"))
    (root / "classes.json").write_text('["dim", "bright"]')
    model = f"callable_detector(path='object_toys:bright', classes='{root}/classes.json')"
    data = f"every_frame(path='{root}/videos', cuts='none', fps=10)"
    out = run(check(Job((model,), (data,), str(root / "run"), workers=1)), Silent())
    return Path(str(out)) / "cells" / "bright@videos"


def test_the_report_of_a_run_shows_the_missed_objects(run_of_squares):
    predictions = read(run_of_squares)
    black = np.full((96, 160, 3), 30, dtype=np.uint8)
    black[30:60, 20:50] = 250
    assert (predictions.tags[PROJECTIONS][0] == measure_projections(black)).all()
    assert blink_rate(predictions).value == pytest.approx(3 / 50)
    assert class_change_rate(predictions).value == pytest.approx(4 / (21 + 24))
    section = object_steadiness([Evaluated(predictions, {"blink_rate": blink_rate(predictions)})])
    table, by_object = section.tables
    assert [row[:4] for row in table.rows] == [("bright", "bright", "2", "50")]
    assert table.rows[0][-1] == "4 of 45"
    assert [row[:6] for row in by_object.rows] == [
        ("bright 1", "a", "bright", "0:00.0", "25", "12.0\u202f%"),
        ("bright 2", "b", "bright", "0:00.0", "25", "0.0\u202f%"),
    ]
    assert by_object.rows[0][7:] == ("2 of 21", "0.0\u202f%", "0.0", "0.0\u202f%")
    rate = blink_rate(predictions)
    ends = interval(rate.low, rate.high)
    assert table.rows[0][5] == ends
    assert f"(95\u202f% interval {ends})" in section.text[0]
    assert all(re.fullmatch(r"[\d.]+–[\d.]+\u202f%", row[6]) for row in by_object.rows)
    (exhibit,) = section.exhibits
    assert exhibit.title == "bright lost for 3 frames at 0:00.8 of a"
    assert [picture.sample for picture in exhibit.pictures] == ["a/000007", "a/000009", "a/000011"]
    assert [picture.right for picture in exhibit.pictures] == [True, False, True]
    # halfway between 41 and 53, where the square is
    assert exhibit.pictures[1].marks[0].box == pytest.approx((47, 30, 77, 60), abs=0.3)
    assert exhibit.film.frames[exhibit.film.start].sample == "a/000009"
    assert "6.0\u202f% of 50 frames" in section.text[0]
    assert object_steadiness([Evaluated(predictions, {})]) is None


def test_the_worst_second_is_a_film_with_a_timeline_of_its_objects(run_of_squares):
    """Of video a the frames 6 to 15 hold the three lost and the one that is renamed."""
    predictions = read(run_of_squares)
    evaluated = [Evaluated(predictions, {"blink_rate": blink_rate(predictions)})]
    section = unsteady_objects(evaluated)
    first, second = section.exhibits
    assert first.title == "a, 0:00.6–0:01.5: 1 object, 4 faults"
    assert second.title == "b, 0:00.6–0:01.5: 1 object, 1 fault"
    (lane,) = first.film.lanes
    states = dict(zip([frame.sample for frame in first.film.frames], lane.states, strict=True))
    assert lane.name == "bright 1"
    assert [states[f"a/{i:06}"] for i in (7, 8, 10, 11, 15)] == [
        *("present", "lost", "lost", "present", "renamed")
    ]
    assert first.film.frames[first.film.start].sample == "a/000006"
    assert [picture.sample for picture in first.pictures] == [
        *("a/000006", "a/000009", "a/000012", "a/000015")
    ]
    frame = first.film.frames[[f.sample for f in first.film.frames].index("a/000009")]
    assert (frame.right, frame.line, frame.marks[0].kind) == (False, "1 lost", "wrong")
    assert section.tables[0].rows[0][-3:] == ("3", "0", "1")
    assert unsteady_objects([Evaluated(predictions, {})]) is None
