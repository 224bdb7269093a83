"""How metrics of torchmetrics gather rows: references from the definitions, by brute force."""

import numpy as np
import pytest
import torch
from test_torch_metrics import compute_in_processes, give_images

from steadyeye.core.errors import UsageError
from steadyeye.metrics.pm_k_map import pm_k_map
from steadyeye.testing import example_detections

pytestmark = pytest.mark.usefixtures("torchvision")  # torchmetrics imports it


def draw_sets():
    """Twelve sets of five frames: preds, target, sets, offsets."""
    draws = np.random.default_rng(3)
    target = draws.integers(0, 3, 12).repeat(5)
    preds = np.where(draws.random(60) < 0.85, target, (target + 1) % 3)
    columns = (preds, target, np.arange(12).repeat(5), np.tile(np.arange(-2, 3), 12))
    return [torch.from_numpy(column) for column in columns]


def count_sets(preds, target, sets, offsets, k):
    """pm-k by its definition: anchors whose every frame within ±k is right."""
    right = [
        all(
            preds[i] == target[i]
            for i in range(len(preds))
            if sets[i] == s and abs(offsets[i]) <= k
        )
        for s in sorted({int(s) for s in sets})
    ]
    return sum(right) / len(right)


def count_flips(preds, videos, frames):
    """The flip rate by its definition: consecutive frames that have other classes."""
    classes = dict(zip(zip(videos, frames, strict=True), preds, strict=True))
    pairs = [(c, classes[v, f + 1]) for (v, f), c in classes.items() if (v, f + 1) in classes]
    return sum(a != b for a, b in pairs) / len(pairs)


@pytest.mark.parametrize("k", [0, 1, 2])
def test_rows_that_a_sampler_repeats_count_once(k):
    """As `DistributedSampler` repeats the first, so that all processes have equally many."""
    from steadyeye.torch_metrics import FlipRate, PmK

    columns = draw_sets()
    again = torch.cat([torch.arange(60), torch.arange(17), torch.tensor([2, 2])])
    metric = PmK(num_classes=3, k=k)
    metric.update(*(column[again] for column in columns))
    expected = count_sets(*(column.tolist() for column in columns), k)
    assert (metric.compute().item(), metric.result().n) == (pytest.approx(expected), 12)
    flips = FlipRate(num_classes=3)
    preds, _, videos, frames = columns
    flips.update(preds[again], videos[again], frames[again])
    expected = count_flips(preds.tolist(), videos.tolist(), frames.tolist())
    assert (flips.compute().item(), flips.result().n) == (pytest.approx(expected), 48)


def test_images_of_sets_that_a_sampler_repeats_count_once():
    from steadyeye.torch_metrics import FrameAP

    table, metric = example_detections(), FrameAP(num_classes=3, k=2)
    give_images(metric, table, np.arange(len(table)))
    give_images(metric, table, np.arange(9))
    assert metric.compute().item() == pytest.approx(pm_k_map(table, 2).value, abs=1e-12)
    assert metric.result().n == pm_k_map(table, 2).n


def test_batches_without_rows_change_nothing():
    from steadyeye.torch_metrics import FlipRate, FrameAP, PmK

    table, boxes = example_detections(), FrameAP(num_classes=3)
    boxes.update([], [], torch.tensor([]), torch.tensor([]))
    assert boxes.compute().isnan()
    give_images(boxes, table, np.arange(len(table)))
    boxes.update([], [])
    assert boxes.compute().item() == pytest.approx(pm_k_map(table).value, abs=1e-12)
    preds, target, sets, offsets = draw_sets()
    for metric, rows in (
        (PmK(num_classes=3), (preds, target, sets, offsets)),
        (FlipRate(num_classes=3), (preds, sets, offsets)),
    ):
        metric.update(*rows)
        expected = metric.compute().item()
        metric.reset()
        metric.update(torch.zeros(0, 3), *(torch.tensor([]) for _ in rows[1:]))
        assert metric.compute().isnan()
        metric.update(*rows)
        assert metric.compute().item() == expected


