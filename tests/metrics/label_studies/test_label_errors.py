"""The interval with some labels wrong, against every sample and every choice of wrong labels."""

from itertools import combinations

import numpy as np
import pytest

from steadyeye.core.stats.intervals import Interval
from steadyeye.core.stats.label_budget import count_ends
from steadyeye.review.studies.study_summary import widen_for_errors

SETS = 10


def count_share(right, labelled, consistent, sets):
    """The interval of the share of all sets, every label taken to be right."""
    low, high = count_ends(right, labelled, consistent)
    value = right / labelled * consistent / sets
    return Interval(value, low / sets, high / sets, labelled, "hypergeometric")


@pytest.mark.parametrize("consistent", [5, 7])
@pytest.mark.parametrize("labelled", [3, 4])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_interval_covers_every_pool_and_every_choice_of_wrong_labels(
    consistent, labelled, number
):
    """Of each pool, and each choice of wrong labels in it, in 95 % or more of all samples."""
    share, unchanged = number / consistent, []
    for right in range(consistent + 1):
        truth = np.arange(consistent) < right
        for wrong in combinations(range(consistent), number):
            labels = truth.copy()
            labels[list(wrong)] ^= True
            inside, plainly = [], []
            for sample in combinations(range(consistent), labelled):
                count = int(labels[list(sample)].sum())
                plain = count_share(count, labelled, consistent, SETS)
                low, high = widen_for_errors(plain, share, consistent, SETS)
                assert 0 <= low <= plain.low <= plain.high <= high <= consistent / SETS
                inside.append(low - 1e-9 <= right / SETS <= high + 1e-9)
                plainly.append(plain.low - 1e-9 <= right / SETS <= plain.high + 1e-9)
            assert np.mean(inside) >= 0.95
            unchanged.append(np.mean(plainly))
    # the interval that takes every label to be right would not do
    assert (min(unchanged) < 0.95) == (number > 0)


def test_with_all_labels_it_is_as_wide_as_the_wrong_ones_allow():
    exact = count_share(30, 60, 60, 100)
    assert exact.low == exact.high
    assert widen_for_errors(exact, 0.0, 60, 100) == (0.3, 0.3)
    assert widen_for_errors(exact, 0.1, 60, 100) == pytest.approx((0.24, 0.36))
    # no label can make more sets count than are consistent, or fewer than none
    assert widen_for_errors(exact, 0.9, 60, 100) == (0.0, 0.6)
    empty = Interval(0.0, 0.0, 0.0, 0, "none")
    assert widen_for_errors(empty, 0.2, 0, 100) == (0.0, 0.0)
