"""Run folders: damage is refused, or the numbers equal those of the undamaged run."""

import json
import shutil

import numpy as np
from fuzzing import FEW, Parser
from parsers_text import write

import steadyeye as se
from steadyeye.report import build
from steadyeye.testing import example_source, tell_example_classes

NUMBERS = "numbers.json"
METRICS = ("accuracy", "pm_k", "drop", "flip_rate")


def see_cats(images):
    """Another model on the same data."""
    return np.tile([0.2, 0.5, 0.3], (len(images), 1))


def evaluate(folder, model=tell_example_classes):
    return se.evaluate(model, example_source(), out=folder, cache="off")


def read_numbers(run):
    """What a run says, to be compared: the metrics, and each sample's class and score."""
    table = run.predictions
    metrics = {name: str(getattr(run, name)()) for name in METRICS}
    rows = zip(table.ids.tolist(), table.top[:, 0].tolist(), strict=True)
    return {"metrics": metrics, "rows": [list(row) for row in rows]}


def build_run(folder):
    run = evaluate(folder / "run", see_cats)
    write({NUMBERS: json.dumps(read_numbers(run))}, folder)


def build_two_runs(folder):
    build_run(folder)
    evaluate(folder / "other")
    (folder / "run" / ".lock").unlink(missing_ok=True)


def check_numbers(folder, numbers):
    """Raises `AssertionError` where damage that was accepted changed a number."""
    assert numbers == json.loads((folder / NUMBERS).read_text())


def read_run(folder):
    check_numbers(folder, read_numbers(se.open_run(folder / "run")))


def report_run(folder):
    build.write([folder / "run"], [folder / "report.json"])
    report = json.loads((folder / "report.json").read_text())
    accuracy = json.loads((folder / NUMBERS).read_text())["metrics"]["accuracy"]
    text = json.dumps(report)
    assert "accuracy" in text
    assert accuracy.startswith("accuracy 25.0 %")


def compare_runs(folder):
    boards = se.compare(folder / "run", folder / "other", metrics="accuracy")
    assert "2 models" in repr(boards[0])


def go_on(folder):
    """The same evaluation again, over a run that is damaged."""
    shutil.rmtree(folder / "data", ignore_errors=True)
    check_numbers(folder, read_numbers(evaluate(folder / "run", see_cats)))


FILES = {
    "run/run.json": "json",
    "run/cells/*/cell.json": "json",
    "run/cells/*/seal.json": "json",
    "run/cells/*/*.arrow": "bytes",
    "run/cells/*/0*.seal": "json",
    "run/data/*.contents": "bytes",
    "run/log.jsonl": "lines",
}
PARSERS = [
    Parser("run-read", build_run, read_run, FILES),
    Parser("run-reported", build_run, report_run, FILES),
    Parser("run-compared", build_two_runs, compare_runs, FILES),
    Parser("run-continued", build_run, go_on, FILES, cases=FEW),
]
