"""The released sets against a dozen lines of plain Python over their own metadata."""

import csv
import json
import random

import numpy as np
import pytest
from PIL import Image
from tiny_files import copy_folder

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.data.classes.class_mapping import between
from steadyeye.data.sources.imagenet_vid_robust import imagenet_vid_robust
from steadyeye.data.sources.ytbb_robust import UNNAMEABLE, ytbb_robust
from steadyeye.runner.job import Job
from steadyeye.runner.task import task

FLAWS = [
    *("dissimilar", "problematic", "incorrect", "dont know", "deformation"),
    *("background-change", "occlusion-increased", "blur-increase", "bad-anchor"),
]
LABELS = ["similar", *FLAWS, "correct"]


def good_anchors(metadata):
    """Set → (number of the anchor's frame, its labels), straight from the definition."""
    with (metadata / "ytbb_robustness_test_anchors_full.csv").open(newline="") as file:
        label = {f"{r['ytid']}_{r['time_ms']}": int(r["label"]) for r in csv.DictReader(file)}
    index = json.loads((metadata / "ytbb_class_index.json").read_text())
    number = {name: int(i) for i, name in index.items()}
    reviews = json.loads((metadata / "anchor_labels.json").read_text())
    anchors = {}
    for row in reviews["annotations"]:
        words = {reviews["labels"][i] for i in row["labels"]}
        name, file = row["key"].split("/")[-2:]
        if "good" in words and not words & {"bad", "unsure"}:
            own = {22: 23, 23: 22}.get(label[name], label[name])
            frame = int(file.removeprefix("frame-").removesuffix(".jpg"))
            anchors[name] = frame, {own} | {number[word] for word in words if word in number}
    return anchors


@pytest.fixture
def metadata(test_data, tmp_path):
    """The released metadata in a folder that a test may change, without any frames."""
    return copy_folder(test_data / "ytbb_robust" / "metadata", tmp_path / "metadata")


def write_pairs(metadata, annotations, labels=LABELS):
    text = json.dumps({"labels": labels, "annotations": annotations})
    (metadata / "pmk_labels.json").write_text(text)


def key(name, anchor, neighbour):
    return f"{name}/frame-{anchor}.jpg,{name}/frame-{neighbour}.jpg"


def sets_of(source):
    sets = {}
    for member in source.members:
        sets.setdefault(member.group, {})[member.offset] = set(member.truth)
    return sets


def test_good_anchors_and_their_labels(metadata):
    source = ytbb_robust(str(metadata.parent))
    expected = good_anchors(metadata)
    assert len(expected) == 2169
    anchors = {m.group: (m.frame, set(m.truth)) for m in source.members if m.offset == 0}
    assert anchors == expected
    # the class with index 23 is car; the CSV writes 22
    with (metadata / "ytbb_robustness_test_anchors_full.csv").open(newline="") as file:
        cars = {f"{r['ytid']}_{r['time_ms']}" for r in csv.DictReader(file) if r["label"] == "22"}
    assert len(cars & anchors.keys()) == 84
    assert all(23 in anchors[name][1] for name in cars & anchors.keys())
    assert not any(22 in labels for _, labels in anchors.values())


def test_without_the_reviews_of_pairs_the_set_says_so(metadata):
    source = ytbb_robust(str(metadata.parent))
    assert source.name == "ytbb_robust, neighbours not reviewed"
    notes = " ".join(source.notes)
    assert "not the published set of 2,030 anchors and 36,827 pairs" in notes
    assert "78 of 2,169 anchors show only classes that no ImageNet model can name" in notes


