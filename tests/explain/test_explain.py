"""Explaining confident mistakes: targets, probes by hand, whole explanations, refusals."""

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import cv2
import explain_toys as toys
import numpy as np
import pytest
import vl_convert
from conftest import TESTS
from forked import Command, steadyeye
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from probed_tables import probed, table
from pycocotools.coco import COCO

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import stream
from steadyeye.core.spec import parse
from steadyeye.core.types import Evaluated
from steadyeye.data.images.image_file import read as read_image
from steadyeye.explain import backgrounds
from steadyeye.explain import run as explaining
from steadyeye.explain.backgrounds import grabcut, nearest, of_truth, pack_mask
from steadyeye.explain.context import cutoff, lower_threshold
from steadyeye.explain.effects import difference, effects, match_targets, mean
from steadyeye.explain.probes.background import compose_image
from steadyeye.explain.probes.patch_shuffle import shuffle_patches
from steadyeye.explain.targets import Target, correct, draw_targets, mistakes, targets
from steadyeye.models.backends.onnx_detector import onnx_detector
from steadyeye.predictions.read import read
from steadyeye.predictions.schema import Rows, matrix, to_arrow
from steadyeye.report import build, pictures
from steadyeye.report.analyses.background import background
from steadyeye.report.analyses.patch_shuffle import patch_shuffle
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent
from steadyeye.runner.validate import check

# ---------------------------------------------------------------- targets


def test_mistakes_and_correct_detections_by_hand():
    truth = [(0, 0, 0, 0, 10, 10, 1, 0), (1, 0, 0, 0, 10, 10, 1, 1), (1, 1, 40, 0, 50, 10, 1, 0)]
    detections = [
        (0, 0, 0, 0, 10, 10, 0.7, 0),  # not confident
        (0, 0, 0, 0, 10, 8, 0.9, 0),  # right, IoU 0.8
        (0, 1, 0, 0, 10, 9, 0.95, 0),  # another name for it
        (0, 0, 0, 0, 10, 5, 0.85, 0),  # IoU 0.5 is not above 0.5: nothing there
        (1, 0, 0, 0, 10, 10, 0.99, 0),  # on a crowd
        (1, 1, 0, 30, 10, 40, 0.9, 0),  # nothing there
    ]
    predictions = table(truth, detections)
    wrong = mistakes(predictions, 0.8)
    assert [(e.id, e.cause, e.own_label) for e in wrong] == [
        ("i0#0", "misclassification", 1),
        ("i0#2", "background", 0),
        ("i1#1", "background", 1),
    ]
    assert [(e.id, e.score, e.box) for e in correct(predictions, 0.8)] == [
        ("i0#1", 0.9, (0.0, 0.0, 10.0, 8.0))
    ]
    assert targets(predictions) == (*wrong, *correct(predictions))


def test_the_control_is_of_the_reference_and_at_least_as_many():
    right = [(n, 0, 0, 0, 10, 10, 0.9, 0) for n in range(80)]
    wrong = [(n, 1, 50, 50, 60, 60, 0.9, 0) for n in range(70)]
    data = table([(0, 0, 0, 0, 10, 10, 1, 0)], wrong, images=80)
    reference = table([(n, 0, 0, 0, 10, 10, 1, 0) for n in range(80)], right, images=80)
    selection = targets(data, reference)
    assert [bool(e.cause) for e in selection] == [True] * 70 + [False] * 70
    few = targets(data, reference, limit=5)
    assert [bool(e.cause) for e in few] == [True] * 5 + [False] * 5
    assert few == targets(data, reference, limit=5)
    assert few != targets(data, reference, limit=5, seed=1)
    assert [e.row for e in few[:5]] == sorted(e.row for e in few[:5])
    assert draw_targets(few, 100, 0) == list(few)


# ---------------------------------------------------------------- patch shuffle


