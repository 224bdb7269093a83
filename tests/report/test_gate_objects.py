"""Requirements for metrics without a paired difference, such as those of objects."""

import re
from dataclasses import replace

import numpy as np
import pytest
from test_gate import judged

from steadyeye import testing
from steadyeye.core.boxes import take_where
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.core.stats import bounded_means
from steadyeye.metrics.blink_rate import blink_rate
from steadyeye.report.gate import FAILS, HOLDS, OPEN, Tolerance, gate


@pytest.mark.parametrize(("number", "outcome"), [("10%", FAILS), ("20%", OPEN), ("90%", HOLDS)])
def test_a_blink_rate_is_judged_by_its_bound(number, outcome):
    """Of one that is not certain the whole gate was an error."""
    table = testing.example_tracks()
    result = blink_rate(table)
    assert 0.1 < result.value < 0.2 < result.high < 0.9
    (verdict,) = judged(table, f"blink_rate <= {number}")
    assert (verdict.outcome, verdict.n) == (outcome, result.n)
    assert (verdict.value, verdict.low, verdict.high) == (result.value, result.low, result.high)
    needed = re.search(r"about ([\d,]+) videos would be needed; there are 2", verdict.why)
    assert bool(needed) is (outcome == OPEN)
    if needed:
        lost, frames = vars(blink_rate)["outcomes"](table).parts
        parts = [part.reshape(2, -1).sum(axis=1) for part in (lost, frames)]
        copies = int(needed[1].replace(",", "")) // 2
        for many, is_enough in ((copies + 1, True), (int(0.95 * copies), False)):
            ends = bounded_means.intervals(*(np.tile(part, many)[None] for part in parts))
            assert bool(ends[1][0] <= 0.2) is is_enough


def test_a_rate_without_a_value_is_not_certain():
    """Of footage without objects: its parts have no value either, so it is one number."""
    table = testing.example_tracks()
    (verdict,) = judged(table, "blink_rate(score=0.999) <= 5%")
    assert blink_rate(table, 0.999).value is None
    assert (verdict.outcome, verdict.why) == (OPEN, "the value has no interval")


def test_a_base_needs_a_paired_difference():
    table = testing.example_tracks()
    with pytest.raises(UsageError, match="detection_delay is not comparable between models"):
        gate([table], [], [table], Tolerance((Spec("detection_delay"),), 0.02))


def test_a_blink_rate_is_judged_against_a_base():
    table = testing.example_tracks()
    raw = table.raw_detections
    losing = replace(table, raw_detections=take_where(raw, raw.image % 7 > 0))
    (verdict,) = gate([losing], [], [table], Tolerance((Spec("blink_rate"),), 0.02))
    gap = blink_rate(table).value - blink_rate(losing).value
    assert verdict.value == pytest.approx(gap)
    assert gap < -0.02
    assert verdict.outcome == FAILS
