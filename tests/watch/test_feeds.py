"""Frames of files, of a growing folder, and of interrupted streams."""

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import av
import numpy as np
import pytest
from encoded import RATE, damage, picture, remove_times, rewrite, write

from steadyeye.core.errors import UsageError
from steadyeye.data.images.image_file import encode
from steadyeye.data.video.video_index import open_video, picture_stream
from steadyeye.watch import file_feeds, stream_feed
from steadyeye.watch.feeds import check_source, open_feed
from steadyeye.watch.frames import FeedMark, FrameCounts, Thinning, convert, redact
from steadyeye.watch.stream_feed import StreamClock
from steadyeye.watch.stream_pictures import PacketHistory, read_address, read_camera


def take_all(feed, most=1_000):
    frames = []
    while not feed.is_over and len(frames) < most:
        frame = feed.take(0)
        if frame is not None:
            frames.append(frame)
    return frames


def test_every_frame_of_a_file_comes_at_its_time(tmp_path):
    clip = write(tmp_path / "a.mp4", "libx264", count=30)
    counts = FrameCounts()
    frames = take_all(open_feed(str(clip), counts, None))
    assert [frame.number for frame in frames] == list(range(30))
    assert [frame.seconds for frame in frames] == pytest.approx(np.arange(30) / RATE)
    off = frames[12].image().astype(int) - picture(12)
    assert np.abs(off).mean() < np.abs(frames[12].image().astype(int) - picture(20)).mean() / 2
    # one that goes on passes over what was received
    rest = take_all(open_feed(str(clip), FrameCounts(received=22), None))
    assert [frame.number for frame in rest] == list(range(22, 30))


@pytest.mark.parametrize("name", ["a.ts", "a.avi"])
def test_seconds_count_from_the_first_frame_behind_a_restart_too(tmp_path, name):
    """Transport streams begin at any time; frames of AVI without one follow those before."""
    clip = write(tmp_path / name, "libx264", options={"bf": "2"}, count=30)
    with av.open(str(clip)) as container:
        assert name == "a.avi" or container.streams.video[0].start_time > 0
    expected = pytest.approx(np.arange(30) / RATE)
    seconds = [frame.seconds for frame in take_all(open_feed(str(clip), FrameCounts(), None))]
    assert seconds == expected
    rest = take_all(open_feed(str(clip), FrameCounts(received=29), None))
    assert [frame.seconds for frame in rest] == [seconds[29]]


def test_a_file_is_decoded_ahead_by_a_thread_that_ends_with_it(tmp_path):
    clip = write(tmp_path / "a.mp4", "libx264", count=30)
    feed = open_feed(str(clip), FrameCounts(), None)
    feed.take(0)
    assert any(thread.name.startswith("decode ahead") for thread in threading.enumerate())
    take_all(feed, 20)
    feed.close()
    assert not any(thread.name.startswith("decode ahead") for thread in threading.enumerate())


def free_in_fork(clip, moment):
    """How a forked process ends that frees an unfinished feed; None where it does not."""
    feed = open_feed(str(clip), FrameCounts(), None)
    for _ in range(3):
        feed.take(5)
    time.sleep(moment)
    child = os.fork()
    if not child:
        feed.close()
        os._exit(0)
    until = time.monotonic() + 5
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            feed.close()
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.slow
def test_a_forked_process_does_not_wait_for_the_decoder_of_a_file(tmp_path):
    """A decoder with threads is freed once they end, which are the parent's alone."""
    clip = write(tmp_path / "a.mp4", "libx264", count=200, size=(320, 240))
    assert [free_in_fork(clip, 0.001 * moment) for moment in range(8)] == [0] * 8


def test_counts_are_those_of_the_frames_that_were_taken(tmp_path):
    whole = write(tmp_path / "a.mp4", "libx264", count=60)
    clip = rewrite(whole, tmp_path / "b.mp4", lambda n, packet: None if n == 21 else packet)
    feed = open_feed(str(clip), FrameCounts(thinned=100, damaged=7), 5)
    taken = 0
    while (frame := feed.take(0)) is not None:
        time.sleep(0.01)  # for those that are decoded ahead
        taken += 1
        counts = feed.counts
        assert counts.received == frame.number + 1
        assert taken + counts.thinned - 100 + counts.damaged - 7 == counts.received
    counts = feed.counts
    assert 55 < counts.received == taken + counts.thinned - 100 + counts.damaged - 7
    assert counts.thinned > 130, "those behind the last that was taken count, too"


