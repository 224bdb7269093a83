"""Runs, labels and files that commands cannot use: one line each, and no file is lost."""

import csv
import json
import shutil

import cv2
import explain_toys
import numpy as np
import pytest
from forked import refusal, steadyeye, steadyeye_each
from tiny_files import FUNCTION, write_image, write_video

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.core.storage.run_lock import check_out
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import StopRule, parse_premise, plan_study
from steadyeye.review.studies.study_folder import Labelling, begin_study

MODEL = "callable(path='{}:predict', classes='classes.json')"
SETS = "video(path='clip.mp4', anchors=4, k=2, labels='two.csv')"
RUNS = {
    "nowhere": "no run in 'nowhere'; give the --out folder of `steadyeye run`",
    "photos": "no run in 'photos'; give the --out folder of `steadyeye run`",
    "file.txt": "no run in 'file.txt'; give the --out folder of `steadyeye run`",
    "damaged": "'damaged/run.json' is damaged",
    "no-text": "'no-text/run.json' is damaged",
    "part": "the shard 'part/cells/predict@clip/00000.arrow' is missing",
    "short": "the shard 'short/cells/predict@clip/00000.arrow' was changed after it was written",
    "unsealed": "'unsealed/cells/predict@clip' has 2 of 2 shards; run the same command again",
    "no-cells": "there are no predictions in 'no-cells/cells/predict@clip'; run the same command",
    "empty-file": "'empty-file/run.json' is damaged: its 0 bytes are not what was written",
    "photos/cat/1.png": "no run in 'photos/cat/1.png'; give the --out folder of `steadyeye run`",
}
"""Folders that are no complete run → the message."""
SIGNS = ["da,rk", "li\"gh't"]
"""Class names with separators and quotes of a CSV file."""
LABELS = {
    "nowhere": "no study at 'nowhere/study.json'; check the path",
    "photos": "no study at 'photos/study.json'; check the path",
    "file.txt": "no study at 'file.txt/study.json'; check the path",
    "a": "no study at 'a/study.json'; check the path",
    "bad-study": "cannot read the study 'bad-study/study.json'",
    "no-text-study": "cannot read the study 'no-text-study/study.json'",
}
"""Folders without the labels of a study → the message."""
OF_RUNS = (
    ("leaderboard", "a"),
    ("card",),
    ("plan", "--target", "±5"),
    ("label", "--target", "±5", "--out", "new"),
    ("rows", "--out", "r.json"),
    ("gate", "--require", "accuracy>=1%", "--openmetrics", "g.txt"),
    ("gate", "--labels", "bad-study"),
    ("compare", "a", "--labels", "bad-study"),
)
OF_LABELS = (
    ("gate", "free", "--labels"),
    ("compare", "a", "b", "--labels"),
    ("plan", "free", "--target", "±5", "--labels"),
)
GOLD = {
    "nowhere.csv": "no labels at 'nowhere.csv'; check the path",
    "photos": "--gold 'photos' is a folder; give the file, such as labels.csv in it",
    "none.csv": "the labels 'none.csv' has no column set, labels; its columns are none",
    "head.csv": "'head.csv' has no set with a class; write some, as in labels.csv",
    "unlabelled.csv": "'unlabelled.csv' has no set with a class",
    "two.csv": "the labels 'two.csv' has no column set; its columns are video, first, last, labels",
    "clip.mp4": "cannot read the labels 'clip.mp4': it is no text",
    "twice.csv": "'twice.csv' line 3: the set 'clip.mp4/000000' comes twice; keep one line",
    "of-others.csv": "gold questions of sets that clip does not have: of others; give ids of its",
    "mistyped.csv": "has the class 'drak', which is none of the run's; did you mean 'dark'?",
    "": "--gold is empty; give a value, or leave it out",
}
"""Values given as gold questions → the message."""
CLASSES = {
    "blank": (["  ", "light"], "class 1 has neither name nor wnid; give one"),
    "empty": (["", "light"], "class 1 has neither name nor wnid; give one"),
    "newline": (["da\nrk", "light"], r"holds '\n', which is no letter; take it out"),
    "zero": (["da\0rk", "light"], r"holds '\x00', which is no letter; take it out"),
    "twice": (["dark", "dark"], "two classes are named 'dark'; rename one"),
    "blanks": (["dark", " dark"], "the classes 'dark' and ' dark' look the same"),
    "form": (["caf\u00e9", "cafe\u0301"], r"'caf\xe9' and 'cafe\u0301' look the same"),
    "none": ([], "is empty; give one class a line"),
}
"""Invalid class lists, by the names of their files → the message."""
BASELINES = {
    "": "--baseline is empty; give a value, or leave it out",
    MODEL.format(
        "nowhere"
    ): "the baseline callable(path='nowhere:predict', classes='classes.json')",
    "callable(path='mine:gone', classes='classes.json')": "the module 'mine' has no 'gone'",
    "callable(path='mine:predict', classes='colours.json')": "none of them matches any of dark",
    "callable(path='mine:predict', classes='three.json')": "2 columns but the class list has 3",
    "a": "the baseline 'a' has no predictions of pictures as it is; give a run on the same data",
    "part": "the shard 'part/cells/predict@clip/00000.arrow' is missing; run the same command",
}
"""Values given as the baseline of a sweep → the message."""
GATE = ("gate", "a", "--require")
BOXES = ("gate", "boxes", "--require")
OPEN_METRICS = (*GATE, "accuracy>=1%", "--openmetrics")
RUN = ("run", "--model", "mine:predict", "--data", "clip.mp4")
SWEEP = ("degrade", "--model", MODEL.format("mine"), "--data", "image_folder(root='pictures')",
         "--levels", "0,20", "--out", "d")  # fmt: skip
