"""The videos to which a file of labels, cuts or boxes refers, by their names."""

import json
import unicodedata

import encoded
import pytest

from steadyeye.core.errors import UsageError
from steadyeye.data.sources.every_frame import every_frame
from steadyeye.data.sources.frames import frames
from steadyeye.data.sources.video import video

CLASSES = ("cat", "dog")


@pytest.fixture
def footage(tmp_path):
    """`a/clip.mp4`, `b/clip.mp4` and `c.mp4`, six frames each."""
    whole = encoded.write(tmp_path / "whole.mp4", "libx264", count=6).read_bytes()
    for name in ("a/clip.mp4", "b/clip.mp4", "c.mp4"):
        path = tmp_path / "footage" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(whole)
    return tmp_path / "footage"


def write_labels(footage, entries):
    path = footage.parent / "labels.csv"
    path.write_text("\n".join(["video,labels", *(f"{name},{label}" for name, label in entries)]))
    return str(path)


def labels_of_videos(source):
    return {member.video: {CLASSES[c] for c in member.truth} for member in source.members}


@pytest.mark.parametrize(
    "names",
    [("a/clip.mp4", "b/clip.mp4"), ("a/clip", "b/clip"), ("a/clip.mp4", "b/clip")],
)
def test_videos_of_one_name_in_two_folders_have_labels_of_their_own(names, footage):
    labels = write_labels(footage, [(names[0], "cat"), (names[1], "dog")])
    source = video(path=str(footage), labels=labels)
    assert labels_of_videos(source) == {"a/clip.mp4": {"cat"}, "b/clip.mp4": {"dog"}}


def test_a_name_that_two_videos_have_is_refused(footage):
    labels = write_labels(footage, [("clip", "cat"), ("c.mp4", "dog")])
    with pytest.raises(UsageError) as error:
        video(path=str(footage), labels=labels)
    assert str(error.value) == (
        "the labels name 'clip', which may be 'a/clip.mp4' or 'b/clip.mp4'; write the name with "
        "its folders and suffix"
    )
    # what has labels of its own is not meant by the shorter name
    labels = write_labels(footage, [("clip", "cat"), ("a/clip.mp4", "dog")])
    assert labels_of_videos(video(path=str(footage), labels=labels)) == {
        "a/clip.mp4": {"dog"},
        "b/clip.mp4": {"cat"},
    }
    assert len(labels_of_videos(video(path=str(footage), labels="cat"))) == 3


def test_cuts_and_boxes_of_a_name_that_two_videos_have_are_refused(footage, tmp_path):
    cuts = tmp_path / "cuts.json"
    cuts.write_text(json.dumps({"videos": {"clip": {"cuts": [3]}}}))
    for load in (
        lambda: every_frame(path=str(footage), cuts=str(cuts)),
        lambda: video(path=str(footage), labels=str(cuts)),
    ):
        with pytest.raises(UsageError, match=r"'clip', which may be 'a/clip.mp4' or 'b/clip.mp4'"):
            load()
    boxes = tmp_path / "boxes.csv"
    boxes.write_text("video,frame,label,x0,y0,x1,y1\nclip,0,cat,0,0,5,5\nc,0,dog,0,0,5,5\n")
    with pytest.raises(UsageError, match=r"boxes name 'clip', which may be 'a/clip.mp4' or"):
        video(path=str(footage), boxes=str(boxes))


def test_folders_of_frames_of_one_name_up_to_a_dot(tmp_path):
    for name in ("take.1", "take.2"):
        (tmp_path / "films" / name).mkdir(parents=True)
        for number in range(3):
            (tmp_path / "films" / name / f"{number}.png").write_bytes(encoded.still(number))
    labels = tmp_path / "labels.csv"
    labels.write_text("video,labels\ntake,cat\n")
    with pytest.raises(UsageError, match=r"'take', which may be 'take\.1' or 'take\.2'"):
        frames(path=str(tmp_path / "films"), labels=str(labels))


