"""Cost of average precision, compared with installed hotcoco, faster-coco-eval and pycocotools.

    python benchmarks/ap.py [--rounds 3]

Synthetic boxes, 100 detections per image: frame AP of 23,000 frames, 1,000 bootstrap replicates of
mAP 0.50:0.95 over 1,109 images, and the twelve statistics of COCO (ten thresholds, four areas,
three numbers of detections) of 5,000 images. Medians of the rounds; slow peers run once.

Ours starts from arrays and sorts them; of the others only `evaluate` and `accumulate` count, not
the building of their indices. Ours runs on one thread, hotcoco on all. The numbers are compared,
too.
"""

import argparse
import contextlib
import io
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import TypeVar

import numpy as np

from steadyeye.core.boxes import BoxTable, areas
from steadyeye.metrics.detection.average_precision import average_recall, dataset_ap, frame_ap
from steadyeye.metrics.detection.matching import by_area, match

DETECTIONS = 100
Tables = tuple[BoxTable, BoxTable]
Out = TypeVar("Out")


def synthetic(images: int, classes: int) -> Tables:
    """Seven objects per image on average; half of the detections are near one of them."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(7, images) + 1
    image = np.repeat(np.arange(images), counts)
    label = rng.integers(0, classes, len(image))
    corner = rng.uniform(0, 500, (len(image), 2))
    side = np.exp(rng.uniform(np.log(8), np.log(300), (len(image), 2)))
    crowd = rng.random(len(image)) < 0.01
    corners = np.hstack([corner, corner + side])
    truth = BoxTable(image, label, corners, np.ones(len(image)), crowd, areas(corners))

    of = np.repeat(np.arange(images), DETECTIONS)
    near = (np.cumsum(counts) - counts)[of] + (rng.random(len(of)) * counts[of]).astype(int)
    anywhere = rng.random(len(of)) < 0.5
    corner = np.where(anywhere[:, None], rng.uniform(0, 500, (len(of), 2)), corner[near])
    side = side[np.where(anywhere, rng.permutation(near), near)]
    moved = corner + rng.normal(0, 0.08, (len(of), 2)) * side
    side = side * np.exp(rng.normal(0, 0.08, (len(of), 2)))
    other = rng.integers(0, classes, len(of))
    label = np.where(rng.random(len(of)) < 0.7, label[near], other)
    corners = np.hstack([moved, moved + side])
    crowd = np.zeros(len(of), dtype=bool)
    return truth, BoxTable(of, label, corners, rng.random(len(of)), crowd, areas(corners))


def twelve(tables: Tables, images: int, classes: int) -> list[float]:
    """COCO's twelve statistics."""
    matches = by_area(*tables, images, classes)
    ap = [dataset_ap(match) for match in matches]
    recall = [average_recall(matches[0], most) for most in (1, 10, 100)]
    recall += [average_recall(match) for match in matches[1:]]
    return [float(np.nanmean(values)) for values in (ap[0], ap[0][0], ap[0][5], *ap[1:], *recall)]


def replicates(tables: Tables, images: int, classes: int) -> list[float]:
    """mAP, 0.50:0.95, of each of 1,000 resamples of the images."""
    matched = match(*tables, images, classes)
    even = np.full(images, 1 / images)
    weights = np.random.default_rng(0).multinomial(images, even, 1000).astype(np.float32)
    return [float(np.nanmean(dataset_ap(matched, weight=weight))) for weight in weights]


def timed(run: Callable[[], Out], rounds: int) -> tuple[float, Out]:
    """The median of seconds, and the result; a run of more than two seconds is not repeated."""
    seconds: list[float] = []
    while len(seconds) < rounds and max(seconds, default=0) < 2:
        started = time.perf_counter()
        out = run()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds), out