@pytest.mark.slow
def test_pairs_by_the_rules(metadata):
    """Every combination of labels, drawn at random: the sets are those of the definition."""
    draw = random.Random(3)
    anchors, reviews = good_anchors(metadata), {}
    for name, (frame, _) in anchors.items():
        for neighbour in range(frame - 12, frame + 13):
            labels = set(draw.sample(LABELS, draw.choice([1, 1, 2, 3])))
            labels |= {"similar"} if draw.random() < 0.8 else set()
            labels -= {"bad-anchor"} if draw.random() < 0.95 else set()
            if neighbour != frame and draw.random() < 0.95:
                reviews[key(name, frame, neighbour)] = labels
    rows = [{"key": k, "labels": [LABELS.index(w) for w in sorted(v)]} for k, v in reviews.items()]
    write_pairs(metadata, rows)

    bad = {k.split(",")[0] for k, v in reviews.items() if "bad-anchor" in v}
    expected = {}
    for name, (frame, labels) in anchors.items():
        if f"{name}/frame-{frame}.jpg" in bad:
            continue
        expected[name] = {0: labels}
        for offset in range(-10, 11):
            words = reviews.get(key(name, frame, frame + offset), set())
            if "similar" in words and not words & set(FLAWS):
                expected[name][offset] = labels
    source = ytbb_robust(str(metadata.parent))
    assert 500 < len(expected) < 2_100
    assert sets_of(source) == expected
    assert source.name == "ytbb_robust, not as released"

    whole = ytbb_robust(str(metadata.parent), review=False)
    assert sets_of(whole).keys() == {
        row["key"].split("/")[-2]
        for row in json.loads((metadata / "anchor_labels.json").read_text())["annotations"]
    }
    assert sets_of(ytbb_robust(str(metadata.parent), k=3)) == {
        name: {o: labels for o, labels in offsets.items() if abs(o) <= 3}
        for name, offsets in expected.items()
    }
    accepted = {(m.group, m.offset) for m in whole.members if m.accepted}
    assert accepted == {(name, offset) for name, offsets in expected.items() for offset in offsets}


def released_counts(metadata):
    """Reviews of pairs that leave 2,030 anchors and 36,827 pairs."""
    anchors = good_anchors(metadata)
    names = [name for name in anchors if anchors[name][0] >= 10]
    dropped, remaining = names[: 2169 - 2030], [n for n in anchors if n not in names[: 2169 - 2030]]
    rows = [
        {"key": key(name, anchors[name][0], anchors[name][0] + 1), "labels": ["bad-anchor"]}
        for name in dropped
    ]
    pairs = [
        key(name, anchors[name][0], anchors[name][0] + offset)
        for offset in (o for d in range(1, 11) for o in (d, -d))
        for name in remaining
        if anchors[name][0] + offset >= 0
    ]
    rows += [{"key": pair, "labels": ["similar"]} for pair in pairs[:36_827]]
    rows += [{"key": pair, "labels": ["similar", "deformation"]} for pair in pairs[36_827:]]
    return rows


@pytest.mark.slow
def test_the_released_name_is_for_the_released_set_alone(metadata):
    rows = released_counts(metadata)
    write_pairs(metadata, rows)
    root = str(metadata.parent)
    source = ytbb_robust(root)
    offsets = [m.offset for m in source.members]
    assert (offsets.count(0), len(offsets)) == (2030, 2030 + 36_827)
    assert source.name == "ytbb_robust"
    assert ytbb_robust(root, review=False).name == "ytbb_robust"
    assert ytbb_robust(root, sets=[source.members[0].group]).name == "ytbb_robust, part"
    write_pairs(metadata, rows[:-1])
    assert ytbb_robust(root).name == "ytbb_robust"  # what was rejected need not be there
    write_pairs(metadata, [*rows[:-1], {**rows[-1], "labels": ["similar"]}])
    assert ytbb_robust(root).name == "ytbb_robust, part"
    write_pairs(metadata, rows)
    table = metadata / "ytbb_robustness_test_anchors_full.csv"
    name = source.members[0].group
    lines = table.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(name.replace("_", ",")[:11]))
    lines[at] = f"{lines[at].rpartition(',')[0]},{(int(lines[at].rpartition(',')[2]) + 1) % 20}"
    table.write_text("\n".join(lines))
    assert ytbb_robust(root).name == "ytbb_robust, not as released"


