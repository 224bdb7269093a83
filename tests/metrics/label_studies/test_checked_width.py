"""A study with checks of its premise that stops at a width: coverage, by the definition."""

from itertools import product
from math import perm

import pytest
from test_premise_checks import STATED, check, without_truth

from steadyeye import testing
from steadyeye.metrics.label_studies.judge import judge
from steadyeye.metrics.label_studies.question import parse_question
from steadyeye.metrics.label_studies.study import StopRule, plan_study


def plan(sets, premise, target):
    table = without_truth(testing.example_predictions(sets, 1, 0.7))
    stop = StopRule(target=target)
    return plan_study(table, parse_question("pm_k(k=2)"), premise, stop=stop)


def follow(study):
    """(labelled, right, checked, doubtful) → how many ways of answers end there; its interval.

    Every way that people can answer, one set after the other, until the study has enough.
    """
    ways, ends, total = {(0, 0, 0, 0): (1, {})}, {}, len(study.sets)
    for name in (None, *study.order):
        if name is not None:
            ways = _answer_next(study, ways, name)
        for counts, (number, labels) in list(ways.items()):
            result = judge(study, labels)
            if result.enough:
                share = result.interval
                ends[counts] = number, share.low * total, share.high * total
                del ways[counts]
    assert not ways
    return ends


def _answer_next(study, ways, name):
    """What may be there after one more answer: with the labels of one of the ways to it."""
    grown = {}
    for (labelled, right, checked, doubtful), (number, labels) in ways.items():
        for yes in (False, True):
            if name in study.checks:
                counts = labelled, right, checked + 1, doubtful + yes
                classes = () if yes else ("another",)
            else:
                counts = labelled + 1, right + yes, checked, doubtful
                classes = study.answers[name] if yes else ("another",)
            before, _ = grown.get(counts, (0, None))
            grown[counts] = before + number, {**labels, name: classes}
    return grown


def miss(ends, pool, truth, also_right):
    """How often the interval at the end leaves the truth out: drawing without replacement.

    `pool`, `truth`: (candidates, exempt sets), and how many of them are right, or may count.
    `also_right`: how many of the latter do.
    """
    (candidates, exempt), (right, broken) = pool, truth
    missed = every = 0.0
    for (n, s, m, d), (number, low, high) in ends.items():
        of_labels = perm(right, s) * perm(candidates - right, n - s) / perm(candidates, n)
        of_checks = perm(broken, d) * perm(exempt - broken, m - d) / perm(exempt, m)
        chance = number * of_labels * of_checks
        every += chance
        missed += chance * (not low - 1e-9 <= right + also_right <= high + 1e-9)
    assert every == pytest.approx(1)
    return missed


def find_worst(study):
    """The largest chance of a miss over all truths, and where sets that break the premise count."""
    pool, ends = (study.countable, study.exempt), follow(study)
    worst = of_broken = 0.0
    for right, broken in product(range(pool[0] + 1), range(pool[1] + 1)):
        for also_right in range(broken + 1):
            missed = miss(ends, pool, (right, broken), also_right)
            worst = max(worst, missed)
            of_broken = max(of_broken, missed if also_right else 0.0)
    return worst, of_broken, min(n + m for n, _, m, _ in ends)


@pytest.mark.slow
@pytest.mark.parametrize(("sets", "checks", "target"), [(24, 4, 0.2), (24, 8, 0.3)])
def test_the_interval_at_the_target_width_covers_95_percent(sets, checks, target):
    """Every number of right sets, of those that break the premise, and of right ones among them."""
    study = plan(sets, check(checks), target)
    assert study.exempt >= len(study.checks) == checks
    worst, _, earliest = find_worst(study)
    assert worst <= 0.05 + 1e-12
    assert earliest < len(study.order)


def test_without_checks_it_leaves_out_sets_that_break_the_premise():
    worst, of_broken, _ = find_worst(plan(24, STATED, 0.2))
    assert worst == of_broken > 0.9
