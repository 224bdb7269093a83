"""Metrics in MAITE's own `evaluate`: the numbers of the run on the same predictions."""

import maite.protocols.image_classification as ic
import maite.protocols.object_detection as od
import numpy as np
import pytest
from maite.tasks import evaluate

from steadyeye.core.boxes import select
from steadyeye.core.errors import UsageError
from steadyeye.maite_metrics import MaiteMetric
from steadyeye.metrics.accuracy import accuracy
from steadyeye.metrics.flip_rate import flip_rate
from steadyeye.metrics.map import map as mean_ap
from steadyeye.metrics.pm_k import pm_k
from steadyeye.metrics.pm_k_map import pm_k_map
from steadyeye.testing import example_detections, example_predictions

CLASSES = ("bird", "cat", "dog")


class Rows:
    """The rows of predictions as a dataset of MAITE, whose images are their numbers."""

    def __init__(self, table):
        self.table = table
        self.metadata = {"id": "rows", "index2label": dict(enumerate(CLASSES))}

    def __len__(self):
        return len(self.table)

    def __getitem__(self, row):
        tags = {name: values[row] for name, values in self.table.tags.items()}
        about = {"id": self.table.ids[row], "set": self.table.groups[row], **tags}
        return np.full((3, 1, 1), row), self.read_target(row), about

    def read_target(self, row):
        return self.table.truth[row].astype(float)


class Objects:
    """Boxes as MAITE has them."""

    def __init__(self, part):
        self.boxes, self.labels, self.scores = part.boxes, part.label, part.score


class BoxRows(Rows):
    def read_target(self, row):
        return Objects(select(self.table.boxes, np.array([row])))


class Answers:
    """A model that says what the predictions say."""

    metadata = {"id": "answers", "index2label": dict(enumerate(CLASSES))}  # noqa: RUF012

    def __init__(self, table):
        self.table = table

    def __call__(self, batch):
        rows = [int(image[0, 0, 0]) for image in batch]
        if self.table.detections is None:
            return [self.table.scores[row] for row in rows]
        return [Objects(select(self.table.detections, np.array([row]))) for row in rows]


@pytest.mark.parametrize(
    ("spec", "reference"),
    [
        ("accuracy", accuracy),
        ("pm_k(k=1)", lambda table: pm_k(table, 1)),
        ("pm_k", pm_k),
        ("flip_rate", flip_rate),
    ],
)
def test_classification_is_the_number_of_the_run(spec, reference):
    table = example_predictions(margin=0.5)
    metric = MaiteMetric(spec, CLASSES)
    assert isinstance(metric, ic.Metric)
    for _ in range(2):  # evaluate resets it
        result, *_ = evaluate(
            model=Answers(table), metric=metric, dataset=Rows(table), batch_size=7
        )
    expected = reference(table)
    assert result[expected.name] == expected.value
    assert (result["low"], result["high"], result["n"]) == (expected.low, expected.high, expected.n)


@pytest.mark.parametrize(
    ("spec", "reference"),
    [
        ("map(iou='coco')", lambda table: mean_ap(table, "coco")),
        ("pm_k_map(k=1)", lambda table: pm_k_map(table, 1)),
    ],
)
def test_detection_is_the_number_of_the_run(spec, reference):
    table = example_detections()
    metric = MaiteMetric(spec, CLASSES)
    assert isinstance(metric, od.Metric)
    result, *_ = evaluate(model=Answers(table), metric=metric, dataset=BoxRows(table), batch_size=8)
    expected = reference(table)
    assert result[expected.name] == pytest.approx(expected.value, abs=1e-12)
    assert result["n"] == expected.n


