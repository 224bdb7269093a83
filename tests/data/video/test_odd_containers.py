"""Files as written by cameras, editors and muxers, compared with their frames, one by one."""

import shutil

import av
import encoded
import numpy as np
import pytest

from steadyeye.core.errors import UsageError
from steadyeye.data.sources.every_frame import every_frame
from steadyeye.data.sources.video import video
from steadyeye.data.video import decoder
from steadyeye.watch.feeds import open_feed
from steadyeye.watch.frames import FrameCounts


def seconds(path):
    """The time of every frame as the sources tell it."""
    source = every_frame(path=str(path), cuts="none")
    return [source[i].tags["seconds"] for i in range(len(source))]


@pytest.mark.parametrize("name", ["12:30:05.mp4", "pipe:0.mp4", "data:image.mp4", "concat:a.mp4"])
def test_a_name_with_a_colon_is_a_file(name, tmp_path, monkeypatch):
    """FFmpeg takes what stands before a colon for a protocol, and `pipe:0` for what is typed."""
    path = encoded.write(tmp_path / "plain.mp4", "libx264", count=12)
    shutil.copy(path, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    source = video(path=name, k=2)
    member = source.members[0]
    assert member.video == name
    expected = decoder.frame(decoder.index(path), member.frame).image()
    np.testing.assert_array_equal(source[0].image(), expected)


@pytest.mark.parametrize(
    ("codec", "options"), [("libx264", {"bf": "2"}), ("mpeg4", {"bf": "2"}), ("mjpeg", {})]
)
def test_frames_of_avi_are_shown_one_after_the_other(codec, options, tmp_path):
    """AVI says when packets are decoded: reordered frames would have the times of others."""
    form = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    path = encoded.write(tmp_path / "clip.avi", codec, form, options, count=30)
    expected = [number / encoded.RATE for number in range(30)]
    assert seconds(path) == pytest.approx(expected, abs=1e-6)


def test_times_that_are_missing_are_those_between_their_neighbours(tmp_path):
    """Matroska has no times before 0, as of a video that is cut before its start."""
    whole = encoded.write(tmp_path / "whole.mp4", "libx264", options={"bf": "0"}, count=40)

    def earlier(number, packet):
        packet.pts, packet.dts = (time - 15 * packet.duration for time in (packet.pts, packet.dts))
        return packet

    path = encoded.rewrite(
        whole, tmp_path / "cut.mkv", earlier, options={"avoid_negative_ts": "disabled"}
    )
    with av.open(str(path)) as container:
        missing = sum(packet.pts is None for packet in container.demux(video=0) if packet.size)
    assert missing
    assert seconds(path) == pytest.approx([number / encoded.RATE for number in range(40)], abs=2e-3)


@pytest.mark.parametrize("codec", ["libx264", "mpeg2video"])
def test_the_clock_continues_where_recordings_were_joined(codec, tmp_path):
    """Two transport streams as one file, as cameras and `cat` join them: each begins its clock."""
    part = encoded.write(tmp_path / "part.ts", codec, options={"bf": "2"}, count=30)
    path = tmp_path / "joined.ts"
    path.write_bytes(part.read_bytes() * 2)
    times = seconds(path)
    assert len(times) == 60
    assert times == pytest.approx([number / encoded.RATE for number in range(60)], abs=1e-3)


def turned_by_messages(path, turn):
    """A video whose packets say themselves how they are turned, and the same without."""
    plain = encoded.write(path.with_name(f"plain{path.suffix}"), "libx264", count=30)
    with av.open(str(plain)) as old, av.open(str(path), "w") as new:
        source = old.streams.video[0]
        target = new.add_stream_from_template(source)
        insert = av.BitStreamFilterContext(
            f"h264_metadata=display_orientation=insert:{turn}", source, target
        )
        for packet in old.demux(source):
            for changed in insert.filter(packet if packet.size else None):
                changed.stream = target
                new.mux(changed)
    return path, plain


@pytest.mark.parametrize("suffix", [".mp4", ".ts"])  # at the first picture, at each key frame
@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        ("rotate=90", lambda image: np.rot90(image, 1)),
        ("rotate=180", lambda image: np.rot90(image, 2)),
        ("flip=horizontal", lambda image: image[:, ::-1]),
    ],
)
def test_a_message_that_turns_pictures_holds_until_the_next(suffix, turn, expected, tmp_path):
    """The decoder tells it of some frames alone: of a pm-set a single one would be turned."""
    path, plain = turned_by_messages(tmp_path / f"turned{suffix}", turn)
    index, upright = decoder.index(path), decoder.index(plain)
    with av.open(str(path)) as container:
        # threads of a decoder that waits for the garbage collector can stop a forked process
        container.streams.video[0].thread_type = "NONE"
        matrices = [decoder.follow_matrix(frame, None) for frame in container.decode(video=0)]
    assert 0 < 30 - matrices.count(None) < 30
    for number in [*range(30), 17, 3, 29]:
        image = decoder.frame(upright, number).image()
        np.testing.assert_array_equal(decoder.frame(index, number).image(), expected(image))
    live = open_feed(str(path), FrameCounts(), None)
    taken = list(iter(lambda: live.take(10), None))
    assert len(taken) > 25
    for frame in taken:
        image = decoder.frame(upright, frame.number).image()
        np.testing.assert_array_equal(frame.image(), expected(image))


