"""Cost of the report's sections over many models on a set like ImageNet-Vid-Robust.

    python benchmarks/analyses.py [--models 50] [--videos 1314]

Synthetic tables: 1,314 candidate anchors with 20 neighbours each, of which a review accepted 1,109
and 21,070 as in the paper, 30 classes, and all tags of a source. Each model has its own arrays, as
if read from disk. Errors occur in runs of frames that are hard for all models, so every section
has results. Every analysis that applies to the tables is run once, after the metrics that it may
read. With fewer videos than anchors every interval is a bootstrap.
"""

import argparse
import resource
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import plugins
from steadyeye.core.predictions import Predictions
from steadyeye.core.review_filter import select_reviewed
from steadyeye.runner.collect import evaluate_metrics as evaluate
from steadyeye.runner.collect import share_samples
from steadyeye.runner.validate import readable

ANCHORS, ACCEPTED, NEIGHBOURS, K, CLASSES = 1_314, 1_109, 21_070, 10, 30
MEASURED = ("motion", "sharpness_change", "brightness_change", "contrast_change", "difference")
COLUMNS = ("group", "offset", "video", "frame", "truth", "frame_type", "fps", "accepted")
COLUMNS = (*COLUMNS, *MEASURED, "linf")


def samples(rng: np.random.Generator, videos: int) -> dict[str, Any]:
    """Ids, groups, tags and labels of the frames, in the order of a source."""
    offset = np.tile(np.arange(-K, K + 1), ANCHORS)
    anchor = np.repeat(np.arange(ANCHORS), 2 * K + 1)
    good = rng.permutation(ANCHORS) < ACCEPTED
    able = np.flatnonzero((offset != 0) & good[anchor])
    taken = rng.choice(able, NEIGHBOURS, replace=False)
    accepted = (offset == 0) & good[anchor]
    accepted[taken] = True
    video = np.char.add("val/ILSVRC2015_val_", np.char.zfill((anchor % videos).astype(str), 8))
    # sets of one video are so far apart that they share no frame
    centre = 100 * (1 + anchor // videos)
    frame = centre + offset
    names = np.char.add(np.char.add(video, "/"), np.char.zfill(frame.astype(str), 6))
    groups = np.char.add(np.char.add(video, "/"), np.char.zfill(centre.astype(str), 6))
    truth = np.zeros((len(anchor), CLASSES), dtype=np.bool_)
    truth[np.arange(len(anchor)), rng.integers(0, CLASSES, ANCHORS)[anchor]] = True
    return {
        "ids": np.char.add(names, ".JPEG"),
        "groups": groups,
        "truth": truth,
        "errors": np.full(len(anchor), ""),
        "tags": {
            "offset": offset,
            "video": video,
            "frame": frame,
            "frame_type": rng.choice(["I", "P", "B"], len(anchor), p=[0.05, 0.45, 0.5]),
            "fps": rng.choice([25.0, 30000 / 1001, 30.0], ANCHORS)[anchor],
            "accepted": accepted.astype(np.int64),
            # as measured by the image pass: rising with the distance, in steps of 1/255
            **{name: np.abs(offset) * rng.exponential(1, len(anchor)) for name in MEASURED},
            "linf": rng.integers(0, 256, len(anchor)) / 255,
        },
    }


def model(name: str, frames: Mapping[str, Any], hard: NDArray[np.floating]) -> Predictions:
    """Predictions that are wrong where a frame's difficulty exceeds the model's skill."""
    rng = np.random.default_rng([int(name), 1])
    n = len(hard)
    right = hard + rng.normal(0, 0.4, n) < rng.uniform(0.8, 1.6)
    scores = rng.random((n, CLASSES), dtype=np.float32)
    label = frames["truth"].argmax(axis=1)
    best = np.where(right, label, (label + rng.integers(1, CLASSES, n)) % CLASSES)
    scores[np.arange(n), best] += 1
    top = np.argsort(-scores, axis=1)[:, :5].astype(np.int32)
    classes = tuple(f"class {i}" for i in range(CLASSES))
    return Predictions(
        model=f"model {name}",
        data="synthetic",
        classes=classes,
        model_classes=classes,
        columns=COLUMNS,
        ids=frames["ids"].copy(),
        groups=frames["groups"].copy(),
        truth=frames["truth"].copy(),
        scores=scores,
        top=top,
        top_scores=np.take_along_axis(scores, top, axis=1),
        errors=frames["errors"].copy(),
        tags={tag: values.copy() for tag, values in frames["tags"].items()},
        fingerprint="synthetic",
    )


def hardness(rng: np.random.Generator, offsets: NDArray[np.integer]) -> NDArray[np.floating]:
    """The difficulty of each frame: that of its scene, and a random walk from the anchor."""
    scene = np.repeat(rng.normal(0, 1, ANCHORS), 2 * K + 1)
    steps = rng.normal(0, 0.25, (ANCHORS, 2 * K + 1))
    walk = np.cumsum(steps, axis=1) - np.cumsum(steps, axis=1)[:, [K]]
    return np.asarray(scene + np.abs(walk).ravel() + 0.01 * np.abs(offsets))


def peak() -> float:
    """The peak memory so far, GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    """Prints the seconds of each analysis, the total, and the peak of memory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--videos", type=int, default=ANCHORS)
    models, videos = vars(parser.parse_args()).values()
    rng = np.random.default_rng(0)
    frames = samples(rng, videos)
    hard = hardness(rng, frames["tags"]["offset"])
    tables = list(
        share_samples(select_reviewed(model(str(i), frames, hard)) for i in range(models))
    )
    print(f"{models} models, {len(tables[0]):,} frames of {len(frames['ids']):,} candidates")
    print(f"{'tables':24} {'':>8} {peak():8.2f} GB")

    start = begun = time.perf_counter()
    evaluated = [evaluate(table) for table in tables]
    print(f"{'metrics':24} {time.perf_counter() - start:7.2f} s {peak():8.2f} GB")
    for name in plugins.names("analyses"):
        analysis = plugins.load("analyses", name)
        if not readable(analysis, COLUMNS):
            continue
        start = time.perf_counter()
        section = analysis(evaluated)
        seconds = time.perf_counter() - start
        remark = "" if section else "  nothing to say"
        print(f"{name:24} {seconds:7.2f} s {peak():8.2f} GB{remark}", flush=True)
    print(f"{'total':24} {time.perf_counter() - begun:7.2f} s {peak():8.2f} GB")


if __name__ == "__main__":
    main()
