"""The motion of the camera: planted shifts are found, and shaking it changes no number."""

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest

from steadyeye import testing
from steadyeye.core.boxes import Detections, detection_table, take_where
from steadyeye.core.predictions import PROJECTIONS
from steadyeye.metrics.blink_rate import blink_rate
from steadyeye.metrics.box_jitter import box_jitter
from steadyeye.metrics.covariates.projections import measure_projections
from steadyeye.metrics.detection_delay import detection_delay
from steadyeye.metrics.sequences.camera_motion import find_shifts
from steadyeye.metrics.sequences.tracklets import link
from steadyeye.predictions.sample_rows import build_table
from steadyeye.watch.live_objects import LiveObjects, ObjectCounts

FRAMES = 30
WIDTH, HEIGHT = 320, 240
MARGIN = 60


@pytest.fixture(scope="module")
def landscape():
    """A smooth random picture, larger than a frame by `MARGIN` on each side."""
    rng = np.random.default_rng(0)
    sides = HEIGHT + 2 * MARGIN, WIDTH + 2 * MARGIN
    layers = [cv2.GaussianBlur(rng.normal(0, 1, (*sides, 3)), (0, 0), blur) for blur in (3, 12, 40)]
    picture = sum(layer / layer.std() for layer in layers)
    return np.clip(120 + 30 * picture, 0, 255).astype(np.uint8)


def crop(landscape, shift):
    """The frame whose content is moved by `shift`, (x, y)."""
    x, y = MARGIN - np.asarray(shift)
    return landscape[y : y + HEIGHT, x : x + WIDTH]


def project(pictures):
    return np.array([measure_projections(picture) for picture in pictures])


def shake(seed, frames=FRAMES):
    """(frames, 2) shifts in whole pixels, as of a hand that trembles."""
    return np.random.default_rng(seed).integers(-12, 13, (frames, 2))


def test_planted_shifts_are_found(landscape):
    shifts = shake(0)
    moved = find_shifts(project(crop(landscape, shift) for shift in shifts))
    assert (moved[0] == 0).all()
    assert np.abs(moved[1:] - np.diff(shifts, axis=0)).max() < 1


def test_long_scenes_are_compared_in_parts_with_the_same_result(landscape, monkeypatch):
    projections = project(crop(landscape, shift) for shift in shake(1, 12))
    whole = find_shifts(projections)
    monkeypatch.setattr("steadyeye.metrics.sequences.camera_motion.AT_ONCE", 5)
    assert (find_shifts(projections) == whole).all()
    for pair in range(11):
        assert (find_shifts(projections[pair : pair + 2])[1] == whole[pair + 1]).all()