def test_damaged_frames_of_a_file_are_those_up_to_the_next_key_frame(tmp_path):
    """A decoder patches them with what its memory holds, which depends on the frames in use."""
    whole = write(tmp_path / "a.mp4", "libx264", count=60, size=(192, 128), options={"bf": "0"})
    clip = damage(whole, tmp_path / "b.mp4", (13, 24, 47))
    with open_video(whole) as container:
        sent = [convert(native, None) for native in container.decode(picture_stream(container))]
    counts = FrameCounts()
    frames = take_all(open_feed(str(clip), counts, None))
    assert counts.received == 60
    assert len(frames) + counts.damaged == 60
    assert counts.damaged >= 7 + 6 + 3
    for frame in frames:
        np.testing.assert_array_equal(frame.image(), sent[frame.number])


def test_frames_of_avi_come_one_after_the_other(tmp_path):
    """Packets of AVI have the time at which they are decoded, reordered frames those of others."""
    clip = write(tmp_path / "a.avi", "libx264", options={"bf": "2"}, count=30)
    times = [frame.seconds for frame in take_all(open_feed(str(clip), FrameCounts(), None))]
    assert np.diff(times) == pytest.approx([1 / RATE] * 29)


@pytest.mark.parametrize("timed", [0, 1, 5])
def test_frames_of_a_transport_stream_without_times_come_one_after_the_other(timed, tmp_path):
    """The standard asks for a time every 0.7 s only; such frames counted as damaged."""
    clip = write(tmp_path / "clip.ts", "libx264", count=20, options={"bf": "0"})
    remove_times(clip, timed)
    counts = FrameCounts()
    frames = take_all(open_feed(str(clip), counts, None))
    assert [frame.seconds for frame in frames] == pytest.approx(np.arange(20) / RATE)
    assert (counts.received, counts.damaged) == (20, 0)


def test_the_pixels_of_a_picture_are_those_that_were_read_first(tmp_path, soon):
    put(tmp_path, "a.png", 1)
    feed = open_feed(str(tmp_path), FrameCounts(), None)
    until = time.monotonic() + 60
    while (frame := feed.take(0.1)) is None:
        assert time.monotonic() < until
    assert (frame.image() == picture(1)).all()
    put(tmp_path, "a.png", 2)
    assert (frame.image() == picture(1)).all()
    (tmp_path / "a.png").unlink()
    assert (frame.image() == picture(1)).all()


def test_a_lower_rate_takes_frames_evenly_and_counts_the_others(tmp_path):
    clip = write(tmp_path / "a.mp4", "libx264", count=50)
    counts = FrameCounts()
    frames = take_all(open_feed(str(clip), counts, 5))
    assert [frame.number for frame in frames] == list(range(0, 50, 5))
    assert counts.thinned == 40


def test_thinning_of_times_that_jitter_keeps_the_rate():
    rng = np.random.default_rng(0)
    times = np.arange(3_000) / 30 + rng.normal(0, 0.005, 3_000)
    thinned = Thinning(10)
    taken = sum(thinned.takes(seconds) for seconds in times)
    assert abs(taken - 1_000) <= 5
    assert all(map(Thinning(None).takes, times))
    # after a pause frames are not made up for, and a clock that is set back does not stop all
    assert sum(map(thinned.takes, 1_000 + np.arange(30) / 30)) <= 11
    assert sum(map(thinned.takes, np.arange(30) / 30)) >= 10


@pytest.fixture
def soon(monkeypatch):
    monkeypatch.setattr(file_feeds, "POLL", 0.02)
    monkeypatch.setattr(stream_feed, "FIRST_WAIT", 0.05)


def put(folder, name, number):
    (folder / f".{name}").write_bytes(encode(picture(number), ".png"))
    os.replace(folder / f".{name}", folder / name)
    time.sleep(0.01)


def names_of(feed, most):
    """The pictures that come: as many, however long they take, and what comes right after them."""
    until = time.monotonic() + 60
    numbers = []
    while len(numbers) < most and time.monotonic() < until:
        numbers += name_next(feed)
    return numbers + name_next(feed)


def name_next(feed):
    if (frame := feed.take(0.1)) is None:
        return []
    image = frame.image()
    return [next(n for n in range(60) if (image == picture(n)).all())]


