"""Frames in any order equal those of decoding in order: codecs and containers, by pixel."""

import gc
import os
import random
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import av
import encoded
import numpy as np
import pytest
from whole_runs import Watcher, tree

from steadyeye.core import plugins
from steadyeye.core.errors import SampleError
from steadyeye.data.video import decoder, shot_detection
from steadyeye.runner import validate
from steadyeye.runner.job import Job
from steadyeye.runner.run import run

X265 = "log-level=none:keyint=10"
COUNT = 40
SMALL_VP = {"b": "200k", "cpu-used": "5"}
MATRIX = {
    "h264.mp4": ("libx264", "yuv420p", {}),
    "h264.mkv": ("libx264", "yuv420p", {}),
    "h264.mov": ("libx264", "yuv420p", {"bf": "0"}),
    "h264.ts": ("libx264", "yuv420p", {}),
    "h264.avi": ("libx264", "yuv420p", {}),
    "h264_422.mp4": ("libx264", "yuv422p", {}),
    "h264_444.mp4": ("libx264", "yuv444p", {}),
    "h264_444.mkv": ("libx264", "yuv444p", {"crf": "10"}),
    "h264_rgb.mp4": ("libx264rgb", "rgb24", {}),
    "h264_grey.mp4": ("libx264", "gray", {}),
    "h264_10bit.mp4": ("libx264", "yuv420p10le", {}),
    "h264_422_10bit.mkv": ("libx264", "yuv422p10le", {}),
    "h264_lossless.mp4": ("libx264", "yuv420p", {"qp": "0"}),
    "h264_b_frames.mp4": ("libx264", "yuv420p", {"x264-params": "bframes=8:b-pyramid=normal"}),
    "h264_open_gop.mp4": ("libx264", "yuv420p", {"x264-params": "open-gop=1:bframes=3"}),
    "h264_open_gop.ts": ("libx264", "yuv420p", {"x264-params": "open-gop=1:bframes=3"}),
    "h264_intra_refresh.mkv": ("libx264", "yuv420p", {"intra-refresh": "1"}),
    "h264_interlaced.mp4": ("libx264", "yuv420p", {"x264-params": "interlaced=1"}),
    "h264_slices.mp4": ("libx264", "yuv420p", {"x264-params": "slices=3"}),
    "h264_repeated_headers.mp4": ("libx264", "yuv420p", {"x264-params": "repeat-headers=1"}),
    "hevc.mp4": ("libx265", "yuv420p", {"x265-params": X265}),
    "hevc.ts": ("libx265", "yuv420p", {"x265-params": X265}),
    "hevc_open_gop.mkv": ("libx265", "yuv420p", {"x265-params": f"{X265}:open-gop=1:bframes=4"}),
    "hevc_closed.mkv": ("libx265", "yuv420p", {"x265-params": f"{X265}:open-gop=0"}),
    "hevc_radl.mp4": ("libx265", "yuv420p", {"x265-params": f"{X265}:open-gop=0:radl=2"}),
    "hevc_10bit.mp4": ("libx265", "yuv420p10le", {"x265-params": X265}),
    "hevc_444.mkv": ("libx265", "yuv444p", {"x265-params": X265}),
    "vp8.webm": ("libvpx", "yuv420p", {"auto-alt-ref": "1", "lag-in-frames": "8", **SMALL_VP}),
    "vp9.webm": ("libvpx-vp9", "yuv420p", {"auto-alt-ref": "1", "lag-in-frames": "12", **SMALL_VP}),
    "vp9_segments.mp4": ("libvpx-vp9", "yuv420p", {"aq-mode": "3", **SMALL_VP}),
    "vp9_444.mkv": ("libvpx-vp9", "yuv444p", SMALL_VP),
    "av1.mp4": ("libsvtav1", "yuv420p", {"preset": "10"}),
    "av1_grain.mkv": ("libsvtav1", "yuv420p", {"preset": "10", "svtav1-params": "film-grain=10"}),
    "av1_10bit.webm": ("libsvtav1", "yuv420p10le", {"preset": "10"}),
    "mpeg4.mp4": ("mpeg4", "yuv420p", {"bf": "2"}),
    "mpeg4.avi": ("mpeg4", "yuv420p", {"bf": "2"}),
    "mpeg4_qpel.mkv": ("mpeg4", "yuv420p", {"flags": "+qpel"}),
    "mpeg2.ts": ("mpeg2video", "yuv420p", {"bf": "2"}),
    "mpeg2.mpg": ("mpeg2video", "yuv420p", {}),
    "mpeg1.mpeg": ("mpeg1video", "yuv420p", {}),
    "msmpeg4.avi": ("msmpeg4", "yuv420p", {}),
    "wmv2.avi": ("wmv2", "yuv420p", {}),
    "h263.avi": ("h263p", "yuv420p", {}),
    "flv1.avi": ("flv", "yuv420p", {}),
    "mjpeg.avi": ("mjpeg", "yuvj420p", {}),
    "mjpeg_444.mp4": ("mjpeg", "yuvj444p", {}),
    "mjpeg_own_tables.mkv": ("mjpeg", "yuvj422p", {"huffman": "optimal"}),
    "prores.mov": ("prores_ks", "yuv422p10le", {}),
    "dnxhd.mov": ("dnxhd", "yuv422p", {"profile": "dnxhr_sq"}),
    "ffv1.mkv": ("ffv1", "yuv420p", {}),
    "ffvhuff.avi": ("ffvhuff", "yuv420p", {}),
    "huffyuv.avi": ("huffyuv", "yuv422p", {}),
    "png.mov": ("png", "rgb24", {}),
    "utvideo.avi": ("utvideo", "yuv420p", {}),
    "jpeg2000.mov": ("jpeg2000", "yuv420p", {}),
    "magicyuv.avi": ("magicyuv", "yuv420p", {}),
    "qtrle.mov": ("qtrle", "rgb24", {}),
    "cinepak.avi": ("cinepak", "rgb24", {}),
    "zmbv.avi": ("zmbv", "bgr0", {}),
    "raw.avi": ("rawvideo", "yuv420p", {}),
}
# the least that an encoder takes, and small pictures for one that takes long
SIZES = {"dnxhd.mov": (256, 128), "cinepak.avi": (48, 32)}
STARTABLE = {"h264.mp4", "h264.mkv", "h264.mov", "h264.ts", "h264_10bit.mp4", "h264_422.mp4"}
STARTABLE |= {"hevc.mp4", "hevc_open_gop.mkv", "vp9.webm", "av1.mp4", "mjpeg.avi", "prores.mov"}


