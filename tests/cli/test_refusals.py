"""Runs, labels and files that commands on finished runs cannot use: one line each, nothing lost."""

import shutil

import pytest
from forked import refusal, steadyeye, steadyeye_each
from tiny_files import FUNCTION, write_image, write_video

MODEL = "callable(path='{}:predict', classes='classes.json')"
SETS = "video(path='clip.mp4', anchors=4, k=2, labels='two.csv')"
RUNS = {
    "nowhere": "no run in 'nowhere'; give the --out folder of `steadyeye run`",
    "photos": "no run in 'photos'; give the --out folder of `steadyeye run`",
    "file.txt": "no run in 'file.txt'; give the --out folder of `steadyeye run`",
    "damaged": "'damaged/run.json' is damaged",
    "no-text": "'no-text/run.json' is damaged",
    "part": "the shard 'part/cells/predict@clip/00000.arrow' is missing",
}
"""Folders that are no whole run, and what is said of each."""
LABELS = {
    "nowhere": "no study at 'nowhere/study.json'; check the path",
    "photos": "no study at 'photos/study.json'; check the path",
    "file.txt": "no study at 'file.txt/study.json'; check the path",
    "a": "no study at 'a/study.json'; check the path",
    "bad-study": "cannot read the study 'bad-study/study.json'",
    "no-text-study": "cannot read the study 'no-text-study/study.json'",
}
"""Folders without the labels of a study, and what is said of each."""
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
GATE = ("gate", "a", "--require")
OPEN_METRICS = (*GATE, "accuracy>=1%", "--openmetrics")
RUN = ("run", "--model", "mine:predict", "--data", "clip.mp4")
OTHERS = (
    (("leaderboard",), "Missing argument 'runs'"),
    (("leaderboard", "a", "b", "--metrics", "pmk"), "did you mean 'pm_k'?"),
    (("leaderboard", "a", "b", "--metrics", "map"), "does not apply to any of these models"),
    (("leaderboard", "a", "b", "--out", "clip.mp4"), "cannot write 'clip.mp4'"),
    (("leaderboard", "a", "b", "--out", "clip.mp4/x"), "cannot write 'clip.mp4/x'"),
    (("leaderboard", "a", "b", "--out", "/proc/self/x"), "cannot write '/proc/self/x"),
    (("leaderboard", "a", "b", "--out", "a"), "'a' holds 'results.json', which is of no"),
    (("card", "a", "--out", "clip.mp4"), "cannot write a model card as 'clip.mp4'; name it .md"),
    (("card", "a", "--out", "photos"), "cannot write a model card as 'photos'; name it .md"),
    (("card", "a", "--out", "clip.mp4/x.md"), "cannot write 'clip.mp4'"),
    (("card", "a", "--metrics", "pmk"), "did you mean 'pm_k'?"),
    (("plan", "a"), "nothing is asked; give --decide"),
    (("plan", "free", "--target", "ten"), "--target 'ten' is no width"),
    (("plan", "free", "--target", "±0"), "--target '±0' is no width"),
    (("plan", "free", "--target", "nan"), "--target 'nan' is no width"),
    (("plan", "free", "--decide", "pm_k(k=2)"), "has no number; write"),
    (("plan", "free", "--decide", "acuracy>=70%"), "did you mean 'accuracy'?"),
    (("plan", "free", "--decide", "pm_k(k=2)>=170%"), "shares are in 0…1"),
    (("plan", "free", "--decide", "pm_k(k=9)>=70%"), "choose k from 0 to 2"),
    (("plan", "free", "--target", "±5", "--premise", "constant"), "give constant-class or"),
    (("plan", "free", "--target", "±5", "--model", "x"), "has no such predictions; choose"),
    (("label", "free"), "nothing is asked; give --decide"),
    (("label", "free", "--target", "±5", "--votes", "0"), "'--votes'"),
    (("label", "free", "--budget", "0"), "'--budget'"),
    (("label", "free", "--target", "±5", "--strata", "x"), "give confidence or class"),
    (("rows", "a", "--out", "r.json"), "has no detections; COCO's results are of detectors"),
    (("rows", "a", "b", "--out", "r.json"), "run them one by one"),
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
    *OTHERS,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs on labelled sets, one without labels, and what is none of these."""
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
    }
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    (root / "no-text-study").mkdir()
    (root / "no-text-study" / "study.json").write_bytes(b"\xff\xfe")
    free = SETS.replace(", labels='two.csv'", "")
    for out, model, data in (("a", "mine", SETS), ("b", "other", SETS), ("free", "mine", free)):
        words = ("--model", MODEL.format(model), "--data", data, "--out", out, "--workers", "1")
        steadyeye("run", *words, "--quiet", cwd=root, check=True)
    for name in ("damaged", "no-text", "part"):
        shutil.copytree(root / "a", root / name)
    (root / "damaged" / "run.json").write_text('{"a":')
    (root / "no-text" / "run.json").write_bytes(b"\xff\xfe{}")
    (root / "part" / "cells" / "predict@clip" / "00000.arrow").unlink()
    return root


@pytest.fixture(scope="module")
def answers(folder):
    """What comes of each command, and the files that are other ones afterwards."""
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


@pytest.mark.parametrize(("words", "line"), REFUSED, ids=[" ".join(w) for w, _ in REFUSED])
def test_what_cannot_be_used_is_said_in_one_line(words, line, answers):
    assert line in refusal(answers[0][words])


def test_nothing_is_written(answers):
    assert answers[1] == set()
