"""Rows of a detector's predictions against plain loops over each image."""

from types import SimpleNamespace

import numpy as np
import pytest

from steadyeye.core.boxes import Detections
from steadyeye.core.types import Sample
from steadyeye.runner.detect import build_rows
from steadyeye.runner.infer import InferenceItem

CLASSES = 6  # of the detector
DESTINATIONS, PLACES = (0, 1, -1, 2, -1, 1), (0, 1, 3, 2, -1, 1)
"""The class of the data of each of the detector's, and its place among those that compete."""


def answers(rng):
    """Detections of an image whose scores are often equal; some images have none."""
    n = rng.integers(0, 7)
    corners = rng.uniform(0, 50, (n, 4))
    return Detections(
        corners, rng.integers(0, CLASSES, n).astype(np.int32), rng.integers(1, 5, n) / 4
    )


@pytest.mark.slow
def test_rows_are_those_of_plain_loops():
    rng = np.random.default_rng(0)
    items = []
    for i in range(300):
        truth = tuple(sorted(set(rng.integers(0, 3, rng.integers(0, 3)).tolist())))
        sample = Sample(str(i), lambda: None, truth)
        items.append(InferenceItem(sample, {}, answers(rng) if i % 17 else None))
    task = SimpleNamespace(
        class_map=SimpleNamespace(destinations=DESTINATIONS, places=PLACES),
        source=SimpleNamespace(columns=("truth", "boxes")),
    )
    rows = build_rows(task, items)
    for i, item in enumerate(items):
        detections = [] if item.answer is None else list(zip(*vars_of(item.answer), strict=True))
        best = max(detections, key=lambda detection: detection[1], default=(-1, 0.0))
        assert (rows.top[i, 0], rows.top_scores[i, 0]) == best
        mapped = [(DESTINATIONS[label], score) for label, score in detections]
        assert list_pairs(rows.detections, i) == [pair for pair in mapped if pair[0] >= 0]
        left_out = [(label, score) for label, score in detections if DESTINATIONS[label] < 0]
        assert list_pairs(rows.left_out, i) == left_out
        assert list_pairs(rows.raw_detections, i) == detections
        competing = [(PLACES[label], score) for label, score in detections if PLACES[label] >= 0]
        best = max(competing, key=lambda detection: detection[1], default=(-1, 0.0))
        assert (rows.answers["predicted"][i], rows.answers["confidence"][i]) == best
        truth = item.sample.truth
        own = max((score for label, score in competing if label in truth), default=None)
        above = {label for label, score in competing if score > (-1 if own is None else own)}
        if truth:
            assert rows.answers["rank"][i] == len(above - set(truth))
            assert rows.answers["probability"][i] == (own or 0)
        else:
            assert rows.answers["rank"][i] == -1
            assert np.isnan(rows.answers["probability"][i])


def list_pairs(table, image):
    rows = table.image == image
    return list(zip(table.label[rows].tolist(), table.score[rows].tolist(), strict=True))


def vars_of(detections):
    return detections.labels.tolist(), detections.scores.tolist()