def test_a_folder_that_fills(tmp_path, soon):
    put(tmp_path, "b.png", 1)
    put(tmp_path, "a.png", 2)
    (tmp_path / "notes.txt").write_text("no picture")
    counts = FrameCounts()
    feed = open_feed(str(tmp_path), counts, None)
    assert names_of(feed, 2) == [1, 2], "in the order in which they came"
    put(tmp_path, "c.png", 3)
    put(tmp_path, "a.png", 4)
    assert names_of(feed, 2) == [3, 4], "one that is written anew is a new frame"
    os.utime(tmp_path / "c.png", (1, 1))
    (tmp_path / "b.png").unlink()
    put(tmp_path, "b.png", 5)
    assert names_of(feed, 2)[-1] == 5, "the other was changed by `utime`"
    # what is done with is not taken again after a restart
    put(tmp_path, "d.png", 6)
    assert names_of(open_feed(str(tmp_path), FrameCounts(), None, feed.mark), 1) == [6]


def test_a_file_that_is_being_written_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(file_feeds, "POLL", 0.3)
    content = encode(picture(7), ".png")
    feed = open_feed(str(tmp_path), FrameCounts(), None)
    with (tmp_path / "a.png").open("wb") as file:
        for start in range(0, len(content), 3_000):
            file.write(content[start : start + 3_000])
            file.flush()
            assert feed.take(0.05) is None
    assert names_of(feed, 1) == [7]


def test_what_is_no_file_in_a_folder_is_passed_over(tmp_path, soon):
    """A link to itself ended the watch, and a pipe held it up for ever."""
    (tmp_path / "loop.png").symlink_to("loop.png")
    (tmp_path / "nowhere.png").symlink_to("gone.png")
    (tmp_path / "folder.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    counts = FrameCounts()
    feed = open_feed(str(tmp_path), counts, None)
    put(tmp_path, "b.png", 3)
    assert names_of(feed, 1) == [3]
    assert counts == FrameCounts(received=1)


def test_a_folder_that_is_away_is_read_again_when_it_is_back(tmp_path, soon):
    folder, away = tmp_path / "folder", tmp_path / "away"
    folder.mkdir()
    put(folder, "a.png", 1)
    feed = open_feed(str(folder), FrameCounts(), None)
    assert names_of(feed, 1) == [1]
    folder.rename(away)
    assert feed.take(0.2) is None
    assert feed.status == "cannot read the folder (No such file or directory); it is tried again"
    away.rename(folder)
    put(folder, "b.png", 2)
    assert names_of(feed, 1) == [2], "the other was taken before"


def test_files_that_come_while_the_clock_is_behind_are_taken(tmp_path, soon):
    """They are older than the last one before the restart, which ended what is done with."""
    put(tmp_path, "a.png", 1)
    done = (time.time_ns() + 3_600_000_000_000, "x.png")
    feed = open_feed(str(tmp_path), FrameCounts(), None, FeedMark(done=done))
    assert names_of(feed, 0) == []
    put(tmp_path, "b.png", 2)
    old = tmp_path / "old"
    old.mkdir()
    put(old, "c.png", 3)
    (tmp_path / "c.png").symlink_to(old / "c.png")
    assert names_of(feed, 2) == [2, 3]
    assert feed.mark.done == done


def test_videos_in_a_folder_are_scenes_of_their_own(tmp_path, soon):
    first = write(tmp_path / "x.mp4", "libx264", count=6)
    shutil.copy(first, tmp_path / "y.mp4")
    (tmp_path / "z.mp4").write_bytes(b"no video")
    counts = FrameCounts()
    feed = open_feed(str(tmp_path), counts, None)
    until, frames = time.monotonic() + 1, []
    while time.monotonic() < until:
        frames += filter(None, [feed.take(0.02)])
    assert [frame.number for frame in frames] == list(range(12))
    assert len({frame.scene for frame in frames}) == 2
    assert (counts.received, counts.damaged) == (12, 1)


def test_nothing_continues_once_a_video_is_over(tmp_path):
    feed = open_feed(str(write(tmp_path / "x.mp4", "libx264", count=6)), FrameCounts(), None)
    while feed.take(0) is not None:
        assert list_decoding_threads()
    assert not list_decoding_threads()


def list_decoding_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("decode ahead")]


def test_invalid_sources_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("")
    for source, text in (
        (str(tmp_path / "a.txt"), "is no video; give a video, a folder or an address"),
        ("rtmp://cam/x", "no file or folder 'rtmp://cam/x'; give one, an address (rtsp://"),
    ):
        with pytest.raises(UsageError, match=re.escape(text)):
            check_source(source)
    broken = tmp_path / "b.mp4"
    broken.write_bytes(b"no video")
    with pytest.raises(UsageError, match="cannot read the video"):
        open_feed(str(broken), FrameCounts(), None).take(0)


def test_names_and_passwords_of_addresses_are_not_shown():
    assert redact("rtsp://me:secret@cam:554/live?token=abc#x") == "rtsp://cam:554/live"
    assert redact("clips/a@b.mp4") == "clips/a@b.mp4"


