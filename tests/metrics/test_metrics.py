"""Metrics against a reference written straight from the definition, and by hand."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hand_tables import HAND, as_predictions, random_scores, random_table, table
from hypothesis import given
from hypothesis import strategies as st

from steadyeye.core.errors import UsageError
from steadyeye.core.stats.intervals import clopper_pearson
from steadyeye.metrics.accuracy import accuracy
from steadyeye.metrics.conditional_robustness import conditional_robustness
from steadyeye.metrics.drop import drop
from steadyeye.metrics.flip_rate import flip_rate
from steadyeye.metrics.pm_k import pm_k
from steadyeye.metrics.random_neighbour import random_neighbour, statistic
from steadyeye.metrics.self_consistency import self_consistency


def within(sets):
    """The frames of each set within ±k of its anchor, itself too, for k = 0 … 10."""

    def distance(frame, anchor):
        return abs(int(frame[-11:-5]) - int(anchor[-11:-5]))

    return [[{a, *(f for f in sets[a] if distance(f, a) <= k)} for a in sets] for k in range(11)]


def reference(right, near):
    """pm-0 … pm-10 from the definition alone: the names of the right frames, `within`'s sets."""
    return [np.mean([frames <= right for frames in at_k]) for at_k in near]


@pytest.fixture(scope="module")
def release(test_data):
    metadata = test_data / "imagenet_vid_robust" / "metadata"
    sets = json.loads((metadata / "pmsets.json").read_text())
    return sets, json.loads((metadata / "labels.json").read_text())


@pytest.fixture(scope="module")
def near(release):
    return within(release[0])


@pytest.mark.slow
def test_random_tables_over_the_released_metadata(release, near):
    labels = release[1]
    names = sorted(labels)
    frames = as_predictions(release, random_table(release, 0))
    taken = np.searchsorted(names, frames.ids)
    for seed in range(12):
        scores = random_scores(labels, seed)
        answers = zip(names, scores.argmax(axis=1).tolist(), strict=True)
        expected = reference({frame for frame, label in answers if label in labels[frame]}, near)
        predictions = replace(frames, scores=scores[taken])
        result = pm_k(predictions, k=10)
        assert [cell.value for cell in result.cells] == expected
        assert accuracy(predictions).value == expected[0]
        assert result.value == expected[10]
        assert drop(predictions).value == pytest.approx(expected[0] - expected[10], abs=1e-12)
        assert result.n == 1109


def test_the_set_without_neighbours_is_reported(release):
    predictions = as_predictions(release, random_table(release, 0))
    assert (
        "1 of 1,109 sets without a neighbour, of which the anchor alone counts"
        in pm_k(predictions).notes
    )


def test_metrics_by_hand():
    predictions = table(**HAND)
    assert accuracy(predictions).value == 2 / 3
    assert [cell.value for cell in pm_k(predictions).cells] == [2 / 3, 2 / 3, 1 / 3]
    assert pm_k(predictions, k=1).value == 2 / 3
    assert drop(predictions).value == pytest.approx(1 / 3)
    result = pm_k(predictions)
    assert (result.low, result.high) == clopper_pearson(1, 3)
    # a: no flip in two pairs; b: one flip in two; c: one in one
    assert (flip_rate(predictions).value, flip_rate(predictions).n) == (2 / 5, 5)


def test_a_random_neighbour_by_hand():
    # a: both of two; b: one of two; c: its only one, though its anchor is wrong
    result = random_neighbour(table(**HAND))
    assert result.name == "random_neighbour(k=2)"
    assert result.value == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert result.low < result.value < result.high
    assert random_neighbour(table(**HAND), k=1).value == 1
    assert not result.notes
    with pytest.raises(UsageError, match="the data reach ±2"):
        random_neighbour(table(**HAND), k=3)


def test_the_released_scorer_draws_what_a_random_neighbour_expects(release):
    sets, _ = release
    predictions = as_predictions(release, random_table(release, 4))
    right = dict(zip(predictions.ids.tolist(), predictions.right.tolist(), strict=True))
    result = random_neighbour(predictions)
    # one neighbour drawn for each anchor, again and again; a set without one counts as right there
    rng = np.random.default_rng(1)
    draws = [[right[f] for f in rng.choice(near, 400)] for near in sets.values() if near]
    lone = [right[anchor] for anchor, near in sets.items() if not near]
    every = (np.sum(draws, axis=0) + sum(lone)) / len(sets)
    assert result.value == pytest.approx(every.mean(), abs=4 * every.std() / 20)
    exact = [np.mean([right[f] for f in near] if near else [right[a]]) for a, near in sets.items()]
    assert result.value == pytest.approx(np.mean(exact), abs=1e-12)
    assert result.n == 1109
    assert (
        "1 of 1,109 sets without a neighbour, of which the anchor alone counts" in result.notes[0]
    )
    weights = np.zeros((1, 1109), dtype=np.float32)
    weights[0, :3] = 1
    (few,) = statistic(predictions).resampled(weights)
    assert few == pytest.approx(np.mean(np.array(exact)[np.argsort(list(sets))[:3]]), abs=1e-6)


