"""Repeated frames: which of a video's frames were written twice is known here, as they are."""

import itertools

import cv2
import numpy as np
import pytest
from encoded import write_images
from toy_training import BIKES

from steadyeye.core.format import percent
from steadyeye.data.sources.every_frame import every_frame
from steadyeye.data.sources.video import video
from steadyeye.data.video import decoder, shot_detection
from steadyeye.data.video.paths import resolve_path
from steadyeye.data.video.repeated_frames import (
    NOTED,
    find_repeats,
    share_changed,
    share_of_repeats,
)

DOUBLED = tuple(number // 2 for number in range(160))
PULLDOWN = tuple(number * 4 // 5 for number in range(100))
TRIPLED = tuple(number // 3 for number in range(150))
AS_FILMED = tuple(range(100))
ENCODERS = {
    "a.mp4": ("libx264", {"crf": "28", "preset": "veryfast"}),
    "a.mkv": ("libx265", {"preset": "ultrafast", "x265-params": "log-level=none"}),
    "a.avi": ("mpeg4", {"qscale": "5"}),
    "a.mpg": ("mpeg2video", {"b": "500k"}),
    "a.webm": ("libvpx-vp9", {"deadline": "realtime", "cpu-used": "8", "b": "200k"}),
    "a.ts": ("libx264", {"b": "75k", "preset": "veryfast", "tune": "zerolatency"}),
}


@pytest.fixture(scope="module")
def pictures():
    """Pictures of a real video of moving things with cuts, (272, 640, 3)."""
    index = decoder.index(resolve_path(BIKES))
    return [decoder.frame(index, number).image() for number in range(250)]


@pytest.fixture(scope="module")
def small_pictures(pictures):
    """As many of a quarter of the pixels, which are still more than those compared."""
    return [cv2.resize(image, (320, 136), interpolation=cv2.INTER_AREA) for image in pictures]


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("order", [DOUBLED, PULLDOWN, TRIPLED, AS_FILMED])
def test_repeats_are_those_that_were_written(name, order, small_pictures, tmp_path):
    images = [small_pictures[number] for number in order]
    path = write_images(tmp_path / name, *ENCODERS[name], images)
    written = np.diff(order) == 0
    repeats = shot_detection.of_video(decoder.index(path)).repeats
    assert repeats.shape == written.shape
    assert np.mean(repeats != written) <= 0.04
    for source in (
        every_frame(path=str(path)),
        video(path=str(path), k=1, cuts="detect"),
    ):
        notes = [note for note in source.notes if "repeated frames" in note]
        assert bool(notes) is bool(written.any())
        # a sample of the video repeats its notes, but for those on cuts
        assert not {*notes} & {*getattr(source, "cut_notes", ())}
        if notes:
            assert notes[0].startswith("1 of 1 video with repeated frames: ")
            share = percent(share_of_repeats(repeats))
            assert f"{share} of the frames with motion of '{name}' repeat" in notes[0]
    every_second = every_frame(path=str(path), step=2)
    assert any("repeated" in note for note in every_second.notes) is (order is TRIPLED)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("noise", [0, 3])
def test_a_still_camera_and_a_frozen_stream_have_no_repeats(name, noise, small_pictures, tmp_path):
    """Encoders repeat the picture of a scene in which only noise differs, or nothing."""
    rng = np.random.default_rng(noise)
    size = small_pictures[0].shape
    still = [
        np.clip(small_pictures[0] + rng.normal(0, noise, size), 0, 255).astype(np.uint8)
        for _ in range(60)
    ]
    path = write_images(tmp_path / name, *ENCODERS[name], still)
    assert np.isnan(shot_detection.of_video(decoder.index(path)).repeats).all()
    assert not [note for note in every_frame(path=str(path)).notes if "repeat" in note]


def find_by_definition(changes, steps):
    """One frame after the other, over those around it that are after no more frames."""
    around = [*changes[4:0:-1], *changes, *changes[-2:-6:-1]]
    around_steps = [*steps[4:0:-1], *steps, *steps[-2:-6:-1]]
    repeats = []
    for place, (change, step) in enumerate(zip(changes, steps, strict=True)):
        window = slice(place, place + 9)
        near = [c for c, s in zip(around[window], around_steps[window], strict=True) if s <= step]
        usual = np.quantile(near, 0.75)
        repeats.append(np.nan if usual < 0.005 else float(change < 0.3 * usual))
    return repeats


def test_repeats_are_those_of_the_definition():
    rng = np.random.default_rng(2)
    for count in (5, 6, 9, 40, 300):
        changes = rng.exponential(0.02, count) * (rng.random(count) < 0.7)
        steps = rng.integers(1, 4, count)
        np.testing.assert_array_equal(
            find_repeats(changes, steps), find_by_definition(changes.tolist(), steps.tolist())
        )
        np.testing.assert_array_equal(
            find_repeats(changes), find_by_definition(changes.tolist(), [1] * count)
        )


def test_pixels_that_change_are_counted_above_noise():
    rng = np.random.default_rng(3)
    before = rng.integers(20, 200, (48, 64), dtype=np.uint8)
    after = before + rng.integers(-16, 17, before.shape)
    after[:6] = before[:6] + 17
    expected = np.mean(np.abs(after - before.astype(int)) > 16)
    assert share_changed(after.astype(np.uint8), before) == expected == 6 / 48
    assert share_changed(before, before) == 0


@pytest.mark.parametrize("pattern", [(1, 6), (1, 2, 3), (1, 1, 1, 4), (1, 1, 1, 1, 1, 10)])
@pytest.mark.parametrize("times", [1, 2])
def test_frames_that_are_passed_over_at_random_change_nothing(pattern, times, pictures):
    """As where a model is too slow for a stream: the more are passed over, the more changes."""
    small = [cv2.cvtColor(image[::2, ::2], cv2.COLOR_RGB2GRAY) for image in pictures]
    read = np.cumsum(np.random.default_rng(4).choice(pattern, 500))
    read = read[read < times * len(small)]
    images = [small[number // times] for number in read]
    changes = [share_changed(b, a) for a, b in itertools.pairwise(images)]
    repeats = find_repeats(changes, np.diff(read))
    written = np.mean(np.diff(read // times) == 0)
    assert np.nanmean(repeats) == pytest.approx(written, abs=0.08)
    assert (share_of_repeats(repeats) >= NOTED) is (times == 2)


def test_a_cut_makes_no_repeats_around_it():
    changes = np.full(60, 0.03)
    changes[[20, 40]] = 0.9
    assert not find_repeats(changes).any()


@pytest.mark.parametrize("count", range(0, 48, 4))
def test_few_frames(count):
    assert share_of_repeats(find_repeats([0.0] * count)) is None
    moving = find_repeats([0.3] * count)
    assert np.isnan(moving).tolist() == [count < 5] * count
    assert share_of_repeats(moving) == (None if count < 40 else 0)


def test_the_share_is_of_the_frames_that_are_read():
    """A read frame repeats the read one before if every frame between does."""
    rng = np.random.default_rng(1)
    for step in (1, 2, 3, 7):
        numbers = np.cumsum(rng.random(300) < 0.3)
        read = numbers[::step]
        expected = np.mean(read[1:] == read[:-1])
        repeats = (numbers[1:] == numbers[:-1]).astype(float)
        assert share_of_repeats(repeats, step) == pytest.approx(expected)
    still = np.full(40, np.nan)
    assert share_of_repeats(np.r_[still, np.tile([1.0, 0], 20), still]) == 0.5
    assert share_of_repeats(still) is share_of_repeats(np.ones(19)) is None
    assert share_of_repeats(np.ones(79), 4) is None
