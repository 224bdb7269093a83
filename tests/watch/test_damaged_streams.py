"""Streams that lose packets: a measured frame is one that was sent."""

import random
import time
from contextlib import suppress

import av
import numpy as np
import pytest
from encoded import damage, of_two_sizes, rewrite, write
from rtsp_server import rtp_packets, rtsp_server
from test_feeds import Camera, collect, file_server

from steadyeye.data.video.bitstream import units
from steadyeye.data.video.video_index import open_video, picture_stream
from steadyeye.watch import stream_feed
from steadyeye.watch.feeds import open_feed
from steadyeye.watch.frames import FrameCounts, convert
from steadyeye.watch.stream_feed import StreamClock
from steadyeye.watch.stream_pictures import PacketHistory, read_address


def read_stream(folder, name):
    """The pictures of a file as a stream: their pixels, None of each that is damaged."""
    with file_server(folder) as port:
        pictures = list(read_address(f"http://127.0.0.1:{port}/{name}", 30, PacketHistory()))
    return [picture and picture.image() for picture in pictures]


def read_until_lost(address):
    """The pictures of a camera up to the end of its connection."""
    images = []
    with suppress(av.FFmpegError):
        for picture in read_address(address, 10, PacketHistory()):
            images.append(picture and picture.image())
    return images


def decode(path):
    with open_video(path) as container:
        return [convert(native, None) for native in container.decode(picture_stream(container))]


def write_clip(path, codec="libx264", options=()):
    options = {"sc_threshold": "0", **dict(options)}
    return write(path, codec, count=60, group=20, size=(192, 128), options=options)


def is_reference(packet):
    """Whether others refer to a picture of H.264, by its `nal_ref_idc`."""
    return units(bytes(packet), 4)[-1][0] & 0x60


def same(sent, got):
    return got is not None and np.array_equal(sent, got)


@pytest.mark.parametrize("options", [(), [("slices", "4")]])
def test_frames_behind_a_lost_one_are_damaged_up_to_the_next_key_frame(tmp_path, options):
    """The decoder of H.264 goes on with the picture before in its place, and says nothing."""
    whole = write_clip(tmp_path / "a.mp4", options=[("bf", "0"), *options])
    rewrite(whole, tmp_path / "live.ts", lambda n, packet: None if n in (7, 43) else packet)
    sent, got = decode(whole), read_stream(tmp_path, "live.ts")
    sent = [image for n, image in enumerate(sent) if n not in (7, 43)]
    is_whole = [*[True] * 7, *[False] * 12, *[True] * 23, *[False] * 16]
    assert [image is not None for image in got] == is_whole
    assert all(same(*pair) for pair in zip(sent, got, strict=True) if pair[1] is not None)


def test_frames_behind_a_damaged_one_are_damaged_and_the_stream_goes_on(tmp_path):
    """The decoder marks the first one alone; one that it could not decode ended the stream."""
    whole = write_clip(tmp_path / "a.mp4", options=[("bf", "0")])
    broken = damage(whole, tmp_path / "b.mp4", (27, 40))
    rewrite(broken, tmp_path / "live.ts", lambda n, packet: packet)
    sent, got = decode(whole), read_stream(tmp_path, "live.ts")
    assert [image is not None for image in got[:41]] == [*[True] * 27, *[False] * 14]
    assert all(same(*pair) for pair in zip(sent[:27], got[:27], strict=True))
    assert not any(image is not None for image in got[41:]), "the key frame 40 was damaged"
    with file_server(tmp_path) as port:
        counts = FrameCounts()
        feed = open_feed(f"http://127.0.0.1:{port}/live.ts", counts, None)
        collect(feed, until=lambda: counts.received >= 30 or counts.lost_streams)
        feed.close()
    # whether the end of the file was seen by then is a matter of time
    assert counts.received >= 30
    assert counts.damaged > 0


LOSSY = {
    "libx264": [("bf", "0")],
    "libx265": [("x265-params", "bframes=3:log-level=none")],
    "mpeg2video": [("bf", "0")],
}


def choose_lost(seed, count, share=0.01):
    """Packets that are lost: one of the first picture, or any where the seed is above 3."""
    rng = random.Random(seed)
    return {n for n in range(count) if rng.random() < share} if seed > 3 else {4 + 2 * seed}


@pytest.mark.slow
@pytest.mark.parametrize("codec", LOSSY)
def test_no_frame_of_a_lossy_stream_is_another_than_was_sent(tmp_path, codec):
    """A transport stream loses packets, each with a piece of a picture."""
    clip = write_clip(tmp_path / "a.ts", codec, LOSSY[codec])
    sent, content = decode(clip), clip.read_bytes()
    parts = [content[at : at + 188] for at in range(0, len(content), 188)]
    total = 0
    for seed in range(8):
        lost = choose_lost(seed, len(parts), 0.005)
        received = [part for n, part in enumerate(parts) if n not in lost]
        (tmp_path / "live.ts").write_bytes(b"".join(received))
        got = [image for image in read_stream(tmp_path, "live.ts") if image is not None]
        assert all(any(same(image, other) for other in sent) for image in got), lost
        total += len(got)
    assert total > 8 * 15


def read_file(path):
    """The pixels of the frames of a file that are not damaged, and the counts."""
    counts, images = FrameCounts(), []
    feed = open_feed(str(path), counts, None)
    while (frame := feed.take(1.0)) is not None:
        images.append(frame.image())
    return images, counts


