"""Sources that are folders: their contents, and faults."""

import shutil
import unicodedata

import numpy as np
import pytest
from PIL import Image
from tiny_files import write_video

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.data.images import image_file
from steadyeye.data.python_data import read_items


def build(text):
    return plugins.build("sources", parse(text))


@pytest.fixture
def photos(test_data, tmp_path):
    """Two photos in folders named by a class and by a WordNet id, one without a label."""
    for folder, name in (("parrot", "parrot.jpg"), ("n07697537", "hot_dog.jpg"), ("", "owl.jpg")):
        (tmp_path / folder).mkdir(exist_ok=True)
        shutil.copy(test_data / "photos" / name, tmp_path / folder / name)
    return tmp_path


def test_image_folder_names_classes_by_folder(photos):
    source = build(f"image_folder(root='{photos}')")
    assert source.classes.names == ("n07697537", "parrot")
    assert source.ids == ["n07697537/hot_dog.jpg", "owl.jpg", "parrot/parrot.jpg"]
    assert source.truths == ((0,), (), (1,))
    assert source[0].image().ndim == 3
    assert source.columns == ("truth",)


@pytest.mark.parametrize(
    ("names", "count"), [(["a.gif"], "1 file"), (["b.HEIC", "a.gif"], "2 files")]
)
def test_photos_of_a_kind_that_is_not_read_are_in_the_notes(photos, names, count):
    assert len(build(f"image_folder(root='{photos}')").notes) == 1
    for name in names:
        (photos / "parrot" / name).write_bytes(b"GIF89a")
    source = build(f"image_folder(root='{photos}')")
    assert len(source) == 3
    assert source.notes[1] == (
        f"{count} left out, first 'parrot/a.gif': not named as images; convert images to "
        "JPEG or PNG"
    )


@pytest.mark.parametrize("kind", ["every_frame(path='{}')", "video(path='{}', anchors=1, k=1)"])
def test_files_beside_videos_that_are_none_are_in_the_notes(kind, tmp_path):
    write_video(tmp_path / "clip.mp4")
    note = "left out, first"
    assert note not in " ".join(build(kind.format(tmp_path)).notes)
    for name in ("b.gif", "notes.txt", "clip.json", ".DS_Store", "LICENSE"):
        (tmp_path / name).write_bytes(b"GIF89a")
    notes = build(kind.format(tmp_path)).notes
    assert notes[-1] == (
        "2 files left out, first 'b.gif': not named as videos; convert videos to MP4"
    )


@pytest.mark.parametrize(
    "kind",
    [
        "every_frame(path='{}', fps=25)",
        "frames(path='{}', anchors=1, k=1)",
        "photo_bursts(path='{}', by='folder')",
    ],
)
def test_files_beside_frames_that_are_no_images_are_in_the_notes(kind, photos):
    for number in range(4):
        shutil.copy(photos / "owl.jpg", photos / "parrot" / f"owl{number}.jpg")
    for path in (photos / "owl.jpg", photos / "parrot" / "parrot.jpg"):
        path.unlink()
    shutil.rmtree(photos / "n07697537")
    (photos / "parrot" / "owl4.heic").write_bytes(b"")
    notes = build(kind.format(photos)).notes
    assert any(note.startswith("1 file left out, first 'parrot/owl4.heic'") for note in notes)