def coco(tables: Tables, images: int, classes: int) -> tuple[dict[str, list], np.ndarray]:
    """Ground truth as COCO's dictionary, detections as (n, 7): image, x, y, w, h, score, class."""
    truth, detections = tables
    boxes, xywh = (np.hstack([t.boxes[:, :2], t.boxes[:, 2:] - t.boxes[:, :2]]) for t in tables)
    keys = ("id", "image_id", "category_id", "iscrowd", "bbox", "area")
    columns = (truth.image, truth.label, truth.crowd.astype(int), boxes, boxes[:, 2] * boxes[:, 3])
    rows = zip(range(1, len(boxes) + 1), *(column.tolist() for column in columns), strict=True)
    annotations = {
        "images": [{"id": i, "width": 640, "height": 640} for i in range(images)],
        "categories": [{"id": i, "name": f"{i}"} for i in range(classes)],
        "annotations": [dict(zip(keys, row, strict=True)) for row in rows],
    }
    return annotations, np.column_stack(
        [detections.image, xywh, detections.score, detections.label]
    )


def peers(
    annotations: dict[str, list], detections: np.ndarray
) -> Iterator[tuple[str, str, Callable]]:
    """The name of each installed library, the goal, and a function that makes a `COCOeval`."""
    if find_spec("hotcoco"):
        import hotcoco

        truth = hotcoco.COCO(annotations)
        yield (
            "hotcoco",
            "≥ 1 ×",
            partial(hotcoco.COCOeval, truth, truth.load_res(detections), "bbox"),
        )
    if find_spec("faster_coco_eval"):
        from faster_coco_eval import COCO as FastCOCO  # noqa: N811
        from faster_coco_eval import COCOeval_faster

        truth = FastCOCO(annotations)
        scored = partial(COCOeval_faster, truth, truth.loadRes(detections), "bbox")
        yield "faster-coco-eval", "≥ 10 ×", scored
    if find_spec("pycocotools"):
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        truth = COCO()
        truth.dataset = annotations
        with contextlib.redirect_stdout(io.StringIO()):
            truth.createIndex()
            results = truth.loadRes(detections)
        yield "pycocotools", "", partial(COCOeval, truth, results, "bbox")


def evaluated(make: Callable) -> object:
    """A `COCOeval` after the timed calls."""
    scored = make()
    with contextlib.redirect_stdout(io.StringIO()):
        scored.evaluate()
        scored.accumulate()
    return scored


def line(title: str, seconds: float, ratio: float = np.nan, goal: str = "") -> None:
    """One line of the table."""
    print(f"{title:<40}{seconds:>10.2f}{'—' if np.isnan(ratio) else f'{ratio:.1f}':>10}  {goal}")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    small = synthetic(20, 30)
    # compiles
    twelve(small, 20, 30)
    frame_ap(match(*small, 20, 30))

    print(f"{'':<40}{'seconds':>10}{'× ours':>10}  goal")
    tables = synthetic(23_000, 30)
    seconds, _ = timed(lambda: frame_ap(match(*tables, 23_000, 30)), rounds)
    line("frame AP of 23,000 frames", seconds, goal="≤ 5 s")
    tables = synthetic(1_109, 30)
    seconds, _ = timed(lambda: replicates(tables, 1_109, 30), rounds)
    line("1,000 replicates of mAP, 1,109 images", seconds, goal="≤ 60 s")
    tables = synthetic(5_000, 80)
    took, numbers = timed(lambda: twelve(tables, 5_000, 80), rounds)
    line("twelve statistics of 5,000 images", took, 1)
    for name, goal, make in peers(*coco(tables, 5_000, 80)):
        seconds, scored = timed(partial(evaluated, make), rounds)
        with contextlib.redirect_stdout(io.StringIO()):
            scored.summarize()
        assert np.allclose(np.array(scored.stats)[:12], numbers, rtol=0, atol=1e-9), name
        line(f"  {name}", seconds, seconds / took, goal)


if __name__ == "__main__":
    main()
