"""Throughput of Ray actors and of worker processes compared with threads, and the driver's traffic.

    python benchmarks/cluster.py [--data FOLDER] [--frames 2000] [--rounds 3]

The same frames by local threads, by as many actors and by as many processes, in turn, so that a
noisy machine disturbs all of them. A rate is that of the middle eight tenths of the frames: before
them not every worker has its model yet, after them not every one has work left. The time to the
first finished shard, for Ray itself and the workers with their models, is printed separately. A
ratio is the rate divided by that of threads in the same round. Then the same ratio for a Python
model that holds the interpreter's lock; how two Ray nodes share the work; and the traffic of the
driver if actors reach its folder and if they do not, with its peak memory.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np
import ray
from clock import Clock
from ray.cluster_utils import Cluster as Nodes

from steadyeye.runner import threads as thread_engine
from steadyeye.runner import validate
from steadyeye.runner.engines import work_order
from steadyeye.runner.job import Job
from steadyeye.runner.run import run


def busy(images):
    """A model that holds the interpreter's lock, about 5 ms an image."""
    rows = []
    for image in images:
        total = 0
        for value in image[::2, ::2].tobytes()[:60000]:
            total += value
        rows.append([total % 255, 255 - total % 255])
    return np.array(rows, dtype=np.float32)


def measured(data, engine, workers, model="efficientnet_lite0"):
    """One run: its clock, and what its log says of the engine."""
    out = Path(tempfile.mkdtemp(prefix="steadyeye-cluster-"))
    job = Job((model,), (data,), str(out), engine=engine, workers=workers)
    checked, clock = validate.check(job), Clock()
    run(checked, clock)
    events = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    shutil.rmtree(out)
    return clock, next((event for event in events if "sent" in event), {})


def compared(name, data, engines, rounds, model="efficientnet_lite0"):
    """Prints the rates of engines in rounds, and the median ratio of each to the first."""
    ratios, starts = {engine: [] for engine in engines}, {engine: [] for engine in engines}
    for _ in range(rounds):
        clocks = {engine: measured(data, *engines[engine], model)[0] for engine in engines}
        first = next(iter(clocks.values())).steady
        lines = []
        for engine, clock in clocks.items():
            ratios[engine].append(clock.steady / first)
            starts[engine].append(clock.start)
            lines.append(f"{engine} {clock.steady:6.1f}/s ({clock.steady / first:.2f})")
        print(f"{name}: {', '.join(lines)}", flush=True)
    for engine in list(engines)[1:]:
        low, high = min(ratios[engine]), max(ratios[engine])
        print(
            f"{name}: {engine} ÷ threads {statistics.median(ratios[engine]):.2f} "
            f"(median of {rounds}; {low:.2f} to {high:.2f}); to the first shard "
            f"{statistics.median(starts[engine]):.1f} s"
        )


def carried(data, reached):
    """Prints the traffic of the driver of a run on Ray, and its peak memory.

    `reached`: whether actors can reach its folder; if not, they send their results.
    """
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    with nullcontext() if reached else patch.object(work_order, "write_lightly", lambda *_: None):
        _, event = measured(data, "ray(least=2, most=2)", 0)
    peak = next(x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x)
    where = "reach the folder" if reached else "do not reach the folder"
    print(
        f"actors that {where}: {event['written']} shards written by them, "
        f"{event['sent'] / 1e6:.2f} MB through the driver, "
        f"whose peak is {int(peak.split()[1]) / 1e3:.0f} MB",
        flush=True,
    )
    return event


def linked(source, folder, most):
    """A folder of links to `most` frames, each file taken many times."""
    files = sorted(source.glob("davis/JPEGImages/*/*.jpg"))
    for i in range(most):
        (folder / f"{i:06d}.jpg").symlink_to(files[i % len(files)].resolve())


def main():
    """Prints the tables."""
    default = os.environ.get("STEADYEYE_TEST_DATA", "../shared/data")
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    # no earlier round may answer from the cache
    os.environ["STEADYEYE_CACHE"] = "off"
    folder = Path(tempfile.mkdtemp(prefix="steadyeye-frames-"))

    linked(arguments.data, folder, arguments.frames)
    data = f"image_folder(root='{folder}')"
    count = thread_engine.cores()
    threads, processes = ("local", count), (f"local(processes={count})", 0)
    actors = (f"ray(least={count}, most={count})", 0)
    engines = {"threads": threads, "processes": processes, "Ray": actors}
    compared("EfficientNet-Lite0", data, engines, arguments.rounds)
    locked = {"threads": threads, "processes": processes}
    compared(
        "a model in Python", data, locked, arguments.rounds, "callable(path='py:cluster:busy')"
    )
    head = {"num_cpus": 1, "include_dashboard": False}
    nodes = Nodes(initialize_head=True, head_node_args=head)
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False)
    carried(data, reached=False)
    event = carried(data, reached=True)
    print(f"two nodes of one processor each: shards {sorted(event['nodes'].values())}")
    ray.shutdown()
    nodes.shutdown()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
