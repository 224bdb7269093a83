"""The simulation of benchmarks/cost.py against cases worked by hand."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

from cost import SHARD, Assumed, Load, Pool, bottleneck, simulate


def test_one_worker_does_one_thing_after_another():
    load = Load(wait=1, decode=2, infer=3, pipe=0.5, driver=4, start=10, spread=0)
    done = simulate(Pool(1, 1, 1), load, shards=2, rows=1)
    # start 10; store until 10.5, waits until 11.5, decodes until 13.5, infers until 16.5; the
    # driver writes until 20.5; the second shard is inferred at 23 and written at 27
    assert done["seconds"] == 27
    assert done["busy"] == pytest.approx(
        {"store": 1 / 17, "cores": 4 / 17, "gpu": 6 / 17, "driver": 8 / 17}
    )


def test_a_worker_waits_until_its_shard_is_written_and_not_for_the_driver():
    load = Load(wait=0, decode=1, infer=0, pipe=0, driver=4, write=2, spread=0)
    # written at 3 and at 6; the driver notes the first until 7 and the second until 11
    assert simulate(Pool(1, 1, 1), load, shards=2, rows=1)["seconds"] == 11
    assert Assumed(task=1, put=2).load(0, 0, 0, times=1) == Load(
        Assumed().latency / SHARD, 0, 0, 0, driver=1, write=4
    )
    assert Assumed(task=1, put=2, shared_store=False).load(0, 0, 0, times=3).driver == 15


def test_a_slow_gpu_is_the_bottleneck_of_two_workers():
    load = Load(wait=0, decode=1, infer=2, pipe=0, driver=0, spread=0)
    done = simulate(Pool(1, 2, 2), load, shards=4, rows=1)
    # decoded at 1, and from then on the GPU never rests: 4 shards of 2 seconds
    assert done["seconds"] == 9
    assert bottleneck(done["busy"]) == "gpu 89%, cores 22%"


def test_without_a_gpu_the_network_takes_the_worker_s_processor():
    load = Load(wait=0, decode=1, infer=2, pipe=0, driver=0, spread=0)
    assert simulate(Pool(1, 2, 2, shared=False), load, shards=4, rows=1)["seconds"] == 6


def test_twice_the_machines_take_half_the_time_until_the_driver_is_full():
    load = Load(wait=0, decode=1, infer=0.1, pipe=0, driver=0.2, spread=0.1)
    single, double, many = (
        simulate(Pool(n, 1, 2), load, 400, rows=1)["seconds"] for n in (1, 2, 50)
    )
    assert double == pytest.approx(single / 2, rel=0.03)
    assert many == pytest.approx(400 * 0.2, rel=0.05)


def test_the_same_seed_gives_the_same_time():
    load = Load(wait=0, decode=1, infer=0.1, pipe=0, driver=0.2)
    first, again, other = (simulate(Pool(1, 2, 3), load, 50, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