def test_the_last_review_of_a_pair_holds_and_keys_may_have_folders(metadata):
    (name, (frame, _)), (other, (at, _)) = list(good_anchors(metadata).items())[:2]
    write_pairs(
        metadata,
        [
            {"key": key(name, frame, frame + 1), "labels": ["dissimilar"]},
            {"key": key(name, frame, frame + 1), "labels": ["similar", "correct"]},
            {"key": key(name, frame, frame - 1), "labels": ["similar"]},
            {"key": key(name, frame, frame - 1), "labels": ["similar", "dont know"]},
            {"key": [f"/a/b/{other}/frame-{at}.jpg", f"{other}/frame-{at + 2}.jpg"], "labels": [0]},
        ],
    )
    sets = sets_of(ytbb_robust(str(metadata.parent), sets=[name, other]))
    assert {name: set(sets[name]), other: set(sets[other])} == {name: {0, 1}, other: {0, 2}}
    assert "2,167 kept anchors without a reviewed pair" in " ".join(
        ytbb_robust(str(metadata.parent)).notes
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "cannot read"),
        ('["a"]', "not in the released layout; expected"),
        ('{"labels": ["similar"], "annotations": []}', "has no label 'dissimilar' among similar"),
        (
            json.dumps({"labels": [w.replace("-", "_") for w in LABELS], "annotations": []}),
            "has no label 'background-change'",
        ),
        (json.dumps({"labels": LABELS, "annotations": [3]}), "annotation 0 is 3; expected"),
        (
            json.dumps({"labels": LABELS, "annotations": [{"key": "a_1/f-2.jpg", "labels": [0]}]}),
            "expected an anchor and a neighbour",
        ),
        (
            json.dumps({"labels": LABELS, "annotations": [{"key": "a,b", "labels": [0]}]}),
            "has the key 'a'; expected <video>_<ms>/frame-<n>.jpg",
        ),
        (
            json.dumps(
                {"labels": LABELS, "annotations": [{"key": key("a_1", 1, 2), "labels": [99]}]}
            ),
            "has the label 99; the file lists 11 labels",
        ),
    ],
)
def test_reviews_of_pairs_that_do_not_parse_are_refused(metadata, content, why):
    (metadata / "pmk_labels.json").write_text(content)
    with pytest.raises(UsageError, match=why) as error:
        ytbb_robust(str(metadata.parent))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("KxDh7a8_AmU,44666,23", "label 23; the released file numbers classes from 0 to 22"),
        ("KxDh7a8_AmU,44666,x", "column label: 'x' is no whole number"),
        ("04rVDII50JU,66600,5", "another label for '04rVDII50JU_66600' than before"),
    ],
)
def test_anchor_files_that_would_mislead_are_refused(metadata, line, why):
    path = metadata / "ytbb_robustness_test_anchors_full.csv"
    path.write_text(f"{path.read_text().rstrip()}\n{line}\n")
    with pytest.raises(UsageError, match=why):
        ytbb_robust(str(metadata.parent))


def test_an_oracle_is_right_wherever_an_imagenet_model_can_be(metadata):
    """It names one ILSVRC class of the main object, for all that have one."""
    source = ytbb_robust(str(metadata.parent))
    classes = between(shipped_classes("imagenet1k"), source.classes)
    assert set(classes.missing) == {*UNNAMEABLE, "none"}
    anchors = [m for m in source.members if m.offset == 0]
    scores = np.zeros((len(anchors), 1000), dtype=np.float32)
    for row, anchor in enumerate(anchors):
        members = [member for label in anchor.truth for member in classes.members[label]]
        scores[row, members[:1]] = 1
    best = classes.apply(scores).argmax(axis=1)
    right = np.array([label in m.truth for label, m in zip(best, anchors, strict=True)])
    unnameable = {source.classes.names.index(name) for name in UNNAMEABLE}
    nameable = np.array([not set(m.truth) <= unnameable for m in anchors])
    assert right[nameable].all()
    assert (nameable.sum(), right.sum()) == (2091, 2091)


@pytest.fixture
def vid(test_data, tmp_path):
    return copy_folder(test_data / "imagenet_vid_robust" / "metadata", tmp_path / "metadata")


def change(metadata, file, how):
    content = json.loads((metadata / file).read_text())
    how(content)
    (metadata / file).write_text(json.dumps(content))


@pytest.mark.slow
def test_imagenet_vid_robust_frame_by_frame(vid):
    sets = json.loads((vid / "pmsets.json").read_text())
    labels = json.loads((vid / "labels.json").read_text())
    source = imagenet_vid_robust(str(vid.parent))
    assert source.name == "imagenet_vid_robust"
    expected = {
        (anchor, frame): (int(frame[-11:-5]) - int(anchor[-11:-5]), tuple(sorted(labels[frame])))
        for anchor, near in sets.items()
        for frame in {anchor, *near}
    }
    frames = {(m.group, m.id): (m.offset, m.truth) for m in source.members}
    assert frames == expected
    assert len(frames) == len(source.members) == 22_179
    assert len(sets) == 1109
    assert sum(len(near) == 20 for near in sets.values()) == 889


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "how"),
    [
        ("pmsets.json", lambda c: c[next(iter(c))].pop()),
        ("labels.json", lambda c: c.update({next(iter(c)): [3]})),
    ],
)
def test_changed_metadata_lose_the_released_name(vid, file, how):
    change(vid, file, how)
    assert imagenet_vid_robust(str(vid.parent)).name == "imagenet_vid_robust, not as released"


