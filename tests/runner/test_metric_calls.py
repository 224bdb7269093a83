"""Metrics as methods of a run: wrong arguments are refused as on the command line."""

import numpy as np
import pytest

from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.metrics.detection.iou_thresholds import IOUS
from steadyeye.metrics.map import map as mean_average_precision
from steadyeye.metrics.pm_k import pm_k
from steadyeye.runner import validate
from steadyeye.runner.metric_calls import bind_metric
from steadyeye.testing import example_detections, example_predictions

WHOLE = "give a whole number"
WRONG = (
    ("map", {"size": "tiny"}, "no size of objects named 'tiny'; known: all, large, medium, small"),
    ("map", {"size": ""}, "no size of objects named ''"),
    ("map", {"size": 3}, "map(size=3): give text in quotes"),
    ("map", {"size": None}, "map(size=None): give text in quotes"),
    ("map", {"max_detections": 0}, "named 'max_detections'; did you mean 'detections'?"),
    ("map", {"detections": 0}, "detections=0: give 1 to 100"),
    ("map", {"detections": -1}, "detections=-1: give 1 to 100"),
    ("map", {"detections": 101}, "detections=101: give 1 to 100"),
    ("map", {"detections": 1.5}, f"map(detections=1.5): {WHOLE}"),
    ("map", {"detections": np.float64(10)}, f"map(detections=10.0): {WHOLE}"),
    ("map", {"detections": "many"}, f"map(detections='many'): {WHOLE}"),
    ("map", {"detections": True}, f"map(detections=True): {WHOLE}"),
    ("map", {"iou": "0.5"}, "iou='0.5': give 0.5, 0.55"),
    ("map", {"iou": 2}, "iou=2: give 0.5, 0.55"),
    ("mar", {"detections": 0}, "detections=0: give 1 to 100"),
    ("precision_at", {"score": 2}, "precision_at(score=2): scores are in 0…1"),
    ("recall_at", {"score": -0.1}, "recall_at(score=-0.1): scores are in 0…1"),
    ("f1_at", {"score": float("nan")}, "f1_at(score=nan): scores are in 0…1"),
    ("f1_at", {"score": None}, "f1_at(score=None): give a number"),
    ("degraded_accuracy", {}, "it does not apply to example on example; run.results() gives"),
)
WRONG_OF_SETS = (
    ("pm_k", {"k": -1}, "pm_k(k=-1): k counts the frames on either side; give 0 or more"),
    ("pm_k", {"k": 99}, "k=99, but the data reach"),
    ("pm_k", {"k": 1.5}, f"pm_k(k=1.5): {WHOLE}"),
    ("pm_k", {"k": "many"}, f"pm_k(k='many'): {WHOLE}"),
    ("pm_k", {"k": True}, f"pm_k(k=True): {WHOLE}"),
    ("pm_k", {"kk": 1}, "no parameter of pm_k named 'kk'; did you mean 'k'?"),
    ("self_consistency", {"k": 0}, "give 1 or more"),
    ("map", {}, "map needs true boxes and a detector: it does not apply to"),
)


@pytest.mark.parametrize(
    ("table", "metric", "parameters", "line"),
    [
        *((example_detections, *case) for case in WRONG),
        *((example_predictions, *case) for case in WRONG_OF_SETS),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(table, metric, parameters, line):
    with pytest.raises(UsageError) as error:
        bind_metric(metric, table)(**parameters)
    assert line in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("map(iou=0.52)", "iou=0.52: give 0.5, 0.55 … 0.95, or 'coco' for all ten"),
        ("pm_k_map(iou=0.45)", "iou=0.45: give 0.5"),
        ("localization(iou=1.0)", "iou=1.0: give 0.5"),
        ("precision_at(iou=0.52)", "iou=0.52: give 0.5, 0.55 … 0.95"),
    ],
)
def test_a_wrong_iou_is_refused_before_anything_is_inferred(text, line):
    with pytest.raises(UsageError) as error:
        validate.metric(parse(text))
    assert line in str(error.value)
    for iou in (*IOUS, 0.55, 0.95):
        assert validate.metric(parse(f"map(iou={iou})"))
    assert validate.metric(parse("mpc(iou='coco')"))


@pytest.mark.parametrize("thresholds", [(), (0,), (0.5, 2), "0.5", 0.5, (True, None), (np.nan,)])
def test_shares_are_above_0_and_up_to_1(thresholds):
    with pytest.raises(UsageError, match="give shares above 0 and up to 1"):
        bind_metric("failure_points", example_predictions)(thresholds=thresholds)


def test_too_many_arguments_and_one_twice_are_refused():
    metric = bind_metric("pm_k", example_predictions)
    with pytest.raises(UsageError, match=r"pm_k takes 1 argument \(k\), not 2; leave out"):
        metric(1, 2)
    with pytest.raises(UsageError, match="pm_k: 'k' is given twice; give it once"):
        metric(1, k=1)
    with pytest.raises(UsageError, match=r"accuracy takes 0 arguments \(none\), not 1"):
        bind_metric("accuracy", example_predictions)(1)


def test_right_arguments_give_what_the_metric_gives():
    """By place or by name, also as the numbers of an array."""
    predictions, detections = example_predictions(margin=0.5), example_detections()
    expected = pm_k(predictions, 1)
    metric = bind_metric("pm_k", lambda: predictions)
    assert metric(1) == metric(k=1) == metric(np.int64(1)) == expected
    assert metric().name == f"pm_k(k={max(abs(predictions.tags['offset']))})"
    assert bind_metric("map", lambda: detections)(
        "coco", detections=np.uint8(10)
    ) == mean_average_precision(detections, "coco", detections=10)
