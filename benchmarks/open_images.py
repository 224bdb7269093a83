"""Opens a box file of Open Images' full size: time and memory.

    python benchmarks/open_images.py --rows 15800000

Writes a file of the format of train-annotations-bbox.csv, and one of verified labels, into a
temporary folder, opens both in a separate process, reads all properties that a run needs before
inference, and deletes them.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

ROWS = 15_800_000
IMAGES = 1_743_042  # V4's training images with boxes
LABELS = 9_000_000
STEP = 1_000_000
FLAGS = ("IsOccluded", "IsTruncated", "IsGroupOf", "IsDepiction", "IsInside")


def main() -> None:
    """Writes the files, measures in a fresh process and prints what it took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--opened", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.opened:
        print(json.dumps(time_opening(arguments.opened)))
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        share = arguments.rows / ROWS
        write(root, arguments.rows, max(int(IMAGES * share), 1), int(LABELS * share))
        size = sum(path.stat().st_size for path in root.iterdir()) / 1e9
        print(f"{arguments.rows:,} boxes and {int(LABELS * share):,} labels, {size:.2f} GB of CSV")
        command = [sys.executable, __file__, "--opened", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for name, value in json.loads(done.stdout).items():
            print(f"{name}: {value}")


def write(root: Path, rows: int, images: int, labels: int) -> None:
    """The two files, boxes of an image one after the other as in the release."""
    from steadyeye.data.classes.openimages import released_names

    rng = np.random.default_rng(0)
    mids = pa.array(list(released_names()))
    ids = pa.array([f"{number:016x}" for number in rng.permutation(images)])
    with (
        csv.CSVWriter(str(root / "train-annotations-bbox.csv"), schema()) as boxes,
        csv.CSVWriter(str(root / "labels.csv"), label_schema()) as verified,
    ):
        for start in range(0, rows, STEP):
            image = np.arange(start, min(start + STEP, rows)) * images // rows
            boxes.write_table(box_table(rng, ids, mids, image))
        for start in range(0, labels, STEP):
            image = np.arange(start, min(start + STEP, labels)) * images // labels
            columns = {
                "ImageID": ids.take(pa.array(image)),
                "Source": pa.array(["verification"] * len(image)),
                "LabelName": mids.take(pa.array(rng.integers(len(mids), size=len(image)))),
                "Confidence": pa.array(rng.integers(2, size=len(image))),
            }
            verified.write_table(pa.table(columns))


def box_table(
    rng: np.random.Generator, ids: pa.Array, mids: pa.Array, image: np.ndarray
) -> pa.Table:
    """Rows of boxes with six digits, of the images given."""
    n = len(image)
    sides = np.sort(rng.random((n, 2, 2)), axis=2).round(6)
    columns = {
        "ImageID": ids.take(pa.array(image)),
        "Source": pa.array(["xclick"] * n),
        "LabelName": mids.take(pa.array(rng.integers(len(mids), size=n))),
        "Confidence": pa.array(np.ones(n, dtype=np.int64)),
        "XMin": pa.array(sides[:, 0, 0]),
        "XMax": pa.array(sides[:, 0, 1]),
        "YMin": pa.array(sides[:, 1, 0]),
        "YMax": pa.array(sides[:, 1, 1]),
        **{flag: pa.array((rng.random(n) < 0.05).astype(np.int64)) for flag in FLAGS},
    }
    return pa.table(columns)


def schema() -> pa.Schema:
    """The columns of the file of boxes."""
    texts = {"ImageID": pa.string(), "Source": pa.string(), "LabelName": pa.string()}
    sides = dict.fromkeys(("XMin", "XMax", "YMin", "YMax"), pa.float64())
    flags = dict.fromkeys(FLAGS, pa.int64())
    return pa.schema({**texts, "Confidence": pa.int64(), **sides, **flags})


def label_schema() -> pa.Schema:
    """The columns of the file of labels."""
    texts = {"ImageID": pa.string(), "Source": pa.string(), "LabelName": pa.string()}
    return pa.schema({**texts, "Confidence": pa.int64()})


def time_opening(root: Path) -> dict[str, str]:
    """Seconds and peak memory of opening the files and of what is asked before inference."""
    from steadyeye.data.sources.open_images import open_images

    (root / "images").mkdir(exist_ok=True)
    os.sync()
    before = peak()
    started = clock()
    source = open_images(
        boxes=str(root / "train-annotations-bbox.csv"),
        images=str(root / "images"),
        labels=str(root / "labels.csv"),
    )
    read = took(started)
    after = peak()
    started = clock()
    twice = sum(times > 1 for times in Counter(source.ids).values())
    labels = sum(map(len, source.truths))
    notes = source.notes
    seconds = took(started)
    table = source.table
    size = sum(
        column.nbytes
        for column in (
            *(table.first, table.label, table.shares, table.crowd),
            *(table.starts, table.verified_label, table.verified_positive, table.ids),
        )
    )
    return {
        "opened": f"{read}, peak {after:.2f} GB ({before:.2f} GB of it before)",
        "asked for every id and label": f"{seconds}, peak {peak():.2f} GB",
        "columns held": f"{size / 1e9:.2f} GB",
        "images": f"{len(source):,}, {twice} twice, {labels:,} labels",
        "notes": notes[0],
    }


def clock() -> tuple[float, float]:
    """Seconds that went by, and of processor time."""
    return time.perf_counter(), time.process_time()


def took(started: tuple[float, float]) -> str:
    """What went by since, in words: others may have the processor too."""
    wall, busy = (now - then for now, then in zip(clock(), started, strict=True))
    return f"{wall:.1f} s, {busy:.1f} s of them on the processor"


def peak() -> float:
    """The most memory this process had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
