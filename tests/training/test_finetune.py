"""`steadyeye finetune` on real frames, from the command to a model that runs like any other."""

import json
import os
import shutil
import signal
import time
from importlib.metadata import version

import cv2
import numpy as np
import pytest
import torch
from conftest import ROOT, TESTS
from forked import Command, find_wide_lines, on_terminal, steadyeye
from toy_training import BIKES, SCENES, RecordingWatcher

from steadyeye.cli.finetune import TrainingOptions, finetune
from steadyeye.cli.options import ProgressOptions
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.core.stats.trials import Trials
from steadyeye.core.storage.run_lock import hold_run
from steadyeye.data.video import decoder
from steadyeye.data.video.paths import resolve_path
from steadyeye.report.comparison.before_after import gain
from steadyeye.runner.run import Silent
from steadyeye.training import checkpoint, report, run
from steadyeye.training import job as training_job
from steadyeye.training.before_after import HeldOutComparison
from steadyeye.training.loop import DivergedError

FIXTURES = ROOT / "tests" / "fixtures"
FILES = ("run.json", "history.json", "model.json", "weights.pt", "report.html")


class Watcher(RecordingWatcher, Silent):
    """Records the messages of a training and of runs."""

    begin, show_loss, say = RecordingWatcher.begin, RecordingWatcher.show_loss, RecordingWatcher.say


@pytest.fixture(scope="module")
def footage(tmp_path_factory):
    """Four scenes of bikes.mp4 as folders of frames, with the class of each, and of ten classes."""
    root = tmp_path_factory.mktemp("footage")
    index = decoder.index(resolve_path(BIKES))
    lines = ["video,labels"]
    for name, (first, _) in zip("abcd", SCENES, strict=True):
        (root / "frames" / name).mkdir(parents=True)
        lines.append(f"{name},{name}")
        for number in range(16):
            image = decoder.frame(index, first + number).image()
            small = cv2.resize(image[..., ::-1], (96, 64), interpolation=cv2.INTER_AREA)
            cv2.imwrite(str(root / "frames" / name / f"{number:03d}.png"), small)
    (root / "labels.csv").write_text("\n".join(lines))
    (root / "ten.txt").write_text("\n".join(f"class {i}" for i in range(10)))
    return root


def net(footage, name="net"):
    recipe = "recipe={'size': 48, 'resize': 48}"
    return f"torch(path='py:toy_networks:{name}', classes='{footage / 'ten.txt'}', {recipe})"


def job(footage, out, **more):
    values = {
        "model": net(footage),
        "data": f"frames(path='{footage / 'frames'}', labels='{footage / 'labels.csv'}', "
        "anchors='all', k=0)",
        "holdout": 0.25,
        "by": "time",
        "gap": 2,
        "epochs": 3,
        "batch": 6,
        "lr": "0.03",
        "every": 2,
        "workers": 2,
        "out": str(out),
    }
    return training_job.read(None, {**values, **more})


def run_tuning(footage, out, **more):
    watcher = Watcher()
    return run.finetune(run.check(job(footage, out, **more)), watcher), watcher


def class_map(folder):
    """A class map from the first four of the ten classes to those of the data."""
    path = folder / "map.csv"
    path.write_text("model,data\n" + "\n".join(f"class {i},{'abcd'[i]}" for i in range(4)))
    return str(path)


def wait_for_checkpoint(command, out):
    while not list((out / "checkpoints").glob("*.sha256")):
        assert command.poll() is None, command.communicate()[1]
        time.sleep(0.005)


def words(footage, out, **more):
    """The command of a job."""
    settings = job(footage, out, **more)
    command = ["finetune", "--workers", "2", "--out", str(out)]
    for key, value in settings.record().items():
        if value != getattr(training_job.Tuning(), key):
            command += [f"--{key.replace('_', '-')}", str(value)]
    return [*command, "--checkpoint-every", "2"]