@pytest.fixture(scope="module")
def video_of(tmp_path_factory):
    """A function that gives the path of a video of `MATRIX`, written once for each size."""
    folder = tmp_path_factory.mktemp("videos")

    @cache
    def write(name, size=(96, 64)):
        codec, form, options = MATRIX[name]
        path = folder / f"{size[0]}-{name}"
        return encoded.write(path, codec, form, options, count=COUNT, size=size)

    return write


def in_order(path):
    """Time and pixels of each frame, by plain decoding from the first packet on."""
    pictures = []
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        # with more threads PyAV leaves damaged pictures as they are, depending on the processors
        stream.thread_type = "NONE"
        for packet in container.demux(stream):
            try:
                frames = packet.decode()
            except av.FFmpegError:
                continue
            pictures += [(frame.pts, frame.to_ndarray(format="rgb24")) for frame in frames]
    return pictures


def in_thread(read):
    """What `read` returns, by decoders that have read nothing before: each thread has its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(read).result()


def cold(video, number):
    """A frame by a decoder that has read nothing before, or the error."""
    try:
        return in_thread(lambda: decoder.frame(video, number).image())
    except SampleError as error:
        return error


def check(path, turn=lambda image: image, seeks=8):
    """`seeks` random cold seeks and one decoder moved at random give the pixels of `in_order`."""
    expected = [turn(image) for _, image in in_order(path)]
    video = decoder.index(path)
    assert len(video) == len(expected)
    order = random.Random(path.name)
    for number in order.sample(range(len(video)), seeks):
        np.testing.assert_array_equal(cold(video, number), expected[number], f"frame {number}")
    for number in order.sample(range(len(video)), len(video)):
        np.testing.assert_array_equal(decoder.frame(video, number).image(), expected[number])
    numbers = [number for number, _ in decoder.every_frame(video, id)]
    assert numbers == list(range(len(video)))
    return video


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in STARTABLE else pytest.mark.slow) for name in MATRIX],
)
def test_any_frame_is_that_of_decoding_in_order(name, video_of):
    codec = MATRIX[name][0]
    if codec not in av.codec.codecs_available:
        pytest.skip(f"this PyAV has no encoder {codec}")
    video = check(video_of(name, SIZES.get(name, (96, 64))))
    assert (video.lost, video.damaged) == (0, 0)
    assert len(video) == COUNT
    if name in STARTABLE:
        # else the pixels are right and every frame costs all before it
        cursor = decoder._Cursor(video)
        cursor.frame(37)
        assert not cursor.patched
        assert cursor.count < 20


@pytest.mark.slow
def test_the_words_of_old_x264_on_444_decide_how_it_is_decoded(tmp_path):
    """What x264 says of its version, in the first packet alone, changes how 4:4:4 is decoded."""
    path = encoded.write(tmp_path / "new.mp4", "libx264", "yuv444p", size=(160, 96))
    old = tmp_path / "old.mp4"
    data = path.read_bytes()
    start = data.index(b"x264 - core ") + 12
    old.write_bytes(data[:start] + b"148" + data[start + 3 :])
    assert any((a != b).any() for (_, a), (_, b) in zip(in_order(path), in_order(old), strict=True))
    check(old)


def test_frames_may_follow_each_other_at_any_rate(tmp_path):
    gaps = np.random.default_rng(0).integers(1, 9, 60)
    times = np.cumsum(gaps).tolist()
    for name in ("vfr.mp4", "vfr.mkv"):
        video = check(encoded.write(tmp_path / name, "libx264", times=times))
        seconds = (video.pts - video.pts[0]) * float(video.time_base)
        np.testing.assert_allclose(np.diff(seconds), gaps[1:] / encoded.RATE, atol=2e-3)


@pytest.mark.parametrize(("degrees", "quarters"), [(90, 1), (180, 2), (-90, 3)])
def test_frames_are_turned_as_players_turn_them(degrees, quarters, tmp_path):
    path = tmp_path / "turned.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=encoded.RATE)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        stream.gop_size = 10
        stream.set_display_rotation(degrees)
        for packet in encoded.packets(stream.codec_context, range(30)):
            packet.stream = stream
            container.mux(packet)
    # FFmpeg counts degrees against the clock, as numpy does quarters
    check(path, lambda image: np.rot90(image, quarters))


@pytest.mark.parametrize("degrees", [0, 90])
def test_no_error_within_pyav_can_replace_an_interrupt(degrees, tmp_path, monkeypatch):
    """Of a frame without a display matrix, a lookup by name raises a KeyError within PyAV."""

    class Container(decoder.SideDataContainer):
        def __getitem__(self, key):
            raise AssertionError(f"looked up by name: {key}")

    path = tmp_path / "turned.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=encoded.RATE)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        if degrees:
            stream.set_display_rotation(degrees)
        for packet in encoded.packets(stream.codec_context, range(5)):
            packet.stream = stream
            container.mux(packet)
    monkeypatch.setattr(decoder, "SideDataContainer", Container)
    shape = decoder.frame(decoder.index(path), 3).image().shape
    assert shape == ((96, 64, 3) if degrees else (64, 96, 3))


@pytest.mark.slow
def test_frames_that_were_read_leave_memory_at_once(tmp_path):
    video = decoder.index(encoded.write(tmp_path / "long.mp4", "libx264", count=90))
    gc.collect()
    before = sum(isinstance(instance, av.VideoFrame) for instance in gc.get_objects())
    gc.disable()
    try:
        for number in range(len(video)):
            decoder.frame(video, number).image()
        after = sum(isinstance(instance, av.VideoFrame) for instance in gc.get_objects())
    finally:
        gc.enable()
    assert after - before <= decoder.MOST_RECENT + 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("sizes.ts", "libx264", {}),
        ("sizes.webm", "libvpx-vp9", SMALL_VP),
        ("sizes.ts", "mpeg2video", {}),
    ],
)
def test_frames_keep_their_size_where_it_changes(name, codec, options, tmp_path):
    path = encoded.of_two_sizes(tmp_path / name, codec, options)
    check(path)
    video = decoder.index(path)
    shapes = [decoder.frame(video, number).image().shape for number in (0, len(video) - 1)]
    assert shapes == [(64, 96, 3), (80, 128, 3)]
    assert shot_detection.of_video(video).cuts == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["h264.mp4", "hevc.mp4", "vp9.webm", "mpeg4.mp4"])
@pytest.mark.parametrize("first", [True, False])
def test_key_frames_may_be_missing(name, first, video_of, tmp_path):
    key_frames = []

    def without(number, packet):
        if packet.is_keyframe:
            key_frames.append(number)
        lacking = number == 0 if first else len(key_frames) % 2 == 0 and packet.is_keyframe
        return None if lacking else packet

    path = encoded.rewrite(video_of(name), tmp_path / "lacking.mkv", without)
    assert len(key_frames) > 2
    expected = dict(in_order(path))
    video = decoder.index(path)
    agree(video, expected)


def agree(video, expected):
    """Every frame of the index has the pixels of decoding in order, or says that it has none."""
    assert set(expected) <= set(video.pts.tolist())
    rng = np.random.default_rng(0)
    for number in rng.permutation(len(video))[:12].tolist():
        image = cold(video, number)
        if video.pts[number] in expected:
            np.testing.assert_array_equal(image, expected[video.pts[number]])
        else:
            assert isinstance(image, SampleError)
            assert "decod" in str(image)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["h264.mp4", "h264.ts", "hevc.mp4", "vp9.webm", "mpeg4.avi", "mjpeg.avi", "h264_444.mp4"],
)
@pytest.mark.parametrize("where", ["key frame", "within"])
def test_damage_gives_what_decoding_in_order_gives(name, where, video_of, tmp_path):
    whole = video_of(name, (160, 96))
    with av.open(str(whole)) as container:
        keys = [n for n, packet in enumerate(container.demux(video=0)) if packet.is_keyframe]
    numbers = [keys[2] if where == "key frame" else keys[2] + 3]
    path = encoded.damage(whole, tmp_path / f"damaged-{name}", numbers)
    before, after = in_order(whole), in_order(path)
    assert [t for t, _ in before] != [t for t, _ in after] or any(
        (a != b).any() for (_, a), (_, b) in zip(before, after, strict=True)
    )
    agree(decoder.index(path), dict(after))


@pytest.mark.parametrize("seed", [33, 56])
def test_patched_pictures_do_not_depend_on_the_frames_that_a_caller_keeps(seed, tmp_path):
    """Two of 80 damaged videos, whose decoder patches with what is left in its memory."""
    whole = encoded.write(tmp_path / "whole.ts", "mpeg2video", size=(160, 96), count=90)
    rng = random.Random(seed)
    offset, length = rng.randrange(12), rng.randrange(10, 200)
    numbers = rng.sample(range(5, 85), rng.randint(1, 3))

    def places(size):
        start = size // 4 + offset
        return range(min(start, size), min(start + length, size))

    path = encoded.damage(whole, tmp_path / "damaged.ts", numbers, by=places)
    video = decoder.index(path)
    numbers = range(len(video))
    alone = in_thread(lambda: [decoder.frame(video, number).image() for number in numbers])
    frames = in_thread(lambda: [decoder.frame(video, number) for number in numbers])
    backwards = in_thread(lambda: [decoder.frame(video, n).image() for n in reversed(numbers)])
    convert = partial(
        decoder.to_rgb, reformatter=av.video.reformatter.VideoReformatter(), matrix=None
    )
    at_once = dict(decoder.every_frame(video, convert))
    for number, image in zip(numbers, alone, strict=True):
        np.testing.assert_array_equal(frames[number].image(), image)
        np.testing.assert_array_equal(backwards[-1 - number], image)
        np.testing.assert_array_equal(at_once[number], image)


def test_a_thread_that_ends_leaves_no_open_video(video_of):
    """What is left of it would be freed by the garbage collector, also in a forked process."""
    video = decoder.index(video_of("av1.mp4"))
    gc.collect()
    gc.disable()
    try:
        before = count_open_videos()
        in_thread(lambda: decoder.frame(video, 3).image())
        assert count_open_videos() == before
    finally:
        gc.enable()


def count_open_videos():
    return sum(isinstance(value, av.container.InputContainer) for value in gc.get_objects())


def test_pictures_before_the_start_of_an_edit_list_are_no_frames(tmp_path):
    """A video cut within a group of pictures, as phones do: it begins at what is shown."""
    whole = encoded.write(tmp_path / "whole.mp4", "libx264", options={"bf": "0"}, count=60)

    def earlier(number, packet):
        shift = 15 * packet.duration
        packet.pts, packet.dts = packet.pts - shift, packet.dts - shift
        return packet

    path = encoded.rewrite(
        whole, tmp_path / "cut.mp4", earlier, options={"avoid_negative_ts": "disabled"}
    )
    video = check(path)
    assert len(video) == 45


def test_a_picture_of_the_cover_is_no_video(tmp_path):
    path = tmp_path / "covered.mp4"
    with av.open(str(path), "w") as container:
        cover = container.add_stream("mjpeg", rate=encoded.RATE)
        cover.width, cover.height, cover.pix_fmt = 320, 240, "yuvj420p"
        cover.disposition = av.stream.Disposition.attached_pic
        film = container.add_stream("libx264", rate=encoded.RATE)
        film.width, film.height, film.pix_fmt = 96, 64, "yuv420p"
        for stream, count in ((cover, 1), (film, 30)):
            for packet in encoded.packets(stream.codec_context, range(count)):
                packet.stream = stream
                container.mux(packet)
    video = decoder.index(path)
    assert len(video) == 30
    assert decoder.frame(video, 3).image().shape == (64, 96, 3)


def test_cuts_are_found_in_the_frames_of_decoding_in_order(tmp_path):
    """The first frames of scenes have the numbers that a reader of frames knows them by."""
    path = tmp_path / "scenes.avi"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=encoded.RATE)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        stream.options = {"bf": "2"}
        for number in range(90):
            image = np.full((64, 96, 3), 40 + 60 * (number // 30), np.uint8)
            image[number % 30 : number % 30 + 8] = 255
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert shot_detection.of_video(decoder.index(path)).cuts == (30, 60)


MODEL = """
import numpy as np