@pytest.mark.slow
@pytest.mark.parametrize("by_udp", [False, True], ids=["tcp", "udp"])
@pytest.mark.parametrize("codec", ["libx264", "libx265"])
def test_no_frame_of_a_lossy_camera_is_another_than_was_sent(tmp_path, codec, by_udp):
    """RTSP marks no packet behind a gap, and the decoder of H.265 no picture that lacks a part."""
    clip = write_clip(tmp_path / "a.ts", codec, LOSSY[codec])
    sent, (name, packets) = decode(clip), rtp_packets(clip)

    def read(lost):
        with rtsp_server(name, packets, lambda n: n not in lost, by_udp) as address:
            return read_until_lost(address)

    received = read(set())
    # the last one, before others that are shown after it, may lack a part: the connection ended
    assert len(received) == 60
    assert all(same(*pair) for pair in zip(sent[:57], received[:57], strict=True))
    assert any(image is None for image in received[57:])
    total = 0
    for seed in range(8):
        lost = choose_lost(seed, len(packets))
        images = [image for image in read(lost) if image is not None]
        assert all(any(same(image, other) for other in sent) for image in images), lost
        total += len(images)
    assert total > 8 * 15


@pytest.mark.slow
@pytest.mark.parametrize("codec", LOSSY)
def test_no_frame_of_a_lossy_file_is_another_than_was_sent(tmp_path, codec):
    """Any packet of a recording is lost, also of its first picture, whose loss FFmpeg drops."""
    clip = write_clip(tmp_path / "a.ts", codec, LOSSY[codec])
    sent, content = decode(clip), clip.read_bytes()
    images, counts = read_file(clip)
    assert len(images) == 60
    assert counts.damaged == 0
    parts = [content[at : at + 188] for at in range(0, len(content), 188)]
    total = 0
    # every few packets of the first picture in turn, then packets all over
    for seed in range(24):
        rng = random.Random(seed)
        lost = {4 + 2 * seed}
        if seed >= 16:
            lost = {number for number in range(len(parts)) if rng.random() < 0.01}
        (tmp_path / "lossy.ts").write_bytes(
            b"".join(part for n, part in enumerate(parts) if n not in lost)
        )
        images, _ = read_file(tmp_path / "lossy.ts")
        assert all(any(same(image, other) for other in sent) for image in images), lost
        total += len(images)
    assert total > 24 * 15


@pytest.mark.slow
@pytest.mark.parametrize("codec", LOSSY)
def test_frames_behind_a_clock_that_was_set_back_are_not_damaged(tmp_path, codec):
    """As of two recordings in one file: their packets are not numbered on."""
    part = write(tmp_path / "a.ts", codec, count=180, group=20, options=LOSSY[codec])
    (tmp_path / "joined.ts").write_bytes(part.read_bytes() * 2)
    images, counts = read_file(tmp_path / "joined.ts")
    assert len(images) >= 356
    assert counts.damaged <= 4


def test_pictures_that_may_be_left_out_are_no_loss(tmp_path):
    """Those that no other refers to: a server leaves them out where a network is slow."""
    whole = write_clip(tmp_path / "a.mp4", options=[("bf", "1"), ("x264-params", "b-pyramid=none")])
    rewrite(whole, tmp_path / "live.ts", lambda n, packet: packet if is_reference(packet) else None)
    sent, got = decode(whole), read_stream(tmp_path, "live.ts")
    assert 20 < len(got) < 50
    assert all(any(same(image, other) for other in sent) for image in got)


def test_boxes_of_frames_of_another_size_are_not_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(stream_feed, "FIRST_WAIT", 60)
    of_two_sizes(tmp_path / "live.ts", "libx264", {"bf": "0"})
    with file_server(tmp_path) as port:
        counts = FrameCounts()
        feed = open_feed(f"http://127.0.0.1:{port}/live.ts", counts, None)
        frames = collect(feed, until=lambda: counts.lost_streams)
        feed.close()
    scenes = {(frame.scene, frame.image().shape) for frame in frames}
    assert len(scenes) == len({scene for scene, _ in scenes}) == 2


@pytest.mark.slow
def test_the_clock_of_the_machine_may_be_set_while_a_stream_is_read(monkeypatch):
    """Seconds went back by an hour, and blocks and periods were in no order."""
    read, behind = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: read() - behind[0])
    with file_server(".", handler=Camera) as port:
        counts = FrameCounts()
        feed = open_feed(f"http://127.0.0.1:{port}/", counts, None)
        seconds, began = [], time.monotonic()
        for behind[0] in (0.0, 3_600.0, -3_600.0):
            most = counts.received + 30
            seconds += [
                frame.seconds for frame in collect(feed, lambda most=most: counts.received >= most)
            ]
        feed.close()
    assert np.diff(seconds).min() > 0
    assert np.ptp(seconds) < time.monotonic() - began


@pytest.mark.parametrize("step", [-3600.0, -3.0, -0.5, 3.0, 3600.0])
@pytest.mark.parametrize("paced", [False, True])
def test_frames_keep_their_distance_where_a_camera_sets_its_clock(step, paced):
    """Behind a step back of seconds they were a millisecond apart, until it was made up for."""
    clock = StreamClock(paced)
    burst = 50 if paced else 1  # frames that come at once
    seconds = []
    for n in range(200):
        own = n / 25 + (step if n >= 120 else 0) + 10_000
        seconds.append(clock.read(own, 5_000 + n // burst * burst / 25)[0])
    # a burst that begins with a step forward has the frames before it still to come
    apart = np.diff(seconds)
    assert apart.min() > 0
    near = np.isclose(apart, 1 / 25, atol=1e-6)
    assert (~near).sum() <= 3
    assert apart[~near].max(initial=0) < 5.1
