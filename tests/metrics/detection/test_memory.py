"""What memory average precision takes, beside that of the boxes it is of."""

import subprocess
import sys

import pytest

MEASURE = """
import re
from pathlib import Path
import numpy as np
from steadyeye.core.boxes import BoxTable, areas
from steadyeye.core.disk_columns import DiskColumn
from steadyeye.core.disk_columns import give_arrays_own_pages, return_free_memory
from steadyeye.metrics.detection.average_precision import average_recall, dataset_ap
from steadyeye.metrics.detection.matching import match

PART = 20_000
KINDS = {"image": (np.int64, 0), "label": (np.int64, 0), "boxes": (np.float64, 4),
         "score": (np.float64, 0), "crowd": (np.bool_, 0), "area": (np.float64, 0)}

def draw(images, each, classes):
    rng = np.random.default_rng(each)
    columns = {name: DiskColumn(*kind) for name, kind in KINDS.items()}
    for first in range(0, images * each, PART):
        row = np.arange(first, min(first + PART, images * each))
        corners = rng.integers(0, 50, (len(row), 4)) + np.array([0, 0, 50, 50.0])
        parts = (row // each, rng.integers(0, classes, len(row)), corners,
                 rng.random(len(row)), row < 0, areas(corners))
        for column, part in zip(columns.values(), parts):
            column.append(part)
    return BoxTable(**{name: column.array() for name, column in columns.items()})

def count_peak(images, classes):
    truth, detections = draw(images, 7, classes), draw(images, 50, classes)
    return_free_memory()
    Path("/proc/self/clear_refs").write_text("5")
    matched = match(truth, detections, images, classes)
    for weight in (None, np.arange(images) % 2):
        dataset_ap(matched, weight=weight)
        average_recall(matched, weight=weight)
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) << 10

give_arrays_own_pages()
count_peak(100, 1)  # what compiled functions take
for classes in (1, 20):
    print(count_peak(4_000, classes), count_peak(20_000, classes))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="another system")
def test_a_detection_takes_few_bytes_of_memory():
    """Of 800,000 detections more, from 200,000 on, which fill a piece; as arrays they take 65."""
    words = [sys.executable, "-c", MEASURE]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        fewer, more = map(int, line.split())
        assert (more - fewer) / 800_000 < 15
