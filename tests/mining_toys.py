"""Tables of detections made up for mining: what is there, what was said, and over which classes."""

from dataclasses import replace

import numpy as np

from steadyeye.core.boxes import Detections, boxes, detection_table, truth_table
from steadyeye.core.table import Predictions

CLASSES = ("animal", "bear", "car", "goat")
"""Of the data; animal stands above bear and goat, and no class of the detector is a goat."""
OWN = ("bear", "car", "kite", "animal")
"""Of the detector; the data has no kite."""
BEAR, CAR, KITE, ANIMAL = range(4)
REACH = np.array([1, 2, -1, 0])
PARENTS = ((), (0,), (), (0,))


def table(truths, said, **more):
    """Predictions of images: `truths`, of each (box, label[, crowd]); `said`: (box, own, score)."""
    there = [
        boxes([t[0] for t in each], [t[1] for t in each], [len(t) > 2 for t in each])
        for each in truths
    ]
    found = [
        Detections(
            np.array([s[0] for s in each], dtype=np.float64).reshape(-1, 4),
            np.array([s[1] for s in each], dtype=np.int32),
            np.array([s[2] for s in each], dtype=np.float64),
        )
        for each in said
    ]
    n = len(truths)
    made = Predictions(
        model="m",
        data="d",
        classes=CLASSES,
        model_classes=OWN,
        columns=("truth", "boxes", "detections"),
        ids=np.array([f"i{row}" for row in range(n)]),
        groups=np.array([""] * n),
        truth=np.zeros((n, len(CLASSES)), dtype=bool),
        scores=np.zeros((n, 0), dtype=np.float32),
        top=np.zeros((n, 1), dtype=np.int32),
        top_scores=np.zeros((n, 1), dtype=np.float32),
        errors=np.array([""] * n),
        fingerprint="f",
        boxes=truth_table(there),
        detections=detection_table(found),
        said=detection_table(found),
        reach=REACH,
    )
    return replace(made, **more)
