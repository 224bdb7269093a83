"""Profiles of a degraded detector compared with a plain loop with pycocotools, on real pictures.

    python benchmarks/detector_degradation.py MODEL --data DATA --levels 0,1,3 --out FOLDER
    python benchmarks/detector_degradation.py MODEL --operators "imagenet_c, imagenet_c_extra" \
        --levels 1:5 --out FOLDER

`MODEL`: a spec of a detector; `DATA`: a spec of `coco(…)`. Without `--data` the pictures are 32 of
COCO and 68 frames of DAVIS, evenly over its ten sequences, from the folder `--pictures`, which are
written to `FOLDER/pictures`. `steadyeye degrade` sweeps each operator (of `--operators`, names or
groups; by default all that need no gradient, and all corruptions) at the levels. Then every picture
is degraded and detected again, one at a time, and the boxes of each level are saved below
`FOLDER/plain`; COCOeval and a plain count of found objects score them. Prints the largest
difference of each operator, then that of all, with mPC and rPC of both. The same command resumes;
after a change of the code use another `FOLDER`.
"""

import argparse
import contextlib
import io
import json
import os
import shutil
import time
from pathlib import Path

import cv2
import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from scipy.optimize import linear_sum_assignment

from steadyeye.core import plugins
from steadyeye.core.spec import parse
from steadyeye.degradation.counter_rng import stream_key
from steadyeye.degradation.operator import Context
from steadyeye.metrics.degraded_recall import degraded_recall
from steadyeye.metrics.map_failure_points import map_failure_points
from steadyeye.metrics.mpc import mpc
from steadyeye.metrics.rpc import rpc
from steadyeye.predictions.read import cells, read
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent, run
from steadyeye.runner.sweep import levels as read_levels
from steadyeye.runner.sweep import operators as find_operators
from steadyeye.runner.validate import check

EVERYTHING = "all, imagenet_c, imagenet_c_extra"
SHARED = Path(os.environ.get("STEADYEYE_TEST_DATA", "../shared/data"))
SCORE = 0.5
FRAMES = 68
DAVIS = {
    "blackswan": "bird",
    "bmx-trees": "bicycle",
    "car-shadow": "car",
    "dog": "dog",
    "drift-straight": "car",
    "goat": "sheep",
    "horsejump-high": "horse",
    "kite-surf": "person",
    "motocross-jump": "motorcycle",
    "scooter-black": "motorcycle",
}
"""The class of COCO nearest to the object of each sequence's masks."""


def collect_pictures(data, folder):
    """Copies the pictures into a folder with their boxes.json; the spec of the source of both."""
    root = data / "coco" / "tinycoco"
    content = json.loads((root / "annotations" / "instances_train2017.json").read_text())
    shutil.copytree(root / "images" / "train2017", folder / "images", dirs_exist_ok=True)
    numbers = {row["name"]: row["id"] for row in content["categories"]}
    frames = sorted((data / "davis" / "JPEGImages").glob("*/*.jpg"))
    for place in np.linspace(0, len(frames) - 1, FRAMES).round().astype(int):
        frame = frames[place]
        name, sequence = f"{frame.parent.name}-{frame.name}", frame.parent.name
        shutil.copyfile(frame, folder / "images" / name)
        mask_file = str(frame.with_suffix(".png")).replace("JPEGImages", "Annotations")
        mask = (cv2.imread(mask_file, cv2.IMREAD_GRAYSCALE) > 0).astype(np.uint8)
        image = {"id": 10**9 + int(place), "file_name": name}
        content["images"].append({**image, "width": mask.shape[1], "height": mask.shape[0]})
        content["annotations"].append(
            {
                "id": 10**13 + int(place),
                "image_id": image["id"],
                "category_id": numbers[DAVIS[sequence]],
                "bbox": list(map(float, cv2.boundingRect(mask))),
                "area": float(mask.sum()),
                "iscrowd": 0,
            }
        )
    (folder / "boxes.json").write_text(json.dumps(content))
    return f"coco(annotations='{folder / 'boxes.json'}', images='{folder / 'images'}')"


