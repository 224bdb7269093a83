"""Costs of a deployed model, against counts by hand; and a really quantised network."""

import re

import numpy as np
import onnx
import pytest
import tiny_onnx
from forked import steadyeye
from PIL import Image

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.models.runtimes.probe_images import patterns
from steadyeye.report.compare import group_shared
from steadyeye.report.comparison.deployment import compare_deployed, describe
from steadyeye.testing import example_source, tell_example_classes

RECIPE = "{'size': 32, 'resize': 32, 'mean': 127.0, 'std': 64.0}"


def see_worse(images):
    """The example's answers, but for images of an even sum."""
    scores = np.array(tell_example_classes(images))
    wrong = images.reshape(len(images), -1).sum(axis=1, dtype=np.int64) % 2 == 0
    scores[wrong] = np.roll(scores[wrong], 1, axis=1)
    return scores


def test_costs_are_the_differences_of_both_models():
    runs = [se.evaluate(model, example_source()) for model in (tell_example_classes, see_worse)]
    (models,) = group_shared([run.folder for run in runs], "accuracy, pm_k(k=1), flip_rate")
    (deployment,) = compare_deployed(models, "tell_example_classes")
    first, second = (run.predictions for run in runs)
    assert deployment.changed.value == np.mean(first.own != second.own)
    assert 0 < deployment.changed.value < 1
    cost = {cost.metric: cost.difference for cost in deployment.costs}
    better, worse = runs
    assert cost["accuracy"].value == pytest.approx(better.accuracy().value - worse.accuracy().value)
    assert cost["pm_k(k=1)"].value == pytest.approx(better.pm_k(1).value - worse.pm_k(1).value)
    # the lower is the better, and a cost is always how much worse
    assert cost["flip_rate"].value == pytest.approx(
        worse.flip_rate().value - better.flip_rate().value
    )
    text = describe(deployment)
    points = f"{cost['pm_k(k=1)'].value * 100:.1f}"
    assert re.search(rf"pm-1: {points} percentage points \(", text)
    assert text.startswith(f"see_worse changes {deployment.changed.value * 100:.1f} % of")
    with pytest.raises(UsageError, match="no model of these runs named 'see_wrose'"):
        compare_deployed(models, "see_wrose")


def quantise(before, after):
    """Writes the network of a file in 8 bits, calibrated on patterns, to another file."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    class Calibration(CalibrationDataReader):
        def __init__(self):
            images = [(image.astype(np.float32) - 127) / 64 for image in patterns(32, 32, 8)]
            self.batches = iter([{"images": i.transpose(2, 0, 1)[None]} for i in images])

        def get_next(self):
            return next(self.batches, None)

    how = {"per_channel": True, "weight_type": QuantType.QInt8}
    quantize_static(before, after, Calibration(), **how)


def write_clips(folder):
    """Three videos of eight frames, whose grey level is their number; sets of ±2 as a source."""
    for video in range(3):
        (folder / "clips" / str(video)).mkdir(parents=True)
        for frame in range(8):
            pixels = np.full((8, 8, 3), 8 * video + frame, np.uint8)
            Image.fromarray(pixels).save(folder / f"clips/{video}/{frame}.png")
    labels = folder / "labels.csv"
    labels.write_text("video,labels\n0,cat\n1,cat\n2,cat\n")
    return f"frames(path='{folder / 'clips'}', anchors=4, k=2, labels='{labels}')"


def test_a_frame_of_several_sets_and_one_without_a_prediction_count_once(tmp_path):
    """Sets of ±2 around four anchors of eight frames: most frames are in two sets or three."""
    draws = np.random.default_rng(5)
    right = draws.random((2, 3, 8)) < 0.7
    missing = {(0, 3), (2, 4)}
    source = write_clips(tmp_path)

    def answer(images, model):
        places = [divmod(int(image[0, 0, 0]), 8) for image in images]
        scores = np.array([[1.0, 0.0] if right[model][place] else [0.0, 1.0] for place in places])
        scores[[model == 1 and place in missing for place in places]] = np.nan
        return scores

    def full(images):
        return answer(images, 0)

    def small(images):
        return answer(images, 1)

    runs = [se.evaluate(m, source, classes=["cat", "dog"], on_error="skip") for m in (full, small)]
    (models,) = group_shared([run.folder for run in runs], "accuracy, pm_k(k=2)")
    (deployment,) = compare_deployed(models, "full")
    table = runs[0].predictions
    videos, frames = (np.asarray(table.tags[name]).astype(int) for name in ("video", "frame"))
    rows = list(zip(videos.tolist(), frames.tolist(), strict=True))
    unique = sorted(set(rows) - missing)
    assert len(unique) < len(rows) - len(missing)
    changed = [right[0][place] != right[1][place] for place in unique]
    assert deployment.changed.value == pytest.approx(np.mean(changed))
    assert deployment.changed.n == len(unique)
    sets = [[p for p, g in zip(rows, table.groups, strict=True) if g == name]
            for name in np.unique(table.groups)]  # fmt: skip
    offsets = np.asarray(table.tags["offset"])
    anchors = {g: rows[i] for i, g in enumerate(table.groups) if offsets[i] == 0}
    left = [(anchors[name], set(places) - missing)
            for name, places in zip(np.unique(table.groups), sets, strict=True)
            if anchors[name] not in missing]  # fmt: skip
    accuracy = [np.mean([model[anchor] for anchor, _ in left]) for model in right]
    steady = [np.mean([all(model[p] for p in places) for _, places in left]) for model in right]
    costs = {cost.metric: cost.difference.value for cost in deployment.costs}
    assert costs["accuracy"] == pytest.approx(accuracy[0] - accuracy[1])
    assert costs["pm_k(k=2)"] == pytest.approx(steady[0] - steady[1])


@pytest.mark.slow
def test_a_quantised_file_is_compared_with_its_original(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(tiny_onnx.make_classifier(), "fp32.onnx")
    quantise("fp32.onnx", "int8.onnx")
    names = "abcdefghij"
    (tmp_path / "ten.txt").write_text("\n".join(names))
    rng = np.random.default_rng(0)
    data = [(rng.integers(0, 256, (40, 40, 3), np.uint8), names[i % 10]) for i in range(30)]
    for name in ("fp32", "int8"):
        model = f"onnx(path='{name}.onnx', classes='ten.txt', recipe={RECIPE})"
        se.evaluate(model, data, out=tmp_path / name)
    words = ("compare", "fp32", "int8", "--metrics", "accuracy", "--original", "fp32")
    done = steadyeye(*words, "--out", "c.md", cwd=tmp_path)
    assert not done.returncode, done.stderr
    printed = " ".join(done.stdout.split())
    assert re.search(r"int8 changes \d+\.\d % of 30 predictions of fp32", printed)
    assert "accuracy:" in printed
    assert "int8 changes" in (tmp_path / "c.md").read_text()