def environment():
    path = os.pathsep.join([TESTS, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    return {"PYTHONPATH": path}


@pytest.fixture(scope="module")
def done(footage, tmp_path_factory):
    return run_tuning(footage, tmp_path_factory.mktemp("done") / "ft")[0]


def content(out):
    """The files of a training, its folder's name aside."""
    return {name: (out / name).read_bytes().replace(bytes(out), b"OUT") for name in FILES}


def test_training_lowers_the_loss_and_writes_a_usable_model(footage, done):
    went = done.history
    assert went.best.measures["loss"] < went.start["loss"]
    assert went.rounds[-1].loss < went.rounds[0].loss
    model = plugins.build("models", parse(f"torch(path='{done.out}')"))
    assert model.classes.names == ("a", "b", "c", "d")
    assert model.recipe["base"]["name"] == "net"
    source = plugins.build("sources", parse(job(footage, "-").data))
    # the frames that were held: the last quarter of each
    rows = [i for i in range(len(source)) if source[i].tags["frame"] >= 12]
    scores = model([source[i].image() for i in rows])
    right = [int(s.argmax()) in source.truths[i] for s, i in zip(scores, rows, strict=True)]
    assert sum(right) / len(rows) == went.best.measures["accuracy"]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_nothing_is_wider_than_the_terminal(footage, done, columns, tmp_path):
    command = words(footage, shutil.copytree(done.out, tmp_path / "done"))
    code, printed = on_terminal(columns, *command, cwd=FIXTURES)
    assert code == 0, printed
    assert "held out" in " ".join(printed.split())
    assert find_wide_lines(printed, columns) == []


def test_the_weights_are_those_of_the_best_checkpoint(done):
    weights = torch.load(done.out / "weights.pt", weights_only=True)
    best = checkpoint.read(checkpoint.path(done.out / "checkpoints", done.history.best.step))
    assert all(torch.equal(weights[name], value) for name, value in best.module.items())
    assert len(weights) == len(best.module)


def test_the_record_holds_what_it_takes_to_repeat_it(done):
    record = json.loads((done.out / "run.json").read_text())
    assert record["base"]["fingerprint"]
    assert record["data"]["train"]["n"] == 4 * 10
    assert record["data"]["held"]["n"] == 4 * 4
    assert record["recipe"]["rate"] == 0.03
    assert record["recipe"]["precision"] == "fp32"
    assert record["provenance"]["torch"] == version("torch")
    assert {"commit", "accelerate", "python"} <= set(record["provenance"])
    events = [json.loads(line) for line in (done.out / "log.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["finetune", "trained"]
    assert events[0]["threads"] == torch.get_num_threads()


def test_its_report_tells_the_curves_and_how_to_repeat_it(done):
    page = (done.out / "report.html").read_text()
    for text in ("Result of training", "training_loss", "All rounds", "gap: 2 frames"):
        assert text in page
    first, *_ = report.document(done.out, done.record, done.history).sections
    assert first.title.startswith("Course of training: loss on the held-out data ")
    table = first.tables[0]
    assert len(table.rows) == 1 + len(done.history.rounds)
    assert sum("●" in row[0] for row in table.rows) == 1
    assert "steadyeye finetune --model" in page


def test_killed_and_run_again_the_files_are_the_same(footage, done, tmp_path):
    out = tmp_path / "ft"
    victim = Command(*words(footage, out), env=environment())
    wait_for_checkpoint(victim, out)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    assert not (out / "report.html").exists(), "it was over before it could be killed"
    _, watcher = run_tuning(footage, out)
    assert any(line.startswith("continuing after step") for line in watcher.lines)
    assert content(out) == content(done.out)
    folders = (out / "checkpoints", done.out / "checkpoints")
    checkpoints = [{path.name: path.read_bytes() for path in root.iterdir()} for root in folders]
    assert checkpoints[0] == checkpoints[1]


def test_the_command_says_what_came_of_it(footage, done, capsys):
    flags = {**job(footage, done.out).record(), "out": str(done.out), "workers": 2, "every": 5}
    finetune(options=TrainingOptions(**flags), display=ProgressOptions("json"))
    streams = capsys.readouterr()
    assert "ended: all 21 steps are done" in streams.out
    model = f"torch(path='{done.out}')"
    end = f'next: steadyeye run --model "{model}" --data … --allow-code toy_networks:net\n'
    assert streams.out.endswith(end)
    events = [json.loads(line) for line in streams.err.splitlines()]
    line = "training on 40 examples of 4 classes, held out 16: 3 epochs in batches of"
    assert events[0]["message"].startswith(line)
    notes = [f"note: {note}" for note in done.record["data"]["notes"]]
    assert notes
    assert [event["message"] for event in events[1 : 1 + len(notes)]] == notes


def test_the_next_command_needs_the_options_that_are_named(footage, done, tmp_path):
    data = job(footage, done.out).record()["data"]
    model = f"torch(path='{done.out}')"
    command = ("run", "--model", model, "--data", data, "--out", tmp_path / "run")
    refused = steadyeye(*command, env=environment())
    assert refused.returncode == 2
    assert "add --allow-code 'toy_networks:net'" in refused.stderr
    # the list of classes, which the spec also names, has no part in it
    assert f": '{done.out / 'model.json'}' asks to run 'toy_networks:net'" in refused.stderr
    assert "txt: '" not in refused.stderr
    steadyeye(*command, "--allow-code", "toy_networks:net", env=environment(), check=True)


def test_an_interrupt_keeps_a_checkpoint_and_exits_with_130(footage, tmp_path):
    out = tmp_path / "ft"
    command = [*words(footage, out, epochs=4000), "--progress", "json"]
    victim = Command(*command, env=environment())
    wait_for_checkpoint(victim, out)
    victim.send_signal(signal.SIGINT)
    _, errors = victim.communicate()
    assert victim.returncode == 130
    assert "Traceback" not in errors
    message = "stopped; run the same command again to go on"
    assert json.loads(errors.splitlines()[-1]) == {"event": "stopped", "message": message}
    assert checkpoint.last_good(out / "checkpoints") is not None
    assert not (out / "weights.pt").exists()


def test_images_that_changed_since_are_no_longer_trained_on(footage, done, tmp_path):
    copy = tmp_path / "footage"
    shutil.copytree(footage, copy)
    run_tuning(copy, tmp_path / "ft", epochs=1)
    image = copy / "frames" / "b" / "003.png"
    cv2.imwrite(str(image), 255 - cv2.imread(str(image)))
    with pytest.raises(UsageError, match=r"of 64 files 1 differ, first '.*b/003\.png'"):
        run_tuning(copy, tmp_path / "ft", epochs=1)


def test_run_again_it_is_finished_already(footage, done):
    before = content(done.out)
    again, watcher = run_tuning(footage, done.out)
    assert again.history == done.history
    assert watcher.images == 0
    assert content(done.out) == before


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"seed": 3}, "its seed of job is 0, not 3; choose another --out"),
        ({"lr": "0.1"}, "its lr of job is '0.03', not '0.1'; choose another --out"),
        ({"epochs": 5}, "its epochs of job is 3, not 5; choose another --out"),
    ],
)
def test_another_training_is_refused_in_the_same_folder(footage, done, change, line):
    with pytest.raises(UsageError) as caught:
        run_tuning(footage, done.out, **change)
    assert str(caught.value).endswith(f"holds another training: {line}")


