"""Accuracy over frames of videos without pm-sets: the interval is over the videos."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from steadyeye.maite_metrics import MaiteMetric
from steadyeye.metrics.accuracy import accuracy
from steadyeye.testing import example_predictions

CAT, DOG = np.eye(2)


def measure(right, videos=None):
    """Accuracy of frames in no set; `right`: of each whether it is, `videos`: which it is of."""
    metric = MaiteMetric("accuracy", ["cat", "dog"])
    answers = [CAT if is_right else DOG for is_right in right]
    about = [{}] * len(right) if videos is None else [{"video": video} for video in videos]
    metric.update(answers, [CAT] * len(right), about)
    return metric.result()


def test_frames_of_a_video_that_are_all_alike_are_one_trial():
    """Ten videos of thirty frames, nine right throughout: Clopper and Pearson's of nine in ten."""
    right = np.repeat([True] * 9 + [False], 30)
    result = measure(right, np.repeat([f"v{i}" for i in range(10)], 30))
    assert result.n == 300
    assert result.low == pytest.approx(beta.ppf(0.025, 9, 2), abs=2e-3)
    assert result.high == pytest.approx(beta.ppf(0.975, 10, 1), abs=2e-3)


def test_images_without_a_video_stand_for_themselves():
    result = measure([True] * 9 + [False])
    assert result.low == pytest.approx(beta.ppf(0.025, 9, 2))
    assert result.high == pytest.approx(beta.ppf(0.975, 10, 1))


def test_of_one_video_it_says_so():
    assert "within this one video only" in measure([True, False, True, True], ["v"] * 4).interval


def test_frames_without_a_set_have_the_interval_of_the_same_frames_as_anchors():
    """Each frame the anchor of a set of its own is the same sample of the same videos."""
    table = example_predictions(margin=0.5)
    n = len(table)
    alone = {name: tag for name, tag in table.tags.items() if name != "offset"}
    of_sets = replace(
        table,
        groups=np.arange(n).astype(np.str_),
        tags={**alone, "offset": np.zeros(n, dtype=np.int64)},
    )
    expected, result = accuracy(of_sets), accuracy(replace(table, tags=alone))
    assert (result.value, result.low, result.high) == (expected.value, expected.low, expected.high)
    assert result.interval == expected.interval
