"""The same job done with other tools, in turn, each in a separate process.

    python benchmarks/peers.py [classify] [score] [score-classes] [corrupt] [--rounds 3]
        [--frames FOLDER] [--images 1000] [--classified 10000] [--fiftyone-python PATH]
        [--ultralytics-python PATH] [--imagecorruptions-python PATH]

`classify`: the predictions of EfficientNet-Lite0 for JPEG files, and their accuracy. The other tool
is the loop of PyTorch's tutorials: a `Dataset`, a `DataLoader` with two workers and batches of 16,
the network in eager mode on two threads, torchmetrics' accuracy. steadyeye also writes the sealed
predictions and the report. Frames are links, 500 to the files of a folder.

`score`: mAP of synthetic detections in COCO's files, 36 per image. The others are torchmetrics'
`MeanAveragePrecision` over pycocotools, pycocotools, FiftyOne's `evaluate_detections` and the
numbers of Ultralytics' `val` for the same detections. steadyeye also computes the interval and the
report. The memory of FiftyOne is without its MongoDB.

`score-classes`: the accuracy of predicted classes, 80 classes, in a file; links to one image, which
is not decoded. The other is FiftyOne's `evaluate_classifications` of the same predictions.
steadyeye also computes the interval and the report.

`corrupt`: the fifteen corruptions of ImageNet-C at five severities, of frames of 224 × 224, and the
mean change of a value in grey levels. The other is imagecorruptions, with other random numbers.

FiftyOne, Ultralytics (AGPL-3.0) and imagecorruptions need their own environments: give the Python
of each, as `tools/check_integrations.py` creates them; imagecorruptions 1.1.2 needs
`setuptools<81`, scikit-image and opencv-python-headless. Names that later libraries have dropped
are restored while it runs.

Prints elapsed seconds, the ratio to steadyeye's, the peak memory, and the number: medians of the
rounds. Every job includes the start of Python, which a user waits for, too.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import peer_scripts as scripts
from PIL import Image

SCRIPTS = Path(__file__).resolve().parent.parent / "tests" / "integrations"
SIDE = 224


class Peer(NamedTuple):
    """A script and whose Python runs it; empty: this one."""

    script: str
    environment: str = ""


ENVIRONMENTS = ("fiftyone", "ultralytics", "imagecorruptions")
JOBS = {
    "classify": {
        "steadyeye": Peer(scripts.STEADYEYE_CLASSIFY),
        "DataLoader, eager torch": Peer(scripts.TORCH_CLASSIFY),
    },
    "score": {
        "steadyeye": Peer(scripts.STEADYEYE_SCORE),
        "pycocotools": Peer(scripts.PYCOCOTOOLS),
        "torchmetrics": Peer(scripts.TORCHMETRICS),
        "FiftyOne": Peer(scripts.FIFTYONE, "fiftyone"),
        "Ultralytics val": Peer(scripts.ULTRALYTICS, "ultralytics"),
    },
    "score-classes": {
        "steadyeye": Peer(scripts.STEADYEYE_SCORE_CLASSES),
        "FiftyOne": Peer(scripts.FIFTYONE_CLASSES, "fiftyone"),
    },
    "corrupt": {
        "steadyeye": Peer(scripts.STEADYEYE_CORRUPT),
        "imagecorruptions": Peer(scripts.IMAGECORRUPTIONS, "imagecorruptions"),
    },
}

SCORED = {"score": "map", "score-classes": "accuracy"}
"""Jobs of `steadyeye score`, and the metric of each."""


def link_frames(source: Path, folder: Path, count: int) -> list[str]:
    """A folder of one class with so many links; the argument of the job."""
    files = sorted(source.rglob("*.jpg"))
    place = folder / "frames" / "golden retriever"
    place.mkdir(parents=True)
    for i in range(count):
        (place / f"{i:05}.jpg").symlink_to(files[i % len(files)].resolve())
    return [str(folder / "frames")]


def cut_frames(source: Path, folder: Path, count: int) -> list[str]:
    """The middle of so many frames, far apart, in one file; the argument of the job."""
    files = sorted(source.rglob("*.jpg"))
    middles = []
    for file in files[:: max(len(files) // count, 1)][:count]:
        image = Image.open(file).convert("RGB")
        left, top = ((side - SIDE) // 2 for side in image.size)
        middles.append(np.array(image.crop((left, top, left + SIDE, top + SIDE))))
    np.save(folder / "images.npy", np.stack(middles))
    return [str(folder / "images.npy")]


def write_detections(folder: Path, images: int) -> list[str]:
    """Annotations and results of as many images; the arguments of the job."""
    rng = np.random.default_rng(0)
    truth, detections = [], []
    for image in range(1, images + 1):
        for _ in range(rng.integers(1, 14)):
            box = [*rng.uniform(0, 400, 2), *rng.uniform(10, 140, 2)]
            label = int(rng.integers(1, 81))
            truth.append(write_entry(image, label, box) | {"area": float(box[2] * box[3])})
            for _ in range(2):
                near = np.maximum(np.array(box) + rng.normal(0, 4, 4), 1)
                predicted = label if rng.random() < 0.8 else int(rng.integers(1, 81))
                detections.append(write_entry(image, predicted, near, rng.beta(3, 2)))
        while len(detections) < 36 * image:
            box = [*rng.uniform(0, 400, 2), *rng.uniform(10, 140, 2)]
            detections.append(write_entry(image, int(rng.integers(1, 81)), box, rng.beta(1, 4)))
    content = {
        "images": [{"id": i, "width": 640, "height": 640} for i in range(1, images + 1)],
        "annotations": [{"id": i, "iscrowd": 0} | entry for i, entry in enumerate(truth, start=1)],
        "categories": [{"id": i, "name": f"class {i}"} for i in range(1, 81)],
    }
    files = [folder / "instances.json", folder / "results.json"]
    for file, text in zip(files, (content, detections), strict=True):
        file.write_text(json.dumps(text))
    return list(map(str, files))


def write_classes(folder: Path, count: int) -> list[str]:
    """A folder of so many images in 80 classes and a predicted class each; their paths."""
    rng = np.random.default_rng(0)
    image = folder / "image.jpg"
    Image.new("RGB", (SIDE, SIDE)).save(image)
    names = [f"class {i:02}" for i in range(80)]
    for name in names:
        (folder / "images" / name).mkdir(parents=True)
    predictions = {}
    for i in range(count):
        name = names[i % len(names)]
        (folder / "images" / name / f"{i:05}.jpg").symlink_to(image)
        predictions[f"{name}/{i:05}.jpg"] = name if rng.random() < 0.7 else str(rng.choice(names))
    (folder / "predictions.json").write_text(json.dumps(predictions))
    return [str(folder / "images"), str(folder / "predictions.json")]


def write_entry(image, label, box, score=None):
    """An annotation or, with a score, a result of COCO."""
    entry = {
        "image_id": image,
        "category_id": label,
        "bbox": [round(float(side), 2) for side in box],
    }
    return entry if score is None else entry | {"score": round(float(score), 4)}


def run_job(
    script: str, arguments: list[str], out: Path, python: str = sys.executable
) -> tuple[float, float, str]:
    """Seconds, MB at most, and what was printed last."""
    # no earlier round or run may answer from the cache
    variables = os.environ | {"STEADYEYE_CACHE": "off"}
    if python != sys.executable:
        variables.pop("PYTHONPATH", None)
    started = time.perf_counter()
    running = subprocess.Popen(
        [python, "-c", script, *arguments, str(out), str(SCRIPTS)],
        stdout=subprocess.PIPE,
        text=True,
        env=variables,
    )
    printed = running.stdout.read()
    _, status, usage = os.wait4(running.pid, 0)
    if status:
        raise SystemExit(f"a job ended with {status}")
    seconds = time.perf_counter() - started
    words = [word for word in printed.split() if word.replace(".", "").isdigit()]
    return seconds, usage.ru_maxrss / 1000, words[-1] if words else ""


def read_value(out: Path, metric: str) -> str:
    """The value of a metric in the results of a run."""
    text = (out / "results.json").read_text()
    results = [x for x in walk(json.loads(text)) if str(x.get("name", "")).startswith(metric)]
    return str(results[0]["value"])


def walk(value):
    """All objects within a value of JSON."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            yield from walk(part)