def test_a_step_gives_the_number_of_its_batch_or_none():
    """A batch of shuffled frames need not reach ±k: that is no error, and no reason for less."""
    from steadyeye.torch_metrics import FrameAP, PmK

    columns, metric = draw_sets(), PmK(num_classes=3, k=2)
    steps = [metric(*(column[rows] for column in columns)) for rows in np.split(np.arange(60), 20)]
    assert torch.stack(steps)[1].isnan()  # offsets 1, 2, −2 reach, and have no anchor
    assert metric.compute().item() == count_sets(*(column.tolist() for column in columns), 2)
    near = columns[3].abs() < 2
    short = PmK(num_classes=3, k=2)
    assert short(*(column[near] for column in columns)).isnan()
    with pytest.raises(UsageError, match="k=2, but the data reach ±1"):
        short.compute()
    box = {"boxes": torch.tensor([[0.0, 0, 9, 9]]), "labels": torch.tensor([0])}
    assert FrameAP(1, k=2)([box | {"scores": torch.ones(1)}], [box]) == 1


@pytest.mark.parametrize(("changes", "words"), [
    ({"preds": torch.tensor([0, 3])}, "preds has a class outside 0…2; give −1 where"),
    ({"preds": torch.tensor([0, -100])}, "preds has a class outside 0…2"),
    ({"target": torch.tensor([0.0, 0.5])}, "target has 0.5; give whole numbers"),
    ({"offsets": torch.tensor([0.0, 0.04])}, "offsets has 0.04; give whole numbers"),
    ({"videos": torch.tensor([0.0, float("nan")])}, "videos has nan; give whole numbers"),
    ({"sets": torch.tensor([0, 4096]).half()}, "sets is float16, which .* above 2,048; give int64"),
])  # fmt: skip
def test_numbers_that_are_not_whole_are_refused(changes, words):
    from steadyeye.torch_metrics import PmK

    rows = {"preds": torch.tensor([0, 1]), "target": [0, 1], "sets": [0, 0], "offsets": [0, 1]}
    metric = PmK(num_classes=3)
    with pytest.raises(UsageError, match=words):
        metric.update(**rows | changes)
    assert metric.compute().isnan(), "nothing of a refused batch stays"


def test_frames_in_seconds_are_refused():
    """They were rounded down, so that a video had one frame a second."""
    from steadyeye.torch_metrics import FlipRate

    with pytest.raises(UsageError, match=r"frames has 0\.04; give whole numbers"):
        FlipRate(3).update(torch.tensor([0, 1]), torch.zeros(2), torch.arange(2) / 25)


def test_half_precision_leaves_the_rows_exact():
    from steadyeye.torch_metrics import FlipRate

    preds, frames = torch.tensor([0, 1, 1, 1]), torch.arange(4) + 5000
    metric = FlipRate(num_classes=3).set_dtype(torch.float16).half()
    metric.update(torch.nn.functional.one_hot(preds, 3).half(), torch.zeros(4), frames)
    assert metric.set_dtype(torch.float16).compute().item() == pytest.approx(1 / 3)


def test_a_score_that_is_no_number_is_refused():
    from steadyeye.torch_metrics import FrameAP

    box = {"boxes": torch.tensor([[0.0, 0, 9, 9]]), "labels": torch.tensor([0])}
    with pytest.raises(UsageError, match=r"preds\[0\] has a score that is no number"):
        FrameAP(1).update([box | {"scores": torch.tensor([float("nan")])}], [box])


WORK = """
from test_torch_metrics import give_images
from test_torch_rows import draw_sets
from steadyeye.testing import example_detections
from steadyeye.torch_metrics import FlipRate, FrameAP, PmK

def work(rank, file, queue):
    torch.distributed.init_process_group(
        "gloo", init_method="file://" + file, rank=rank, world_size=3)
    sets, frames, boxes = metrics = PmK(3, k=2), FlipRate(3), FrameAP(3)
    preds, target, groups, offsets = draw_sets()
    none = torch.tensor([])
    if rank == 0:
        sets.update(preds, target, groups, offsets)
        frames.update(preds, groups, offsets)
        give_images(boxes, example_detections(), np.arange(len(example_detections())))
    if rank == 1:
        sets.update(torch.zeros(0, 3), none, none, none)
        frames.update(torch.zeros(0, 3), none, none)
        boxes.update([], [])
    queue.put([rank, *(metric.compute().item() for metric in metrics)])
    torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_processes_without_rows_have_the_number_of_the_others(tmp_path):
    """One has all rows, one an empty batch, one none: gloo ended the first, as types differed."""
    numbers = compute_in_processes(WORK, 3, tmp_path)
    preds, target, sets, offsets = (column.tolist() for column in draw_sets())
    expected = [
        count_sets(preds, target, sets, offsets, 2),
        count_flips(preds, sets, offsets),
        pm_k_map(example_detections()).value,
    ]
    assert [row[0] for row in numbers] == [0, 1, 2]
    for row in numbers:
        assert row[1:] == pytest.approx(expected, abs=1e-12)
