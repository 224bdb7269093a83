"""Throughput of the Ray engine against the local one, and how two nodes share the work.

    python benchmarks/cluster.py [--data FOLDER] [--frames 2000] [--rounds 3]

The same frames by local threads and by as many actors, in turn, so that a noisy machine disturbs
both. The clock of a run starts at its first finished shard: what comes before, Ray itself and the
actors with their models, is told apart as the start. A ratio is local time ÷ Ray time.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster as Nodes

from steadyeye.evaluation import plan
from steadyeye.evaluation.engines import local
from steadyeye.evaluation.job import Job
from steadyeye.evaluation.run import run


class Clock:
    """A watcher that notes when rows are done."""

    def __init__(self):
        self.began = time.perf_counter()
        self.times = []
        self.rows = []

    def begin(self, name, rows):
        """Notes the time of each finished shard."""

        def advance(done):
            if done:
                self.times.append(time.perf_counter())
                self.rows.append(done)

        return advance

    def resumed(self, name, finished, shards):
        """Nothing is found here."""

    def counted(self, name, found):
        """Nothing to do."""

    def say(self, line):
        """Nothing to do."""

    @property
    def start(self):
        """Seconds to the first shard."""
        return self.times[0] - self.began

    @property
    def steady(self):
        """Rows a second after the first shard."""
        return sum(self.rows[1:]) / (self.times[-1] - self.times[0])


def measured(data, engine, workers):
    """One run: its clock, and the shards of each node."""
    out = Path(tempfile.mkdtemp(prefix="steadyeye-cluster-"))
    job = Job(("efficientnet_lite0",), (data,), str(out), engine=engine, workers=workers)
    checked, clock = plan.check(job), Clock()
    run(checked, clock)
    events = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    shutil.rmtree(out)
    return clock, next((event["nodes"] for event in events if "nodes" in event), {})


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
    asked = parser.parse_args()
    # Ray keeps no answers, so neither may the other
    os.environ["STEADYEYE_CACHE"] = "off"
    folder = Path(tempfile.mkdtemp(prefix="steadyeye-frames-"))

    linked(asked.data, folder, asked.frames)
    data = f"image_folder(root='{folder}')"
    workers = local.cores()
    ratios, starts = [], []
    for _ in range(asked.rounds):
        here, _ = measured(data, "local", workers)
        there, _ = measured(data, f"ray(least={workers}, most={workers})", 0)
        ratios.append(there.steady / here.steady)
        starts.append((here.start, there.start))
        print(f"local {here.steady:6.1f} images/s, Ray {there.steady:6.1f}: {ratios[-1]:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f} with {workers} workers")
    told = [statistics.median(column) for column in zip(*starts, strict=True)]
    print(f"to the first shard: local {told[0]:.1f} s, Ray {told[1]:.1f} s")
    head = {"num_cpus": 1, "include_dashboard": False}
    nodes = Nodes(initialize_head=True, head_node_args=head)
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False)
    _, shards = measured(data, "ray(least=2, most=2)", 0)
    print(f"two nodes of one processor each: shards {sorted(shards.values())}")
    ray.shutdown()
    nodes.shutdown()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
