"""Repeated frames: which of a video's frames were written twice is known here, as they are."""

import av
import cv2
import numpy as np
import pytest
from toy_training import BIKES

from steadyeye.core.format import percent
from steadyeye.data.sources.every_frame import every_frame
from steadyeye.data.sources.video import video
from steadyeye.data.video import decoder, shot_detection
from steadyeye.data.video.paths import resolve_path
from steadyeye.data.video.repeated_frames import find_repeats, share_of_repeats

DOUBLED = tuple(number // 2 for number in range(160))
PULLDOWN = tuple(number * 4 // 5 for number in range(100))
TRIPLED = tuple(number // 3 for number in range(150))
AS_FILMED = tuple(range(100))
ENCODERS = {
    "a.mp4": ("libx264", {"crf": "28", "preset": "veryfast"}),
    "a.mkv": ("libx265", {"preset": "ultrafast", "x265-params": "log-level=none"}),
    "a.avi": ("mpeg4", {"qscale": "5"}),
}


@pytest.fixture(scope="module")
def pictures():
    """80 and more pictures of a real video of moving things, (136, 320, 3)."""
    index = decoder.index(resolve_path(BIKES))
    images = (decoder.frame(index, number).image() for number in range(100))
    return [
        cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA) for image in images
    ]


def write(path, codec, options, images):
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25)
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt, stream.options = "yuv420p", options
        for image in images:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("order", [DOUBLED, PULLDOWN, TRIPLED, AS_FILMED])
def test_repeats_are_those_that_were_written(name, order, pictures, tmp_path):
    path = write(tmp_path / name, *ENCODERS[name], [pictures[number] for number in order])
    written = np.diff(order) == 0
    repeats = shot_detection.of_video(decoder.index(path)).repeats
    assert repeats.shape == written.shape
    assert np.mean(repeats != written) <= 0.03
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
            assert f"{percent(repeats.mean())} of '{name}'" in notes[0]
    every_second = every_frame(path=str(path), step=2)
    assert any("repeated" in note for note in every_second.notes) is (order is TRIPLED)


def test_a_still_scene_has_repeats_only_where_nothing_differs():
    """Noise of a camera differs alike from frame to frame; a stopped stream does not at all."""
    noise = 1 + 0.2 * np.random.default_rng(0).standard_normal(300)
    assert not find_repeats(noise).any()
    assert find_repeats(np.zeros(300)).all()
    noise[100:150] = 0
    assert find_repeats(noise).nonzero()[0].tolist() == list(range(100, 150))


def test_a_cut_makes_no_repeats_around_it():
    differences = np.full(60, 3.0)
    differences[[20, 40]] = 90
    assert not find_repeats(differences).any()


@pytest.mark.parametrize("count", range(12))
def test_few_frames(count):
    assert find_repeats([3.0] * count).tolist() == [False] * count
    assert find_repeats([0.0] * count).tolist() == [True] * count


def test_the_share_is_of_the_frames_that_are_read():
    """A read frame repeats the read one before if every frame between does."""
    rng = np.random.default_rng(1)
    for step in (1, 2, 3, 7):
        pictures = np.cumsum(rng.random(50) < 0.3)
        read = pictures[::step]
        expected = np.mean(read[1:] == read[:-1])
        assert share_of_repeats(pictures[1:] == pictures[:-1], step) == pytest.approx(expected)
    assert share_of_repeats(np.zeros(0, np.bool_)) == 0
    assert share_of_repeats(np.ones(3, np.bool_), 7) == 0
