"""Mining from the command line to a review: candidates, sets, reports, and refusals."""

import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest
import vl_convert
from mined_toys import HERE, data, models, steadyeye, written
from mining_toys import BEAR, CAR, KITE, table
from review_toys import Review

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Evaluated
from steadyeye.data.annotations import review_candidates as suggestions
from steadyeye.data.annotations import review_set
from steadyeye.data.sources.coco import coco
from steadyeye.explain.mining.causes import judge_detections
from steadyeye.explain.mining.error_rates import shares
from steadyeye.explain.mining.run import MiningSettings, mine
from steadyeye.report.analyses.confident_mistakes import confident_mistakes
from steadyeye.report.mined import own_names
from steadyeye.review.interchange.coco import export_coco
from steadyeye.runner.collect import tables

FINE = {"well_sized": True, "blurry": False, "occluded": False, "depiction": False}


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path)


@pytest.fixture(scope="module")
def mined_set(tmp_path_factory):
    """The folder of what was mined of two detectors, and what was printed."""
    folder = written(tmp_path_factory.mktemp("data"))
    code, output = steadyeye(
        folder,
        "mine",
        *models("sure", "also"),
        "--data",
        data(folder),
        "--out",
        folder / "it's mined",
    )
    assert code == 0, output
    return folder / "it's mined", output


def annotations(out):
    content = json.loads((out / "candidates.json").read_text())
    names = {category["id"]: category["name"] for category in content["categories"]}
    images = {image["id"]: image for image in content["images"]}
    return [
        (images[annotation["image_id"]]["sample"], names[annotation["category_id"]], annotation)
        for annotation in content["annotations"]
    ]


def tables_of(output):
    """The lines of the tables printed of `sure` and of `also`, from their titles on."""
    lines = output.splitlines()
    return [lines[lines.index(name) + 1 :] for name in ("sure", "also")]


def test_candidates_of_two_models_from_the_command_line(mined_set):
    out, output = mined_set
    entries = annotations(out)
    # dogs: one out of distribution on image 0, and on 1 and 2, the picture of 3 being that of 2
    assert [(s, name, a["cause"], a["truth"]) for s, name, a in entries] == [
        ("0", "dog", "out_of_distribution", "gnome"),
        ("1", "dog", "misclassification", "cat"),
        ("2", "dog", "misclassification", "cat"),
    ]
    assert [a["models"] for *_, a in entries] == [["sure", "also"]] * 3
    assert [a["times"] for *_, a in entries] == [2, 2, 4]
    assert entries[0][2]["bbox"] == [4, 4, 20, 20]
    assert entries[0][2]["model"] == "sure"
    assert all(0 < a["novelty"] < 1 for *_, a in entries)
    sure, also = ([line.split(maxsplit=1) for line in block] for block in tables_of(output))
    assert sure[:3] == [["n", "score above 0.8"], ["12", "confident detections"], ["4", "right"]]
    assert also[:3] == [["n", "score above 0.8"], ["4", "confident detections"], ["0", "right"]]
    assert (["4", "unverified"] in sure, ["0", "unverified"] in also) == (True, True)
    assert "1 merged with others of their class that look the same" in output
    following = output.splitlines()[-1].removeprefix("next: ")
    assert shlex.split(following) == ["steadyeye", "review", str(out)]
    # the detections themselves are sealed there as in any run
    assert {t.model for _, t in tables([out])} == {"sure", "also"}
    page = (out / "report.html").read_text()
    assert "Confident mistakes" in page
    assert "Out of distribution: on an object of a class that the detector does not have" in page
    assert "no picture stored" not in page


def test_the_candidates_are_data_in_cocos_form(mined_set):
    out, _ = mined_set
    source = coco(str(out / "candidates.json"), str(out / "images"))
    assert source.missing() == []
    assert source[0].boxes.boxes.tolist() == [HERE]
    assert source[0].image().shape == (40, 64, 3)
    again = suggestions.read(out / "candidates.json")
    assert [box.label for box in again.boxes] == ["dog"] * 3


