"""Throughput of a whole sweep compared with the bare forward pass of the same network.

    python benchmarks/sweep.py [--data FOLDER] [--images 24] [--rounds 3]

The bare loop has its tensors prepared and does only ONNX Runtime forward passes of one image per
call, on two one-thread sessions. The sweep reads and decodes photos, degrades them level by level
with the fourteen operators that need no gradient, measures the changed pixels, prepares, infers,
writes and seals, with two workers. Both run in turn, so that a noisy machine disturbs both; the
ratio is bare time ÷ sweep time for the same number of forward passes.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from pipeline import Silent, bare, exported, linked

from steadyeye.core import plugins
from steadyeye.core.spec import Spec
from steadyeye.data.images import image_file
from steadyeye.runner import validate
from steadyeye.runner.job import Job
from steadyeye.runner.run import run
from steadyeye.runner.sweep import operators as find_operators

FRAMES = "davis/JPEGImages/*/*.jpg"
TENSORS = 512


def list_operators() -> list[str]:
    """The operators of Swingler 2022 that need no gradient."""
    return [operator.name for operator in find_operators("all", gradients=False)]


def sweep(name: str, source: str, operators: str, out: Path) -> tuple[int, float]:
    """Forward passes and seconds of a sweep, its plan made beforehand."""
    job = Job((name,), (source,), str(out), workers=2, operators=operators, cache="off")
    checked = validate.check(job)
    checked.tasks[0].model([np.zeros((224, 224, 3), dtype=np.uint8)])
    started = time.perf_counter()
    run(checked, Silent())
    return len(checked.tasks[0].source), time.perf_counter() - started


def main() -> None:
    """Prints the ratio, operators together and one by one."""
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("STEADYEYE_TEST_DATA", root.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--images", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--each", action="store_true", help="also each operator on its own")
    options = parser.parse_args()
    name = "efficientnet_lite0"
    files = sorted(Path(options.data).glob(FRAMES))
    files = files[:: len(files) // options.images][: options.images]
    model = plugins.build("models", Spec(name))
    tensors = np.empty((TENSORS, 3, *model.settings.preprocessing.size), dtype=np.float32)
    for i, tensor in enumerate(tensors):
        model.settings.preprocessing(image_file.read(files[i % len(files)]), tensor)
    network = exported(name, tensors[:1])
    every = list_operators()
    jobs = [("all", ", ".join(every))] + [(n, n) for n in every if options.each]
    print(f"{name}, {len(files)} photos, median of {options.rounds} rounds")
    print(f"{'operators':<16}{'passes':>9}{'bare /s':>9}{'sweep /s':>10}{'sweep÷bare':>12}")
    with tempfile.TemporaryDirectory() as folder:
        linked(Path(folder) / "photos", files, len(files))
        (Path(folder) / "labelled").mkdir()
        (Path(folder) / "photos").rename(Path(folder) / "labelled" / "goldfish")
        source = f"image_folder(root='{folder}/labelled', classes='imagenet1k')"
        for title, operators in jobs:
            times = []
            for i in range(options.rounds):
                passes, swept = sweep(name, source, operators, Path(folder) / f"{title}{i}")
                times.append((bare(network, tensors, passes)[0], swept))
            ratio = statistics.median(bare_time / other for bare_time, other in times)
            rates = [passes / statistics.median(column) for column in zip(*times, strict=True)]
            print(f"{title:<16}{passes:>9,}{rates[0]:>9.0f}{rates[1]:>10.0f}{ratio:>12.3f}")


if __name__ == "__main__":
    main()
