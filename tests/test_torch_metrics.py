"""Metrics of torchmetrics: the numbers of a run on the same answers, in any batches and order."""

import numpy as np
import pytest
import torch

from steadyeye.core.errors import UsageError
from steadyeye.metrics.flip_rate import flip_rate
from steadyeye.metrics.pm_k import pm_k
from steadyeye.testing import example_predictions, example_video

pytestmark = pytest.mark.usefixtures("torchvision")  # torchmetrics imports it


def number(texts):
    return torch.from_numpy(np.unique(texts, return_inverse=True)[1])


def give_sets(metric, table, rows):
    """Gives the rows of a table of pm-sets to a metric."""
    metric.update(
        torch.from_numpy(table.scores[rows]),
        torch.from_numpy(table.truth.argmax(axis=1)[rows]),
        number(table.groups)[rows],
        torch.from_numpy(np.asarray(table.tags["offset"], dtype=np.int64))[rows],
        number(table.tags["video"])[rows],
    )


@pytest.mark.parametrize("k", [None, 0, 1, 2])
@pytest.mark.parametrize("size", [1, 7, 60])
def test_pm_k_is_that_of_the_run_in_any_batches_and_order(k, size):
    from steadyeye.torch_metrics import PmK

    table = example_predictions(margin=0.5)
    metric, expected = PmK(num_classes=3, k=k), pm_k(table, k)
    order = np.random.default_rng(size).permutation(len(table))
    for start in range(0, len(order), size):
        give_sets(metric, table, order[start : start + size])
    assert metric.compute().item() == expected.value
    found = metric.result()
    assert (found.low, found.high, found.n, found.classes) == (
        expected.low,
        expected.high,
        expected.n,
        expected.classes,
    )
    metric.reset()
    assert metric.compute().isnan()


def test_the_parts_of_two_processes_are_one():
    from steadyeye.torch_metrics import PmK

    table, whole = example_predictions(margin=0.5), PmK(num_classes=3)
    halves = [PmK(num_classes=3), PmK(num_classes=3)]
    for i in range(len(table)):
        give_sets(halves[i % 2], table, np.array([i]))
    give_sets(whole, table, np.arange(len(table)))
    # as torchmetrics does it after it gathered the states of all processes
    for name in whole.columns:
        parts = [torch.cat(getattr(half, name)) for half in halves]
        setattr(halves[0], name, torch.cat(parts))
    assert halves[0].compute() == whole.compute() == pm_k(table).value


def test_the_flip_rate_is_that_of_the_run():
    from steadyeye.torch_metrics import FlipRate

    table, metric = example_video(), FlipRate(num_classes=3)
    order = np.random.default_rng(0).permutation(len(table))
    for rows in np.array_split(order, 9):
        metric.update(
            torch.from_numpy(table.scores[rows]),
            number(table.groups)[rows],
            torch.from_numpy(np.asarray(table.tags["frame"], dtype=np.int64))[rows],
        )
    assert metric.compute().item() == flip_rate(table).value > 0


def test_a_row_without_a_number_was_not_predicted():
    from steadyeye.torch_metrics import FlipRate, PmK

    scores = torch.tensor([[1.0, 0.0], [float("nan"), 0.0], [1.0, 0.0]])
    flips = FlipRate(num_classes=2)
    flips.update(scores, torch.zeros(3), torch.arange(3))
    assert flips.compute().isnan()  # no two that are consecutive were predicted
    sets = PmK(num_classes=2)
    sets.update(scores, torch.zeros(3), torch.zeros(3), torch.tensor([-1, 0, 1]))
    assert sets.compute().isnan()  # the anchor has no answer


def test_the_first_of_equal_scores_is_the_answer():
    from steadyeye.torch_metrics import PmK

    metric = PmK(num_classes=3)
    metric.update(torch.tensor([[0.2, 0.4, 0.4]]), torch.tensor([1]), *torch.zeros(2, 1))
    assert metric.compute() == 1


@pytest.mark.parametrize(
    ("preds", "target", "sets", "message"),
    [
        (torch.zeros(2, 4), torch.zeros(2), torch.zeros(2), r"preds has the shape \(2, 4\); give"),
        (torch.zeros(2), torch.zeros(2), torch.zeros(2), r"preds has the shape \(2,\); give"),
        (torch.zeros(2, 3), torch.zeros(2), torch.zeros(3), "sets has 3 rows, preds 2; give one"),
        (torch.zeros(2, 3), torch.tensor([0, 3]), torch.zeros(2), "a class outside 0…2"),
    ],
)
def test_rows_that_do_not_fit_are_refused_in_one_line(preds, target, sets, message):
    from steadyeye.torch_metrics import PmK

    with pytest.raises(UsageError, match=message):
        PmK(num_classes=3).update(preds, target, sets, torch.zeros(2))
