"""A repeated run with a warm cache compared with the first run, in one process.

    python benchmarks/cache.py [--data FOLDER] [--frames 2000] [--rounds 3]

EfficientNet-Lite0 on `--frames` JPEG files of different content (the test data's, each with a
different comment after its last marker, so that every file is hashed and none is decoded twice). In
turn: a run without a cache, one that fills an empty cache, and one with the warm cache, into new
folders. The plan (loading the model, listing the files) is the same for all three and timed
separately.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from pipeline import SETS, Silent

from steadyeye.runner import validate
from steadyeye.runner.job import Job
from steadyeye.runner.run import run

MODEL = "efficientnet_lite0"


def write_frames(folder: Path, files: list[Path], frames: int) -> None:
    """Fills `folder` with `frames` files that decode like those of the test data, all different."""
    folder.mkdir()
    for i in range(frames):
        content = files[i % len(files)].read_bytes()
        (folder / f"{i:06d}.jpg").write_bytes(content + f"{i:06d}".encode())


def timed(source: str, out: Path, cache: Path | str) -> tuple[float, float]:
    """Seconds of the plan and of the run."""
    started = time.perf_counter()
    job = Job(models=(MODEL,), data=(source,), out=str(out), workers=2, cache=str(cache))
    checked = validate.check(job)
    checked.tasks[0].model([np.zeros((64, 64, 3), dtype=np.uint8)])
    planned = time.perf_counter()
    run(checked, Silent())
    return planned - started, time.perf_counter() - planned


def shards(out: Path) -> list[bytes]:
    """The shards of a run."""
    return [path.read_bytes() for path in sorted(out.rglob("*.arrow"))]


def measure(title: str, files: list[Path], frames: int, rounds: int) -> None:
    """Prints one row of the table."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_frames(root / "frames", files, frames)
        size = sum(path.stat().st_size for path in (root / "frames").iterdir())
        source = f"image_folder(root='{root}/frames')"
        timed(source, root / "warm-up", "off")
        plans, rows = [], []
        for i in range(rounds):
            shutil.rmtree(root / "cache", ignore_errors=True)
            outs = [root / f"{state}{i}" for state in ("off", "cold", "warm")]
            caches = ["off", root / "cache", root / "cache"]
            both = [timed(source, *folders) for folders in zip(outs, caches, strict=True)]
            assert shards(outs[0]) == shards(outs[1]) == shards(outs[2])
            plans.append(both[-1][0])
            rows.append([seconds for _, seconds in both])
        cached = sum(path.stat().st_size for path in (root / "cache").iterdir())
    off, cold, warm = (statistics.median(column) for column in zip(*rows, strict=True))
    print(
        f"{title:<16}{size / frames / 1e3:>8.0f}{off:>9.2f}{cold:>9.2f}{warm:>9.3f}"
        f"{statistics.median(r[1] / r[0] for r in rows):>9.3f}"
        f"{statistics.median(r[2] / r[1] for r in rows):>9.3f}"
        f"{statistics.median(plans):>9.2f}{cached / 1e6:>9.1f}",
        flush=True,
    )


def main() -> None:
    """Prints the table."""
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("STEADYEYE_TEST_DATA", root.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{MODEL}, {options.frames:,} JPEG files, two workers, median of {options.rounds} rounds")
    print(
        f"{'frames':<16}{'kB':>8}{'off s':>9}{'first s':>9}{'again s':>9}"
        f"{'1st÷off':>9}{'again÷1st':>9}{'plan s':>9}{'cache MB':>9}"
    )
    for title, glob in SETS.items():
        measure(title, sorted(options.data.glob(glob)), options.frames, options.rounds)


if __name__ == "__main__":
    main()
