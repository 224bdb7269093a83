"""Processor time of `steadyeye report` on some runs, with one checkout or two.

    python benchmarks/report_time.py runs/demo runs/sweep [--rounds 5] [--against ../other/src]

Each report is a separate process, from its start to its end, user and system time together. Two
checkouts take turns, so that a busy machine affects both: read the ratio. Modules are compiled
once, as those of an installed package, whatever PYTHONDONTWRITEBYTECODE is.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent / "src"


def time_report(source: Path, run: str, folder: Path) -> float:
    """Seconds of processor time of a report, by the package in the folder `source`.

    `folder`: where the report and compiled modules are written.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = folder / "report.html"
    words = [sys.executable, "-m", "steadyeye", "report", run, "--out", str(out)]
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder)}
    environment = {**os.environ, **compiled, "PYTHONPATH": str(source)}
    subprocess.run(words, check=True, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(sources: Sequence[Path], run: str, rounds: int) -> list[list[float]]:
    """(sources, rounds) seconds, after one report each that counts for nothing."""
    taken: list[list[float]] = [[] for _ in sources]
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds + 1):
            for source, times in zip(sources, taken, strict=True):
                seconds = time_report(source, run, Path(folder))
                if turn:
                    times.append(seconds)
    return taken


def main() -> None:
    """Prints a row a run: least and median of each checkout, and the ratio of the least."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", type=Path, help="the src folder of another checkout")
    arguments = parser.parse_args()
    sources = [HERE, *([arguments.against.resolve()] if arguments.against else [])]
    print(
        "| run | least, s | median, s |"
        + (" other least, s | ratio |" if arguments.against else "")
    )
    print("|---|---|---|" + ("---|---|" if arguments.against else ""))
    for run in arguments.runs:
        own, *other = measure(sources, run, arguments.rounds)
        row = f"| {Path(run).name} | {min(own):.2f} | {statistics.median(own):.2f} |"
        if other:
            row += f" {min(other[0]):.2f} | {min(own) / min(other[0]):.2f} |"
        print(row, flush=True)


if __name__ == "__main__":
    main()