def read_clock(clock, pairs):
    return [clock.read(own, now) for own, now in pairs]


def test_the_clock_of_a_stream_that_is_read_as_it_comes():
    clock = StreamClock(paced=False)
    # the first frame after opening has no time; one that comes late keeps the time it was taken
    seconds = [s for s, _, _ in read_clock(clock, [(None, 100.0), (5.0, 100.1), (5.2, 101.3)])]
    assert seconds == pytest.approx([100.0, 100.1, 100.3])
    # and one that comes with less delay sets the clock
    assert clock.read(5.6, 100.5)[0] == pytest.approx(100.5)
    # the stream begins at another time of its own
    second, wait, is_cut = clock.read(900.0, 130.0)
    assert (second, wait, is_cut) == (130.0, 0.0, True)
    # seconds rise whatever the stream says
    assert clock.read(899.9, 130.01)[0] > second


def test_the_clock_of_a_stream_that_comes_in_bursts():
    clock = StreamClock(paced=True)
    burst = read_clock(clock, [(k / 10, 50.0) for k in range(20)])
    assert [seconds for seconds, _, _ in burst] == pytest.approx(50 + np.arange(20) / 10)
    assert [wait for _, wait, _ in burst] == pytest.approx(np.arange(20) / 10)
    # what comes late moves the clock: the frames behind it are no burst, and none waits for ever
    seconds, wait, is_cut = clock.read(2.0, 55.0)
    assert (seconds, wait, is_cut) == (55.0, 0.0, False)
    assert clock.read(2.1, 55.0)[1] == pytest.approx(0.1)
    seconds, wait, is_cut = clock.read(500.0, 56.0)
    assert (seconds, wait) == (56.0, 0.0)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def file_server(folder, port=0, handler=Quiet):
    server = ThreadingHTTPServer(("127.0.0.1", port), partial(handler, directory=str(folder)))
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


class Camera(Quiet):
    """Single JPEGs without an end, 60 a second; `sent`: the number of the last."""

    sent = 0

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        began = time.monotonic()
        with suppress(OSError):
            for number in range(600):
                content = encode(picture(number % 60), ".jpg")
                head = f"Content-Type: image/jpeg\r\nContent-Length: {len(content)}"
                self.wfile.write(f"--frame\r\n{head}\r\n\r\n".encode() + content + b"\r\n")
                Camera.sent = number
                time.sleep(max(began + (number + 1) / 60 - time.monotonic(), 0))


@pytest.mark.slow
def test_single_jpegs_of_a_camera_are_taken_as_they_come():
    """FFmpeg makes up times of 25 a second for them, at which they were given out."""
    with file_server(".", handler=Camera) as port:
        feed = open_feed(f"http://127.0.0.1:{port}/", FrameCounts(), None)
        behind, until = [], time.monotonic() + 30
        while len(behind) < 120 and time.monotonic() < until:
            if (frame := feed.take(0.5)) is not None:
                behind.append(Camera.sent - frame.number)
        feed.close()
    assert len(behind) == 120
    assert np.median(behind[60:]) < 10, "at 25 of 60 a second it would be 60 and more"


@pytest.mark.slow
def test_an_outage_counts_while_it_lasts(soon):
    """The seconds of an outage were added when it was over."""
    counts = FrameCounts()
    feed = open_feed("rtsp://127.0.0.1:1/none", counts, None)
    until = time.monotonic() + 30
    while counts.seconds_down < 0.3 and time.monotonic() < until:
        feed.take(0.02)
    feed.close()
    assert counts.lost_streams == 1
    assert 0.3 <= counts.seconds_down < 30


@pytest.mark.slow
def test_a_stream_that_ends_or_is_away_is_opened_again(tmp_path, soon):
    """A real connection: half a second of MPEG-TS, which ends, is away and is back."""
    write(tmp_path / "live.ts", "libx264", count=12)
    with file_server(tmp_path) as port:
        counts = FrameCounts()
        feed = open_feed(f"http://127.0.0.1:{port}/live.ts", counts, None)
        frames = collect(feed, until=lambda: counts.lost_streams >= 2)
    scenes = {frame.scene for frame in frames}
    assert len(scenes) >= 2, "what comes after the end is another scene"
    assert [f.seconds for f in frames] == sorted(f.seconds for f in frames)
    assert len({f.number for f in frames}) == len(frames)
    lost = counts.lost_streams
    # an outage is one, however often it is tried
    collect(feed, until=lambda: "no stream" in feed.status, least=0.5)
    assert counts.lost_streams <= lost + 1
    with file_server(tmp_path, port):
        before = counts.received
        collect(feed, until=lambda: counts.received > before)
    assert counts.seconds_down > 0
    feed.close()
    assert not feed._thread.is_alive()