@given(
    st.tuples(*[st.floats(-5, 45)] * 4), st.integers(1, 4), st.floats(0.01, 0.5), st.integers(0, 9)
)
def test_shuffling_moves_pixels_within_the_box_alone(corners, swaps, share, seed):
    image = np.arange(40 * 30 * 3, dtype=np.int64).reshape(40, 30, 3).astype(np.uint8)
    x0, x1 = sorted(corners[:2])
    y0, y1 = sorted(corners[2:])
    out = shuffle_patches(image, (x0, y0, x1, y1), swaps, share, stream(seed, "x"))
    outside = np.ones((40, 30), dtype=bool)
    first, last = np.maximum([np.ceil([y0, x0]), [y1, x1]], 0).astype(int)
    outside[first[0] : last[0], first[1] : last[1]] = 0
    assert np.array_equal(out[outside], image[outside])
    order = [np.sort(pixels.reshape(-1, 3).view("u1,u1,u1").ravel()) for pixels in (image, out)]
    assert np.array_equal(*order)
    again = shuffle_patches(image, (x0, y0, x1, y1), swaps, share, stream(seed, "x"))
    assert np.array_equal(out, again)


def test_one_swap_moves_two_patches_of_the_share():
    image = np.arange(40 * 40, dtype=np.int32).reshape(40, 40, 1).view(np.uint8)[..., :3]
    for seed in range(20):
        out = shuffle_patches(image, (8.0, 4.0, 28.0, 36.0), 1, 0.25, stream(seed, "x"))
        moved = np.argwhere((out != image).any(axis=2))
        # 5 × 8 pixels twice: a quarter of 20 and of 32
        assert len(moved) == 2 * 5 * 8
        assert moved.min(axis=0).tolist() >= [4, 8]
        assert (moved.max(axis=0) < [36, 28]).all()


# ---------------------------------------------------------------- backgrounds and masks


def test_an_object_keeps_its_pixels_and_nothing_else():
    rng = np.random.default_rng(0)
    image, behind = rng.integers(0, 256, (2, 5, 7, 3), dtype=np.uint8)
    mask = np.zeros((5, 7), dtype=bool)
    mask[1:3, 2:6] = True
    out = compose_image(image, pack_mask(mask, "truth"), behind)
    assert np.array_equal(out[mask], image[mask])
    assert np.array_equal(out[~mask], behind[~mask])


def test_backdrops_are_what_they_are_called():
    size = (60, 90)
    for make in (backgrounds.gradient, backgrounds.natural_noise):
        backdrop, same, other = (make(size, stream(s, "x")) for s in (0, 0, 1))
        assert backdrop.shape == (60, 90, 3)
        assert np.array_equal(backdrop, same)
        assert not np.array_equal(backdrop, other)
    noise = backgrounds.natural_noise((256, 256), stream(0, "x")).mean(axis=2)
    power = np.abs(np.fft.fft2(noise - noise.mean()))
    frequency = np.hypot(*np.meshgrid(*[np.fft.fftfreq(256)] * 2))
    rings = [(0.01, 0.02), (0.04, 0.08), (0.15, 0.3)]
    amplitude = [power[(frequency >= a) & (frequency < b)].mean() for a, b in rings]
    slopes = np.diff(np.log(amplitude)) / np.diff([np.log((a + b) / 2) for a, b in rings])
    assert slopes == pytest.approx([-1, -1], abs=0.15)
    image = np.zeros((20, 40, 3), dtype=np.uint8)
    image[:, 10:30] = 200
    assert (backgrounds.covering(image, (50, 50)) > 100).all()
    assert backgrounds.blur_image(image, (30, 90)).shape == (30, 90, 3)


def test_coco_masks_are_those_of_pycocotools(test_data):
    root = test_data / "coco" / "tinycoco"
    path = root / "annotations" / "instances_train2017.json"
    source = plugins.build("sources", parse(f"coco(annotations='{path}', images='{root}')"))
    reference, worst = COCO(str(path)), 1.0
    for i in range(len(source)):
        sample = source[i]
        annotations = reference.loadAnns(reference.getAnnIds(int(sample.id)))
        for annotation, mask in zip(annotations, sample.masks(), strict=True):
            expected = reference.annToMask(annotation).astype(bool)
            same = (mask & expected).sum() / (mask | expected).sum()
            if isinstance(annotation["segmentation"], dict):
                assert same == 1
            elif expected.sum() > 2000:
                worst = min(worst, same)
    assert worst > 0.88  # polygons hold the pixels on their edge; thin ones are mostly edge


