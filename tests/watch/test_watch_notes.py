"""Notes of a watch on its pictures: repeated frames, and what a player would show differently."""

from dataclasses import asdict

import numpy as np
import pytest
from encoded import write as write_encoded
from encoded import write_images as write
from test_feeds import file_server
from test_watch import detector, settings, watch_file
from toy_training import BIKES

from steadyeye.data.video import decoder
from steadyeye.data.video.paths import resolve_path
from steadyeye.data.video.repeated_frames import find_repeats, share_of_repeats
from steadyeye.watch.feeds import open_feed
from steadyeye.watch.memory import Memory, read_memory
from steadyeye.watch.repeats import RepeatCount
from steadyeye.watch.session import Watch

X264 = ("libx264", {"crf": "26", "preset": "veryfast"})
DOUBLED = tuple(number // 2 for number in range(160))
HDR = {"color_trc": "smpte2084"}


@pytest.fixture(scope="module")
def pictures():
    """Pictures of a real video of moving things, every second pixel: (136, 320, 3)."""
    index = decoder.index(resolve_path(BIKES))
    return [np.ascontiguousarray(decoder.frame(index, n).image()[::2, ::2]) for n in range(200)]


class FirstFrames:
    """A feed that is over after `most` frames."""

    def __init__(self, feed, most):
        self.feed, self.most = feed, most

    def __getattr__(self, name):
        return getattr(self.feed, name)

    @property
    def is_over(self):
        return self.most == 0

    def take(self, seconds):
        frame = self.feed.take(seconds)
        self.most -= frame is not None
        return frame


def watch_frames(source, most, out, **more):
    """The watch of the first frames of a source that has no end, and the lines that it said."""
    chosen, lines = settings(source, **{"block": 1.0, **more}), []

    def feed(memory):
        return FirstFrames(open_feed(str(source), memory.counts, chosen.rate, memory.mark), most)

    watch = Watch(chosen, detector(), feed, out, lines.append)
    watch.run()
    return watch, lines


def list_repeats(notes):
    return [note for note in notes if "repeated frames" in note]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "folder", "stream"])
@pytest.mark.parametrize("order", [DOUBLED, tuple(range(160))], ids=["doubled", "filmed"])
def test_a_doubled_rate_is_noted_of_every_kind_of_source(kind, order, pictures, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    path = write(folder / "a.ts", *X264, [pictures[number] for number in order])
    if kind == "stream":
        with file_server(folder) as port:
            source = f"http://127.0.0.1:{port}/a.ts"
            watch, lines = watch_frames(source, 155, tmp_path / "out")
    else:
        source = path if kind == "file" else folder
        watch, lines = watch_frames(source, 160, tmp_path / "out")
    notes = list_repeats(watch.latest["notes"])
    assert len(notes) == len(list_repeats(lines)) == (order[1] == 0)
    if notes:
        assert 0.45 <= watch.memory.repeats.most <= 0.55
        assert notes[0].startswith("repeated frames in ")


def test_half_the_rate_leaves_the_repeats_out(pictures, tmp_path):
    path = write(tmp_path / "a.mp4", *X264, [pictures[number] for number in DOUBLED])
    watch = watch_file(path, tmp_path / "out", block=1.0, rate=12.5)
    assert len(watch.memory.repeats.waiting) == 69
    repeats = find_repeats(*zip(*watch.memory.repeats.waiting, strict=True))
    assert share_of_repeats(repeats) < 0.05
    assert not list_repeats(watch.latest["notes"])


@pytest.mark.slow
def test_repeats_are_said_once_each_time_they_begin(pictures, tmp_path):
    """Eight seconds as filmed, then doubled, as filmed and doubled; blocks of four."""
    filmed, doubled = tuple(range(200)), tuple(n // 2 for n in range(200))
    order = [*filmed, *doubled, *filmed, *doubled]
    path = write(tmp_path / "a.mp4", *X264, [pictures[number] for number in order])
    lines = []
    watch = watch_file(path, tmp_path / "out", block=4.0, say=lines.append)
    repeats = watch.memory.repeats
    assert (repeats.begun, repeats.parts, repeats.repeated) == (2, 8, 4)
    assert [line.partition(" with")[0] for line in list_repeats(lines)] == [
        "repeated frames in 1 of 3 parts",
        "repeated frames in 3 of 7 parts",
    ]
    resumed = read_memory(settings(path, block=4.0), detector(), tmp_path / "out")
    assert asdict(resumed.repeats) == asdict(watch.memory.repeats)


def test_parts_are_counted_by_hand():
    count = RepeatCount()
    for share in (0.0, 0.09, 0.1, 0.06, 0.2, 0.04, 0.08, 0.5):
        count.count_part(share)
    assert count == RepeatCount(parts=8, repeated=4, most=0.5, begun=2, is_on=True)
    note = count.describe()
    assert note.startswith("repeated frames in 4 of 8 parts with motion: up to 50.0\u202f% of")
    assert not RepeatCount(parts=3).describe()
    assert Memory().repeats == RepeatCount()


def test_few_frames_that_hardly_differ_are_no_repeats(tmp_path):
    """Four of the 25 frames of a second: a note of a second alone told of a conversion."""
    watch = watch_file(resolve_path(BIKES), tmp_path / "out", block=1.0)
    assert watch.memory.repeats.parts == 2
    assert not watch.memory.repeats.repeated


@pytest.mark.parametrize("noise", [0, 4])
def test_a_still_camera_and_a_frozen_stream_are_not_noted(noise, pictures, tmp_path):
    rng = np.random.default_rng(noise)
    size = pictures[0].shape
    still = [
        np.clip(pictures[0] + rng.normal(0, noise, size), 0, 255).astype(np.uint8)
        for _ in range(110)
    ]
    path = write(tmp_path / "a.mp4", *X264, still)
    watch = watch_file(path, tmp_path / "out", block=1.0)
    assert watch.memory.repeats.parts == 0
    assert not list_repeats(watch.latest["notes"])


@pytest.mark.parametrize("kind", ["file", "folder", "stream"])
def test_hdr_is_noted_of_every_kind_of_source(kind, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    path = write_encoded(folder / "a.ts", "libx265", "yuv420p10le", HDR, count=30)
    if kind == "stream":
        with file_server(folder) as port:
            source = f"http://127.0.0.1:{port}/a.ts"
            watch, lines = watch_frames(source, 20, tmp_path / "out")
    else:
        watch, lines = watch_frames(path if kind == "file" else folder, 20, tmp_path / "out")
    (note,) = watch.latest["notes"]
    assert note.startswith("frames in HDR (PQ or HLG), read without tone mapping")
    assert lines.count(note) == 1


def test_sdr_is_not_noted(tmp_path):
    path = write_encoded(tmp_path / "a.mkv", "libx265", "yuv420p10le", {"color_trc": "bt709"})
    assert not watch_file(path, tmp_path / "out").latest["notes"]
