"""Memory and time of opening tar shards by samples: the first time, and with the cached index.

    python benchmarks/tars.py [--samples 10000 100000 1000000] [--tar 10000]

Tars of `--tar` samples each, an image of one pixel and its class. Each opening is a separate
process: `first` reads every header and caches the index, `again` opens the cached index, `plan`
also checks ids and labels as a run does before inference. Prints the processor's seconds, resident
bytes per sample beyond an import of the package, the peak beyond it, and the number of tars that
were read completely.
"""

import argparse
import gc
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import simplejpeg

CLASSES = 1000


def header(name: str, size: int) -> bytes:
    """The header of a file in a tar (POSIX ustar)."""
    parts = (name.encode().ljust(100, b"\0"), b"0000644\0", b"0000000\0", b"0000000\0")
    block = b"".join(parts) + f"{size:011o}\0{0:011o}\0".encode() + b" " * 8 + b"0"
    block = (block + b"\0" * 100 + b"ustar\x0000").ljust(512, b"\0")
    return block[:148] + f"{sum(block):06o}\0 ".encode() + block[156:]


def write_tars(folder: Path, samples: int, per_tar: int) -> None:
    """Tars that hold so many samples."""
    image = simplejpeg.encode_jpeg(np.zeros((1, 1, 3), dtype=np.uint8))
    body = image.ljust(-(-len(image) // 512) * 512, b"\0")
    folder.mkdir()
    for number, start in enumerate(range(0, samples, per_tar)):
        with (folder / f"train-{number:06d}.tar").open("wb") as file:
            for i in range(start, min(start + per_tar, samples)):
                label = str(i * 7919 % CLASSES).encode()
                file.write(header(f"{i:09d}.jpg", len(image)) + body)
                file.write(header(f"{i:09d}.cls", len(label)) + label.ljust(512, b"\0"))
            file.write(b"\0" * 1024)


def resident(line: str) -> int:
    """Bytes of this process: `VmRSS` that are resident, `VmHWM` that were at the most."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{line}:")[1].split()[0]) * 1024


def part(name: str, folder: Path) -> None:
    """Opens the tars in this process and prints what it took."""
    from steadyeye.core.storage import tar_index
    from steadyeye.core.types import Classes
    from steadyeye.data.sources.webdataset import webdataset
    from steadyeye.runner import validate
    from steadyeye.runner.job import Job

    read = []
    entries = tar_index.list_entries
    tar_index.list_entries = lambda tar: read.append(tar) or entries(tar)
    text = f"webdataset(urls='{folder}', classes='imagenet1k')"
    if name == "imports":
        print(0, resident("VmRSS"), resident("VmHWM"), 0, 0)
        return
    started = time.process_time()
    source = webdataset(str(folder), "imagenet1k")
    if name == "plan":
        model = type("Any", (), {"name": "any", "fingerprint": "any", "recipe": {}})()
        model.classes = Classes(source.classes.names)
        validate.of_objects(Job(models=("any",), data=(text,), out="-"), [model], [(text, source)])
    took = time.process_time() - started
    gc.collect()
    stays, peak = resident("VmRSS"), resident("VmHWM")
    indices = random.Random(1).choices(range(len(source)), k=2000)
    started = time.process_time()
    for i in indices:
        source[i].key()
    print(took, stays, peak, len(read), (time.process_time() - started) / len(indices))


def measured(name: str, folder: Path, cache: Path) -> list[float]:
    """What `part` prints, of a process of its own."""
    words = [sys.executable, __file__, "--part", name, "--folder", str(folder)]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
    )
    if done.returncode:
        raise SystemExit(f"{name} of {folder}: {done.stderr}")
    return [float(word) for word in done.stdout.split()]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--tar", type=int, default=10_000)
    parser.add_argument("--part", choices=("imports", "first", "again", "plan"))
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.part:
        part(options.part, options.folder)
        return
    print(f"{'samples':>10}{'opening':>9}{'s':>8}{'µs each':>9}{'B stays':>9}{'B peak':>9}", end="")
    print(f"{'tars read':>11}{'µs a key':>10}{'index B':>9}")
    for samples in options.samples:
        with tempfile.TemporaryDirectory() as name:
            folder, cache = Path(name) / "tars", Path(name) / "cache"
            write_tars(folder, samples, options.tar)
            base = measured("imports", folder, cache)
            for phase in ("first", "again", "plan"):
                took, stays, peak, read, key = measured(phase, folder, cache)
                size = sum(path.stat().st_size for path in cache.rglob("*.arrow")) / samples
                print(f"{samples:>10,}{phase:>9}{took:>8.1f}{took / samples * 1e6:>9.1f}", end="")
                print(
                    f"{(stays - base[1]) / samples:>9.0f}{(peak - base[2]) / samples:>9.0f}", end=""
                )
                print(f"{read:>11,.0f}{key * 1e6:>10.0f}{size:>9.0f}", flush=True)


if __name__ == "__main__":
    main()