def test_people_review_what_was_mined(mined_set):
    out, _ = mined_set
    candidate_set = review_set.read(out)
    assert candidate_set.content["kind"] == "boxes"
    assert [row["name"] for row in candidate_set.boxes.to_pylist()] == ["0", "1", "2"]
    review = Review(candidate_set, 1, stages={"classification": 1})
    questions = review.everything("classification", lambda question: {**FINE, "object": "goat"})
    assert len(questions) == 3
    with review.db.reading() as c:
        counts = export_coco(c, candidate_set, review.plan, out.parent / "reviewed")
    assert counts["boxes"] == 3


@pytest.mark.slow
def test_the_same_command_changes_nothing_and_another_is_refused(mined_set):
    out, _ = mined_set
    folder = out.parent
    names = ("candidates.json", "boxes.parquet", "set.json")
    before = [(out / name).read_bytes() for name in names]
    again = ("mine", *models("sure", "also"), "--data", data(folder), "--out", out)
    assert steadyeye(folder, *again)[0] == 0
    assert [(out / name).read_bytes() for name in names] == before
    code, output = steadyeye(folder, *again, "--score", "0.93")
    assert (code, output) == (
        2,
        f"steadyeye: '{out}' holds a set of other candidates, which people may be reviewing: "
        "score_above of candidates is 0.8, not 0.93; choose another --out\n",
    )
    assert (out / "candidates.json").read_bytes() == before[0]


@pytest.mark.slow
@pytest.mark.parametrize("first", ["run", "explain"])
def test_no_command_writes_over_the_results_of_another(mined_set, folder, first):
    mined_out, _ = mined_set
    out = folder / first

    def refuse(out, of, *words):
        before = {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()}
        code, output = steadyeye(folder, *words, "--out", out)
        assert (code, output) == (
            2,
            f"steadyeye: '{out}' holds the results of steadyeye {of}, not of {words[0]}; choose "
            "another --out\n",
        )
        assert {name: (out / name).read_bytes() for name in before} == before

    job = (*models("sure"), "--data", data(folder))
    code, output = steadyeye(folder, first, *job, "--out", out)
    assert code == 0, output
    for other in {"run", "explain", "mine"} - {first}:
        refuse(out, first, other, *job)
    refuse(out, first, "mine", mined_out)
    # the same command goes on, and may add to what is there
    assert steadyeye(folder, first, *job, "--out", out)[0] == 0
    both = (*models("sure", "also"), "--data", data(mined_out.parent))
    refuse(mined_out, "mine", first, *both)


def test_finished_runs_are_mined_into_another_folder(mined_set, folder):
    out, _ = mined_set
    other = folder / "other"
    code, output = steadyeye(
        folder, "mine", out, "--out", other, "--causes", "unverified", "--rank", "novelty"
    )
    assert code == 0, output
    entries = annotations(other)
    assert {(name, a["cause"]) for _, name, a in entries} == {("tie", "unverified")}
    # cut to the image, by the left and by the lower edge
    assert entries[0][2]["bbox"] == [0, 20, 12, 20]
    assert not (other / "cells").exists()
    assert review_set.read(other).boxes.num_rows == 3
    # farthest first: none is nearer to what stands before it than the one after it
    assert [a["novelty"] for *_, a in entries] == sorted(
        (a["novelty"] for *_, a in entries), reverse=True
    )


