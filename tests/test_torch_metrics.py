"""Metrics of torchmetrics: the numbers of a run on the same predictions, in any batches."""

import sys

import numpy as np
import pytest
import torch
from forked import Command

from steadyeye.core.boxes import select
from steadyeye.core.errors import UsageError
from steadyeye.metrics.flip_rate import flip_rate
from steadyeye.metrics.map import map as mean_ap
from steadyeye.metrics.pm_k import pm_k
from steadyeye.metrics.pm_k_map import pm_k_map
from steadyeye.testing import example_detections, example_predictions, example_video

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
    result = metric.result()
    assert (result.low, result.high, result.n, result.classes) == (
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


def give_images(metric, table, rows, with_sets=True):
    """Gives images of a table with boxes to a metric, as torchvision has them."""
    entries = {"preds": table.detections, "target": table.boxes}
    lists = {name: [] for name in entries}
    for name, boxes in entries.items():
        for row in rows.tolist():
            part = select(boxes, np.array([row]))
            entry = {"boxes": torch.from_numpy(part.boxes), "labels": torch.from_numpy(part.label)}
            if name == "preds":
                entry["scores"] = torch.from_numpy(part.score)
            else:
                entry |= {"iscrowd": torch.from_numpy(part.crowd)}
                entry |= {"area": torch.from_numpy(part.area)}
            lists[name].append(entry)
    tags = {}
    if with_sets:
        tags["sets"] = number(table.groups)[rows]
        tags["offsets"] = torch.from_numpy(np.asarray(table.tags["offset"], dtype=np.int64))[rows]
        tags["videos"] = number(table.tags["video"])[rows]
    metric.update(lists["preds"], lists["target"], **tags)


@pytest.mark.parametrize("k", [None, 0, 1, 2])
@pytest.mark.parametrize("iou", [0.5, "coco"])
def test_frame_ap_is_that_of_the_run_in_any_batches_and_order(k, iou):
    from steadyeye.torch_metrics import FrameAP

    table = example_detections()
    metric, expected = FrameAP(num_classes=3, k=k, iou=iou), pm_k_map(table, k, iou)
    order = np.random.default_rng(0).permutation(len(table))
    for rows in np.array_split(order, 17):
        give_images(metric, table, rows)
    result = metric.result()
    assert metric.compute().item() == result.value == pytest.approx(expected.value, abs=1e-12)
    assert result.n == expected.n
    assert result.low == pytest.approx(expected.low, abs=0.02), "another order draws other videos"
    metric.reset()
    assert metric.compute().isnan()


def test_frame_ap_without_sets_is_the_map_of_all_images():
    from steadyeye.torch_metrics import FrameAP

    table = example_detections()
    anchors = np.flatnonzero(np.asarray(table.tags["offset"]) == 0)
    metric = FrameAP(num_classes=3, iou="coco")
    for rows in np.array_split(anchors, 7):
        give_images(metric, table, rows, with_sets=False)
    assert metric.compute().item() == pytest.approx(mean_ap(table, "coco").value, abs=1e-12)


def test_images_without_boxes_and_crowds_count_as_in_torchmetrics():
    """One without detections, one without objects, one crowd; against torchmetrics' own mAP."""
    from torchmetrics.detection import MeanAveragePrecision

    from steadyeye.torch_metrics import FrameAP

    box, none = torch.tensor([[0.0, 0, 10, 10]]), torch.zeros(0, 4)
    label, score = torch.tensor([1]), torch.tensor([0.5])
    empty = torch.zeros(0, dtype=torch.int64)
    preds = [
        {"boxes": none, "scores": torch.zeros(0), "labels": empty},
        {"boxes": box, "scores": score + 0.2, "labels": label},
        {"boxes": box, "scores": score, "labels": label},
        {"boxes": box + 1, "scores": score + 0.1, "labels": label},
    ]
    target = [
        {"boxes": box, "labels": label},
        {"boxes": none, "labels": empty},
        {"boxes": box, "labels": label, "iscrowd": torch.tensor([1])},
        {"boxes": box, "labels": label},
    ]
    metric = FrameAP(num_classes=2, iou="coco")
    metric.update(preds[:1], target[:1])
    metric.update(preds[1:], target[1:])
    reference = MeanAveragePrecision()
    reference.update(preds, target)
    expected = reference.compute()["map"].item()
    assert 0 < expected < 1
    assert metric.compute().item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": []}, "target has 0 rows, preds 1; give one each"),
        ({"sets": torch.zeros(1)}, "give sets and offsets, or neither"),
        ({"sets": torch.zeros(2), "offsets": torch.zeros(2)}, "set has 2 rows, preds 1"),
        ({"labels": torch.tensor([3])}, "preds has the label 3; give a class of 0…2"),
        ({"scores": None}, r"preds\[0\] has no scores"),
    ],
)
def test_boxes_that_do_not_fit_are_refused_in_one_line(changes, message):
    from steadyeye.torch_metrics import FrameAP

    box = torch.tensor([[0.0, 0, 10, 10]])
    answer = {"boxes": box, "scores": torch.tensor([0.5]), "labels": torch.tensor([0])}
    answer |= {key: value for key, value in changes.items() if key in answer}
    answer = {key: value for key, value in answer.items() if value is not None}
    others = {key: value for key, value in changes.items() if key in ("target", "sets", "offsets")}
    update_options = {"target": [{"boxes": box, "labels": torch.tensor([0])}]} | others
    with pytest.raises(UsageError, match=message):
        FrameAP(num_classes=3).update([answer], **update_options)


