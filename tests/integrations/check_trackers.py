"""MLflow, Weights & Biases, TensorBoard and DVCLive: their contents equal a run's results.

Run by `make integrations` in an environment with the packages themselves. MLflow writes to a
database in this folder, Weights & Biases is offline.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import steadyeye as se
from steadyeye.core.types import Result

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fixtures"))

from two_class_pictures import DATA, name_model, write_pictures

TRACKERS = ("mlflow", "wandb", "tensorboard", "dvclive")


def main():
    """Logs a run twice and reads it back; raises AssertionError where a number differs."""
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
        write_pictures(Path(name))
        words = [sys.executable, "-m", "steadyeye", "run", "--out", "run"]
        words += ["--model", name_model("by_brightness"), "--data", DATA]
        for _ in range(2):
            done = subprocess.run(
                [*words, *(w for t in TRACKERS for w in ("--log", t))],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            lines = [line for line in done.stdout.splitlines() if " on images, " in line]
            assert [line.split(":")[0] for line in lines] == list(TRACKERS), done.stdout
        check(se.open_run("run").accuracy())


def check(accuracy: Result):
    """The numbers of each tracker."""
    expected = {"": accuracy.value, "low": accuracy.low, "high": accuracy.high, "n": accuracy.n}
    assert accuracy.value == 11 / 12
    for name, read in (
        ("mlflow", read_mlflow), ("tensorboard", read_tensorboard), ("dvclive", read_dvclive)
    ):  # fmt: skip
        numbers = read()
        for part, value in expected.items():
            key = next(
                k for k in numbers if k in (f"accuracy/{part}".rstrip("/"), f"accuracy.{part}")
            )
            assert abs(numbers[key] - value) < 1e-6, (name, key, numbers[key], value)
        print(f"{name}: accuracy {numbers['accuracy']:.4f}, with its interval and n")
    for file in list_wandb_files():
        content = file.read_bytes()
        for part, value in expected.items():
            key = f"accuracy/{part}".rstrip("/").encode()
            assert key in content, (file, key)
            assert json.dumps(value).encode() in content, (file, key, value)
    print(f"wandb: accuracy {accuracy.value:.4f}, with its interval and n, offline")


def read_mlflow():
    """The metrics of the only run, which has the report too."""
    import mlflow

    (run,) = mlflow.search_runs(experiment_names=["steadyeye"], output_format="list")
    artifacts = mlflow.MlflowClient().list_artifacts(run.info.run_id)
    assert {file.path for file in artifacts} == {"report.html", "results.json"}
    assert run.data.params["model"] == "by_brightness"
    return run.data.metrics


def read_tensorboard():
    """The scalars of the only file."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator("run/tensorboard/by_brightness_on_images").Reload()
    scalars = {tag: events.Scalars(tag) for tag in events.Tags()["scalars"]}
    assert all(len(steps) == 1 for steps in scalars.values())
    return {tag: steps[0].value for tag, steps in scalars.items()}


def read_dvclive():
    """What DVCLive wrote."""
    return json.loads(Path("run/dvclive/by_brightness_on_images/metrics.json").read_text())


def list_wandb_files():
    """The files of the one run, a file each time that it was logged."""
    files = sorted(Path("run/wandb").glob("offline-run-*/run-*.wandb"))
    assert len(files) == 2
    assert len({file.stem for file in files}) == 1
    return files


if __name__ == "__main__":
    main()