@pytest.mark.slow
def test_davis_masks_go_with_their_boxes(test_data, tmp_path):
    (tmp_path / "labels.csv").write_text("video,labels\ngoat,goat\n")
    for name, how in (("JPEGImages/goat/00045.jpg", Image.BOX), ("Annotations/goat/00045.png", 0)):
        (tmp_path / name).parent.mkdir(parents=True)
        # at half its size, since GrabCut takes seconds for the whole
        frame = Image.open(test_data / "davis" / name).resize((427, 240), how)
        frame.save(tmp_path / name)
    spec = f"davis(root='{tmp_path}', labels='{tmp_path}/labels.csv', k=0)"
    sample = plugins.build("sources", parse(spec))[0]
    (mask,) = sample.masks()
    assert mask.sum() == sample.boxes.area[0]
    x0, y0, x1, y1 = sample.boxes.boxes[0].astype(int)
    assert mask[y0:y1, x0:x1].sum() == mask.sum()
    target = Target("t", 0, (x0, y0, x1, y1), 0, 0.9, "background")
    assert np.array_equal(of_truth(sample, target), mask)
    aside = replace(target, box=(x0, y0, x0 + (x1 - x0) / 2.5, y1))
    assert of_truth(sample, aside) is None
    # a guess from colours, on an object that stands out little: better than the box, no more
    guess = grabcut(sample.image(), target)
    assert np.array_equal(guess, grabcut(sample.image(), target))
    box = np.zeros_like(mask)
    box[y0:y1, x0:x1] = True

    def overlap(region):
        return (region & mask).sum() / (region | mask).sum()

    assert overlap(guess) > overlap(box)


# ---------------------------------------------------------------- what was found, by hand


def test_the_best_overlapping_detection_of_the_class_counts():
    detections = [
        (0, 0, 0, 0, 10, 10, 0.9, 0),
        (1, 0, 0, 0, 10, 10, 0.3, 0),
        (1, 0, 0, 0, 10, 9, 0.8, 0),  # more confident, overlaps less
        (2, 1, 0, 0, 10, 10, 0.9, 0),  # another class
        (3, 0, 10, 10, 20, 20, 0.9, 0),  # beside it
    ]
    matches = match_targets(probed(["x"], ["v"], detections, 3))
    assert matches.probability.tolist() == [0.9, 0.3, 0, 0]
    assert matches.is_vanished.tolist() == [False, False, True, True]


def test_matches_of_many_targets_are_those_of_each_alone():
    """Corners and scores on a coarse grid, so that overlaps and scores often tie."""
    random = np.random.default_rng(0)
    rows = []
    for image in np.sort(random.integers(0, 60, 400)).tolist():
        x0, y0, width, height = random.integers(0, [16, 16, 8, 8]).tolist()
        score, label = random.choice([0.25, 0.5, 1.0]), int(random.integers(0, 2))
        rows.append((image, label, x0, y0, x0 + width, y0 + height, score, 0))

    def share(x0, y0, x1, y1):
        wide, high = min(x1, 10) - max(x0, 0), min(y1, 10) - max(y0, 0)
        shared = max(wide, 0) * max(high, 0)
        return shared / ((x1 - x0) * (y1 - y0) + 100 - shared)

    expected = []
    for image in range(60):
        own = [(share(*row[2:6]), row[6]) for row in rows if row[:2] == (image, 0)]
        best = max((pair for pair in own if pair[0] > 0), default=(0, 0))
        expected.append(best[1])
    matches = match_targets(probed(["x"], ["v"], rows, 59))
    assert matches.probability.tolist() == expected
    assert matches.is_vanished.tolist() == [score == 0 for score in expected]
    assert 0 < sum(matches.is_vanished) < 60


def detect(scores):
    """One detection an image, none where the score is 0."""
    return [(i, 0, 0, 0, 10, 10, score, 0) for i, score in enumerate(scores) if score]


def find_effects(predictions):
    return effects(predictions, predictions.tags["repeat"] == 0)