PICTURE, DEFAULT = av.stream.Disposition.attached_pic, av.stream.Disposition.default


def write_streams(path, *streams):
    """A file of several video streams; of each its side in pixels, codec, frames and marks."""
    with av.open(str(path), "w") as container:
        outputs = []
        for side, codec, _, marks in streams:
            stream = container.add_stream(codec, rate=encoded.RATE)
            stream.width = stream.height = side
            stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
            if marks:
                stream.disposition = marks
            outputs.append(stream)
        for stream, (_, _, count, _) in zip(outputs, streams, strict=True):
            for packet in encoded.packets(stream.codec_context, range(count)):
                packet.stream = stream
                container.mux(packet)
    return path


@pytest.mark.parametrize(
    ("name", "streams", "others"),
    [
        ("a.mp4", [(96, "libx264", 12, 0), (64, "mjpeg", 1, PICTURE)], 0),
        ("a.mp4", [(64, "mjpeg", 1, PICTURE), (96, "libx264", 12, 0)], 0),
        ("a.mp4", [(64, "mjpeg", 1, PICTURE), (96, "libx264", 1, 0)], 0),
        ("a.mp4", [(96, "libx264", 12, 0), (64, "mjpeg", 12, 0)], 1),
        # FFmpeg prefers the one that is marked, and of two alike that of more bits a second
        ("a.mkv", [(96, "libx264", 12, 0), (256, "libx264", 12, DEFAULT)], 1),
        ("a.mkv", [(96, "libx264", 3, 0), (256, "libx264", 12, 0), (64, "libx264", 12, 0)], 2),
    ],
)
def test_the_first_video_stream_is_read_and_the_notes_tell_of_others(
    name, streams, others, tmp_path
):
    """As of two cameras in one file: labels may be of the one that is not read."""
    path = write_streams(tmp_path / name, *streams)
    for source in (video(path=str(path), k=1), every_frame(path=str(path), cuts="none")):
        notes = [note for note in source.notes if "several video streams" in note]
        assert bool(notes) is bool(others)
        if notes:
            assert notes[0].endswith(f"the first is read, such as '{name}' with {others + 1}")
        assert source[0].image().shape == (96, 96, 3)
        # no stored answers to the stream that FFmpeg prefers
        assert source[0].key().startswith("first picture ") is bool(others)


INTERLACED = {"flags": "+ildct+ilme"}
AS_CODED = {
    "fields.mp4": ("libx264", "yuv420p", {"x264-params": "interlaced=1"}, {}, "interlaced"),
    "fields.mpg": ("mpeg2video", "yuv420p", INTERLACED, {}, "interlaced"),
    "fields.mov": ("prores_ks", "yuv422p10le", INTERLACED, {}, "interlaced"),
    "wide.mp4": ("libx264", "yuv420p", {"aspect": "2:1"}, {}, "not square"),
    "hd.mp4": ("libx264", "yuv420p", {}, {"size": (1280, 720)}, "BT.601"),
    "hd_709.mp4": ("libx264", "yuv420p", {"colorspace": "bt709"}, {"size": (1280, 720)}, ""),
    "hd.png.mov": ("png", "rgb24", {}, {"size": (1280, 720)}, ""),
    "sd.mp4": ("libx264", "yuv420p", {}, {"size": (720, 576)}, ""),
    "phone.mov": ("libx265", "yuv420p10le", {"color_trc": "arib-std-b67"}, {}, "HDR"),
    "film.mkv": ("libx265", "yuv420p10le", {"color_trc": "smpte2084"}, {}, "HDR"),
    "sdr.mkv": ("libx265", "yuv420p10le", {"color_trc": "bt709"}, {}, ""),
}


@pytest.mark.parametrize("name", AS_CODED)
def test_the_notes_tell_of_pictures_that_a_player_changes(name, tmp_path):
    """Of lines of two moments, pixels that are not square, colours not stated, and HDR."""
    codec, form, options, more, expected = AS_CODED[name]
    path = encoded.write(tmp_path / name, codec, form, options, count=6, **more)
    for source in (video(path=str(path), k=1), every_frame(path=str(path), cuts="none")):
        words = {
            word
            for word in ("interlaced", "not square", "BT.601", "HDR")
            for note in source.notes
            if word in note and "1 of 1 video" in note and f"first '{name}'" in note
        }
        assert words == ({expected} if expected else set())


def test_a_picture_of_a_cover_is_no_video(tmp_path):
    """As in a piece of music: it counted as a video of one frame."""
    path = write_streams(tmp_path / "song.mp4", (64, "mjpeg", 1, PICTURE))
    with pytest.raises(UsageError, match="there is none but a picture of a cover"):
        video(path=str(path), k=1)


FORMATS = {
    "phone.3gp": "libx264",
    "camera.MTS": "libx264",
    "disc.vob": "mpeg2video",
    "screen.wmv": "wmv2",
    "old.flv": "flv",
    "studio.mxf": "mpeg2video",
}


def test_no_video_of_a_folder_is_left_out(tmp_path):
    """Whatever wrote them: a folder of which some are read gives a number for those alone."""
    for name, codec in FORMATS.items():
        encoded.write(tmp_path / name, codec, count=8)
    source = every_frame(path=str(tmp_path), cuts="none")
    assert {clip.name: clip.frames for clip in source.clips} == dict.fromkeys(FORMATS, 8)
