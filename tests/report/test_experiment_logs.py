"""A run in an experiment tracker: read back with TensorBoard's own reader.

The other trackers are in tests/integrations/check_trackers.py, as they bring a hundred packages.
"""

import importlib.util
import json

import pytest
from forked import refused, steadyeye
from two_class_pictures import DATA, name_model, write_pictures

from steadyeye.api import open_run

ABSENT = [n for n in ("dvclive", "mlflow", "wandb") if importlib.util.find_spec(n) is None]


@pytest.fixture
def words(tmp_path, monkeypatch):
    """The words of a run on twelve pictures."""
    monkeypatch.chdir(write_pictures(tmp_path))
    return ["run", "--model", name_model("by_brightness"), "--data", DATA, "--out", "run"]


def test_tensorboard_reads_what_the_run_measured(words, tmp_path):
    for _ in range(2):
        done = steadyeye(*words, "--log", "tensorboard")
        assert done.returncode == 0, done.stderr
    assert (
        "tensorboard: by_brightness on images, tensorboard --logdir run/tensorboard" in done.stdout
    )
    folder = tmp_path / "run" / "tensorboard" / "by_brightness_on_images"
    assert len(list(folder.iterdir())) == 1, "the second time takes the place of the first"
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    expected = open_run(tmp_path / "run").accuracy()
    assert expected.value == 11 / 12
    numbers = {
        "accuracy": expected.value,
        "accuracy/low": expected.low,
        "accuracy/high": expected.high,
        "accuracy/n": 12,
    }
    assert set(events.Tags()["scalars"]) == set(numbers)
    for name, value in numbers.items():
        (event,) = events.Scalars(name)
        assert event.value == pytest.approx(value, rel=1e-6)
        assert event.wall_time > 1e9
    (text,) = events.Tensors("parameters")
    table = text.tensor_proto.string_val[0].decode()
    commit = json.loads((tmp_path / "run" / "run.json").read_text())["provenance"]["commit"]
    assert f"| version.commit | {commit} |" in table
    assert "| model | by_brightness |" in table


@pytest.mark.slow
def test_a_run_with_logs_can_be_started_again(words):
    assert steadyeye(*words, "--log", "tensorboard").returncode == 0
    done = steadyeye(*words, "--overwrite")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("tracker", "why"),
    [
        ("tensorbord", "no tracker named 'tensorbord'; did you mean 'tensorboard'?"),
        *((name, f"--log {name} needs its package; pip install {name}") for name in ABSENT),
    ],
)
def test_an_unusable_tracker_is_refused_before_the_run(words, tmp_path, tracker, why):
    assert why in refused(*words, "--log", tracker)
    assert not (tmp_path / "run").exists()