def test_changes_are_averaged_over_steps_then_targets():
    # mistakes change by (0.1 + 0.9) / 2 and 0.2, the correct ones by 0 and 0.1
    scores = [0.9, 0.8, 0, 0.9, 0.7, 0.7, 0.9, 0.9, 0.9, 0.9, 0.8, 1.0]
    predictions = probed(["x", "y", "", ""], ["u", "v", "w", "z"], detect(scores), 2)
    target_effects = find_effects(predictions)
    assert target_effects.change == pytest.approx([0.5, 0.2, 0, 0.1])
    assert target_effects.vanished.tolist() == [0.5, 0, 0, 0]
    assert target_effects.confident.tolist() == [0, 0, 1, 0.5]
    wrong = mean(target_effects, target_effects.mistake)
    assert (wrong.value, wrong.n) == (pytest.approx(0.35), 2)
    # two images could as well be from others that change by 0.1 or by 0.9
    assert wrong.low < 0.1
    assert wrong.high > 0.85
    assert wrong.method == "Gaffke's bounds over 2 images"
    gap = difference(target_effects)
    assert gap.value == pytest.approx(0.3)
    assert (gap.low, gap.high) == (None, None)
    assert gap.method == "none: too few: one group has only 2 images"
    section = patch_shuffle([Evaluated(predictions, {})])
    assert section.title.endswith(
        "Mistakes by 0.35, correct detections by 0.05: too few images to compare"
    )
    rows = {row[0]: row for row in section.tables[0].rows}
    assert rows["mistakes"][1:3] == ("2", "2")
    assert rows["mistakes"][3].startswith("0.35 (0.0")
    assert rows["mistakes"][4] == "0.35"
    assert rows["mistakes"][5].startswith("0.0\u202f% (0.0–8")
    assert rows["difference"][3] == "+0.30 (—)"


def test_mistakes_of_one_video_prove_nothing_of_others():
    detections = detect([0.9, 0.1, 0.9, 0.2, 0.9, 0.9])
    predictions = probed(["x", "y", ""], ["v", "v", "w"], detections, 1)
    assert difference(find_effects(predictions)).low is None
    # without an interval it asks, and does not say that there is no difference
    title = patch_shuffle([Evaluated(predictions, {})]).title
    assert title.startswith("Shuffling patches inside the box: do confident mistakes change less")
    assert title.endswith("too few images to compare")


def test_a_mean_covers_the_truth_over_images():
    # detections of an image change alike: the interval of their mean must be over images
    rng, inside = np.random.default_rng(1), 0
    for _ in range(60):
        level = np.repeat(rng.uniform(0, 0.8, 30), 4)
        scores = [score for change in level for score in (0.9, 0.9 - change)]
        images = np.repeat([f"v{i}" for i in range(30)], 4)
        target_effects = find_effects(probed(["x"] * 120, images, detect(scores), 1))
        interval = mean(target_effects, target_effects.mistake)
        inside += interval.low <= 0.4 <= interval.high
    assert inside >= 52


@pytest.mark.parametrize("analysis", [patch_shuffle, background], ids=lambda a: a.__name__)
def test_sections_repeat_change_nothing_and_draw(analysis):
    detections, name = detect([0.9, 0.1, 0.9, 0.2, 0.9, 0.9]), analysis.__name__
    predictions = probed(["x", "y", ""], ["u", "v", "w"], detections, 1, probe=name)
    evaluation = Evaluated(predictions, {})
    before = predictions.detections.score.copy()
    section = analysis([evaluation])
    assert analysis([evaluation]) == section
    assert np.array_equal(predictions.detections.score, before)
    for figure in section.figures:
        assert vl_convert.vegalite_to_svg(json.loads(json.dumps(figure.spec))).startswith("<svg")
        assert figure.alt


# ---------------------------------------------------------------- whole explanations


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """Toy files: the folder, the model and the data as specs."""
    root = tmp_path_factory.mktemp("toy") / "files"
    data = toys.write(root)
    classes = root / "classes.json"
    return root, f"callable_detector(path='explain_toys:detector', classes='{classes}')", data


def analyses(root):
    return f"patch_shuffle(repeats=4), background(folder='{root}/behind')"


def run(toy, out, analysis=None, how=None, **options):
    root, model, data = toy
    job = Job(**{"models": (model,), "data": (data,), "out": str(out), **options})
    how = explaining.Explaining(analysis or analyses(root), **(how or {}))
    return explaining.explain(explaining.check(job, how), Silent())


def own_modules():
    """The environment of a command that finds the toys."""
    return {"PYTHONPATH": f"{TESTS}:{Path(explaining.__file__).resolve().parents[2]}"}


@pytest.fixture(scope="module")
def whole(toy, tmp_path_factory):
    explained = run(toy, tmp_path_factory.mktemp("whole") / "run", workers=1)
    return explained, build.write_explanation(explained)


def cells(out):
    paths = sorted(Path(out).glob("cells/*/*"))
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}