def test_a_second_process_is_refused(footage, done):
    with hold_run(done.out), pytest.raises(UsageError, match="another process is writing to"):
        run_tuning(footage, done.out)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"job": {}, "cells": []}', "holds a run of another kind; choose another --out"),
        ('{"kind": "finetune", "jo', r"run.json' is damaged: its 24 bytes are not what was"),
    ],
)
def test_a_folder_of_something_else_or_with_a_damaged_record_is_refused(
    footage, tmp_path, text, line
):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UsageError, match=line):
        run_tuning(footage, tmp_path)


def test_a_rate_is_searched_recorded_and_shown(footage, tmp_path):
    done, watcher = run_tuning(footage, tmp_path / "ft", lr="search", epochs=2)
    search_record = json.loads((tmp_path / "ft" / "run.json").read_text())["search"]
    assert [trial["rate"] for trial in search_record["tried"]] == [1e-3, 3e-4, 1e-4, 3e-5, 1e-5]
    best = min(search_record["tried"], key=lambda trial: trial["held"]["loss"])
    assert search_record["rate"] == best["rate"] == done.history.rounds[0].rate
    chosen = f"learning rate {best['rate']:g}: best of 5"
    assert any(line.startswith(chosen) for line in watcher.lines)
    _, search, *_ = report.document(done.out, done.record, done.history).sections
    assert search.title == f"Learning rate {best['rate']:g} was chosen among 5"
    assert len(search.tables[0].rows) == 5
    # what was tried is not tried again
    (tmp_path / "ft" / "checkpoints").rename(tmp_path / "gone")
    before = content(tmp_path / "ft")
    again, _ = run_tuning(footage, tmp_path / "ft", lr="search", epochs=2)
    assert again.history == done.history
    assert content(tmp_path / "ft") == before


