"""Time and memory of `steadyeye score` by images, with two checkouts in turn.

    python benchmarks/scoring.py [--images 12500 25000 50000 100000] [--rounds 1]
        [--against OTHER/src] [--folder FOLDER]

Synthetic detections in COCO's files, 36 per image, 80 classes, as in `benchmarks/peers.py`. Each
command runs in a fresh process from the start of Python to the written report; the first, of 100
images, compiles and is left out. Prints elapsed seconds, processor time and peak resident memory,
medians of the rounds; the growth of the peak from the size before, in bytes per detection; and
whether the numbers and the sealed predictions of both checkouts are identical. `--folder`: the
folder of the synthetic files.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

OWN = Path(__file__).resolve().parent.parent / "src"
DETECTIONS = 36  # an image
WARM = 100  # images of the command that compiles

DRAW = """
import sys
from pathlib import Path
from peers import write_detections
write_detections(Path(sys.argv[1]), int(sys.argv[2]))
"""

SCORE = """
import os, sys, time
from pathlib import Path
from steadyeye.cli import main
data, out = sys.argv[1:]
sys.argv = ["steadyeye", "score", f"{data}/results.json", "--metrics", "map(iou='coco')",
            "--data", f"coco(annotations='{data}/instances.json')", "--out", out, "--quiet"]
started = time.perf_counter()
try:
    main()
finally:
    # VmHWM starts anew with this process; ru_maxrss would count the parent's
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    took = os.times()
    print()
    print(time.perf_counter() - started, took.user + took.system, peak * 1024)
"""


class Cost(NamedTuple):
    """Seconds that passed, seconds of a processor, bytes at the peak, and a digest of results."""

    seconds: float
    processor: float
    peak: int
    digest: str


def draw(folder: Path, images: int) -> Path:
    """The folder with the files of so many images, drawn unless they are there."""
    place = folder / f"d{images}"
    if not (place / "results.json").is_file():
        place.mkdir(parents=True, exist_ok=True)
        paths = str(Path(__file__).parent)
        words = [sys.executable, "-c", DRAW, str(place), str(images)]
        subprocess.run(words, check=True, env=os.environ | {"PYTHONPATH": f"{paths}:{OWN}"})
    return place


def score(source: Path, data: Path) -> Cost:
    """One command with the code of a checkout."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "run"
        words = [sys.executable, "-c", SCORE, str(data), str(out)]
        environment = os.environ | {"PYTHONPATH": str(source)}
        done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
        seconds, processor, peak = done.stdout.split()[-3:]
        return Cost(float(seconds), float(processor), int(peak), digest(out))


def digest(run: Path) -> str:
    """Of the numbers of a run and of all its shards."""
    results = json.loads((run / "results.json").read_text())
    content = hashlib.sha256(json.dumps([results["headline"], results["results"]]).encode())
    for shard in sorted(run.glob("cells/*/*.arrow")):
        content.update(shard.read_bytes())
    return content.hexdigest()


def measure(sources: list[Path], data: Path, rounds: int) -> Iterator[Cost]:
    """The medians of each checkout's costs, in turn."""
    costs = [[score(source, data) for source in sources] for _ in range(rounds)]
    for several in zip(*costs, strict=True):
        seconds, processor, peak, digests = zip(*several, strict=True)
        assert len(set(digests)) == 1, "another round gave other numbers"
        middle = map(statistics.median, (seconds, processor, peak))
        yield Cost(*middle, digests[0])


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, nargs="+", default=[12_500, 25_000, 50_000, 100_000])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    sources = [path.resolve() for path in (options.against, OWN) if path]
    names = ("before", "after") if options.against else ("",)
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        for source in sources:
            score(source, draw(folder, WARM))
        print(f"{'images':>8}{'':>8}{'s':>8}{'cpu s':>8}{'MB':>8}{'B a detection':>15}  same")
        last: list[tuple[int, Cost]] = []
        for images in options.images:
            costs = list(measure(sources, draw(folder, images), options.rounds))
            same = len({cost.digest for cost in costs}) == 1
            for place, (label, cost) in enumerate(zip(names, costs, strict=True)):
                grown = ""
                if last:
                    fewer, before = last[place]
                    more = DETECTIONS * (images - fewer)
                    grown = f"{(cost.peak - before.peak) / more:.0f}"
                print(f"{images:>8,}{label:>8}{cost.seconds:>8.1f}{cost.processor:>8.1f}", end="")
                print(f"{cost.peak / 1e6:>8.0f}{grown:>15}  {same}", flush=True)
            last = [(images, cost) for cost in costs]


if __name__ == "__main__":
    main()