def test_backgrounds_change_the_mistakes_and_shuffled_patches_the_correct_detections(whole):
    explained, content = whole
    *_, shuffle, behind = content.sections
    # rows out of order: `a` falls from 0.9 to 0.4, `b` stays
    # over six images half of all there is says nothing of the next ones
    first = "Shuffling patches inside the box: do confident mistakes change less than"
    last = "Mistakes by 0.00, correct detections by 0.50: no clear difference"
    assert (shuffle.title.startswith(first), shuffle.title.endswith(last)) == (True, True)
    rows = {row[0]: row for row in shuffle.tables[0].rows}
    assert rows["mistakes"][1:3] == ("12", "6")
    # none of six: at most 46 %, as Clopper and Pearson have it
    assert rows["mistakes"][3] in ("0.00 (0.00–0.45)", "0.00 (0.00–0.46)", "0.00 (0.00–0.47)")
    assert rows["correct detections (control)"][1] == "6"
    # three of six backgrounds are light: there `b` falls from 0.9 to 0.4
    rows = {row[0]: row for row in behind.tables[0].rows}
    assert rows["misclassification"][1:3] == ("6", "6")
    assert rows["misclassification"][3].startswith("0.25 (")
    assert rows["correct detections (control)"][3].startswith("0.00 (0.00–0.4")
    assert "6 masks: the data's own" not in behind.text[2]
    assert behind.text[2].startswith("detector: 12 masks: the data's own")
    by_background = {row[0]: row[2] for row in behind.tables[1].rows}
    assert by_background["bright.png"].startswith("0.50 (")
    assert by_background["dark.png"].startswith("0.00 (0.00–")
    assert "no.png" not in by_background
    assert content.headline == (
        "detector is wrong in 66.7\u202f% of 18 detections with a score above 0.8, among 2 "
        "classes (95\u202f% interval 36.0–82.0\u202f%): 6 on an object of another class, 6 where "
        "no object is labelled.",
    )
    assert "steadyeye explain" in content.commands[0]
    assert (explained.out / "report.html").stat().st_size > 100_000


def test_qualifying_is_a_sealed_cell(whole):
    (folder,) = whole[0].out.glob("cells/*+backgrounds")
    predictions = read(folder)
    assert set(predictions.tags["background"][predictions.detections.image]) == {"no.png"}
    assert predictions.detections.score.tolist() == [0.9]
    assert len(predictions) == 7


def test_the_report_is_made_again_without_model_and_data(whole):
    explained, content = whole
    again = build.document([explained.out])
    titles = {section.title for section in again.sections}
    assert {section.title for section in content.sections} <= titles
    for section in again.sections:
        for exhibit in section.exhibits:
            marks = {e.predictions.data: e.predictions.fingerprint for e in again.evaluated}
            for picture in exhibit.pictures:
                assert pictures.stored_picture([explained.out], marks[exhibit.data], picture)


def test_threads_and_batches_change_nothing(toy, whole, tmp_path):
    explained = run(toy, tmp_path / "run", workers=3)
    assert cells(explained.out) == cells(whole[0].out)
    other = run(toy, tmp_path / "batch", workers=2, batch=5)
    for plain, batched in zip(whole[0].evaluated, other.evaluated, strict=True):
        first, second = plain.predictions.detections, batched.predictions.detections
        assert np.array_equal(first.boxes, second.boxes)
        assert np.array_equal(first.score, second.score)
        assert np.array_equal(plain.predictions.ids, batched.predictions.ids)


def test_the_order_of_the_analyses_changes_nothing_and_more_can_be_asked_later(
    toy, tmp_path, whole
):
    root = toy[0]
    shuffle, behind = "patch_shuffle(repeats=4)", f"background(folder='{root}/behind')"
    run(toy, tmp_path / "run", behind)
    both = run(toy, tmp_path / "run", shuffle)
    assert cells(both.out) == cells(whole[0].out)
    record = json.loads((both.out / "run.json").read_text())
    assert len(record["cells"]) == 3
    assert record["explain"]["settings"]["analyses"] == f"{behind}, {shuffle}"