def test_light_noise_cuts_and_other_sizes_are_no_motion(landscape):
    frame = crop(landscape, (0, 0))
    dark = (frame * 0.9).astype(np.uint8)
    half = frame // 2
    assert np.abs(find_shifts(project([half, half + 20]))).max() < 0.1
    assert np.abs(find_shifts(project([frame, dark]))).max() < 1
    black, grey = (np.full_like(frame, value) for value in (0, 128))
    assert np.abs(find_shifts(project([black, black, grey, black]))).max() == 0
    noise = np.random.default_rng(0).normal(20, 3, (8, *frame.shape))
    assert np.abs(find_shifts(project(noise.round().astype(np.uint8)))).max() < 1
    plain = np.full((4, *frame.shape), 90, dtype=np.uint8)
    for number, picture in enumerate(plain):
        picture[100:130, 50 + 9 * number : 90 + 9 * number] = 200
    assert np.abs(find_shifts(project(plain))).max() == 0, "an object on it moves, no camera"
    smaller = cv2.resize(frame, (WIDTH // 2, HEIGHT // 2))
    assert np.abs(find_shifts(project([frame, smaller]))).max() == 0
    assert find_shifts(project([frame])).tolist() == [[0, 0]]


def film(landscape, shifts, on_screen=False):
    """`example_video` with an object that walks and blinks, each video shaken by its own shifts.

    `on_screen`: a second object keeps its place in the picture, as the bonnet of a car does.
    """
    table = testing.example_video(FRAMES)
    answers, pictures = [], []
    for row, frame in enumerate(table.tags["frame"]):
        x, y = shifts[row]
        walker = [40.0 + 3 * frame + x, 60.0 + y, 70.0 + 3 * frame + x, 90.0 + y]
        boxes = [[10.0, 200, 60, 230]] * on_screen + [walker] * (frame not in (7, 8, 20))
        answers.append(
            Detections(
                np.array(boxes).reshape(-1, 4), np.zeros(len(boxes), np.int32), np.ones(len(boxes))
            )
        )
        pictures.append(crop(landscape, (x, y)))
    tags = {**table.tags, PROJECTIONS: project(pictures)}
    return replace(table, tags=tags, raw_detections=detection_table(answers))


def test_a_shaking_camera_changes_neither_objects_nor_jitter(landscape):
    still = film(landscape, np.zeros((2 * FRAMES, 2), dtype=int))
    shaken = film(landscape, np.concatenate([shake(2), shake(3)]))
    unaware = replace(shaken, tags={k: v for k, v in shaken.tags.items() if k != PROJECTIONS})
    objects = link(shaken)
    assert objects.state.tolist() == link(still).state.tolist()
    assert objects.track.tolist() == link(still).track.tolist()
    assert blink_rate(shaken).value == blink_rate(still).value == pytest.approx(3 / 30)
    assert len(link(unaware)) > len(objects), "the object is cut in pieces"
    # boxes are those of the picture again, also where they are interpolated
    true = shake(2)[7] + [40 + 3 * 7, 60]
    assert objects.boxes[7, :2] == pytest.approx(true, abs=1.5)


def test_the_motion_of_the_camera_is_no_jitter_of_boxes(landscape):
    still = film(landscape, np.zeros((2 * FRAMES, 2), dtype=int))
    shaken = film(landscape, np.concatenate([shake(2), shake(3)]) // 4)
    unaware = replace(shaken, tags={k: v for k, v in shaken.tags.items() if k != PROJECTIONS})
    jitter = [box_jitter(table).value for table in (still, shaken, unaware)]
    assert jitter[0] == pytest.approx(0, abs=1e-9)
    assert jitter[1] < 0.01
    assert jitter[2] > 0.03


def test_what_keeps_its_place_in_a_moving_picture_does_not_jitter(landscape):
    shaken = film(landscape, np.concatenate([shake(4), shake(5)]), on_screen=True)
    assert len(link(shaken)) >= 4
    assert (box_jitter(shaken).value or 0) < 0.02


def test_the_delay_is_looked_up_where_the_camera_was(landscape):
    """Weak boxes before the first detection are traced back along the shaken path."""
    shaken = film(landscape, np.concatenate([shake(6), shake(7)]))
    raw = shaken.raw_detections
    raw = take_where(raw, shaken.tags["frame"][raw.image] >= 2)
    weak = shaken.tags["frame"][raw.image] < 5
    late = replace(shaken, raw_detections=replace(raw, score=np.where(weak, 0.3, 1.0)))
    assert detection_delay(late).value == pytest.approx(0.3)


def test_a_stream_has_the_counts_of_the_whole_video_also_after_a_restart(landscape):
    shaken = film(landscape, np.concatenate([shake(8), shake(9)]))
    raw, counts, live = shaken.raw_detections, ObjectCounts(), LiveObjects()
    for row in range(2 * FRAMES):
        if row == FRAMES:
            live.begin_scene()
        if row == 8:
            record = json.loads(json.dumps(live.record()))
            live = LiveObjects()
            live.resume(record)
        own = raw.image == row
        detections = Detections(raw.boxes[own], raw.label[own], raw.score[own])
        time = float(shaken.tags["seconds"][row])
        counts.add(live.add(row % FRAMES, time, time, detections, shaken.tags[PROJECTIONS][row]))
    whole = blink_rate(shaken)
    assert counts.frames == whole.n == 60
    assert counts.lost_frames == 6
    assert [event.frame for event in counts.events] == [7, 8, 20] * 2
    expected = [link(shaken).boxes[place] for place in (7, 8, 20)]
    for event, box in zip(counts.events, expected, strict=False):
        assert event.box == pytest.approx(box, abs=0.06)


def test_tables_for_other_tools_leave_projections_out(landscape):
    shaken = film(landscape, np.zeros((2 * FRAMES, 2), dtype=int))
    assert PROJECTIONS not in build_table(shaken).column_names