def score(truth, categories, images, detections):
    """MAP 0.50:0.95 of plain results, by COCOeval."""
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {"images": images, "categories": categories, "annotations": truth}
        coco.createIndex()
        annotations = [
            {**row, "id": i, "area": row["bbox"][2] * row["bbox"][3]}
            for i, row in enumerate(detections, 1)
        ]
        other = COCO()
        other.dataset = {"images": images, "categories": categories, "annotations": annotations}
        other.createIndex()
        evaluation = COCOeval(coco, other, "bbox")
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
        evaluation.evaluate()
        evaluation.accumulate()
        precision = evaluation.eval["precision"][:, :, :, 0, -1]
    by_class = np.where(precision < 0, np.nan, precision).mean(axis=(0, 1))
    return float(np.nanmean(by_class))


def count_found(objects, detections):
    """Which objects of one picture are found: the largest number, then the largest overlap."""
    strong = [(box, label) for box, label, value in detections if value >= SCORE]
    worth = np.zeros((len(objects), len(strong)))
    for i, (true, own) in enumerate(objects):
        for j, (box, label) in enumerate(strong):
            shared = overlap(true, box)
            worth[i, j] = 1000 + shared if label == own and shared >= 0.5 else 0
    pairs = zip(*linear_sum_assignment(-worth), strict=True)
    matched_objects = {int(i) for i, j in pairs if worth[i, j]}
    return [i in matched_objects for i in range(len(objects))]


def overlap(a, b):
    """IoU of two boxes."""
    sides = [max(0.0, min(a[2 + k], b[2 + k]) - max(a[k], b[k])) for k in (0, 1)]
    both = sides[0] * sides[1]
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def detect_plainly(model, source, operator, level, to_data):
    """The detections of each picture at a level, computed one at a time."""
    answers = []
    for index in range(len(source)):
        sample = source[index]
        image = np.asarray(sample.image())
        if level:
            context = Context(stream_key(0, sample.id, operator.name))
            image = operator.start(image, context)(level)
        (detections,) = model([image])
        answers.append(
            [
                (box.tolist(), int(to_data[label]), float(value))
                for box, label, value in zip(
                    detections.boxes, detections.labels, detections.scores, strict=True
                )
                if to_data[label] >= 0
            ]
        )
    return answers


def read_or_write(file, detect):
    """The content of a file of an earlier run; otherwise that of `detect`, written to the file."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".new")
        unfinished.write_text(json.dumps(detect()))
        unfinished.replace(file)
    return json.loads(file.read_text())


def write_results(answers):
    """Detections as rows of COCO's results."""
    return [
        {
            "image_id": i,
            "category_id": int(label),
            "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]],
            "score": value,
            "iscrowd": 0,
        }
        for i, rows in enumerate(answers)
        for box, label, value in rows
    ]


def list_truth(source):
    """The true boxes as COCO's annotations, and without crowds as (box, class) of each picture."""
    rows, objects = [], []
    for index in range(len(source)):
        boxes = source[index].boxes
        objects.append([])
        parts = zip(boxes.boxes.tolist(), boxes.labels, boxes.crowd, boxes.area, strict=True)
        for box, label, crowd, area in parts:
            rows.append(
                {
                    "id": len(rows) + 1,
                    "image_id": index,
                    "category_id": int(label),
                    "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]],
                    "area": float(area),
                    "iscrowd": int(crowd),
                }
            )
            if not crowd:
                objects[-1].append((box, int(label)))
    return rows, objects


def sweep(options, data, operator):
    """The predictions that `steadyeye degrade` stores of one operator at all levels."""
    job = Job(
        (options.model,),
        (data,),
        str(options.out / "sweep" / operator.name),
        operators=operator.name,
        levels=options.levels,
        metrics="mpc, rpc",
        workers=options.workers,
    )
    folder = run(check(job), Silent())
    return read(*cells(Path(folder))[0])


def by_level(result):
    """The cells of the one operator of a result, by their levels."""
    (operator,) = result.cells
    return {int(cell.name.removeprefix("level ")): cell.value for cell in operator.cells}