ASK = ("label", "free", "--target", "±5", "--premise", "constant-class", "--out", "new")
OTHERS = (
    (("leaderboard", "a", "./a"), "the run 'a' is given twice; give every run once"),
    (("leaderboard", "a", "linked"), "the run 'linked' (as 'a' before) is given twice"),
    (("leaderboard", "a", "b", "--out", ""), "--out is empty; give a value, or leave it out"),
    (("leaderboard", "a"), "; give a run of another model on the same data"),
    (("card", "a", "a"), "the run 'a' is given twice; give every run once"),
    (("card", "a", "linked"), "the run 'linked' (as 'a' before) is given twice"),
    (("card", "a", "--out", ""), "--out is empty; give a value, or leave it out"),
    (("label", "free", "--out", "begun", "--gold", "gold.csv"), "was begun with other gold"),
    (("label", "free", "--out", "begun", "--votes", "3"), "labelled by 1 person, not 3; leave"),
    ((*ASK[:-1], "begun", "--gold", "gold.csv"), "was begun with other gold questions (1 of them)"),
    (
        ("label", "piped", *ASK[2:]),
        "the class 'da|rk' contains |, which separates classes in label files",
    ),
    ((*SWEEP, "--operators", ""), "--operators is empty; give a value, or leave it out"),
    ((*SWEEP, "--operators", "jpeg,,contrast"), "has a comma with nothing before it; take it out"),
    ((*SWEEP, "--operators", "jpgg", "--baseline", MODEL.format("mine")), "did you mean 'jpeg'?"),
    ((*SWEEP, "--failure-points", "2", "--baseline", MODEL.format("mine")), "above 0 and up to 1"),
    ((*BOXES, "map(size='tiny')>=1%"), "no size of objects named 'tiny'; known: all, large,"),
    ((*BOXES, "map(max_detections=0)>=1%"), "'max_detections'; did you mean 'detections'?"),
    ((*BOXES, "map(detections=0)>=1%"), "detections=0: give 1 to 100"),
    ((*BOXES, "map(detections=-1)>=1%"), "detections=-1: give 1 to 100"),
    ((*BOXES, "map(detections=1.5)>=1%"), "map(detections=1.5): give a whole number"),
    ((*BOXES, "map(detections='many')>=1%"), "map(detections='many'): give a whole number"),
    ((*BOXES, "precision_at(score=2)>=1%"), "precision_at(score=2): scores are in 0…1; give a"),
    (("leaderboard",), "Missing argument 'runs'"),
    (("leaderboard", "a", "b", "--metrics", "pmk"), "did you mean 'pm_k'?"),
    (("leaderboard", "a", "b", "--metrics", "map"), "does not apply to any of these models"),
    (("leaderboard", "a", "b", "--out", "clip.mp4"), "cannot write to 'clip.mp4'"),
    (("leaderboard", "a", "b", "--out", "clip.mp4/x"), "cannot write to 'clip.mp4/x'"),
    (("leaderboard", "a", "b", "--out", "/proc/self/x"), "cannot write to '/proc/self/x"),
    (("leaderboard", "a", "b", "--out", "a"), "'a' holds 'results.json', which is no file of a"),
    (("card", "a", "--out", "clip.mp4"), "cannot write a model card as 'clip.mp4'; name it .md"),
    (("card", "a", "--out", "photos"), "cannot write a model card as 'photos'; name it .md"),
    (("card", "a", "--out", "clip.mp4/x.md"), "cannot write 'clip.mp4'"),
    (("card", "a", "--metrics", "pmk"), "did you mean 'pm_k'?"),
    (("plan", "a"), "no question; give --decide"),
    (("plan", "free", "--target", "ten"), "--target 'ten' is no half-width"),
    (("plan", "free", "--target", "±0"), "--target '±0' is no half-width"),
    (("plan", "free", "--target", "nan"), "--target 'nan' is no half-width"),
    (("plan", "free", "--decide", "pm_k(k=2)"), "has no number; write"),
    (("plan", "free", "--decide", "acuracy>=70%"), "did you mean 'accuracy'?"),
    (("plan", "free", "--decide", "pm_k(k=2)>=170%"), "shares are in 0…1"),
    (("plan", "free", "--decide", "pm_k(k=9)>=70%"), "choose k from 0 to 2"),
    (("plan", "free", "--target", "±5", "--premise", "constant"), "give constant-class or"),
    (("plan", "free", "--target", "±5", "--model", "x"), "has no such predictions; choose"),
    (("label", "free"), "no question; give --decide"),
    (
        ("label", "free", "--target", "±5", "--votes", "0"),
        "--votes 0: give a whole number of 1 or more",
    ),
    (("label", "free", "--budget", "0"), "--budget 0: give a whole number of 1 or more"),
    (("label", "free", "--target", "±5", "--strata", "x"), "give confidence or class"),
    (("rows", "a", "--out", "r.json"), "has no detections; COCO's results are of detectors"),
    (("rows", "a", "b", "--out", "r.json"), "write one file for each"),
    (("rows", "a", "--out", "r.xml"), "cannot write rows as '.xml'; known: .parquet"),
    ((*OPEN_METRICS, "clip.mp4"), "cannot write OpenMetrics as 'clip.mp4'; name it .txt or .prom"),
    ((*OPEN_METRICS, "clip.mp4/g.txt"), "cannot write 'clip.mp4'"),
    ((*GATE, "accuracy>=1%", "--junit", "clip.mp4"), "cannot write JUnit XML as 'clip.mp4'"),
    ((*GATE, "map(size='tiny')>=1%"), "does not apply to predict on clip; leave it out"),
    ((*GATE, "map(size=3)>=1%"), "map(size=3): give text in quotes"),
    ((*GATE, "map(detections='x')>=1%"), "give a whole number"),
    (("compare", "a", "--labels", "bad-study"), "give two runs, and --labels once or twice"),
    (("compare", "a", "b", "--labels", "a", "--original", "x"), "leave it out"),
    ((*RUN, "--log", "mlfow"), "did you mean 'mlflow'?"),
    ((*RUN, "--log", "clip.mp4"), "known: dvclive, mlflow, tensorboard, wandb"),
    (
        ("degrade", *RUN[1:], "--baseline", "nowhere", "--operators", "jpeg", "--out", "d"),
        "no model named 'nowhere'",
    ),
    (
        ("degrade", *RUN[1:], "--baseline", "file.txt", "--operators", "jpeg", "--out", "d"),
        "'file.txt' is no known kind of model file",
    ),
)
REFUSED = (
    *(((words[0], *words[1:2], run, *words[2:]) if words[1:] == ("a",) else
       (words[0], run, *words[1:]), line) for words in OF_RUNS for run, line in RUNS.items()),
    *(((*words, folder), line) for words in OF_LABELS for folder, line in LABELS.items()),
    *(((*ASK, "--gold", gold), line) for gold, line in GOLD.items()),
    *((("run", "--model", f"callable(path='mine:predict', classes='{name}.json')", "--data", SETS,
        "--out", "new"), line) for name, (_, line) in CLASSES.items()),
    *(((*SWEEP, "--operators", "jpeg", "--baseline", model), line)
      for model, line in BASELINES.items()),
    *OTHERS,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs on labelled sets, one without labels, and other files."""
    root = tmp_path_factory.mktemp("refusals")
    write_video(root / "clip.mp4")
    write_image(root / "photos" / "cat" / "1.png")
    files = {
        "mine.py": FUNCTION,
        "other.py": FUNCTION.replace("1 - light, light", "light, 1 - light"),
        "classes.json": '["dark", "light"]',
        "two.csv": "video,first,last,labels\nclip.mp4,0,5,dark\nclip.mp4,6,11,light\n",
        "file.txt": "text",
        "bad-study/study.json": "{",
        "bad-study/labels.csv": "set,label\n",
        "colours.json": '["red", "green"]',
        "three.json": '["dark", "light", "grey"]',
        "none.csv": "",
        "head.csv": "set,labels\n",
        "unlabelled.csv": "set,labels\nclip.mp4/000000,\n",
        "twice.csv": "set,labels\nclip.mp4/000000,dark\nclip.mp4/000000,light\n",
        "of-others.csv": "set,labels\nof others,dark\n",
        "mistyped.csv": "set,labels\nclip.mp4/000000,drak\n",
        "gold.csv": "set,labels\nclip.mp4/000000,light\n",
        "signs.json": json.dumps(SIGNS),
        "piped.json": '["da|rk", "light"]',
        **{f"{name}.json": json.dumps(names) for name, (names, _) in CLASSES.items()},
    }
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    (root / "no-text-study").mkdir()
    (root / "no-text-study" / "study.json").write_bytes(b"\xff\xfe")
    free = SETS.replace(", labels='two.csv'", "")
    piped = "callable(path='mine:predict', classes='piped.json')"
    for out, model, data in (
        ("a", MODEL.format("mine"), SETS),
        ("b", MODEL.format("other"), SETS),
        ("free", MODEL.format("mine"), free),
        ("piped", piped, free),
    ):
        words = ("--model", model, "--data", data, "--out", out, "--workers", "1")
        steadyeye("run", *words, "--quiet", cwd=root, check=True)
    for name in ("damaged", "no-text", "part", "short", "unsealed", "no-cells", "empty-file"):
        shutil.copytree(root / "a", root / name)
    (root / "damaged" / "run.json").write_text('{"a":')
    (root / "no-text" / "run.json").write_bytes(b"\xff\xfe{}")
    (root / "part" / "cells" / "predict@clip" / "00000.arrow").unlink()
    (root / "short" / "cells" / "predict@clip" / "00000.arrow").write_bytes(b"")
    (root / "unsealed" / "cells" / "predict@clip" / "seal.json").unlink()
    shutil.rmtree(root / "no-cells" / "cells")
    (root / "empty-file" / "run.json").write_text("")
    (root / "linked").symlink_to("a")
    write_pictures(root)
    write_boxes(root)
    begin(root / "begun", se.open_run(root / "free").predictions)
    return root


def write_pictures(root):
    """Two dark and two light pictures, in one folder per class."""
    for number in range(4):
        file = root / "pictures" / ("dark", "light")[number // 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(file), np.full((8, 8, 3), 20 + 200 * (number // 2), np.uint8))


def write_boxes(root):
    """A run whose detections are the true boxes."""
    explain_toys.write(root / "squares", 4)
    content = json.loads((root / "squares" / "boxes.json").read_text())
    keys = ("image_id", "category_id", "bbox")
    entries = [{key: box[key] for key in keys} | {"score": 0.5} for box in content["annotations"]]
    (root / "boxes.json").write_text(json.dumps(entries))
    data = "coco(annotations='squares/boxes.json')"
    steadyeye("score", "boxes.json", "--data", data, "--out", "boxes", "--quiet", cwd=root,
              check=True)  # fmt: skip


def begin(root, predictions):
    """A label study with a gold question and without labels."""
    question, premise = parse_question("pm_k"), parse_premise("constant-class")
    study = plan_study(predictions, question, premise, stop=StopRule(None, 0.05))
    begin_study(root, study, predictions, Labelling(1, {"clip.mp4/000000": ("dark",)}))


@pytest.fixture(scope="module")
def answers(folder):
    """The outcome of each command, and the files that it changes."""
    before = read_files(folder)
    commands = list(dict.fromkeys(words for words, _ in REFUSED))
    answers = dict(zip(commands, steadyeye_each(commands, folder), strict=True))
    after = read_files(folder)
    return answers, {name for name in {*before, *after} if before.get(name) != after.get(name)}


def read_files(folder):
    return {
        str(path): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.slow
@pytest.mark.parametrize(("words", "line"), REFUSED, ids=[" ".join(w) for w, _ in REFUSED])
def test_unusable_inputs_are_refused_in_one_line(words, line, answers):
    assert line in refusal(answers[0][words])


def test_a_refused_command_writes_no_file(answers):
    assert answers[1] == set()


def test_commas_and_quotes_in_class_names_are_in_every_file(folder, tmp_path):
    """ILSVRC's own names contain commas, so these names are valid, too."""
    model = "callable(path='mine:predict', classes='signs.json')"
    words = ("--data", "image_folder(root='pictures')", "--out", str(tmp_path / "run"), "--quiet")
    shutil.copytree(folder / "pictures", tmp_path / "pictures")
    for old, new in zip(("dark", "light"), SIGNS, strict=True):
        (tmp_path / "pictures" / old).rename(tmp_path / "pictures" / new)
    for name in ("mine.py", "signs.json"):
        shutil.copy(folder / name, tmp_path)
    for command in (
        ("run", "--model", model, *words),
        ("rows", "run", "--out", "rows.csv"),
        ("card", "run"),
        ("gate", "run", "--require", "accuracy>=1%", "--junit", "g.xml", "--openmetrics", "g.txt"),
    ):
        steadyeye(*command, cwd=tmp_path, check=True)
    with (tmp_path / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["predicted"] for row in rows] == [SIGNS[0]] * 2 + [SIGNS[1]] * 2
    assert "accuracy" in (tmp_path / "card.md").read_text()


def test_category_ids_of_a_file_without_detections_are_refused(tmp_path):
    (tmp_path / "scores.json").write_text('{"clip.mp4/0": "cat"}')
    of_ids = ("--data", "video(path='clip.mp4')", "--out", "run", "--category-ids", "1")
    line = refusal(steadyeye("score", "scores.json", *of_ids, cwd=tmp_path))
    reason = "--category-ids '1' is for detections, and 'scores.json' holds none"
    assert line == f"steadyeye: {reason}; leave the option out"
    assert not (tmp_path / "run").exists()


ABSENT = ("--model", "onnx(path='absent.onnx')", "--data", "video(path='absent.mp4')")
LONG = (
    ("run", *ABSENT),
    ("check", *ABSENT),
    ("degrade", *ABSENT, "--operators", "jpeg"),
    ("explain", *ABSENT),
    ("mine", *ABSENT),
    ("mine", "file.txt", *ABSENT[2:]),
    ("score", "absent.json", *ABSENT[2:]),
    ("finetune", *ABSENT, "--holdout", "0.5"),
    ("sample", "absent.mp4"),
    ("watch", "rtsp://127.0.0.1:9/absent", *ABSENT[:2]),
    ("leaderboard", "absent"),
)
"""Commands that work for long, with models, data or runs that are not there."""


def test_an_out_that_cannot_be_written_is_refused_before_anything_is_read(tmp_path):
    (tmp_path / "file.txt").write_text("a")
    folders = [(*words, "--out", "file.txt/runs/new") for words in LONG]
    reports = [(command, "absent", "--out", "file.txt/a.html") for command in ("compare", "report")]
    done = steadyeye_each([*folders, *reports], tmp_path)
    refusals = [refusal(process).removeprefix("steadyeye: ") for process in done]
    cure = "Not a directory; choose another --out"
    assert refusals == [
        *[f"cannot write to 'file.txt/runs/new': {cure}"] * len(folders),
        *[f"cannot write to 'file.txt': {cure}"] * len(reports),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file.txt"]


@pytest.mark.parametrize("source", ["video(path='absent.mp4')", [("no image", 0)]])
def test_evaluate_refuses_an_out_that_cannot_be_written_first(tmp_path, source):
    (tmp_path / "file").write_text("a")
    with pytest.raises(UsageError, match=r"cannot write to .*file/run': Not a directory"):
        se.evaluate("onnx(path='absent.onnx')", source, out=tmp_path / "file" / "run")


def test_an_out_with_a_name_that_no_folder_can_have(tmp_path):
    with pytest.raises(UsageError, match=r"cannot write to '.*': File name too long; choose an"):
        check_out(tmp_path / ("a" * 300) / "run")


def test_a_folder_that_can_be_made_is_not_made(tmp_path):
    check_out(tmp_path / "a" / "b")
    check_out(tmp_path)
    assert list(tmp_path.iterdir()) == []