def test_a_killed_command_continues_to_the_same_bytes(toy, whole, tmp_path):
    root, model, data = toy
    slow = model.replace(":detector", ":slow")
    words = ["explain", "--model", slow, "--data", data]
    words += ["--analyses", analyses(root), "--workers", "1", "--out"]
    run_it = {"cwd": tmp_path, "env": own_modules()}
    steadyeye(*words, "whole", **run_it, check=True)
    paused = run_it["env"] | {"STEADYEYE_TOY_PAUSE": "0.02"}
    victim = Command(*words, "killed", cwd=tmp_path, env=paused)
    started = time.monotonic()
    while len(list(tmp_path.glob("killed/cells/*shuffle/*.arrow"))) < 2:
        assert time.monotonic() - started < 600
        assert victim.poll() is None
        time.sleep(0.005)
    victim.kill()
    victim.wait()
    assert not list(tmp_path.glob("killed/cells/*background/seal.json"))
    done = steadyeye(*words, "killed", **run_it)
    assert done.returncode == 0, done.stderr
    assert "patch_shuffle: " in done.stderr
    assert cells(tmp_path / "killed") == cells(tmp_path / "whole")


def test_probes_with_the_cache_have_the_same_bytes_and_nothing_is_asked_twice(
    toy, tmp_path, monkeypatch
):
    calls, original = [], toys.find_squares
    monkeypatch.setattr(toys, "find_squares", lambda image: calls.append(1) or original(image))
    monkeypatch.setattr(toys.detector, "fingerprint", "the toy", raising=False)
    counts = {}
    for name, cache in (("off", "off"), ("cold", "kept"), ("warm", "kept")):
        calls.clear()
        run(toy, tmp_path / name, cache=cache if cache == "off" else str(tmp_path / cache))
        counts[name] = len(calls)
    assert cells(tmp_path / "off") == cells(tmp_path / "cold") == cells(tmp_path / "warm")
    assert any("+patch_shuffle" in name for name in cells(tmp_path / "off"))
    assert counts["off"] >= counts["cold"] > counts["warm"] == 0


def test_the_control_is_of_the_reference_where_one_is_given(toy, tmp_path):
    other = toys.write(tmp_path / "other", images=3)
    how, data = {"reference": other}, (toy[2], other)
    explained = run(toy, tmp_path / "run", "patch_shuffle(repeats=1)", how, data=data)
    (probe,) = [e.predictions for e in explained.evaluated if e.predictions.probe]
    assert probe.probe["reference"]["name"] == "boxes"
    control = probe.tags["cause"] == ""
    assert len(set(probe.tags["target"][control])) == 3
    # images of the two that are called the same are not the same
    assert len(set(find_effects(probe).cluster)) == 6 + 3
    content = build.write_explanation(explained)
    assert "--reference" in content.commands[0]
    assert content.commands[0].count("--data") == 1


# ---------------------------------------------------------------- what is refused


def check_refusal(toy, tmp_path, analysis, match, how=None, **options):
    with pytest.raises(UsageError, match=match) as error:
        run(toy, tmp_path / "run", analysis, how, **options)
    assert "\n" not in str(error.value)


def test_invalid_explanations_are_refused_in_one_line(toy, tmp_path):
    root, _model, data = toy
    (tmp_path / "other.txt").write_text("violin\nzebra\n")
    no_class = f"callable(path='toy_networks:brightness', classes='{tmp_path / 'other.txt'}')"
    for classifier in ("callable(path='toy_networks:brightness')", no_class):
        with pytest.raises(UsageError, match="is a classifier; explain needs a detector"):
            run((root, classifier, data), tmp_path / "c")
    with pytest.raises(UsageError, match="is a classifier; mine needs a detector"):
        check(Job(models=(no_class,), data=(data,)), detection_for="mine")
    for analysis, line, *how in (
        ("patch_shufle", "did you mean 'patch_shuffle'"),
        ("patch_shuffle(repeat=2)", "did you mean 'repeats'"),
        ("patch_shuffle(repeats=0)", "at least one of each"),
        ("patch_shuffle(share=0.6)", "so that two patches fit"),
        ("pm_curve", "needs group, offset, which its probe"),
        ("pm_curve(k=3)", "has no probe of its own"),
        ("patch_shuffle, patch_shuffle", "is given twice"),
        ("patch_shuffle", "no model makes a mistake", {"score": 0.95}),
        ("patch_shuffle", "give a confidence in 0…1", {"score": 1.5}),
        ("patch_shuffle", "give at least 1", {"limit": 0}),
        ("background(kinds='stripes')", "no kind of background named 'stripes'"),
        ("background(folder='/nowhere')", "no image in the folder"),
        ("background(masks='magic')", "give 'truth', 'grabcut', "),
    ):
        check_refusal(toy, tmp_path, analysis, line, *how)


