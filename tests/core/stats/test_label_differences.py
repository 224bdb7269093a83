"""The difference of two models from a few labels: every small pool in every order."""

from collections import Counter
from functools import cache
from itertools import combinations_with_replacement, product
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyeye.core.stats.label_differences import (
    EITHER,
    FIRST,
    SECOND,
    DrawnSets,
    bound_sum,
    estimate_sum,
    find_first_clear,
)

WORTH = {FIRST: (0, 1), SECOND: (-1, 0), EITHER: (-1, 0, 1)}
EXPECTED = {FIRST: 0.7, SECOND: -0.7, EITHER: 0.0}
SETS = tuple((kind, value) for kind, values in WORTH.items() for value in values)
"""All possible sets, with their values."""


def draw(sets, sizes):
    return DrawnSets(tuple(v for _, v in sets), tuple(k for k, _ in sets), sizes)


def count_kinds(sets):
    counts = Counter(kind for kind, _ in sets)
    return counts[FIRST], counts[SECOND], counts[EITHER]


@cache
def find_capital(sets, sizes, null):
    """The capital after some labels, from the definition; None if they rule the null out."""
    stakes = [1.4 / 2 ** (half / 2) for half in range(12)]
    capitals, rest, total = [1.0] * 12, dict(enumerate(sizes)), null
    for kind, value in (*sets, (None, 0)):
        pool = [k for k, number in rest.items() for _ in range(number)]
        if not sum(WORTH[k][0] for k in pool) <= total <= sum(WORTH[k][-1] for k in pool):
            return None
        if kind is None:
            return sum(capitals) / 12
        # what is left, beyond what was expected of it, is so much on average
        mean = (total - sum(EXPECTED[k] for k in pool)) / len(pool)
        lowest = min(WORTH[k][0] - EXPECTED[k] for k in pool)
        for place, stake in enumerate(stakes):
            safe = min(stake, 0.95 / (mean - lowest)) if mean - lowest > 1e-9 else stake
            capitals[place] *= 1 + safe * (value - EXPECTED[kind] - mean)
        rest[kind] -= 1
        total -= value
    return None


def reverse(sets, sizes):
    turned = {FIRST: SECOND, SECOND: FIRST, EITHER: EITHER}
    return tuple((turned[k], -v) for k, v in sets), (sizes[1], sizes[0], sizes[2])


@cache
def find_low(sets, sizes, error):
    """The smallest sum that no bet rules out, of all that there can be."""
    nulls = range(-sum(sizes), sum(sizes) + 1)
    capitals = {null: find_capital(sets, sizes, null) for null in nulls}
    possible = {null: capital for null, capital in capitals.items() if capital is not None}
    return min((null for null, c in possible.items() if c < 1 / error), default=max(possible))


def find_ends(sets, sizes, error):
    low, high = find_low(sets, sizes, error), -find_low(*reverse(sets, sizes), error)
    return min(low, high), max(low, high)


def list_orders(pool):
    """Every distinct order of the sets of a pool."""
    if not pool:
        yield ()
    for first in set(pool):
        rest = list(pool)
        rest.remove(first)
        for order in list_orders(tuple(rest)):
            yield (first, *order)


@pytest.mark.parametrize("error", [0.025, 0.3])
def test_every_small_pool_in_every_order_is_bounded_as_defined(error):
    """Equal to the definition, wrong no more often than stated, exact when all are labelled."""
    looks, size = Counter(), 3
    for pool in combinations_with_replacement(SETS, size):
        sizes, truth, orders = count_kinds(pool), sum(v for _, v in pool), list(list_orders(pool))
        missed = wrong = 0
        for order in orders:
            ends = []
            for number in range(size + 1):
                draws = draw(order[:number], sizes)
                ends.append(bound_sum(draws, draws, error))
                assert ends[-1] == find_ends(order[:number], sizes, error), order[:number]
            missed += any(not low <= truth <= high for low, high in ends)
            clear = [n for n, (low, high) in enumerate(ends) if low > 0 or high < 0]
            draws = draw(order, sizes)
            assert find_first_clear(draws, draws, error) == (clear[0] if clear else None)
            if clear:
                wrong += truth <= 0 if ends[clear[0]][0] > 0 else truth >= 0
            assert ends[-1] == (truth, truth)
            looks[bool(clear)] += 1
        # a fair bet: on average over all orders the capital against the truth stays what it was
        for number in range(size + 1):
            capitals = [find_capital(order[:number], sizes, truth) for order in orders]
            assert np.mean(capitals) == pytest.approx(1)
        assert missed <= 2 * error * len(orders)
        assert wrong <= 2 * error * len(orders)
    assert min(looks.values()) > 50