def test_a_loss_that_is_no_number_keeps_what_was_best_before(footage, tmp_path):
    # the network's output grows without bound under such a rate, after a first sound round
    with pytest.raises(DivergedError) as caught:
        run_tuning(footage, tmp_path / "ft", optimizer="sgd", momentum=0.99, lr="9", epochs=4000)
    line = str(caught.value)
    assert "\n" not in line
    good = checkpoint.last_good(tmp_path / "ft" / "checkpoints")
    assert f"the last good checkpoint is {good}" in line
    ended = json.loads((tmp_path / "ft" / "history.json").read_text())["ended"]
    assert ended.startswith("stopped: ")
    assert plugins.build("models", parse(f"torch(path='{tmp_path / 'ft'}')")).classes
    assert ended.partition(" in epoch")[0] in (tmp_path / "ft" / "report.html").read_text()


def test_a_job_file_says_the_same_as_flags(footage, tmp_path):
    settings = job(footage, tmp_path / "ft", augment="jpeg(levels=0:30)")
    values = {**settings.record(), "out": settings.out, "workers": 2, "every": 2}
    lines = [
        f"{key} = {json.dumps(value)}"
        for key, value in values.items()
        if value != getattr(training_job.Tuning(), key)
    ]
    (tmp_path / "job.toml").write_text("\n".join(lines))
    assert training_job.read(tmp_path / "job.toml", {}) == settings
    assert training_job.read(tmp_path / "job.toml", {"seed": 4}).seed == 4


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("epoch = 3", "no job key named 'epoch'; did you mean 'epochs'?"),
        ("epochs = true", "epochs = True, which has the wrong type"),
        ("multi_label = 1", "multi_label = 1, which has the wrong type"),
        ("holdout = 'a'", "holdout = 'a', which has the wrong type"),
        ("seed = 1", "the model is missing; give --model"),
    ],
)
def test_a_job_file_that_cannot_be_meant_is_refused(tmp_path, text, line):
    (tmp_path / "job.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        training_job.read(tmp_path / "job.toml", {})
    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"lr": "fast"}, "--lr fast: give a number, such as 1e-4, or search"),
        ({"optimizer": "adamw"}, "no optimizer named 'adamw'; did you mean 'adam'?"),
        ({"iterations": 5}, "--epochs and --iterations exclude each other; give one"),
        ({"augment": "jpg"}, "no operator named 'jpg'; did you mean 'jpeg'?"),
        ({"then_operators": "jpeg"}, "no data to compare both models on; give --then"),
        ({"out": "s3://bucket/ft"}, "is on remote storage; give a local folder for --out"),
        ({"holdout": None}, "give --val SPEC or --holdout 0.2"),
        (
            {"model": "efficientnet_lite0(runtime='cuda')"},
            "training uses the GPUs it finds; leave runtime='cuda' out",
        ),
    ],
)
def test_an_invalid_training_is_refused_before_a_file_is_written(footage, tmp_path, change, line):
    with pytest.raises(UsageError) as caught:
        run.check(job(footage, **{"out": tmp_path / "ft", **change}))
    assert line in str(caught.value)
    assert not (tmp_path / "ft").exists()


