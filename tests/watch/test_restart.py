"""Watches that are stopped at any moment and go on: the record is that of one undisturbed pass."""

import json
import os
import time
from contextlib import suppress
from itertools import pairwise

import pytest
from encoded import picture
from object_toys import bright
from test_watch import FAULTY, GOOD, detector, film, watch_file

from steadyeye.data.images.image_file import encode
from steadyeye.watch import file_feeds
from steadyeye.watch.feeds import open_feed
from steadyeye.watch.frames import FrameCounts
from steadyeye.watch.memory import STATE


class Stopping:
    """A detector that is interrupted in the middle, as by Ctrl-C."""

    def __init__(self, after):
        self.left = after

    def __call__(self, images):
        self.left -= len(images)
        if self.left < 0:
            raise KeyboardInterrupt
        return bright(images)


def read_record(out):
    """All that is stored but for when and how often the watch was started."""
    record = json.loads((out / STATE).read_bytes())
    return {key: record[key] for key in record if key not in ("starts", "began", "checksum")}


def watch_in_parts(source, out, stops, **more):
    """The record after watches that took so many frames each."""
    for after in stops:
        with suppress(KeyboardInterrupt):
            watch_file(source, out, detector(Stopping(after)), **more)
    return read_record(out)


STOPS = (137, 3, 90, 61, 10_000)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [None, 7.0])
def test_a_file_that_was_watched_in_parts_has_the_record_of_one_pass(tmp_path, rate):
    """Flips and objects go on over the restart, and so does thinning."""
    # a block ends within a second: objects are in view, and one is not settled
    path = film(tmp_path / "a.mp4", (GOOD[:97] + FAULTY) * 3)
    more = {"rate": rate, "block": 1.3, "reference": 12.0}
    watch_file(path, tmp_path / "whole", **more)
    whole, parts = (
        read_record(tmp_path / "whole"),
        watch_in_parts(path, tmp_path / "w", STOPS, **more),
    )
    assert parts == whole
    assert whole["series"]["blink_rate"]["total"]["total"] > 0.1
    assert whole["counts"]["received"] == 591


@pytest.mark.slow
def test_a_folder_that_was_watched_in_parts_has_the_record_of_one_pass(tmp_path, monkeypatch):
    """A video in it goes on behind the frames that were counted; it was read from its beginning."""
    monkeypatch.setattr(file_feeds, "POLL", 0.02)
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(30):
        (folder / f"a{number:02}.png").write_bytes(encode(picture(number), ".png"))
        os.utime(folder / f"a{number:02}.png", (1e9, 1e9 + number / 10))
        time.sleep(0.005)
    film(folder / "b.mp4", FAULTY * 2)
    film(folder / "c.mp4", (GOOD[:47] + FAULTY) * 2)
    os.utime(folder / "b.mp4", (2e9, 2e9))
    os.utime(folder / "c.mp4", (3e9, 3e9))
    more = {"rate": 7.0, "reference": 12.0}
    taken = 250
    whole = watch_in_parts(folder, tmp_path / "whole", (taken,), **more)
    parts = watch_in_parts(folder, tmp_path / "w", (taken // 5,) * 4, **more)
    assert 0 < parts["processed"] < taken
    last = (taken - parts["processed"],)
    assert watch_in_parts(folder, tmp_path / "w", last, **more) == whole
    assert whole["mark"]["video"][1] == "c.mp4"


def test_files_that_changed_at_one_time_are_all_read_over_a_restart(tmp_path, monkeypatch):
    """Some disks count whole seconds: names of one file have one time on any of them."""
    monkeypatch.setattr(file_feeds, "POLL", 0.02)
    (tmp_path / "0.png").write_bytes(encode(picture(0), ".png"))
    for number in range(1, 6):
        os.link(tmp_path / "0.png", tmp_path / f"{number}.png")
    feed = open_feed(str(tmp_path), FrameCounts(), None)
    marks = []
    while len(marks) < 6:
        marks += [feed.mark for frame in [feed.take(0.1)] if frame is not None]
    for done, mark in enumerate(marks):
        again = open_feed(str(tmp_path), FrameCounts(received=done), None, mark)
        frames = [again.take(0.1) for _ in range(8 - done)]
        assert [frame.number for frame in frames if frame] == list(range(done, 6))


@pytest.mark.slow
def test_a_frame_that_is_read_again_is_stored_once(tmp_path):
    path = film(tmp_path / "a.mp4", FAULTY * 6)
    watch_in_parts(path, tmp_path / "w", (59, 58, 57, 56, 10_000), block=5.0)
    names = sorted(file.name for file in (tmp_path / "w" / "frames").glob("*.jpg"))
    events = [tuple(name.removesuffix(".jpg").split("-")[1:]) for name in names]
    assert len(events) == len(set(events)) > 10
    assert all(int(a[0]) <= int(b[0]) + 10 for a, b in pairwise(events))