@pytest.mark.slow
@pytest.mark.parametrize(("most", "error"), [(8, 0.025), (6, 0.4)])
def test_each_end_of_every_pool_of_up_to_eight_sets_errs_as_rarely_as_it_says(most, error):
    """All settings and all orders, from the definition, many orders at once."""
    worst = 0.0
    for size in range(1, most + 1):
        for pool in combinations_with_replacement(SETS, size):
            if bound_capital(pool).mean() < 1 / error:
                continue  # no order ever errs
            chance = find_chance_of_error(pool, error)
            assert chance <= error, pool
            worst = max(worst, chance)
    # a rule that never says anything would pass too
    assert error < 0.1 or worst > 0.05


@cache
def bound_capital(pool):
    """(12,) the largest capital of each bet against the sum of a pool, over all orders and looks.

    Mean and stakes depend only on the remaining sets, so that pools share the rest.
    """
    gains = [value - EXPECTED[kind] for kind, value in pool]
    lowest = min((WORTH[kind][0] - EXPECTED[kind] for kind, _ in pool), default=0)
    most, mean = np.ones(12), sum(gains) / max(len(pool), 1)
    stakes = np.minimum(1.4 / 2 ** (np.arange(12) / 2), 0.95 / max(mean - lowest, 1e-9))
    for place, gain in enumerate(gains):
        if pool.index(pool[place]) == place:
            rest = bound_capital(pool[:place] + pool[place + 1 :])
            most = np.maximum(most, (1 + stakes * (gain - mean)) * rest)
    return most


def test_no_order_errs_below_the_bound():
    for size in range(1, 5):
        for pool in combinations_with_replacement(SETS, size):
            bound = bound_capital(pool).mean()
            assert find_chance_of_error(pool, 1 / (bound + 1e-9)) == 0
    # and the bound is no wild one: with one bet, the capital of the best order
    pool = ((FIRST, 1), (FIRST, 0), (FIRST, 0))
    orders = list(list_orders(pool))
    capitals = [find_capital(order[:n], (3, 0, 0), 1) for order in orders for n in range(4)]
    assert max(capitals) == pytest.approx(bound_capital(pool).mean(), rel=0.05)


def find_chance_of_error(pool, error):
    """The share of all orders of a pool in which the capital against its sum is ever 1 ÷ error."""
    counts, sizes = Counter(pool), count_kinds(pool)
    members, total = list(counts), sum(v for _, v in pool)
    # a state is how often each member came: the mean and the stakes depend on nothing else
    states = {(0,) * len(members): (np.ones((1, 12)), np.ones(1))}
    error_chance = 0.0
    for _ in range(len(pool)):
        following = {}
        for state, (capitals, chances) in states.items():
            left = [counts[m] - n for m, n in zip(members, state, strict=True)]
            kinds = [m[0] for m, n in zip(members, left, strict=True) for _ in range(n)]
            sum_left = total - sum(m[1] * n for m, n in zip(members, state, strict=True))
            mean = (sum_left - sum(EXPECTED[k] for k in kinds)) / len(kinds)
            lowest = min(WORTH[k][0] - EXPECTED[k] for k in kinds)
            stakes = 1.4 / 2 ** (np.arange(12) / 2)
            stakes = np.minimum(stakes, 0.95 / max(mean - lowest, 1e-9))
            for place, (kind, value) in enumerate(members):
                if left[place]:
                    after = capitals * (1 + stakes * (value - EXPECTED[kind] - mean))
                    own = chances * left[place] / len(kinds)
                    is_wrong = after.mean(axis=1) >= 1 / error
                    error_chance += own[is_wrong].sum()
                    name = tuple(n + (p == place) for p, n in enumerate(state))
                    following.setdefault(name, []).append((after[~is_wrong], own[~is_wrong]))
        states = {
            name: tuple(np.concatenate(parts) for parts in zip(*several, strict=True))
            for name, several in following.items()
        }
    assert sizes == count_kinds(pool)
    orders = factorial(len(pool)) / prod(map(factorial, counts.values()))
    assert error_chance == pytest.approx(round(error_chance * orders) / orders)
    return error_chance


@st.composite
def draw_pools(draw_one, most=40):
    """A pool, in an order, and how many are labelled."""
    pool = draw_one(st.lists(st.sampled_from(SETS), min_size=1, max_size=most))
    return tuple(pool), draw_one(st.integers(0, len(pool)))


@given(draw_pools(), st.data())
@settings(max_examples=60, deadline=None)
def test_a_label_worth_more_never_moves_an_end_down(pool_of, data):
    pool, number = pool_of
    sizes, labelled = count_kinds(pool), list(pool[:number])
    before = bound_sum(draw(labelled, sizes), draw(labelled, sizes))
    assert before == find_ends(tuple(labelled), sizes, 0.025)
    if labelled:
        place = data.draw(st.integers(0, number - 1))
        kind, value = labelled[place]
        labelled[place] = kind, data.draw(st.sampled_from([v for v in WORTH[kind] if v >= value]))
    after = bound_sum(draw(labelled, sizes), draw(labelled, sizes))
    assert after[0] >= before[0]
    assert after[1] >= before[1]


