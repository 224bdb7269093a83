"""Intervals of mAP and of bounded means on few images, against references from the definition."""

import importlib
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyeye.core.boxes import BoxTable, take
from steadyeye.core.stats import bootstrap, class_means
from steadyeye.core.stats.class_means import less, mean_difference, mean_of_classes, spread
from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.explain.effects import ProbeEffects, difference, mean
from steadyeye.metrics.detection.frame_ap import ap, spread_of
from steadyeye.metrics.detection.matching import match

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def boxes(image, label, score):
    """A separate box for each; boxes at the same place in the list overlap."""
    n = len(image)
    place = 20.0 * np.arange(n)
    corners = np.stack([place, np.zeros(n), place + 10, np.full(n, 10.0)], axis=1)
    return BoxTable(
        np.array(image), np.array(label), corners, np.array(score, dtype=float),
        np.zeros(n, bool), np.full(n, 100.0),
    )  # fmt: skip


def measure_spread(labels, hits, videos=None):
    """The interval of mAP of images with one object each; `hits`: whether it is detected."""
    labels, hits = np.array(labels), np.array(hits)
    n = len(labels)
    truth = boxes(np.arange(n), labels, np.ones(n))
    detections = take(truth, np.flatnonzero(hits))
    matched = match(truth, detections, n, int(labels.max()) + 1)
    where = np.array(videos if videos is not None else [f"{i:03}" for i in range(n)])
    return spread_of(matched, ap((0.5,)), where), n


@pytest.mark.parametrize("n", [5, 12, 40])
def test_one_class_all_found_or_none_is_as_sure_as_so_many_images(n):
    every = mean_of_classes(*measure_spread(np.zeros(n, int), np.ones(n, bool)))
    assert (every.value, every.high) == (1, 1)
    assert every.low == pytest.approx(clopper_pearson(n, n)[0])
    nothing = mean_of_classes(*measure_spread(np.zeros(n, int), np.zeros(n, bool)))
    assert (nothing.value, nothing.low) == (0, 0)
    assert nothing.high == pytest.approx(clopper_pearson(0, n)[1])


@settings(max_examples=8)
@given(st.lists(st.integers(5, 9), min_size=1, max_size=3))
def test_all_found_bounds_the_worst_split_of_chances_over_classes(counts):
    labels = np.repeat(np.arange(len(counts)), counts)
    every = mean_of_classes(*measure_spread(labels, np.ones(len(labels), bool)))
    # on a grid: the least mean chance with which all could be found in one of forty samples
    grid = np.linspace(0.005, 1, 200) if len(counts) < 3 else np.linspace(0.02, 1, 50)
    chances = np.array(list(product(grid, repeat=len(counts))))
    possible = (chances ** np.array(counts)).prod(axis=1) >= 0.025
    least = chances[possible].mean(axis=1).min()
    assert least - 0.03 <= every.low <= least + 1e-9


def test_classes_on_few_images_have_no_interval_and_say_so():
    labels = [0] * 9 + [1, 1, 2]
    interval = mean_of_classes(*measure_spread(labels, np.arange(12) % 2 == 0))
    assert interval.value is not None
    assert (interval.low, interval.high) == (None, None)
    assert interval.method == (
        "none: too few images: the median class has objects in 2 images, the rarest in 1"
    )
    moved, n = measure_spread([0, 1, 2], np.ones(3, bool))
    assert "has objects in 1 image, the rarest in 1" in mean_of_classes(moved, n).method
    assert moved.note() == "images per class: 1 (median), 1 (minimum)"
    # many images of two videos are two, not many
    assert measure_spread([0] * 40, np.arange(40) % 2 == 0, ["a", "b"] * 20)[0].videos.tolist() == [
        2
    ]
    moved, n = measure_spread([0] * 40, np.arange(40) % 2 == 0, ["a", "b"] * 20)
    assert mean_of_classes(moved, n).low is None
    assert moved.note() == ("images per class: 40 (median), 40 (minimum); videos per class: 2, 2")


def test_without_objects_there_is_nothing():
    spread, n = measure_spread([0] * 6, np.ones(6, bool))
    nothing = spread.__class__(**(vars(spread) | {"values": np.full(1, np.nan)}))
    assert mean_of_classes(nothing, n).value is None
    assert nothing.note() == "no class has an object"


def test_the_difference_of_equal_shares_has_the_closed_end_of_n_images():
    spread, n = measure_spread([0] * 20, np.ones(20, bool))
    same = mean_difference(less(spread, spread), n)
    assert same.value == 0
    assert same.high == pytest.approx(1 - clopper_pearson(20, 20)[0])
    assert same.low == -same.high


def test_more_images_than_groups_give_the_interval_of_the_whole_jackknife():
    rng = np.random.default_rng(0)
    hits = rng.random(250) < 0.7
    grouped = mean_of_classes(*measure_spread(np.zeros(250, int), hits))
    share = hits.mean()
    # one object an image, no false positive: AP is recall, to the next of 101 levels
    error = np.sqrt(share * (1 - share) / 250)
    assert (grouped.high - grouped.low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.3)