def light(images):
    mean = images.reshape(len(images), -1, 3).mean(axis=1) / 255
    return np.stack([mean[:, 0], mean[:, 1], mean[:, 2]], axis=1).astype(np.float32)

light.fingerprint = "light 1"
"""


# tests/runner/engines/test_ray.py has the first of the videos on Ray
ENGINES = (("local", 1), ("local", 4), ("local(processes=2)", 1))


@pytest.mark.slow
def test_workers_and_engines_seal_the_same(video_of, tmp_path, monkeypatch):
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "seen_toy.py").write_text(MODEL)
    monkeypatch.syspath_prepend(str(folder))
    # processes import by the environment that they are started in
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    videos = tmp_path / "videos"
    videos.mkdir()
    for name in ("h264_444.mkv", "hevc_open_gop.mkv", "mpeg4.avi"):
        (videos / name).symlink_to(video_of(name))
    trees = []
    for engine, workers in ENGINES:
        out = tmp_path / f"out-{len(trees)}"
        job = Job(
            models=("callable(path='seen_toy:light')",),
            data=(f"video(path='{videos}', anchors=6, k=5)",),
            out=str(out),
            engine=engine,
            workers=workers,
            batch=4,
        )
        run(validate.check(job), Watcher())
        trees.append(tree(out))
    assert trees[0] == trees[1] == trees[2]


def test_notes_name_the_videos_that_are_decoded_in_order(tmp_path):
    encoded.write(tmp_path / "a.mp4", "libx264")
    encoded.write(tmp_path / "b.mp4", "mpeg4")
    for name, options in (("video", {"anchors": 2}), ("every_frame", {"cuts": "none"})):
        source = plugins.load("sources", name)(path=str(tmp_path), **options)
        assert any("1 of 2 videos decoded in order from their start" in n for n in source.notes)
        assert any("first 'b.mp4': mpeg4" in n for n in source.notes)


@pytest.mark.parametrize("name", ["h264.ts", "hevc.ts"])
def test_notes_count_the_frames_that_a_decoder_patches(name, video_of, tmp_path):
    """Of a recording that lacks packets of a picture: from there up to the next key frame."""
    whole = video_of(name, (192, 128))
    content, differ = whole.read_bytes(), 0
    sent = {image.tobytes() for _, image in in_order(whole)}
    for eighth in (3, 5, 7):
        path, at = tmp_path / f"{eighth}.ts", len(content) // 188 * eighth // 8 * 188
        path.write_bytes(content[:at] + content[at + 4 * 188 :])
        patched = sum(image.tobytes() not in sent for _, image in in_order(path))
        assert patched <= decoder.index(path).damaged <= 20
        differ += patched
    assert differ > 0
    damaged = sum(decoder.index(tmp_path / f"{eighth}.ts").damaged for eighth in (3, 5, 7))
    note = f"{damaged} frames in 3 videos may be damaged"
    for source_name, settings in (("video", {"anchors": 2}), ("every_frame", {"cuts": "none"})):
        source = plugins.load("sources", source_name)(path=str(tmp_path), **settings)
        assert any(note in text and text.endswith("first '3.ts'") for text in source.notes)