@given(draw_pools())
@settings(max_examples=60, deadline=None)
def test_a_set_nobody_can_label_is_the_worst_for_either_end(pool_of):
    pool, number = pool_of
    sizes, labelled = count_kinds(pool), pool[:number]
    unknown = {place for place in range(number) if place % 3 == 1}
    ends = [
        bound_sum(*[draw(some, sizes)] * 2)
        for some in product(
            *[
                [(k, w) for w in WORTH[k]] if place in unknown and place < 9 else [(k, v)]
                for place, (k, v) in enumerate(labelled)
            ]
        )
    ]
    worst = [
        [
            (k, WORTH[k][side] if place in unknown and place < 9 else v)
            for place, (k, v) in enumerate(labelled)
        ]
        for side in (0, -1)
    ]
    least, most = (draw(some, sizes) for some in worst)
    assert bound_sum(least, most) == (min(low for low, _ in ends), max(high for _, high in ends))


@given(draw_pools(most=60))
@settings(max_examples=40, deadline=None)
def test_the_models_exchanged_the_ends_change_sign(pool_of):
    pool, number = pool_of
    draws = draw(pool[:number], count_kinds(pool))
    low, high = bound_sum(draws, draws)
    turned = draws.exchange_models()
    assert bound_sum(turned, turned) == (-high, -low)
    assert turned.exchange_models() == draws
    assert find_first_clear(turned, turned) == find_first_clear(draws, draws)


def test_the_first_clear_look_is_that_of_the_ends():
    rng = np.random.default_rng(5)
    several = set()
    for _ in range(6):
        pool = make_pool(rng, (20, 15, 10), (0.9, 0.4, 0.5, 0.2))
        sizes = count_kinds(pool)
        looks = [draw(pool[:number], sizes) for number in range(len(pool) + 1)]
        ends = [bound_sum(look, look) for look in looks]
        clear = [n for n, (low, high) in enumerate(ends) if low > 0 or high < 0]
        assert find_first_clear(looks[-1], looks[-1]) == (clear[0] if clear else None)
        several |= set(clear[:1])
    assert len(several) > 2


def make_pool(rng, sizes, shares):
    """Sets in a random order; `shares` right: of either kind alone, and of both kinds together."""
    first, second, better, worse = shares
    kinds = np.repeat([FIRST, SECOND, EITHER], sizes)
    among = np.concatenate([np.arange(size) / size for size in sizes if size])
    values = np.select(
        [kinds == FIRST, kinds == SECOND, among < better, among < better + worse],
        [among < first, -(among < second).astype(int), 1, -1],
        0,
    )
    order = rng.permutation(len(kinds))
    return tuple(zip(kinds[order].tolist(), values[order].tolist(), strict=True))


def test_nothing_is_known_without_labels_and_of_no_sets():
    assert bound_sum(draw((), (3, 2, 5)), draw((), (3, 2, 5))) == (-7, 8)
    nothing = draw((), (0, 0, 0))
    assert bound_sum(nothing, nothing) == (0, 0)
    assert find_first_clear(nothing, nothing) is None


def test_the_estimate_is_unbiased():
    pool = ((FIRST, 1), (FIRST, 0), (SECOND, -1), (EITHER, 1), (EITHER, -1), (EITHER, 0))
    sizes = count_kinds(pool)
    orders = list(list_orders(pool))
    for number in (1, 2, 5, 6):
        means = [
            estimate_sum([v for _, v in o[:number]], [k for k, _ in o[:number]], sizes)
            for o in orders
        ]
        assert np.mean(means) == pytest.approx(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "shares"),
    [
        ((80, 80, 40), (0.8, 0.8, 0.4, 0.4)),
        ((100, 100, 0), (0.98, 0.98, 0, 0)),
    ],
)
def test_studies_of_200_sets_rarely_err_at_any_label(sizes, shares):
    """A pool without a difference: how often is one found, and is the sum ever outside?"""
    rng = np.random.default_rng(1)
    errors = outside = 0
    studies = 500
    for _ in range(studies):
        pool = make_pool(rng, sizes, shares)
        assert sum(v for _, v in pool) == 0
        draws = draw(pool, sizes)
        errors += find_first_clear(draws, draws) is not None
        some = draw(pool[: rng.integers(1, 200)], sizes)
        low, high = bound_sum(some, some)
        outside += not low <= 0 <= high
    assert outside <= errors <= 0.05 * studies
    assert errors > 0


def test_logarithms_do_not_lose_what_products_have():
    pool = make_pool(np.random.default_rng(3), (60, 10, 10), (0.95, 0.2, 0.5, 0.1))
    sizes = count_kinds(pool)
    for number in (1, 20, 60):
        ends = find_ends(pool[:number], sizes, 0.025)
        assert bound_sum(draw(pool[:number], sizes), draw(pool[:number], sizes)) == ends