def effects(wrong, right, videos):
    """Effects of mistakes and of a control, one of each per video."""
    n = len(wrong)
    return ProbeEffects(
        plain=np.arange(2 * n), changed=(), change=np.array([*wrong, *right], dtype=float),
        vanished=np.zeros(2 * n), confident=np.zeros(2 * n), cause=np.array(["x"] * n + [""] * n),
        label=np.zeros(2 * n, int), cluster=np.array([*videos, *videos]), of="videos", lost=0,
        matches=None,
    )  # fmt: skip


@pytest.mark.parametrize("videos", [2, 3, 5, 6, 12])
def test_a_difference_needs_as_many_videos_as_a_sign_test(videos):
    names = [f"v{i}" for i in range(videos)]
    interval = difference(effects(np.ones(videos), np.zeros(videos), names))
    # by chance all signs are alike in 2 of 2ⁿ: one in twenty from six on
    assert (interval.low is not None) == (2 * 0.5**videos <= 0.05)
    if interval.low is None:
        assert interval.method.startswith(f"none: too few: one group has only {videos}")
    else:
        assert 0 < interval.low < interval.high == 1


@settings(max_examples=20)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.data())
def test_a_larger_change_never_lowers_an_end(changes, data):
    names = [f"v{i // 2}" for i in range(len(changes))]
    at = data.draw(st.integers(0, len(changes) - 1))
    larger = list(changes)
    larger[at] = data.draw(st.floats(changes[at], 1))
    ends = []
    for values in (changes, larger):
        change_effects = effects(values, np.zeros(len(values)), names)
        ends.append(mean(change_effects, change_effects.mistake))
    assert ends[1].low >= ends[0].low - 1e-6
    assert ends[1].high >= ends[0].high - 1e-6
    assert 0 <= ends[0].low <= ends[0].value <= ends[0].high <= 1


def test_drawn_bounds_are_those_of_clopper_and_pearson_for_one_answer_a_video():
    draws = bootstrap.draws(np.array([f"{i}" for i in range(20)]))
    for hits in (0, 3, 10, 20):
        values = np.arange(20) < hits
        ends = bootstrap.mean_ends(values[None].astype(np.float32), draws, (0, 1))
        assert [float(end[0]) for end in ends] == pytest.approx(clopper_pearson(hits, 20), abs=0.02)


@pytest.fixture(scope="module")
def cases():
    """The simulations of the benchmarks, whose truth comes from 10,000 images."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        module = importlib.import_module("coverage_statistics")
        patch.setattr(module, "POPULATION", 10_000)
        yield module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "videos", "tries"),
    [("mean over levels", 3, 60), ("mean over levels", 10, 60), ("change in `explain`", 5, 60),
     ("failure point", 10, 60), ("mAP", 20, 60), ("difference of mAP", 20, 60),
     ("median class", 20, 30)],
)  # fmt: skip
def test_intervals_hold_the_truth(case, videos, tries, cases):
    tried = cases.CASES[case](np.random.default_rng(videos), videos, 0.3, tries)
    intervals = [interval for interval in tried if interval.width is not None]
    assert intervals
    for interval in intervals:
        # three standard deviations of 60 tries below 95 %
        assert np.mean(interval.above | interval.below) < 0.14


@pytest.mark.slow
def test_a_requirement_of_exactly_the_true_map_rarely_passes(cases):
    # sixty images in which nearly all is found passed in 7.5 % of tries
    rng, measure = np.random.default_rng(2), ap((0.5,))
    pictures = cases.Pictures(8, 2.5, 0.0)
    every, _ = pictures.draw(np.random.default_rng(5), cases.POPULATION, 1)
    truths = measure(every, None)[0]
    passed = []
    for _ in range(200):
        matched, video = pictures.draw(rng, 60, 1)
        moved = spread_of(matched, measure, video.astype(str))
        low = mean_of_classes(moved, 60).low
        passed.append(low is not None and low > truths[moved.is_present].mean())
    # a false alarm of 2.5 % stays below this in 98 % of seeds
    assert np.mean(passed) < 0.05


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_parts_of_images_sum_up_alike_in_pieces(piece, monkeypatch):
    """To the last bit, because the interval in a report must not depend on the pieces."""
    monkeypatch.setattr(class_means, "PIECE", piece)
    rng = np.random.default_rng(piece)
    for classes in (1, 2, 3, 80):
        presence = rng.random((301, classes)) < 0.3
        videos = rng.integers(0, 60, 301).astype(str)
        in_video = np.array([presence[videos == video].any(axis=0) for video in np.unique(videos)])
        own = spread(lambda weight, n=classes: np.zeros(n), np.packbits(presence, axis=1), videos)
        parts = in_video / np.maximum(in_video.sum(axis=1, keepdims=True), 1)
        assert own.share.tobytes() == parts.sum(axis=0).tobytes()


@pytest.mark.parametrize("n", [20, class_means.FEW_IMAGES - 1])
def test_threads_change_no_bit(n, monkeypatch):
    rng = np.random.default_rng(n)
    labels, hits = rng.integers(0, 3, n).tolist(), rng.random(n) < 0.6
    alone, _ = measure_spread(labels, hits)
    monkeypatch.setattr(class_means, "FEW_IMAGES", 0)
    together, _ = measure_spread(labels, hits)
    for name in ("values", "moves", "bias"):
        assert getattr(alone, name).tobytes() == getattr(together, name).tobytes()