@pytest.mark.slow
def test_a_part_of_a_released_set_is_named_as_a_part(vid):
    part = imagenet_vid_robust(str(vid.parent), videos=["ILSVRC2015_val_00000000"])
    assert part.name == "imagenet_vid_robust, part"
    (vid / "classes.json").write_text(json.dumps(dict.fromkeys(shipped_classes("vid30").names)))
    assert imagenet_vid_robust(str(vid.parent)).name == vid.parent.name


@pytest.mark.parametrize(
    ("file", "how", "why"),
    [
        ("labels.json", lambda c: c.update({next(iter(c)): []}), "the label None; give each"),
        ("labels.json", lambda c: c.update({next(iter(c)): [-1]}), "the label -1; give each"),
        ("labels.json", lambda c: c.update({next(iter(c)): [30]}), "one or more of 0 to 29"),
        ("labels.json", lambda c: c.update({next(iter(c)): ["7"]}), "the label 7; give each"),
        ("labels.json", lambda c: c.update({next(iter(c)): 7}), "no list; take the released"),
        (
            "pmsets.json",
            lambda c: c[next(iter(c))].append(c[list(c)[1]][0]),
            "is from another video than its anchor",
        ),
    ],
)
def test_metadata_that_do_not_fit_are_refused(vid, file, how, why):
    change(vid, file, how)
    with pytest.raises(UsageError, match=why):
        imagenet_vid_robust(str(vid.parent))


def test_near_anchors_share_frames(tmp_path):
    """As a review of several anchors in one video exports them."""
    frames = [f"val/phone (2).mov/{number:06d}.JPEG" for number in range(5)]
    sets = {frames[1]: [frames[0], frames[2]], frames[3]: [frames[2], frames[4]]}
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "pmsets.json").write_text(json.dumps(sets))
    labels = {frame: [number] for number, frame in enumerate(frames)}
    (tmp_path / "metadata" / "labels.json").write_text(json.dumps(labels))
    for number, frame in enumerate(frames):
        (tmp_path / frame).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (50 * number,) * 3).save(tmp_path / frame, "JPEG")
    source = imagenet_vid_robust(str(tmp_path))
    rows = [
        (m.group, m.frame, m.offset, *m.truth, round(int(source[i].image()[0, 0, 0]) / 50))
        for i, m in enumerate(source.members)
    ]
    assert rows == [
        (frames[1], 0, -1, 0, 0),
        (frames[1], 1, 0, 1, 1),
        (frames[1], 2, 1, 2, 2),
        (frames[3], 2, -1, 2, 2),
        (frames[3], 3, 0, 3, 3),
        (frames[3], 4, 1, 4, 4),
    ]
    assert len(set(source.ids)) == 6
    assert source.ids[:2] == frames[:2]
    assert not source.missing()


def test_an_anchor_twice_in_the_file_is_refused(vid):
    text = (vid / "pmsets.json").read_text()
    first = next(iter(json.loads(text)))
    (vid / "pmsets.json").write_text(text.rstrip()[:-1] + f', "{first}": []}}')
    with pytest.raises(UsageError, match=f"have '{first}' twice"):
        imagenet_vid_robust(str(vid.parent))


def test_a_model_that_cannot_name_a_class_of_ytbb_is_not_refused(test_data):
    """Its samples stay in the set, and the model is wrong on them."""
    spec = f"ytbb_robust(root='{test_data / 'ytbb_robust'}')"
    source = plugins.build("sources", parse(spec))
    model = plugins.build("models", parse("efficientnet_lite0"))
    evaluation_task = task(
        Job(models=("efficientnet_lite0",), data=(spec,)), ("m", model), (spec, source), None
    )
    assert any(
        note.startswith("toilet: no class of")
        for note in evaluation_task.identity["model"]["notes"]
    )