@given(st.integers(0, 2**32), st.integers(1, 9), st.booleans())
def test_frames_without_a_label_leave_their_sets(seed, sets, together):
    """The numbers are those of the same table without these frames."""
    rng = np.random.default_rng(seed)
    rows = [(g, o) for g in range(sets) for o in range(-3, 4) if o == 0 or rng.random() < 0.8]
    truths = [[rng.integers(3)] if rng.random() < 0.8 else [] for _ in rows]
    truths[0] = [0]
    bare = {g for (g, o), own in zip(rows, truths, strict=True) if o == 0 and not own}
    scores = rng.random((len(rows), 3))

    def of(chosen):
        return table(
            scores[chosen],
            [truths[i] for i in chosen],
            [f"g{rows[i][0]}" for i in chosen],
            [rows[i][1] for i in chosen],
            video=["v" if together else f"v{rows[i][0]}" for i in chosen],
            frame=[10 * rows[i][0] + rows[i][1] for i in chosen],
        )

    whole = of(range(len(rows)))
    rest = of([i for i, own in enumerate(truths) if own and rows[i][0] not in bare])
    if not len(rest):
        return
    k = int(abs(rest.tags["offset"]).max(initial=0))
    for metric in (pm_k, drop, random_neighbour, conditional_robustness):
        whole_result, rest_result = metric(whole, k=k), metric(rest, k=k)
        assert (whole_result.value, whole_result.low, whole_result.high, whole_result.n) == (
            rest_result.value,
            rest_result.low,
            rest_result.high,
            rest_result.n,
        )
    assert accuracy(whole).value == accuracy(rest).value
    # without labels a frame counts whatever it shows
    assert self_consistency(whole).n == sets


def test_the_number_of_frames_without_a_label_is_reported():
    truths = [[0], [0], [], [], [1], [0], [0], [0]]
    predictions = table(**{**HAND, "truths": truths})
    assert pm_k(predictions).notes == (
        "1 set left out: the anchor has no label",
        "1 neighbour left out: no label",
    )
    assert accuracy(predictions).notes == ("1 left out: no label",)


def test_rows_in_any_order_give_the_same():
    order = np.random.default_rng(0).permutation(8)
    shuffled = table(**{key: [value[i] for i in order] for key, value in HAND.items()})
    for metric in (accuracy, pm_k, drop, random_neighbour, flip_rate):
        assert metric(shuffled) == metric(table(**HAND))


def test_samples_that_were_not_predicted_are_left_out_and_reported():
    errors = ["", "", "", "", "", "corrupt", "corrupt", ""]
    predictions = table(**HAND, errors=errors)
    assert accuracy(predictions).value == 1
    assert accuracy(predictions).notes == ("1 left out: no prediction",)
    assert pm_k(predictions).value == 1
    assert pm_k(predictions).notes == (
        "1 set left out: the anchor has no prediction",
        "1 neighbour left out: no prediction",
    )


def test_a_frame_in_two_sets_makes_one_pair():
    predictions = table(
        [[1, 0], [0, 1], [0, 1], [0, 1]],
        [[0]] * 4,
        ["a", "a", "b", "b"],
        [0, 1, 0, 1],
        video=["v"] * 4,
        frame=[5, 6, 6, 7],
    )
    flips = flip_rate(predictions)
    assert (flips.value, flips.n) == (1 / 2, 2)
    assert flips.interval.endswith("within this one video only")


def test_empty_input_has_no_value():
    predictions = table(np.zeros((0, 2)), [], np.zeros(0, dtype=str), np.zeros(0, dtype=int))
    for metric in (accuracy, pm_k, drop, random_neighbour, flip_rate):
        assert metric(predictions).value is None


def test_k_beyond_the_data_is_refused():
    with pytest.raises(UsageError, match="the data reach ±2; choose k from 0 to 2"):
        pm_k(table(**HAND), k=3)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(0, 6))
def test_pm_k_never_rises_and_starts_at_accuracy(seed, sets, k):
    rng = np.random.default_rng(seed)
    rows = [(g, o) for g in range(sets) for o in range(-k, k + 1) if o == 0 or rng.random() < 0.7]
    predictions = table(
        rng.random((len(rows), 3)),
        rng.integers(0, 3, (len(rows), 1)),
        [f"g{g}" for g, _ in rows],
        [o for _, o in rows],
    )
    values = [cell.value for cell in pm_k(predictions).cells]
    assert values[0] == accuracy(predictions).value
    assert all(a >= b for a, b in pairwise(values))
    assert drop(predictions).value == pytest.approx(values[0] - values[-1])


def test_a_set_of_two_anchors_is_refused():
    """Of a user's own source: the second anchor stood for both, and n was the number of groups."""
    columns = {"scores": np.eye(2)[[0, 0, 1]], "truths": [[0]] * 3, "groups": ["a", "b", "b"]}
    two = table(**columns, offsets=[0, 0, 0], video=["v"] * 3, frame=[4, 7, 9])
    for metric in (accuracy, pm_k, drop, self_consistency):
        with pytest.raises(UsageError, match="the set 'b' has two anchors, 's1' and 's2'; a set"):
            metric(two)
    # one that comes twice, as the last batch of a sampler may hold, is no second one
    again = table(**columns, offsets=[0, 0, 0], video=["v"] * 3, frame=[4, 7, 7])
    assert accuracy(again).n == 2
