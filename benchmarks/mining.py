"""Cost of mining: 1 M confident detections and 1 M boxes.

    python benchmarks/mining.py [--detections 1000000] [--classes 600]

Synthetic tables: 1 M true boxes in 100,000 images, of 600 classes in a hierarchy of three levels, a
fifth of the images with lists of verified classes; half of the detections are near a true box. All
have a score above 0.8, so that all are compared; the goal is 60 s on two cores. Times are of one
run after compiling; memory is the peak of the whole process, tables included, and that of the
tables alone.
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from steadyeye.core.boxes import BoxTable, Verified, areas
from steadyeye.core.predictions import Predictions
from steadyeye.explain.mining.candidates import candidates
from steadyeye.explain.mining.causes import CAUSES, IN_CROWD, RIGHT, judge_detections
from steadyeye.explain.mining.crops import farthest_first

GOAL = 60
POOL, LIMIT = 16_000, 50
Out = TypeVar("Out")


def boxes(rng: np.random.Generator, image: np.ndarray, classes: int) -> BoxTable:
    """A box for each entry of `image`, anywhere."""
    n = len(image)
    corner = rng.uniform(0, 500, (n, 2))
    corners = np.hstack([corner, corner + np.exp(rng.uniform(2, 5.7, (n, 2)))])
    crowd, label = rng.random(n) < 0.02, rng.integers(-1, classes, n)
    return BoxTable(image, label, corners, np.ones(n), crowd, areas(corners))


def synthetic(n: int, classes: int) -> Predictions:
    """As many detections as true boxes, in a tenth as many images of one file each."""
    rng = np.random.default_rng(0)
    images = max(n // 10, 1)
    truth = boxes(rng, np.sort(rng.integers(0, images, n)), classes)
    near = rng.random(n) < 0.5
    noise = boxes(rng, np.where(near, truth.image, rng.integers(0, images, n)), classes)
    side = truth.boxes[:, 2:] - truth.boxes[:, :2]
    moved = truth.boxes + np.tile(rng.normal(0, 0.08, (n, 2)) * side, 2)
    corners = np.where(near[:, None], moved, noise.boxes)
    label = np.where(near & (rng.random(n) < 0.7), truth.label, noise.label)
    detections = BoxTable(
        noise.image,
        np.maximum(label, 0),
        corners,
        rng.uniform(0.8001, 1, n),
        np.zeros(n, dtype=np.bool_),
        areas(corners),
    )
    names = tuple(f"class {i}" for i in range(classes))
    class_map = np.where(np.arange(classes) % 10 == 9, -1, np.arange(classes))
    return Predictions(
        model="synthetic",
        data="synthetic",
        classes=names,
        model_classes=names,
        columns=("truth", "boxes", "detections"),
        ids=np.char.add("image ", np.arange(images).astype(str)),
        groups=np.full(images, ""),
        truth=np.zeros((images, 0), dtype=np.bool_),
        scores=np.zeros((images, 0), dtype=np.float32),
        top=np.zeros((images, 0), dtype=np.int32),
        top_scores=np.zeros((images, 0), dtype=np.float32),
        errors=np.full(images, ""),
        boxes=truth,
        detections=detections,
        raw_detections=detections,
        model_to_data_class=class_map,
        parents=tuple(() if i < 10 else (i // 10,) for i in range(classes)),
        verified=verified(rng, images, classes),
    )


def verified(rng: np.random.Generator, images: int, classes: int) -> Verified:
    """Five verified classes in each of a fifth of the images."""
    known = rng.random(images) < 0.2
    image = np.repeat(np.flatnonzero(known), 5)
    pairs = np.unique(np.stack([image, rng.integers(0, classes, len(image))], axis=1), axis=0)
    return Verified(pairs[:, 0], pairs[:, 1], known)


def timed(title: str, run: Callable[[], Out]) -> tuple[float, Out]:
    """The seconds of a run, which are printed, and what came out."""
    started, before = time.perf_counter(), time.process_time()
    out = run()
    seconds, cpu = time.perf_counter() - started, time.process_time() - before
    print(f"{title:<52}{seconds:>9.2f}{cpu:>9.2f}{peak():>12,.0f}", flush=True)
    return seconds, out


def peak() -> float:
    """The most memory the process held, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--detections", type=int, default=1_000_000)
    parser.add_argument("--classes", type=int, default=600)
    arguments = parser.parse_args()
    small = synthetic(1000, arguments.classes)
    # compiles
    candidates([small], [judge_detections(small)])
    table = synthetic(arguments.detections, arguments.classes)
    print(f"{'':<52}{'seconds':>9}{'of CPU':>9}{'peak, MB':>12}")
    print(f"{'the tables':<52}{'':>18}{peak():>12,.0f}")
    n = arguments.detections
    first, mistakes = timed(
        f"causes of {n:,} detections, {n:,} boxes", lambda: judge_detections(table)
    )
    second, unique = timed("candidates, each mistake once", lambda: candidates([table], [mistakes]))
    rng = np.random.default_rng(0)
    vectors, known = rng.random((POOL, 192)), rng.random((200, 192))
    kinds = rng.integers(0, 80, POOL)
    third, order = timed(
        f"by novelty, of {POOL:,} pictures up to {LIMIT} a class",
        lambda: farthest_first(vectors, known, kinds, LIMIT),
    )
    counts = {"right": RIGHT, "in a crowd": IN_CROWD, **{c: i for i, c in enumerate(CAUSES)}}
    causes = ", ".join(f"{name} {int((mistakes.cause == i).sum()):,}" for name, i in counts.items())
    print(f"{causes}; {len(unique):,} candidates, {len(order):,} ordered by novelty")
    total = first + second
    print(f"causes and candidates {total:.1f} s, goal ≤ {GOAL} s; with novelty {total + third:.1f}")


if __name__ == "__main__":
    main()
