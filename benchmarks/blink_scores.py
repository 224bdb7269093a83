"""How much `blink_rate` depends on how objects are linked, by the median score of the objects.

    python benchmarks/blink_scores.py RUN

`RUN`: the folder of a run of a detector on whole videos, `every_frame(…)`. Its objects are linked
with one constant of linking changed at a time; what a gap is stays as it is. Prints, for each cell
of the run and each change, `blink_rate` of all objects and of those whose detections have a median
score in a band, with the frames that are known and the objects of the band; and how many boxes
above and below the threshold a frame has.
"""

import argparse
import itertools
from pathlib import Path
from unittest.mock import patch

import numpy as np

from steadyeye.metrics.sequences import tracklets
from steadyeye.metrics.sequences.object_steadiness import select_steady
from steadyeye.metrics.sequences.tracklets import (
    DETECTED,
    LINK,
    SCORE,
    UNSURE,
    WEAK,
    assign_frame_by_frame,
    link_by,
)
from steadyeye.predictions.read import read

CHANGES = (
    ("LINK", LINK),
    ("LINK", 0.1),
    ("LINK", 0.5),
    ("GAP", 0.5),
    ("SWITCH", 0.0),
    ("DUPLICATE", 0.5),
    ("DUPLICATE", 0.9),
    ("WEAK", SCORE),
)
"""Constants of linking that other trackers have otherwise; the first is what it is, and the last
links without boxes below the threshold."""
EDGES = (0.5, 0.6, 0.7, 1.01)


def measure_medians(objects, scores):
    """The median score of each object's detections above the threshold."""
    found = objects.state == DETECTED
    return np.array(
        [
            np.median(scores[objects.detection[found & (objects.track == track)]])
            for track in range(len(objects))
        ]
    )


def list_rates(objects, scores):
    """`blink_rate` of all objects, then of each band."""
    median = measure_medians(objects, scores)[objects.track]
    known = select_steady(objects) & (objects.state != UNSURE)
    lost = known & (objects.state != DETECTED)
    cells = [f"{lost.sum() / known.sum():.1%}"]
    for low, high in itertools.pairwise(EDGES):
        band = known & (median >= low) & (median < high)
        count = len(np.unique(objects.track[band]))
        rate = lost[band].sum() / max(band.sum(), 1)
        cells.append(f"{rate:.1%} of {band.sum()} frames of {count}")
    return cells


def compare(cell):
    """The table of a cell."""
    table = read(cell)
    scores = table.raw_detections.score
    strong, weak = (scores >= SCORE).sum(), ((scores >= WEAK) & (scores < SCORE)).sum()
    print(f"{table.model} on {table.data}, {len(table)} frames:", end=" ")
    print(f"{strong / len(table):.1f} boxes a frame, {weak / len(table):.1f} weak ones")
    bands = [f"{low:g} to {min(high, 1):g}" for low, high in itertools.pairwise(EDGES)]
    print(f"| linking | all | {' | '.join(bands)} |", "|---|" + "--:|" * 4, sep="\n")
    for name, value in CHANGES:
        with patch.object(tracklets, name, value):
            objects = link_by(assign_frame_by_frame, table, table.raw_detections, SCORE)
        print(f"| {name} {value:g} | {' | '.join(list_rates(objects, scores))} |")


def main():
    """Reads the folder of the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    for cell in sorted((parser.parse_args().run / "cells").iterdir()):
        compare(cell)


if __name__ == "__main__":
    main()