def main() -> None:
    """Prints the tables of the jobs asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("jobs", nargs="*", choices=[*JOBS, []])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--classified", type=int, default=10_000, help="Images of `score-classes`.")
    parser.add_argument("--corrupted", type=int, default=4, help="Frames of `corrupt`.")
    data = Path(os.environ.get("STEADYEYE_TEST_DATA", "../shared/data"))
    parser.add_argument("--frames", type=Path, default=data / "davis" / "JPEGImages")
    for name in ENVIRONMENTS:
        parser.add_argument(f"--{name}-python", help=f"A Python that has {name}.")
    arguments = parser.parse_args()
    pythons = {name: getattr(arguments, f"{name}_python") for name in ENVIRONMENTS}
    for job in arguments.jobs or JOBS:
        with tempfile.TemporaryDirectory() as name:
            words = prepare_job(job, Path(name), arguments)
            print_table(job, time_peers(job, words, pythons | {"": sys.executable}, arguments))


def prepare_job(job: str, folder: Path, arguments: argparse.Namespace) -> list[str]:
    """Writes what a job reads; its arguments."""
    if job == "classify":
        return link_frames(arguments.frames, folder, 500)
    if job == "score":
        return write_detections(folder, arguments.images)
    if job == "score-classes":
        return write_classes(folder, arguments.classified)
    return cut_frames(arguments.frames, folder, arguments.corrupted)


def time_peers(
    job: str, words: list[str], pythons: dict[str, str | None], arguments: argparse.Namespace
) -> dict[str, list[tuple[float, float, str]]]:
    """Of each peer what `run_job` says in each round; nothing of one that has no Python."""
    taken = {peer: [] for peer in JOBS[job]}
    for number in range(arguments.rounds):
        for peer, (script, environment) in JOBS[job].items():
            python = pythons[environment]
            if python is None:
                continue
            out = Path(words[0]).parent / f"out{number}" / peer
            seconds, memory, value = run_job(script, words, out, python)
            if peer == "steadyeye" and job in SCORED:
                value = read_value(out, SCORED[job])
            taken[peer].append((seconds, memory, value))
    return taken


def print_table(job: str, taken: dict[str, list[tuple[float, float, str]]]) -> None:
    """A row a peer: medians of the rounds."""
    own_seconds = statistics.median(seconds for seconds, _, _ in taken["steadyeye"])
    print(f"\n{job}\n| | seconds | ÷ steadyeye | MB | number |\n|---|--:|--:|--:|--:|")
    for peer, rounds in taken.items():
        if not rounds:
            print(f"| {peer} | not installed | | | |")
            continue
        seconds = statistics.median(measurement[0] for measurement in rounds)
        memory = statistics.median(measurement[1] for measurement in rounds)
        print(
            f"| {peer} | {seconds:.1f} | {seconds / own_seconds:.2f} | {memory:,.0f} "
            f"| {float(rounds[-1][2]):.6f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
