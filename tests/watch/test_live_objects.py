"""Objects of a stream: the counts frame by frame equal those of the whole video."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyeye.core.boxes import Detections, detection_table
from steadyeye.metrics.blink_rate import blink_rate
from steadyeye.metrics.class_change_rate import class_change_rate
from steadyeye.metrics.sequences.tracklets import DETECTED, DIP, MISS
from steadyeye.testing import example_video
from steadyeye.watch.live_objects import LiveObjects, ObjectCounts


def random_frames(seed, frames, objects, fps):
    """Objects that walk, meet, blink, dip and change their class, with false positives."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 200, (objects, 2))
    speeds = rng.normal(0, 40 / fps, (objects, 2))
    sides = rng.uniform(20, 60, (objects, 1))
    detections = []
    for _ in range(frames):
        places = places + speeds + rng.normal(0, 0.5, places.shape)
        scores = rng.choice([0.9, 0.7, 0.3, 0.05], objects, p=[0.6, 0.25, 0.1, 0.05])
        labels = np.where(rng.random(objects) < 0.9, np.arange(objects) % 3, rng.integers(0, 3))
        boxes = np.hstack([places, places + sides])
        visible = rng.random(objects) < 0.95
        false = rng.uniform(0, 200, (rng.poisson(0.3), 2))
        boxes = np.vstack([boxes[visible], np.hstack([false, false + 30])])
        scores = np.append(scores[visible], rng.uniform(0, 1, len(false)))
        labels = np.append(labels[visible], np.zeros(len(false)))
        detections.append(Detections(boxes, labels.astype(np.int32), scores))
    return detections


def follow_live(frames, numbers, seconds):
    live, counts = LiveObjects(), ObjectCounts()
    sizes = []
    for number, second, detections in zip(numbers, seconds, frames, strict=True):
        counts.add(live.add(int(number), float(second), float(second), detections))
        sizes.append(len(live._scene.rows))
    return counts, sizes


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**16), st.integers(1, 6))
def test_live_counts_are_those_of_the_whole_video(seed, objects):
    """Two videos of `example_video` at 10 frames a second, the second behind a cut."""
    table = example_video(120)
    frames = random_frames(seed, len(table.ids), objects, 10)
    whole = replace(table, raw_detections=detection_table(frames))
    counts = ObjectCounts()
    for video in np.unique(table.tags["video"]):
        rows = np.flatnonzero(table.tags["video"] == video)
        numbers, seconds = table.tags["frame"][rows], table.tags["seconds"][rows]
        live, sizes = follow_live([frames[row] for row in rows], numbers, seconds)
        counts.add(live)
        assert max(sizes) < 40, "the frames of two seconds and a few"
    blinks, changes = blink_rate(whole), class_change_rate(whole)
    assert counts.frames == blinks.n
    assert counts.lost_frames == pytest.approx((blinks.value or 0) * blinks.n)
    missed, dips = (cell.value or 0 for cell in blinks.cells)
    assert counts.states[MISS] == pytest.approx(missed * blinks.n)
    assert counts.states[DIP] == pytest.approx(dips * blinks.n)
    assert counts.pairs == changes.n
    assert counts.changes == pytest.approx((changes.value or 0) * changes.n)
    # an object that came and went is counted by pairs of its detections
    assert sum(event.state != DETECTED for event in counts.events) == counts.lost_frames


def test_an_object_that_stays_takes_no_more_memory():
    live = LiveObjects()
    box = np.array([[10.0, 10, 50, 50]])
    for number in range(2_000):
        live.add(number, number / 25, number, Detections(box, np.zeros(1, np.int32), np.ones(1)))
    (life,) = live._lives.values()
    assert len(live._scene.rows) <= 2 * 26 + 2
    assert len(life.item.places) <= 2 * 26 + 2
    assert life.detections == 2_000


def test_nothing_is_linked_over_a_cut_or_a_long_gap():
    live = LiveObjects()
    box = Detections(np.array([[10.0, 10, 50, 50]]), np.zeros(1, np.int32), np.ones(1))
    nothing = Detections(np.zeros((0, 4)), np.zeros(0, np.int32), np.zeros(0))
    counts = ObjectCounts()
    for number in range(10):
        counts.add(live.add(number, number / 10, number, box))
    live.begin_scene()
    for number in range(20, 30):
        counts.add(live.add(number, number / 10, number, box))
    for number in range(30, 45):
        counts.add(live.add(number, number / 10, number, nothing))
    for number in range(45, 55):
        counts.add(live.add(number, number / 10, number, box))
    assert counts.states == {DETECTED: 30}


@pytest.mark.parametrize("missed", [9, 10])
def test_a_gap_of_a_second_is_one_whenever_it_is(missed):
    """Up to a second an object is the same; in floating point 1.1 − 0.1 is more than a second."""
    box = Detections(np.array([[10.0, 10, 50, 50]]), np.zeros(1, np.int32), np.ones(1))
    nothing = Detections(np.zeros((0, 4)), np.zeros(0, np.int32), np.zeros(0))
    for last in range(5, 15):
        frames = [box] * last + [nothing] * missed + [box] * 10
        counts, _ = follow_live(frames, range(len(frames)), np.arange(len(frames)) / 10)
        assert counts.states[MISS] == (missed if missed == 9 else 0)