def test_too_few_backgrounds_are_refused_with_why(toy, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    for path in sorted((toy[0] / "behind").iterdir())[2:]:
        (few / path.name).write_bytes(path.read_bytes())
    line = r"4 of 5 backgrounds qualify .*at least 6 are needed \(in 'no.png@64x64' it detects"
    check_refusal(toy, tmp_path, f"background(folder='{few}')", line)


def test_a_detector_that_cuts_its_scores_cannot_say_that_it_finds_nothing(toy, tmp_path):
    """The detector leaves out scores of 0.4, so every light background would seem to qualify."""
    root, model, data = toy
    cut = (root, model.replace(":detector", ":cut"), data)
    analysis = f"background(folder='{root}/behind')"
    line = (
        "cut gives no score below 0.90, so it cannot be tested whether it finds nothing above 0.1"
    )
    check_refusal(cut, tmp_path, analysis, line)
    # where parts are swapped it is no question, but what falls below counts as gone
    explained = run(cut, tmp_path / "cut", f"{analysis}, patch_shuffle(repeats=1)")
    assert re.match(f"Not done: background: .*{line}", explained.headline[-1])
    build.write_explanation(explained)
    page = (tmp_path / "cut" / "report.html").read_text()
    assert ("Not done: background" in page, "Shuffling patches" in page) == (True, True)
    probe = next(e.predictions for e in explained.evaluated if e.predictions.probe)
    assert any("gives no score below 0.90" in note for note in probe.notes)


def test_a_probe_lowers_the_threshold_of_a_recipe(test_data):
    path, photo = test_data / "models" / "yolox_nano.onnx", test_data / "photos"
    strict, plain = (
        onnx_detector(path=str(path), decoder="yolox", recipe=recipe)
        for recipe in ({"threshold": 0.35}, None)
    )
    image = read_image(sorted(photo.glob("*.jpg"))[0])
    permissive = lower_threshold(strict)
    assert cutoff(permissive, None) == 0.001
    ((all_, all_of_it), (few,)) = (
        detector([image] * n) for detector, n in ((permissive, 2), (strict, 1))
    )
    (expected,) = plain([image])
    assert len(few) < len(expected) == len(all_) == len(all_of_it)
    np.testing.assert_array_equal(all_.scores, expected.scores)
    # what was kept of one must not be served as the other's
    assert len({strict.fingerprint, permissive.fingerprint}) == 2
    assert lower_threshold(plain) is plain


def test_data_without_masks_are_refused_or_guessed(toy, tmp_path):
    root, model, _ = toy
    bare = tmp_path / "bare"
    toys.write(bare)
    content = json.loads((bare / "boxes.json").read_text())
    for annotation in content["annotations"]:
        del annotation["segmentation"]
    (bare / "boxes.json").write_text(json.dumps(content))
    bare_toy = (bare, model, f"coco(annotations='{bare}/boxes.json', images='{bare}/images')")
    analysis = f"background(folder='{root}/behind')"
    check_refusal(bare_toy, tmp_path, analysis, "none of the 6 mistakes of detector has a mask")
    guessed = analysis.replace(")", ", masks='grabcut')")
    explained = run(bare_toy, tmp_path / "guessed", guessed)
    section = build.write_explanation(explained).sections[-1]
    assert "guessed by GrabCut from the box, which is less exact" in section.text[2]


@pytest.mark.usefixtures("torchvision")
def test_masks_are_those_of_a_segmenter(toy, tmp_path):
    """The weights are random: the masks of the library are passed on, good or not."""
    torch = pytest.importorskip("torch")
    import transformers

    from steadyeye.models.detectors import instance_masks

    torch.manual_seed(0)
    stages = [f"stage{i}" for i in range(1, 5)]
    backbone = transformers.SwinConfig(
        image_size=64, embed_dim=12, depths=[1] * 4, num_heads=[1, 2, 3, 6], window_size=2,
        out_features=stages,
    )  # fmt: skip
    config = transformers.Mask2FormerConfig(
        backbone_config=backbone, num_queries=5, num_labels=1, hidden_dim=32, feature_size=32,
        mask_feature_size=32, dim_feedforward=16, encoder_feedforward_dim=16, encoder_layers=1,
        decoder_layers=2, num_attention_heads=2,
    )  # fmt: skip
    transformers.Mask2FormerForUniversalSegmentation(config).eval().save_pretrained(tmp_path / "m")
    size = {"height": 64, "width": 64}
    transformers.Mask2FormerImageProcessor(size=size).save_pretrained(tmp_path / "m")
    spec = parse(f"hf(name='{tmp_path / 'm'}')")
    segment, mark = instance_masks.instances(spec)
    image = cv2.imread(str(toy[0] / "images" / "0.png"))[..., ::-1][:50]
    masks = segment(image)
    assert masks.dtype == bool
    assert masks.shape[1:] == (50, 64)
    assert np.array_equal(masks, segment(image))
    assert instance_masks.instances(spec)[1] == mark
    for other, line in (
        ("keras(name='x')", "no instance segmentation named 'keras'"),
        (f"hf(name='{tmp_path}')", "cannot load the instance segmentation"),
        ("torchvision(name='fcos_resnet50_fpn')", "gives no masks"),
    ):
        with pytest.raises(UsageError, match=line):
            instance_masks.instances(parse(other))


def test_the_mask_that_lies_in_the_box_is_taken():
    masks = np.zeros((3, 20, 20), dtype=bool)
    masks[0, 0:5, 0:5] = masks[1, 2:12, 2:12] = True
    target = Target("t", 0, (2.0, 2.0, 12.0, 11.0), 0, 0.9, "background")
    assert np.array_equal(nearest(masks, target), masks[1])
    assert nearest(masks[[0, 2]], target) is None
    assert nearest(masks[2:], target) is None


def test_a_folder_keeps_to_its_targets(toy, whole, tmp_path):
    run(toy, tmp_path / "run", "patch_shuffle(repeats=1)", {"limit": 2})
    check_refusal(toy, tmp_path, "patch_shuffle(repeats=1)", "its limit is 2, not 3", {"limit": 3})
    check_refusal(toy, tmp_path, "patch_shuffle(repeats=2)", "choose another --out", {"limit": 2})


def test_the_command_says_what_it_found(toy, tmp_path):
    _root, model, data = toy
    words = ["explain", "--model", model, "--data", data, "--analyses", "patch_shuffle(repeats=2)"]
    done = steadyeye(*words, "--out", tmp_path / "run", "--quiet", env=own_modules())
    assert done.returncode == 0, done.stderr
    first, wrong, pair, second, last = done.stdout.splitlines()
    assert wrong.startswith("Confident mistakes: ")
    assert pair == "Confusions: a → b, in 6 images"
    assert first.startswith("detector is wrong in 66.7 % of 18 detections")
    assert second.startswith("Shuffling patches inside the box: do confident mistakes change less")
    assert last == f"report: {tmp_path / 'run' / 'report.html'}"
    assert cv2.imread(str(next((tmp_path / "run" / "pictures").glob("*.jpg")))) is not None


def test_two_models_are_told_in_one_section_with_their_own_pictures(toy, tmp_path):
    models = (toy[1], toy[1].replace(":detector", ":slow"))
    explained = run(toy, tmp_path / "run", "patch_shuffle(repeats=1)", {"limit": 2}, models=models)
    content = build.write_explanation(explained)
    section = content.sections[-1]
    assert [line.split(":")[0] for line in section.text[1:]] == ["detector", "slow"]
    assert {exhibit.model for exhibit in section.exhibits} == {"detector", "slow"}
    for exhibit in section.exhibits:
        (table,) = [e for e in explained.evaluated if e.predictions.data == exhibit.data][:1]
        assert {p.sample for p in exhibit.pictures} <= set(table.predictions.ids.tolist())
    assert len(content.headline) == 2


def test_a_vector_that_was_measured_comes_back():
    measured = [np.arange(3, dtype=np.float32) + i for i in range(2)]
    nothing = np.zeros((2, 0), dtype=np.float32)
    answers = {name: np.zeros(2) for name in ("confidence", "probability", "softmax", "least")}
    answers |= {name: np.zeros(2, dtype=np.int32) for name in ("predicted", "rank")}
    rows = Rows(
        ids=["a", "b"],
        groups=["", ""],
        truths=[(), ()],
        tags=[{"inside": 0.5, "vector": vector} for vector in measured],
        errors=["", ""],
        scores=nothing,
        answers=answers,
        top=nothing.astype(np.int32),
        top_scores=nothing,
    )
    column = to_arrow(rows)["tag:vector"]
    assert np.array_equal(matrix(column, np.float32), np.stack(measured))
