"""The right sets of several pools, and of some minus others, by brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from steadyeye.core.stats.label_budget import (
    Pool,
    StratumCounts,
    bound_difference,
    count_ends,
    count_ends_any_time,
)


def pool(right, labelled, consistent, unknown=0, any_time=False):
    return Pool(StratumCounts(right, unknown, labelled, consistent), any_time)


@pytest.mark.parametrize("any_time", [False, True])
@pytest.mark.parametrize("sizes", [((7, 3), (5, 2)), ((6, 6), (4, 1)), ((9, 4), (3, 0))])
def test_the_ends_hold_every_truth_with_95_percent(sizes, any_time):
    """Every truth of two pools, every sample of each: the probability that both ends are right."""
    truths = [range(size + 1) for size, _ in sizes]
    rights = [range(labelled + 1) for _, labelled in sizes]
    for add in (True, False):
        ends = {}
        for right in product(*rights):
            pools = [
                pool(r, labelled, size, any_time=any_time)
                for r, (size, labelled) in zip(right, sizes, strict=True)
            ]
            ends[right] = bound_difference(pools) if add else bound_difference(pools[:1], pools[1:])
        for truth in product(*truths):
            value = sum(truth) if add else truth[0] - truth[1]
            chance = 0.0
            for right, (low, high) in ends.items():
                if low <= value <= high:
                    chance += np.prod(
                        [
                            hypergeom.pmf(r, size, t, labelled)
                            for r, t, (size, labelled) in zip(right, truth, sizes, strict=True)
                        ]
                    )
            assert chance >= 0.95 - 1e-9, (add, truth)


@given(st.data(), st.booleans())
def test_all_labelled_it_is_exact_and_without_labels_what_is_possible(data, any_time):
    sizes = data.draw(st.lists(st.integers(0, 30), min_size=2, max_size=4))
    right = [data.draw(st.integers(0, size)) for size in sizes]
    whole = [pool(r, s, s, any_time=any_time) for r, s in zip(right, sizes, strict=True)]
    value = sum(right[1:]) - right[0]
    assert bound_difference(whole[1:], whole[:1]) == (value, value)
    empty = [pool(0, 0, s, any_time=any_time) for s in sizes]
    assert bound_difference(empty[1:], empty[:1]) == (-sizes[0], sum(sizes[1:]))


def test_the_ends_of_a_single_pool_are_those_of_counting():
    assert bound_difference([pool(20, 30, 80)]) == count_ends(20, 30, 80)
    assert bound_difference([pool(20, 30, 80, any_time=True)]) == count_ends_any_time(20, 30, 80)
    # what nobody could tell counts for both ends, and an empty pool for none
    low, high = bound_difference([pool(20, 30, 80, unknown=4), pool(0, 0, 0)])
    assert low == count_ends(20, 30, 80)[0]
    assert high == count_ends(24, 30, 80)[1]
    # less error: wider
    assert count_ends(20, 30, 80, 0.001)[0] < count_ends(20, 30, 80)[0]
    assert count_ends_any_time(20, 30, 80, 0.001)[1] > count_ends_any_time(20, 30, 80)[1]