class Pictures:
    """The pictures with their true boxes, and the detections of them that are made plainly."""

    def __init__(self, options, data, to_data, classes):
        self.source = plugins.build("sources", parse(data))
        self.model = plugins.build("models", parse(options.model))
        self.to_data, self.folder = to_data, options.out / "plain"
        self.truth, self.objects = list_truth(self.source)
        self.images = [{"id": i} for i in range(len(self.source))]
        self.categories = [{"id": i} for i in range(classes)]
        self.clean, first = self.judge(None, 0)
        self.at_first = [(i, k) for i, row in enumerate(first) for k, own in enumerate(row) if own]

    def judge(self, operator, level):
        """The mAP at a level, and the found objects of each picture."""
        file = self.folder / f"{operator.name if operator else 'clean'}-{level:02}.json"
        answers = read_or_write(
            file, lambda: detect_plainly(self.model, self.source, operator, level, self.to_data)
        )
        value = score(self.truth, self.categories, self.images, write_results(answers))
        return value, [count_found(o, a) for o, a in zip(self.objects, answers, strict=True)]

    def measure(self, operator, level):
        """The mAP at a level, and the share found of the objects that are found at level 0."""
        value, flags = self.judge(operator, level)
        return value, float(np.mean([flags[i][k] for i, k in self.at_first]))


def compare_operator(table, pictures, operator, levels):
    """The numbers of both ways for one operator, and their differences."""
    maps, recall = mpc(table), by_level(degraded_recall(table))
    level_maps = by_level(maps)
    plain = [pictures.measure(operator, level) for level in levels]
    values, shares = np.array(plain).T
    apart = np.abs([pictures.clean, *values] - np.array([level_maps[at] for at in (0, *levels)]))
    return {
        "levels": len(levels),
        "mAP apart": apart.max(),
        "objects apart": np.abs(shares - [recall[at] for at in levels]).max(),
        "plain mPC": values.mean(),
        "mPC": maps.value,
        "rPC": rpc(table).value,
    }


def compare(options):
    """Both ways, operator by operator, and their differences."""
    names = options.operators or EVERYTHING
    data = options.data or collect_pictures(options.pictures, options.out / "pictures")
    refuse_other(options.out / "compared.json", {"model": options.model, "data": data})
    built = find_operators(names, gradients=False)
    chosen_levels = read_levels(options.levels, built)
    pictures, rows, points = None, [], {}
    for operator in built:
        begin = time.perf_counter()
        table = sweep(options, data, operator)
        swept = time.perf_counter()
        if pictures is None:
            pictures = Pictures(options, data, table.model_to_data_class, len(table.classes))
        levels = [level for level in chosen_levels if 0 < level <= operator.last]
        row = compare_operator(table, pictures, operator, levels)
        rows.append(row)
        print(
            f"{operator.name}: {row['levels']} levels, mPC {row['plain mPC']:.4f}; largest "
            f"difference: mAP {row['mAP apart']:.2g}, objects found {row['objects apart']:.2g}; "
            f"sweep {swept - begin:.0f} s, plain loop {time.perf_counter() - swept:.0f} s",
            flush=True,
        )
        (cell,) = map_failure_points(table).cells
        points[operator.name] = [place.value for place in cell.cells]
    (options.out / "points.json").write_text(json.dumps(points, indent=1))
    summarize(rows, pictures)


def summarize(rows, pictures):
    """Prints the largest difference of all operators, and their mPC and rPC both ways."""
    all_of = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    plain, mean_mpc = all_of["plain mPC"].mean(), all_of["mPC"].mean()
    print(
        f"{len(pictures.source)} pictures, {all_of['levels'].sum()} levels of {len(rows)} operators"
    )
    print(
        f"largest difference: mAP {all_of['mAP apart'].max():.2g}, "
        f"objects found {all_of['objects apart'].max():.2g}"
    )
    print(f"mPC {plain:.6f} and {mean_mpc:.6f}", end="; ")
    print(f"rPC {plain / pictures.clean:.6f} and {all_of['rPC'].mean():.6f}")
    print(f"mAP at level 0 {pictures.clean:.6f}; {len(pictures.at_first)} objects found there")


def refuse_other(file, job):
    """Stops if a folder has results of another model or other pictures."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_text(json.dumps(job))
    elif json.loads(file.read_text()) != job:
        raise SystemExit(f"{file.parent} is of {file.read_text()}; take another --out")


def main():
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--data", default="")
    parser.add_argument("--pictures", type=Path, default=SHARED)
    parser.add_argument("--operators", default="")
    parser.add_argument("--levels", default="0,1,3")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    compare(parser.parse_args())


if __name__ == "__main__":
    main()