@pytest.mark.parametrize(("on_disk", "in_list"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_accents_of_classes_may_be_written_in_either_form(on_disk, in_list, photos, tmp_path):
    name, name_in_list = (unicodedata.normalize(form, "Würfel") for form in (on_disk, in_list))
    (photos / "parrot").rename(photos / name)
    shutil.rmtree(photos / "n07697537")
    file = tmp_path / "classes.txt"
    file.write_text(f"ring\n{name_in_list}\n")
    source = build(f"image_folder(root='{photos}', classes='{file}')")
    assert sorted(source.truths) == [(), (1,)]
    bursts = f"photo_bursts(path='{photos / name}', labels='{tmp_path}/a.csv', classes='{file}')"
    shutil.copy(photos / "owl.jpg", photos / name)
    (tmp_path / "a.csv").write_text(f"file,label\nowl.jpg,{name}\n")
    assert sorted(sample.truth for sample in build(bursts)) == [(), (1,)]
    assert read_items([(np.zeros((8, 8, 3), np.uint8), name)], ["ring", name_in_list])[0].truth == (
        1,
    )


HIDDEN = ["parrot/.ipynb_checkpoints/owl-checkpoint", ".thumbnails/parrot", "parrot/._parrot"]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_hidden_copies_are_no_images_and_no_videos(hidden, photos, tmp_path_factory):
    videos = tmp_path_factory.mktemp("videos")
    write_video(videos / "parrot.mp4")
    for folder, source in ((photos, photos / "owl.jpg"), (videos, videos / "parrot.mp4")):
        copy = folder / f"{hidden}{source.suffix}"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    images = build(f"image_folder(root='{photos}')")
    assert images.ids == ["n07697537/hot_dog.jpg", "owl.jpg", "parrot/parrot.jpg"]
    assert images.classes.names == ("n07697537", "parrot")
    frames = build(f"every_frame(path='{videos}')")
    assert {sample.id.partition("/")[0] for sample in frames} == {"parrot.mp4"}
    # a hidden folder that the user names is read
    inner = shutil.copytree(photos / "parrot", photos / ".photos" / "parrot")
    assert "parrot.jpg" in build(f"image_folder(root='{inner}')").ids


@pytest.mark.parametrize("orientation", [3, 6, 2])
@pytest.mark.parametrize("source", ["image_folder(root='{}')", "photo_bursts(path='{}')"])
def test_photos_that_exif_asks_to_rotate_are_in_the_notes(tmp_path, source, orientation):
    (tmp_path / "a").mkdir()
    for number in range(3):
        photo, exif = Image.new("RGB", (40, 30), (90, 10 * number, 0)), Image.Exif()
        exif[0x0112] = orientation if number == 1 else 1
        photo.save(tmp_path / "a" / f"{number}.jpg", exif=exif)
    (note,) = (n for n in build(source.format(tmp_path)).notes if "EXIF" in n)
    assert note.startswith("1 of 3 images looked at ask to be rotated or mirrored (EXIF), first")
    assert "'1.jpg': they are read as stored" in note


def test_image_folder_takes_a_class_list_by_name_or_wordnet_id(photos):
    (photos / "parrot").rename(photos / "goldfish")
    source = build(f"image_folder(root='{photos}', classes='imagenet1k')")
    assert source.truths == ((1,), (934,), ())
    (photos / "goldfish").rename(photos / "goldfihs")
    with pytest.raises(UsageError, match="no class named 'goldfihs'; did you mean 'goldfish'"):
        build(f"image_folder(root='{photos}', classes='imagenet1k')")


def test_a_folder_without_classes_is_unlabelled(test_data):
    source = build(f"image_folder(root='{test_data / 'photos'}')")
    assert source.classes is None
    assert source.columns == ()
    assert len(source) == 6


def test_frames_are_ordered_by_their_last_number(test_data, tmp_path):
    for name, number in (("owl", 2), ("parrot", 10), ("hot_dog", 1)):
        shutil.copy(test_data / "photos" / f"{name}.jpg", tmp_path / f"cam1_{number}.jpg")
    source = build(f"frames(path='{tmp_path}', anchors=3, k=2)")
    assert len(source) == 9
    shapes = [source[i].image().shape for i in range(3)]
    photos = (test_data / "photos" / f"{name}.jpg" for name in ("hot_dog", "owl", "parrot"))
    assert shapes == [image_file.read(photo).shape for photo in photos]
    assert {m.video for m in source.members} == {tmp_path.name}
    shutil.copy(test_data / "photos" / "owl.jpg", tmp_path / "last.jpg")
    with pytest.raises(UsageError, match="has no number in its name"):
        build(f"frames(path='{tmp_path}', anchors=3, k=2)")


def test_two_frames_of_one_number_are_refused(test_data, tmp_path):
    for name in ("cam1_1", "cam1_2", "cam2_2"):
        shutil.copy(test_data / "photos" / "owl.jpg", tmp_path / f"{name}.jpg")
    with pytest.raises(UsageError, match="has 1 frame number more than once, first 2"):
        build(f"frames(path='{tmp_path}', anchors=1, k=1)")


def test_frames_that_vanish_are_named_before_inference(test_data, tmp_path):
    for number in range(4):
        shutil.copy(test_data / "photos" / "owl.jpg", tmp_path / f"{number}.jpg")
    source = build(f"frames(path='{tmp_path}', anchors=1, k=3)")
    (tmp_path / "2.jpg").unlink()
    assert source.missing() == [str(tmp_path / "2.jpg")]


def test_another_label_changes_the_fingerprint(test_data):
    clip = test_data / "videos" / "sam2_01_dog.mp4"
    marks = {
        build(f"video(path='{clip}', {more})").fingerprint
        for more in ("k=10", "k=9", "seed=1", "labels='dog'", "labels='cat'", "anchors=2")
    }
    assert len(marks) == 6


def test_incomplete_published_sets_are_reported(test_data):
    source = build(f"imagenet_vid_robust(root='{test_data / 'imagenet_vid_robust'}')")
    assert len(source.missing()) == 22_179 - 21
    with pytest.raises(UsageError, match="no video named 'x'"):
        build(f"imagenet_vid_robust(root='{test_data / 'imagenet_vid_robust'}', videos=['x'])")
