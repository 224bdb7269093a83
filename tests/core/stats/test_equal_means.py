"""Whether two means are equal, also for models that fail on different videos."""

import numpy as np
import pytest

from steadyeye.core.stats.paired import chance_of_equal_means, difference, prepare_outcomes
from steadyeye.core.stats.trials import Trials


def test_equal_means_are_tested_by_gaffkes_definition():
    rng = np.random.default_rng(0)
    videos = np.repeat([f"v{i:02d}" for i in range(12)], 10)
    first = rng.random(120) < 0.9
    second = first & (rng.random(120) < 0.5)
    pair = [prepare_outcomes(Trials(success, videos)) for success in (first, second)]
    # the lead of each video, from -1 to 1 on 0…1, and one video not seen, of all that is possible
    lead = (first.astype(float) - second).reshape(12, 10).mean(axis=1)
    shares = np.append((1 + lead) / 2, 0.0)
    weights = rng.dirichlet(np.ones(13), 100_000)
    expected = 2 * np.mean(weights @ shares <= 0.5)
    plain = difference(*pair)
    p = chance_of_equal_means(*pair, plain.p)
    assert p == pytest.approx(expected, abs=0.003)
    assert p > plain.p
    assert chance_of_equal_means(*pair[::-1], plain.p) == pytest.approx(p)


def test_equal_means_of_samples_that_stand_for_themselves_are_tested_as_they_are():
    videos = np.array([f"v{i:02d}" for i in range(30)])
    first, second = np.arange(30) < 25, np.arange(30) < 12
    pair = [prepare_outcomes(Trials(success, videos)) for success in (first, second)]
    plain = difference(*pair)
    assert chance_of_equal_means(*pair, plain.p) == plain.p