@pytest.mark.slow
def test_saved_detections_are_mined_with_and_without_pictures(folder):
    detections = [
        {"image_id": 1, "category_id": 4, "bbox": [4, 4, 20, 20], "score": 0.9},
        {"image_id": 2, "category_id": 4, "bbox": [-4, 4, 28, 20], "score": 0.95},
        {"image_id": 2, "category_id": 4, "bbox": [70, 4, 20, 20], "score": 0.99},
    ]
    (folder / "said.json").write_text(json.dumps(detections))
    words = ("mine", folder / "said.json", "--data", data(folder))
    code, output = steadyeye(folder, *words, "--out", folder / "a")
    assert code == 0, output
    assert [(s, name, a["bbox"]) for s, name, a in annotations(folder / "a")] == [
        ("2", "dog", [0, 4, 24, 20]),
        ("1", "dog", [4, 4, 20, 20]),
    ]
    assert "1 left out: their boxes lie outside the image or have no area" in output
    bare = ("mine", folder / "said.json", "--data", data(folder, images=False))
    code, output = steadyeye(folder, *bare, "--out", folder / "b")
    assert code == 0, output
    assert [(s, a["bbox"]) for s, _, a in annotations(folder / "b")] == [
        ("2", [0, 4, 24, 20]),
        ("1", [4, 4, 20, 20]),
    ]
    assert re.search(r"images? (is|are) missing", output)
    assert "next:" not in output
    assert not (folder / "b" / "set.json").exists()
    code, output = steadyeye(folder, *bare, "--out", folder / "c", "--rank", "novelty")
    assert code == 2
    assert output.startswith("steadyeye: --rank novelty needs the images")


def test_novelty_is_ranked_by_the_chosen_embedding(folder):
    """The images differ in brightness alone; any model's embedding could be given so."""
    spec = "callable_detector(path='mined_toys:sure')"
    run = se.evaluate(spec, data(folder), out=folder / "run")
    all_crops = []

    def brightness(crops):
        all_crops.extend(crops)
        return np.array([[crop.mean() / 255] for crop in crops])

    settings = MiningSettings(rank="novelty", limit=2)
    result = mine([run.folder], settings, lambda name, rows: lambda done: None, embed=brightness)
    assert len(result.ranked) == 2
    assert result.mistakes == 4
    assert {crop.shape for crop in all_crops} == {(20, 20, 3), (28, 30, 3)}


def one_word(message):
    return pytest.raises(UsageError, match=message)


def test_invalid_options_of_mining_are_refused(folder):
    for how, message in (
        ({"score": 1.0}, "--score 1: give a score in"),
        ({"limit": 0}, "give at least 1"),
        ({"causes": ("backgrund",)}, "did you mean 'background'"),
        ({"rank": "surprise"}, "no ranking named 'surprise'"),
    ):
        with one_word(message):
            MiningSettings(**how)
    assert "neither a finished run nor a file" in steadyeye(folder, "mine", folder, "--out", "x")[1]
    assert "Missing option '--out'" in steadyeye(folder, "mine", folder)[1]
    assert "has no models" in steadyeye(folder, "mine", "--out", "x")[1]


def test_a_review_calls_frames_by_their_video():
    """So that an export can keep the frames of one video in one split."""

    def names(*images):
        keys = ("data", "sample", "video")
        return own_names({"images": [dict(zip(keys, image, strict=False)) for image in images]})

    assert names(("d", "7"), ("d", "a/8")) == ["7", "a/8"]
    assert names(("d", "v/01/02", "v"), ("d", "w/01/02", "w")) == ["v/02", "w/02"]
    assert names(("d", "x/1/2", "v"), ("d", "y/1/2", "v")) == ["x/1/2", "y/1/2"]
    assert names(("d", "7"), ("e", "v/1/7", "v")) == ["d+7", "e+v/7"]


# ---------------------------------------------------------------- the section of the report


BOX, NEAR, AWAY = [0, 0, 10, 10], [0, 0, 10, 9], [50, 50, 60, 60]


@pytest.fixture
def hand():
    """Four images: two right cars, a bear on a car, a car on a goat, a bear on nothing."""
    truths = [[(BOX, 2)], [(BOX, 2)], [(BOX, 2)], [(BOX, 3), (AWAY, 2, True)]]
    detections = [
        [(BOX, CAR, 0.9)],
        [(BOX, CAR, 0.9), (AWAY, KITE, 0.9)],
        [(NEAR, BEAR, 0.95), (AWAY, BEAR, 0.85)],
        [(BOX, CAR, 0.9), (AWAY, CAR, 0.9), (AWAY, BEAR, 0.7)],
    ]
    return table(truths, detections)


