"""Bounds and alarms that are valid at any time, by simulation and against the definition."""

from math import log

import numpy as np
import pytest
from scipy.integrate import quad

from steadyeye.core.stats.confidence_sequence import (
    BETS,
    MISS,
    Alarm,
    RunningMean,
    add_evidence,
    boundary,
    log_mixture,
)
from steadyeye.core.stats.confidence_sequence import _rate as rate

DAY = 2_880
"""Blocks of 30 seconds."""


def add_all(values):
    mean = RunningMean()
    for value in values:
        mean = mean.add(float(value))
    return mean


@pytest.mark.parametrize(("excess", "spread"), [(1, 1), (5, 1), (3, 0.01), (20, 30), (0, 200)])
def test_the_mixture_is_the_integral_that_defines_it(excess, spread):
    """ψ(λ) = −ln(1 − λ) − λ, and 1 − λ is gamma distributed, cut off at 1."""

    def density(rest):
        return rest ** (rate() - 1) * np.exp(-rate() * rest)

    def integrand(rest):
        psi = -np.log(rest) - (1 - rest)
        return np.exp((1 - rest) * excess - psi * spread) * density(rest)

    expected = quad(integrand, 0, 1, limit=200)[0] / quad(density, 0, 1)[0]
    assert log_mixture(excess, spread) == pytest.approx(np.log(expected), rel=1e-6)


def test_the_interval_is_where_the_mixture_meets_its_level():
    values = np.random.default_rng(1).beta(1, 9, 400)
    mean = add_all(values)
    low, high = mean.interval
    assert low < mean.value < high
    assert high - mean.value == pytest.approx(mean.value - low)
    excess = (high - mean.value) * mean.n
    assert log_mixture(excess, mean.spread) == pytest.approx(log(2 / MISS))
    assert mean.value == pytest.approx(values.mean())
    assert RunningMean().interval is None
    assert RunningMean().value is None


def test_a_case_by_hand():
    """Two blocks, 0.2 and 0.6: predicted as 0.5, and as (0.5 + 0.2) ÷ 2."""
    mean = add_all([0.2, 0.6])
    assert mean.spread == pytest.approx(0.3**2 + 0.25**2)
    half_width = boundary(mean.spread, 0.025) / 2
    assert mean.interval == (max(0.4 - half_width, 0), min(0.4 + half_width, 1))


def measure_misses(paths, blocks, seed):
    """The share of paths in which the bounds are wrong at any time, of rates that change."""
    rng = np.random.default_rng(seed)
    wrong = 0
    for _ in range(paths):
        phase, size = rng.uniform(0, 6), rng.choice([2, 20])
        rates = 0.1 + 0.08 * np.sin(phase + np.arange(blocks) / 40)
        values = rng.binomial(size, rates) / size
        mean, sum_of_rates = RunningMean(), 0.0
        for value, expected in zip(values.tolist(), rates.tolist(), strict=True):
            mean, sum_of_rates = mean.add(value), sum_of_rates + expected
            if log_mixture(abs(mean.total - sum_of_rates), mean.spread) >= log(2 / MISS):
                wrong += 1
                break
    return wrong / paths


def test_bounds_of_a_rate_that_changes_hold_at_all_times():
    assert measure_misses(400, 400, seed=3) <= MISS


def count_alarms(values, limit, every):
    """The number of alarms in each stream of (t, streams) values, restarted after each."""
    evidence = np.zeros((len(BETS), values.shape[1]))
    alarms = np.zeros(values.shape[1], dtype=int)
    for row in values:
        evidence = add_evidence(evidence, row, limit)
        raised = evidence.mean(axis=0) >= every
        alarms += raised
        evidence[:, raised] = 0
    return alarms


WORST = {
    "all or nothing": lambda rng, shape: (rng.random(shape) < 0.05).astype(float),
    "of 20 frames": lambda rng, shape: rng.binomial(20, 0.05, shape) / 20,
    "always the same": lambda rng, shape: np.full(shape, 0.05),
}
"""Blocks whose rate is exactly the promised 5 %, so that each alarm is false."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", WORST)
def test_false_alarms_over_a_thousand_days_are_within_the_promise(kind):
    """One in 20 days at most: at most 50 are expected, and Poisson's 99.9 % quantile is 73."""
    draw = WORST[kind]
    rng = np.random.default_rng(4)
    alarms = sum(int(count_alarms(draw(rng, (DAY, 200)), 0.05, 20 * DAY).sum()) for _ in range(5))
    assert alarms <= 73, f"{alarms} alarms"


def test_many_short_promises_are_met_closely():
    """If alarms are frequent, their number is near the limit, and above it if they are due."""
    rng = np.random.default_rng(5)
    values = (rng.random((2_000, 300)) < 0.05).astype(float)
    alarms = count_alarms(values, 0.05, 40).sum()
    assert values.size / 40 / 4 < alarms <= values.size / 40
    # where the rate is above the limit, the same count is not kept
    values = (rng.random((2_000, 300)) < 0.1).astype(float)
    assert count_alarms(values, 0.05, 40).sum() > values.size / 40


def test_a_broken_promise_is_noticed_soon_even_after_a_good_year():
    alarm = Alarm(0.05, every=20 * DAY)
    for _ in range(DAY):
        alarm = alarm.add(0.01)
    assert not alarm.is_raised
    blocks = 0
    while not alarm.is_raised:
        blocks += 1
        alarm = alarm.add(0.25)
    assert blocks <= 10
    assert alarm.strength == 1
    assert alarm.add(0.01).n == 1, "it begins again"


def test_the_class_counts_as_the_simulation_does():
    values = (np.random.default_rng(6).random(3_000) < 0.06).astype(float)
    alarm, alarms = Alarm(0.05, 40), 0
    for value in values:
        alarm = alarm.add(float(value))
        alarms += alarm.is_raised
    assert alarms == count_alarms(values[:, None], 0.05, 40)[0] > 0