def test_the_highest_score_of_a_target_counts():
    """As in data of Python; each class with a score above 0 was right."""
    metric = MaiteMetric("accuracy", CLASSES)
    answers = np.eye(3)
    targets = [[0.2, 0.7, 0.1], [0.3, 0.6, 0.1], [1, 0, 1]]
    metric.update(list(answers), [np.array(row) for row in targets], [{} for _ in targets])
    assert metric.compute()["accuracy"] == pytest.approx(2 / 3)
    metric.update([answers[0]], [np.zeros(3)], [{}])
    assert metric.compute()["n"] == 3, "all 0 is no label"


def test_without_data_there_is_no_number():
    assert np.isnan(MaiteMetric("accuracy", CLASSES).compute()["accuracy"])


@pytest.mark.parametrize(
    ("spec", "data", "why"),
    [
        ("acuracy", None, "did you mean 'accuracy'"),
        ("accuracy", ([[1, 0]], [[1, 0, 0]], [{}]), r"prediction 0 has the shape \(2,\)"),
        ("accuracy", ([[1, 0, 0]], [[1, 0, 0]], []), "1 predictions, 1 targets and 0 metadata"),
        ("pm_k", ([[1, 0, 0]], [[1, 0, 0]], [{"id": 1}]), "pm_k needs group, offset; give them"),
        (
            "map",
            ([{"boxes": [[0, 0, 1, 1]], "labels": [7], "scores": [1]}],
             [{"boxes": [[0, 0, 1, 1]], "labels": [0]}], [{}]),
            "the label 7 is no class",
        ),
        (
            "map",
            ([{"boxes": [[0, 0, 1, 1]], "labels": [0]}],
             [{"boxes": [[0, 0, 1, 1]], "labels": [0]}], [{}]),
            "prediction 0 has no scores",
        ),
    ],
)  # fmt: skip
def test_mismatching_inputs_are_refused_in_one_line(spec, data, why):
    def measure():
        metric = MaiteMetric(spec, CLASSES)
        metric.update(*([np.array(x) if isinstance(x, list) else x for x in part] for part in data))
        return metric.compute()

    with pytest.raises(UsageError, match=why):
        measure()


def detect(*best):
    """Of each image two boxes: the named class at 0.9, and another, listed first, at 0.4."""
    corners = np.array([[0, 0, 9, 9], [20, 20, 29, 29]])
    return [
        {"boxes": corners, "labels": [2, label], "scores": [0.4, 0.9]}
        if label is not None
        else {"boxes": np.zeros((0, 4)), "labels": [], "scores": []}
        for label in best
    ]


@pytest.mark.parametrize(
    ("spec", "expected"), [("flip_rate", 3 / 5), ("self_consistency(k=1)", 1 / 6)]
)
def test_a_detector_predicts_the_class_of_its_most_confident_box(spec, expected):
    """0, 0, 1, nothing, nothing, 0: three changes; around the first frame alone all are alike."""
    metric = MaiteMetric(spec, CLASSES)
    about = [{"set": "v", "video": "v", "scene": "v", "frame": i} for i in range(6)]
    metric.update(detect(0, 0, 1, None, None, 0), detect(*[0] * 6), about)
    assert metric.compute()[spec] == pytest.approx(expected)


def test_a_score_that_is_no_number_is_refused():
    metric = MaiteMetric("map", CLASSES)
    answers = detect(0, 1)
    answers[1]["scores"] = [0.4, float("nan")]
    metric.update(answers, detect(0, 1), [{}, {}])
    with pytest.raises(UsageError, match="prediction 1 has a score that is no number"):
        metric.compute()


@pytest.mark.parametrize("tag", ["video", "offset", "set"])
def test_metadata_that_only_some_images_have_are_refused(tag):
    """Left out for all, the interval would take the frames of a video for independent."""
    metric = MaiteMetric("accuracy", CLASSES)
    about = [{"id": i, "set": 0, "offset": 0, "video": "v"} for i in range(3)]
    del about[1][tag]
    metric.update(list(np.eye(3)), list(np.eye(3)), about)
    with pytest.raises(UsageError, match=f"the metadata of 2 of 3 data have '{tag}'"):
        metric.compute()