def collect(feed, until, least=0.0):
    frames, began = [], time.monotonic()
    while not until() or time.monotonic() < began + least:
        frame = feed.take(0.02)
        if frame is not None:
            frames.append(frame)
        assert time.monotonic() < began + 60, feed.status
    return frames


def test_frames_that_come_while_the_model_is_busy_are_left_out_and_counted(tmp_path, soon):
    write(tmp_path / "live.ts", "libx264", count=25)
    with file_server(tmp_path) as port:
        counts = FrameCounts()
        feed = open_feed(f"http://127.0.0.1:{port}/live.ts", counts, None)
        taken = 0
        while not counts.lost_streams:
            taken += feed.take(0.1) is not None
            time.sleep(0.15)
        feed.close()
    assert counts.left_out > 5
    waiting = int(feed._newest is not None)
    # one may have come when it was closed
    assert counts.received - taken - counts.left_out - waiting in (0, 1)


def test_a_stream_without_pictures_is_tried_again(tmp_path, soon):
    (tmp_path / "live.ts").write_bytes(b"no stream at all" * 100)
    with file_server(tmp_path) as port:
        feed = open_feed(f"http://127.0.0.1:{port}/live.ts", FrameCounts(), None)
        collect(feed, until=lambda: "no stream" in feed.status)
        assert "the next try is in" in feed.status
        feed.close()


def test_a_camera_is_read_by_opencv_at_the_time_of_the_clock(tmp_path):
    """No camera is here: OpenCV reads a file in its place, through the same calls."""
    clip = write(tmp_path / "a.mp4", "libx264", count=3)
    pictures = read_camera(str(clip))
    first = next(pictures)
    assert first.seconds is None
    assert first.size == (96, 64)
    assert np.abs(first.image().astype(int) - picture(0)).mean() < 30
    pictures.close()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_hls_comes_in_bursts_and_is_given_out_evenly(tmp_path):
    """Segments of a second by ffmpeg behind a static server, cut once."""
    source = write(tmp_path / "source.mp4", "libx264", count=50)
    folder = tmp_path / "hls"
    folder.mkdir()

    def serve():
        where = ["-f", "hls", "-hls_time", "1", "-hls_list_size", "4", str(folder / "live.m3u8")]
        loop = ["ffmpeg", "-loglevel", "error", "-re", "-stream_loop", "-1", "-i", str(source)]
        process = subprocess.Popen([*loop, "-c", "copy", *where])
        while not (folder / "live.m3u8").is_file():
            time.sleep(0.05)
        return process

    process = serve()
    try:
        with file_server(folder) as port:
            counts = FrameCounts()
            feed = open_feed(f"http://127.0.0.1:{port}/live.m3u8", counts, 10)
            frames = collect(feed, until=lambda: counts.received >= 90)
            steps = np.diff([frame.seconds for frame in frames])
            assert counts.left_out <= 5
            assert np.median(steps) == pytest.approx(0.1, abs=0.05)
        before = counts.received
        with file_server(folder, port):
            collect(feed, until=lambda: counts.received > before + 25)
        feed.close()
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_what_a_playlist_repeats_after_an_outage_is_not_read_again(tmp_path):
    """A playlist that is opened again begins with segments that were read, also once it is over."""
    source = write(tmp_path / "source.mp4", "libx264", count=60, options={"g": "10", "bf": "2"})
    where = ["-f", "hls", "-hls_time", "1", "-hls_list_size", "0", str(tmp_path / "all.m3u8")]
    subprocess.run(["ffmpeg", "-loglevel", "error", "-i", source, "-c", "copy", *where], check=True)
    lines = (tmp_path / "all.m3u8").read_text().splitlines()
    ends = [i for i, line in enumerate(lines) if line.endswith(".ts")]
    part = tmp_path / "live.m3u8"

    def publish(count):
        part.write_text("\n".join([*lines[: ends[count - 1] + 1], "#EXT-X-ENDLIST"]))

    history = PacketHistory()
    with file_server(tmp_path) as port:
        read = partial(read_address, f"http://127.0.0.1:{port}/live.m3u8", 30, history)
        publish(len(ends) - 1)
        first = [picture.seconds for picture in read()]
        assert list(read()) == []
        publish(len(ends))
        rest = [picture.seconds for picture in read()]
    assert len(first + rest) == 60
    assert len(first) > len(rest) > 0
    assert np.diff(first + rest) == pytest.approx(np.full(59, 1 / RATE), abs=1e-3)