BEFORE = """
import sys
sys.path[:0] = {paths!r}
from torchvision_ops import torchvision
import numpy as np
import torch
"""
AFTER = """
if __name__ == "__main__":
    context = torch.multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [
        context.Process(target=work, args=(i, sys.argv[1], queue)) for i in range({count})]
    for worker in workers:
        worker.start()
    for line in sorted(queue.get(timeout=100) for _ in workers):
        print(*line)
"""


def compute_in_processes(work, count, folder):
    """What each of so many processes puts in a queue, rank by rank: `work(rank, file, queue)`."""
    script = folder / "processes.py"
    paths = [path for path in sys.path if "tests" in path]
    script.write_text(BEFORE.format(paths=paths) + work + AFTER.format(count=count))
    running = Command(folder / "store", script=script)
    stdout, stderr = running.communicate()
    assert running.returncode == 0, stderr
    return [[float(number) for number in line.split()] for line in stdout.splitlines()]


WORK = """
from test_torch_metrics import give_images, give_sets, number
from steadyeye.testing import example_detections, example_predictions, example_video
from steadyeye.torch_metrics import FlipRate, FrameAP, PmK

def list_rows(n, rank):
    # the second process has a third of the rows
    return np.flatnonzero((np.arange(n) % 3 == 2) == bool(rank))

def work(rank, file, queue):
    torch.distributed.init_process_group(
        "gloo", init_method="file://" + file, rank=rank, world_size=2)
    sets, frames, boxes = PmK(3), FlipRate(3), FrameAP(3)
    table, video = example_predictions(margin=0.5), example_video()
    give_sets(sets, table, list_rows(len(table), rank))
    detections = example_detections()
    give_images(boxes, detections, list_rows(len(detections), rank))
    rows = list_rows(len(video), rank)
    tags = np.asarray(video.tags["frame"], dtype=np.int64)
    frames.update(torch.from_numpy(video.scores[rows]), number(video.groups)[rows],
                  torch.from_numpy(tags)[rows])
    queue.put([rank, *(metric.compute().item() for metric in (sets, frames, boxes))])
    torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_two_processes_of_torch_compute_the_number_of_all_rows(tmp_path):
    """The states are gathered by torch.distributed itself, over gloo on this machine."""
    numbers = compute_in_processes(WORK, 2, tmp_path)
    expected = [
        pm_k(example_predictions(margin=0.5)).value,
        flip_rate(example_video()).value,
        pm_k_map(example_detections()).value,
    ]
    assert [row[0] for row in numbers] == [0, 1]
    for row in numbers:
        assert row[1:] == pytest.approx(expected, abs=1e-12)
