"""Saved predictions over the released metadata, and faulty ones."""

import json

import numpy as np
import pytest
from scored import score
from tiny_files import copy_folder

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.spec import parse
from steadyeye.data.images.image_file import encode
from steadyeye.metrics.accuracy import accuracy
from steadyeye.metrics.pm_k import pm_k
from steadyeye.runner import saved_scores


@pytest.fixture(scope="module")
def released(test_data):
    return test_data / "imagenet_vid_robust"


@pytest.fixture(scope="module")
def part(released, tmp_path_factory):
    """The metadata of its first 60 sets, as a set of its own."""
    root = tmp_path_factory.mktemp("part")
    sets = json.loads((released / "metadata" / "pmsets.json").read_text())
    end = sorted(sets)[60].rpartition("/")[0]
    (root / "metadata").mkdir()
    for name in ("labels.json", "pmsets.json"):
        content = json.loads((released / "metadata" / name).read_text())
        first = {frame: content[frame] for frame in content if frame < end}
        (root / "metadata" / name).write_text(json.dumps(first))
    return root


@pytest.fixture(scope="module")
def data(part):
    return f"imagenet_vid_robust(root='{part}')"


@pytest.fixture(scope="module")
def ids(data):
    return plugins.build("sources", parse(data)).ids


@pytest.mark.slow
def test_counts_of_table_1(released):
    source = plugins.build("sources", parse(f"imagenet_vid_robust(root='{released}')"))
    assert len(source.ids) == 22_179
    assert source.notes == (
        "1,109 pm-sets with 21,070 neighbours; "
        "1 set without a neighbour, counted as the anchor alone",
        "1,514 frames with several labels",
    )


def test_scores_names_and_indices_give_the_same_numbers(data, ids, tmp_path):
    names = plugins.build("sources", parse(data)).classes.names
    answers = np.random.default_rng(0).integers(0, 30, len(ids))
    answers[np.random.default_rng(1).random(len(ids)) < 0.9] = 26
    kinds = {
        "scores": [np.eye(30)[a].tolist() for a in answers],
        "index": answers.tolist(),
        "name": [names[a] for a in answers],
    }
    numbers = {}
    for kind, values in kinds.items():
        path = tmp_path / f"{kind}.json"
        path.write_text(json.dumps(dict(zip(ids, values, strict=True))))
        predictions = score(path, data, tmp_path / kind)
        numbers[kind] = (accuracy(predictions), pm_k(predictions, k=10))
    assert numbers["scores"] == numbers["index"] == numbers["name"]
    assert numbers["scores"][0].n == 60


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda answers, first: answers.pop(first),
            r"lacks 1 of 1,1\d\d samples: val/ILSVRC2015_val_0",
        ),
        (lambda answers, first: answers.update({first: "turtel"}), "did you mean 'turtle'"),
        (
            lambda answers, first: answers.update({first: [0.1] * 7}),
            "7 scores .* there are 30 classes",
        ),
        (lambda answers, first: answers.update({first: [float("nan")] * 30}), "NaN scores"),
        (lambda answers, first: answers.update({first: [1e39] * 30}), "has infinite scores for"),
        (lambda answers, first: answers.update({first: 30}), "an index from 0 to 29"),
        (lambda answers, first: answers.update({first: ["x"] * 30}), "that are not numbers"),
    ],
)
def test_an_invalid_file_of_predictions_is_refused(data, ids, tmp_path, change, why):
    content = dict.fromkeys(ids, 26)
    change(content, ids[0])
    (tmp_path / "p.json").write_text(json.dumps(content))
    with pytest.raises(se.UsageError, match=why) as error:
        score(tmp_path / "p.json", data, tmp_path / "run")
    assert "\n" not in str(error.value)


def test_numbers_that_are_indices_and_names_of_different_classes_are_refused(tmp_path):
    """Folders 0 to 10 are sorted as texts, so that 10 is the class after 1."""
    for number in range(11):
        folder = tmp_path / "images" / str(number)
        folder.mkdir(parents=True)
        (folder / "a.png").write_bytes(encode(np.zeros((4, 4, 3), np.uint8), ".png"))
    data = f"image_folder(root='{tmp_path / 'images'}')"
    path = tmp_path / "p.json"
    path.write_text(json.dumps({f"{number}/a.png": number for number in range(11)}))
    message = "has 10 for '10/a.png', the index of the class '9' and the name of another"
    with pytest.raises(se.UsageError, match=message):
        score(path, data, tmp_path / "numbers")
    path.write_text(json.dumps({f"{number}/a.png": str(number) for number in range(11)}))
    assert accuracy(score(path, data, tmp_path / "names")).value == 1
    path.write_text(json.dumps({f"{number}/a.png": min(number, 1) for number in range(11)}))
    assert accuracy(score(path, data, tmp_path / "alike")).value == 2 / 11


def test_an_id_twice_is_refused(tmp_path):
    (tmp_path / "p.json").write_text('{"a": 1, "b": 2, "a": 3}')
    with pytest.raises(se.UsageError, match="has 1 id twice, first 'a'"):
        saved_scores.load(tmp_path / "p.json", None)


def test_labels_that_lack_a_frame_are_refused(part, tmp_path):
    path = copy_folder(part / "metadata", tmp_path / "metadata") / "labels.json"
    labels = json.loads(path.read_text())
    gone = "val/ILSVRC2015_val_00000001/000207.JPEG"
    labels.pop(gone)
    path.write_text(json.dumps(labels))
    with pytest.raises(se.UsageError, match=f"labels.json lacks the frame '{gone}'"):
        plugins.build("sources", parse(f"imagenet_vid_robust(root='{tmp_path}')"))


def test_reviewed_anchors_of_ytbb(test_data):
    source = plugins.build("sources", parse(f"ytbb_robust(root='{test_data / 'ytbb_robust'}')"))
    assert "2,467 anchors reviewed: 298 not judged good" in source.notes[1]
    assert "2,169 kept" in source.notes[1]
    cat = [m for m in source.members if m.group == "8pBTddH5J-E_24400"]
    assert [m.offset for m in cat] == list(range(-10, 11))
    assert {source.classes.names[label] for m in cat for label in m.truth} == {"cat"}
