"""The line through the user's own models: against numpy and scipy, and near 0 and 1."""

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import norm

from steadyeye.core.stats.intervals import Interval
from steadyeye.metrics.testbed.testbed_fit import LOGIT, PLAIN, PROBIT, fit
from steadyeye.report.comparison.own_line import (
    AnchorOutcomes,
    explain_no_line,
    fit_own_line,
    fit_own_lines,
)
from steadyeye.report.comparison.scatter import Cross, draw_own_line

VIDEOS = np.array([f"v{i:03d}" for i in range(100)])


def outcomes(counts, n=100):
    """Models right on the first anchors and steady on the first of these: (right, steady) each."""
    return [
        AnchorOutcomes(f"m{i}", np.arange(n) < right, np.arange(n) < steady)
        for i, (right, steady) in enumerate(counts)
    ]


@pytest.mark.parametrize(
    ("space", "scale"), [(PROBIT, norm.ppf), (LOGIT, logit), (PLAIN, lambda share: share)]
)
def test_the_line_is_that_of_polyfit(space, scale):
    counts = [(50, 30), (60, 45), (72, 50), (85, 71)]
    x, y = (scale(np.array(column) / 100) for column in zip(*counts, strict=True))
    slope, intercept = np.polyfit(x, y, 1)
    own = fit_own_line(outcomes(counts), VIDEOS, space)
    assert (own.line.slope, own.line.intercept) == pytest.approx((slope, intercept))
    back = {"probit": norm.cdf, "logit": lambda z: 1 / (1 + np.exp(-z)), "plain": lambda z: z}
    expected = back[space.name](intercept + slope * x)
    assert [d.expected for d in own.distances] == pytest.approx(expected.tolist())
    assert [d.value for d in own.distances] == pytest.approx(
        [c / 100 - e for (_, c), e in zip(counts, expected, strict=True)]
    )
    assert own.slope[0] < slope < own.slope[1]
    for item in own.distances:
        assert item.low <= item.value <= item.high
        assert item.n == 100


@pytest.mark.parametrize(("space", "scale"), [(PROBIT, norm.ppf), (LOGIT, logit)])
def test_a_line_that_leaves_the_axes_is_straight_to_its_ends(space, scale):
    counts = [(96, 36), (90, 14), (79, 2)]
    own = fit_own_line(outcomes(counts), VIDEOS, space)
    crosses = [
        Cross(f"m{i}", *(Interval(count / 100, 0.1, 0.9, 100, "by hand") for count in pair))
        for i, pair in enumerate(counts)
    ]
    *_, line = draw_own_line(own.line, crosses, 10, None).spec["layer"]
    x, y = (np.array([row[name] for row in line["data"]["values"]]) for name in "xy")
    assert np.diff(y) / np.diff(x) == pytest.approx(own.line.slope)
    assert y == pytest.approx(own.line.intercept + own.line.slope * x)
    assert x.min() < scale(0.79) < scale(0.96) < x.max()


def test_three_models_by_hand():
    """pm-k 0.1 below accuracy for two, level with it for the middle one: in plain space."""
    own = fit_own_line(outcomes([(40, 30), (60, 60), (80, 70)]), VIDEOS, PLAIN)
    assert own.line.slope == pytest.approx(1)
    assert own.line.intercept == pytest.approx(-0.2 / 3)
    assert [d.value for d in own.distances] == pytest.approx([-0.1 / 3, 0.2 / 3, -0.1 / 3])


def test_shares_of_0_and_1_count_as_half_an_anchor():
    counts = [(50, 0), (60, 45), (100, 71)]
    own = fit_own_line(outcomes(counts), VIDEOS, PROBIT)
    x = norm.ppf([0.5, 0.6, 0.995])
    slope, intercept = np.polyfit(x, norm.ppf([0.005, 0.45, 0.71]), 1)
    assert (own.line.slope, own.line.intercept) == pytest.approx((slope, intercept))
    assert own.moved == ("m0", "m2")
    assert own.distances[2].expected == pytest.approx(norm.cdf(intercept + slope * x[2]))
    numbers = [number for d in own.distances for number in (d.expected, d.value, d.low, d.high)]
    assert np.isfinite(numbers).all()


def test_a_report_without_a_line_gives_the_reason():
    assert "needs 3 models or more; there are 2 models" in explain_no_line(
        outcomes([(5, 4), (6, 5)])
    )
    assert "your models have 1 accuracy" in explain_no_line(outcomes([(50, 40)] * 3))
    assert "2 different accuracies" in explain_no_line(outcomes([(50, 40), (50, 30), (60, 20)]))
    assert "there are none" in explain_no_line(outcomes([(0, 0)] * 3, n=0))
    assert fit_own_lines(outcomes([(5, 4), (6, 5)]), VIDEOS) == ()
    own = fit_own_lines(outcomes([(50, 40), (60, 30), (70, 20)]), VIDEOS)
    assert [own_line.line.space.name for own_line in own] == ["probit", "logit"]


def test_few_videos_have_no_interval_and_one_video_says_so():
    few = fit_own_line(outcomes([(50, 30), (60, 45), (72, 50)]), np.repeat(["a", "b"], 50), PROBIT)
    assert few.slope is None
    assert few.distances[0].low is None
    assert few.method.startswith("none: 2 clusters are too few")
    single = fit_own_line(outcomes([(50, 30), (60, 45), (72, 50)]), np.repeat("a", 100), PROBIT)
    assert single.method.endswith("100 images, within this one video only")


def test_one_model_that_breaks_once_is_not_clearly_off_the_line():
    """Steady where all others are but for one anchor: a resample of these anchors is always so."""
    own = fit_own_line(outcomes([(50, 50), (60, 59), (70, 70), (80, 80)]), VIDEOS, PROBIT)
    assert own.distances[1].value < 0
    assert own.distances[1].high > 0


def test_equal_perturbed_shares_have_a_flat_line_without_r2():
    line = fit(np.array([0.5, 0.6, 0.7]), np.array([0.4, 0.4, 0.4]), LOGIT, 100)
    assert line.slope == pytest.approx(0, abs=1e-12)
    assert np.isnan(line.r2)