def test_shares_by_hand(hand):
    of = shares(hand, judge_detections(hand))
    # seven are confident: a kite is unverified, a car lies in a crowd, and three of five are wrong
    assert (of.confident, of.unverified, of.excused, of.n_judged) == (7, 1, 1, 5)
    assert of.wrong.value == pytest.approx(3 / 5)
    assert [share.value for share in of.causes] == [pytest.approx(1 / 5)] * 3
    assert of.wrong.method == "Gaffke's bounds over 4 images"
    assert of.wrong.low < 3 / 5 < of.wrong.high
    filmed = replace(hand, tags={"video": np.array(["a", "a", "b", "c"]), "frame": np.arange(4)})
    assert shares(filmed, judge_detections(filmed)).wrong.method == "Gaffke's bounds over 3 videos"


def test_the_section_by_hand(hand):
    section = confident_mistakes([Evaluated(hand, {})])
    assert section.title == "Confident mistakes: 3 of 5 detections"
    assert "60.0\u202f%" in section.text[1]
    assert "misclassification 1, out of distribution 1, background 1" in section.text[1]
    assert (
        "1 of a class that the labels of the image do not cover and 1 in a crowd" in section.text[1]
    )
    assert [row[:4] for row in section.tables[1].rows] == [
        ("car → bear", "m", "1", "1"),
        ("no labelled object → bear", "m", "1", "1"),
        ("goat → car", "m", "1", "1"),
    ]
    assert [(e.title, e.group.partition(":")[0]) for e in section.exhibits] == [
        ("car → bear", "Misclassification"),
        ("goat → car", "Out of distribution"),
        ("nothing → bear", "Background"),
    ]
    first = section.exhibits[0].pictures[0]
    assert first.sample == "i2"
    assert [(mark.kind, mark.box, mark.text) for mark in first.marks] == [
        ("truth", tuple(BOX), ""),
        ("wrong", tuple(NEAR), "bear 0.95"),
    ]
    assert confident_mistakes([Evaluated(hand, {})]) == section
    svg = vl_convert.vegalite_to_svg(json.loads(json.dumps(section.figures[0].spec)))
    assert svg.startswith("<svg")


def test_a_section_without_mistakes_says_so(hand):
    right = table([[(BOX, 2)]], [[(BOX, CAR, 0.9)]])
    section = confident_mistakes([Evaluated(right, {})])
    assert section.title == "Confident mistakes: 0 of 1 detection"
    assert section.exhibits == ()
    assert confident_mistakes([Evaluated(table([[]], [[(BOX, CAR, 0.5)]]), {})]) is None
    old = confident_mistakes([Evaluated(replace(hand, raw_detections=None), {})])
    assert "run again" in old.text[-1]
    assert old.figures == ()


def test_a_mistake_of_two_models_is_shown_once(hand):
    section = confident_mistakes([Evaluated(hand, {}), Evaluated(replace(hand, model="n"), {})])
    assert [exhibit.model for exhibit in section.exhibits] == ["m, n"] * 3
    assert section.title == "Confident mistakes: 6 of 10 detections of 2 detectors"


@pytest.mark.slow
def test_the_goat_that_is_called_a_bear_is_found(test_data, tmp_path):
    """DAVIS's goat, a class that COCO does not have, by its masks and YOLOX-nano."""
    (tmp_path / "labels.csv").write_text("video,labels\ngoat,goat\ndog,dog\n")
    for kind in ("JPEGImages", "Annotations"):
        (tmp_path / kind).mkdir()
        for name in ("goat", "dog"):
            (tmp_path / kind / name).symlink_to(test_data / "davis" / kind / name)
    davis = f"davis(root='{tmp_path}', labels='{tmp_path / 'labels.csv'}', anchors=1, k=3)"
    yolox = f"onnx_detector(path='{test_data / 'models' / 'yolox_nano.onnx'}', decoder='yolox')"
    run = se.evaluate(yolox, davis, out=tmp_path / "run")
    ranking = mine([run.folder], MiningSettings(), lambda name, rows: lambda done: None).ranked
    best = ranking[0].candidate
    assert (best.predicted, best.truth, best.cause) == ("bear", "goat", "out_of_distribution")
    assert best.score > 0.8
    assert best.iou > 0.5