def test_an_onnx_model_is_refused_with_the_reason(footage, test_data, tmp_path):
    model = f"onnx_detector(path='{test_data / 'models' / 'yolox_nano.onnx'}', decoder='yolox')"
    # whatever else is missing, as boxes here
    with pytest.raises(UsageError, match="no gradients to train by"):
        run.check(job(footage, tmp_path / "ft", model=model))


def test_the_same_training_augmented_is_another_and_is_recorded(footage, done, tmp_path):
    other, _ = run_tuning(footage, tmp_path / "ft", augment="random_noise(levels=0:30)", epochs=1)
    assert other.record["augment"]
    assert other.history.losses[: len(done.history.losses)] != done.history.losses[:7]


def test_before_is_the_base_as_it_was_given_and_not_its_replaced_head(footage, tmp_path):
    """`before` is the base model with its class map on the held-out frames, without a new head.

    Six steps cannot be asserted to have paid where the paired interval holds 0.
    """
    short = {"epochs": None, "iterations": 6, "lr": "1e-6"}
    done, _ = run_tuning(footage, tmp_path / "ft", then_class_map=class_map(tmp_path), **short)
    validation = run.check(job(footage, "-x")).data.validation.items
    model = plugins.build("models", parse(net(footage)))
    scores = model([example.image() for example in validation])[:, :4]
    right = [int(s.argmax()) in item.labels for s, item in zip(scores, validation, strict=True)]
    accuracy_gain = done.comparison.gain
    assert accuracy_gain.metric == "accuracy"
    assert accuracy_gain.before.value == sum(right) / len(right)
    assert accuracy_gain.before.n == len(validation)
    assert accuracy_gain.after.value == done.history.best.measures["accuracy"]
    gap = accuracy_gain.difference
    assert gap.low <= 0 <= gap.high
    assert "Both models choose among the " in done.comparison.sentences[-1]
    assert done.comparison.title.startswith(
        "Did fine-tuning help? No clear change in accuracy on the held-out data: "
    )
    page = (done.out / "report.html").read_text()
    assert "Training paid" not in page
    assert done.comparison.title in page.replace("&#39;", "'")
    assert "the base model has accuracy" in page


def test_a_base_that_cannot_name_the_classes_has_no_before(done):
    assert done.comparison.gain is None
    without = "The base model does not have these classes, so there is no comparison"
    assert done.comparison.sentences[0].startswith(without)
    assert done.comparison.title == "Result of training; the base model cannot be compared"
    lines = report.summarize(done.record, done.history, done.comparison)
    assert done.comparison.sentences[0][1:] in lines[0]


@pytest.mark.parametrize(
    ("before", "after", "title"),
    [
        (20, 40, "Fine-tuning raised accuracy on the held-out data: 50.0 % before, 100"),
        (40, 20, "Fine-tuning lowered accuracy on the held-out data: 100.0 % before, "),
        # the interval lies above 0, and p is 0.125
        (
            20,
            24,
            "Did fine-tuning help? No clear change in accuracy on the held-out data: 50.0 % b",
        ),
    ],
)
def test_training_is_only_said_to_have_helped_where_the_paired_interval_shows_it(
    before, after, title
):
    """40 images of 40 videos: 20 more right, 20 fewer, or two more (Tango's interval holds 0)."""
    images = np.arange(40)
    sides = (Trials(images < right, images.astype(str)) for right in (before, after))
    both = HeldOutComparison(gain("accuracy", *sides), "")
    assert both.title.replace("\u202f", " ").startswith(title)
    assert (both.claim is None) == title.startswith("Did")


def test_base_and_tuned_are_measured_afterwards(footage, tmp_path):
    data = job(footage, "-").data.replace("anchors='all', k=0", "anchors=3, k=2")
    then = {"then": [data], "then_class_map": class_map(tmp_path)}
    done, _ = run_tuning(footage, tmp_path / "ft", **then, epochs=1)
    assert done.gains is not None
    assert {evaluation.predictions.model for evaluation in done.gains.evaluated} == {"net", "ft"}
    assert (tmp_path / "ft" / "then" / "report.html").is_file()