@pytest.mark.parametrize(
    ("folder", "path"),
    [("film", "."), ("film", "../film"), ("film", "more/.."), ("film/more", "..")],
)
def test_a_folder_has_its_name_however_its_path_is_written(folder, path, tmp_path, monkeypatch):
    """Anchors are drawn by the name of the video, and labels go by it."""
    film = tmp_path / "film"
    (film / "more").mkdir(parents=True)
    for number in range(30):
        (film / f"{number}.png").write_bytes(encoded.still(number))
    labels = tmp_path / "labels.csv"
    labels.write_text("video,labels\nfilm,cat\n")
    monkeypatch.chdir(tmp_path / folder)
    source = frames(path=path, anchors=3, k=1, labels=str(labels))
    assert source.ids == frames(path=str(film), anchors=3, k=1, labels=str(labels)).ids
    assert source.name == source.members[0].video == "film"


@pytest.mark.parametrize(("on_disk", "in_file"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_an_accent_may_be_a_character_of_its_own(on_disk, in_file, footage, tmp_path):
    """As macOS names files, and a spreadsheet or another machine does not."""
    names = {form: unicodedata.normalize(form, "früh") for form in ("NFC", "NFD")}
    (footage / "c.mp4").rename(footage / f"{names[on_disk]}.mp4")
    written = names[in_file]
    labels = write_labels(footage, [("a/clip", "cat"), (written, "dog")])
    source = video(path=str(footage), labels=labels)
    expected = {"a/clip.mp4": {"cat"}, f"{names[on_disk]}.mp4": {"dog"}}
    assert labels_of_videos(source) == expected
    assert not any("not there" in note for note in source.notes)

    sidecar = tmp_path / "labels.json"
    entries = {"a/clip": {"labels": [{"labels": "cat"}]}, written: {"labels": [{"labels": "dog"}]}}
    sidecar.write_text(json.dumps({"videos": entries}))
    assert labels_of_videos(video(path=str(footage), labels=str(sidecar))) == expected

    boxes = tmp_path / "boxes.csv"
    boxes.write_text(f"video,frame,label,x0,y0,x1,y1\n{written},2,cat,0,0,5,5\n")
    boxed = video(path=str(footage / f"{names[on_disk]}.mp4"), k=0, boxes=str(boxes))
    assert [member.frame for member in boxed.members] == [2]


def test_a_video_named_twice_in_two_forms_is_refused_in_json(footage, tmp_path):
    twice = {unicodedata.normalize(form, "früh"): {"cuts": [1]} for form in ("NFC", "NFD")}
    sidecar = tmp_path / "labels.json"
    sidecar.write_text(json.dumps({"videos": twice}))
    with pytest.raises(UsageError, match="name 'früh' twice; join the two"):
        video(path=str(footage), labels=str(sidecar))


def test_labels_of_absent_videos_are_counted(footage):
    labels = write_labels(footage, [("c.mp4", "cat"), ("e.mp4", "dog"), ("d.mp4", "dog")])
    source = video(path=str(footage), labels=labels)
    assert "labels of 2 videos that are not there, first 'd.mp4'" in source.notes
    assert not any("not there" in note for note in video(path=str(footage), labels="cat").notes)


def test_a_misspelled_video_of_labels_gets_a_suggestion(footage):
    """Not a video that has labels of its own."""
    absent = "labels of 1 video that are not there, first 'a/clpi.mp4'"
    labels = write_labels(footage, [("a/clpi.mp4", "cat"), ("c", "dog")])
    assert f"{absent}; did you mean 'a/clip.mp4'?" in video(path=str(footage), labels=labels).notes
    others = [("a/clip.mp4", "cat"), ("b/clip.mp4", "cat")]
    labels = write_labels(footage, [("a/clpi.mp4", "cat"), *others])
    assert absent in video(path=str(footage), labels=labels).notes


def test_copies_of_a_video_are_counted(footage):
    """An interval over three videos that are one would be too narrow without a word."""
    for source in (video(path=str(footage)), every_frame(path=str(footage), cuts="none")):
        assert (
            "2 of 3 videos with the same content as another, first 'b/clip.mp4' as 'a/clip.mp4'; "
            "intervals treat them as different videos"
        ) in source.notes
    content = bytearray((footage / "c.mp4").read_bytes())
    content[-1] ^= 1
    (footage / "c.mp4").write_bytes(content)
    assert any(
        note.startswith("1 of 3 videos with the same") for note in video(path=str(footage)).notes
    )
    (footage / "b" / "clip.mp4").unlink()
    assert not any("same content" in note for note in video(path=str(footage)).notes)
