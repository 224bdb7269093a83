"""Memory of a run and cost of its report by rows: 10 thousand, 100 thousand, a million.

    python benchmarks/scale.py [--rows 10000 100000 1000000] [--videos 500]

Each size in fresh processes: one runs a model without cost over synthetic pm-sets (21 frames each,
thirty classes, nothing in memory), through the same plan, shards and seal as any run; another
writes its report in HTML, JSON and CSV. Prints the time and the peak resident memory of each, and
the memory of the imports alone.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from steadyeye.core.types import Classes, Sample
from steadyeye.runner.run import Silent

CLASSES = Classes(tuple(f"class {i:02d}" for i in range(30)))
SET = 21  # frames a pm-set, ±10


@dataclass(frozen=True)
class Lazy(Sequence):
    """A sequence whose items are made when they are asked for."""

    rows: int
    make: object

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> object:
        return self.make(index)

    def __iter__(self) -> Iterator[object]:
        return map(self.make, range(self.rows))


@dataclass(frozen=True)
class Synthetic:
    """A `Source` of `rows` frames in pm-sets, each set in one of `videos` videos."""

    rows: int
    videos: int
    name = "synthetic"
    classes = CLASSES
    columns = ("group", "offset", "video", "frame", "truth")
    notes = ()

    @property
    def fingerprint(self) -> str:
        """Changes with what it is made of."""
        return f"{self.rows}-{self.videos}"

    @property
    def ids(self) -> Lazy:
        """The id of every frame."""
        return Lazy(self.rows, lambda i: f"{self._group(i)}/{i % SET:06d}")

    @property
    def truths(self) -> Lazy:
        """The label of every frame: that of its set."""
        return Lazy(self.rows, lambda i: (i // SET % len(CLASSES),))

    def _group(self, i: int) -> str:
        return f"video{i // SET % self.videos:05d}/{i // SET:06d}"

    def missing(self) -> Sequence[str]:
        """Nothing."""
        return ()

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, i: int) -> Sample:
        video = f"video{i // SET % self.videos:05d}"
        tags = {"offset": i % SET - SET // 2, "video": video, "frame": i}
        image = np.full((2, 2, 3), i // SET % len(CLASSES), dtype=np.uint8)
        image[0, 0] = (i % 251, i % 241, i % 239)
        id_ = f"{self._group(i)}/{i % SET:06d}"
        return Sample(id_, lambda: image, (i // SET % len(CLASSES),), self._group(i), tags)


class Guess:
    """A model that costs nothing and is right on four frames of five."""

    name = "guess"
    classes = CLASSES
    fingerprint = "guess"
    recipe = MappingProxyType({})

    def __call__(self, images: Iterator[np.ndarray]) -> np.ndarray:
        """Scores that follow from the pixels."""
        pixels = np.stack([image.reshape(-1) for image in images]).astype(np.int64)
        seeds = pixels[:, 0] * 63001 + pixels[:, 1] * 251 + pixels[:, 2]
        noise = (seeds[:, None] * 2654435761 + np.arange(30) * 40503) % 65536 / 65536
        noise[np.arange(len(pixels)), pixels[:, 3]] += np.where(seeds % 5, 1.0, -1.0)
        return (noise / np.abs(noise).sum(axis=1, keepdims=True)).astype(np.float32)


def peak() -> float:
    """The peak resident memory of this process, in MB."""
    # VmHWM starts at 0 in this process; ru_maxrss would include the parent's
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def part(name: str, out: Path, rows: int, videos: int) -> None:
    """Runs one of the parts in this process, and prints its seconds and its peak."""
    from steadyeye.report import build
    from steadyeye.runner import validate
    from steadyeye.runner.job import Job
    from steadyeye.runner.run import run

    started = time.process_time()
    if name == "run":
        source = Synthetic(rows, videos)
        job = Job(models=("guess",), data=("synthetic",), out=str(out), workers=2, cache="off")
        run(validate.of_objects(job, [Guess()], [("synthetic", source)]), Silent())
    elif name == "report":
        build.write([out], [out / f"report.{suffix}" for suffix in ("html", "json", "csv")])
    print(time.process_time() - started, peak())


def measured(name: str, out: Path, rows: int, videos: int) -> tuple[float, float]:
    """Seconds and megabytes of a part in a process of its own."""
    words = [sys.executable, __file__, "--part", name, "--out", str(out)]
    words += ["--rows", str(rows), "--videos", str(videos)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} of {rows:,} rows: {done.stderr}")
    seconds, megabytes = done.stdout.split()[-2:]
    return float(seconds), float(megabytes)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--videos", type=int, default=500)
    parser.add_argument("--part", choices=("imports", "run", "report"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.part:
        part(options.part, options.out, options.rows[0], options.videos)
        return
    print(f"{'rows':>10}{'imports MB':>12}{'run s':>9}{'run MB':>9}", end="")
    print(f"{'report s':>10}{'report MB':>11}{'shards MB':>11}")
    with tempfile.TemporaryDirectory() as name:
        for rows in options.rows:
            out = Path(name) / str(rows)
            _, base = measured("imports", out, rows, options.videos)
            run = measured("run", out, rows, options.videos)
            report = measured("report", out, rows, options.videos)
            size = sum(path.stat().st_size for path in out.rglob("*.arrow")) / 1e6
            print(f"{rows:>10,}{base:>12.0f}{run[0]:>9.1f}{run[1]:>9.0f}", end="")
            print(f"{report[0]:>10.1f}{report[1]:>11.0f}{size:>11.0f}", flush=True)


if __name__ == "__main__":
    main()
