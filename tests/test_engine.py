"""How the local engine hands out work, decodes ahead and writes behind."""

import threading
import time
from functools import partial

import pytest

from steadyeye.core import tally
from steadyeye.evaluation import ahead
from steadyeye.evaluation.engines import local
from steadyeye.evaluation.engines.turns import Turns
from steadyeye.predictions.cell import Cell


def test_workers_get_stretches_and_then_half_of_the_longest():
    turns = Turns([0, 1, 2, 3, 4, 5, 6, 7], 2)
    assert [turns.next(0) for _ in range(4)] == [0, 1, 2, 3]
    assert turns.next(1) == 4
    # of 5, 6 and 7 the other one keeps the first
    assert [turns.next(0), turns.next(0)] == [6, 7]
    assert [turns.next(1), turns.next(1), turns.next(0)] == [5, None, None]


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_every_shard_is_handed_out_once(workers):
    turns = Turns(range(5, 25), workers)
    found = []
    for turn in range(100):
        # worker 0 is asked twice as often as the others together
        shard = turns.next(0 if turn % 3 else turn % workers)
        found += [] if shard is None else [shard]
    assert sorted(found) == list(range(5, 25))


def test_a_helper_makes_things_ahead_in_their_order_and_not_too_many():
    made, seen = [], []

    def make(i):
        made.append((i, threading.current_thread()))
        with tally.timed("decode"):
            return i

    with ahead.helped(True), tally.collected() as took:
        for i in ahead.made(partial(make, i) for i in range(20)):
            seen.append(i)
            time.sleep(0.001)
            assert len(made) <= i + 1 + ahead.AHEAD
    assert seen == list(range(20)) == [i for i, _ in made]
    assert {thread for _, thread in made} - {threading.current_thread()}
    assert len({thread for _, thread in made}) == 1
    assert took["decode"] > 0


def test_without_a_helper_nothing_is_made_before_it_is_due():
    made = []
    found = ahead.made(partial(made.append, i) for i in range(3))
    next(found)
    assert made == [0]


def test_what_a_helper_raises_comes_at_its_turn():
    def make(i):
        return 1 // (2 - i)

    seen = []
    with ahead.helped(True), pytest.raises(ZeroDivisionError):
        seen.extend(ahead.made(partial(make, i) for i in range(4)))
    with ahead.helped(True):
        found = ahead.made(partial(make, i) for i in range(4))
        assert [next(found), next(found)] == [0, 1]


def test_time_of_a_helper_is_not_taken_from_the_time_that_passed():
    def make():
        with tally.timed("decode"):
            time.sleep(0.02)

    with ahead.helped(True), tally.collected() as took, tally.remainder("infer"):
        list(ahead.made([make]))
    assert took["decode"] >= 0.02
    # the model waited for it, and nothing else passed
    assert took["infer"] >= 0.02


def shards(folder, count):
    return Cell(folder, {"rows": count, "shard_rows": 1})


def test_a_worker_goes_on_while_its_last_shards_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "BEHIND", 2)
    events = []

    def work(shard, stopped):
        events.append(f"work {shard}")

        def finish():
            time.sleep(0.05)
            events.append(f"wrote {shard}")

        return finish

    local.share(shards(tmp_path, 4), work, 1)
    assert events.index("work 1") < events.index("wrote 0")
    # two are on their way at most
    assert events.index("wrote 0") < events.index("work 2")
    assert events.index("wrote 1") < events.index("work 3")
    assert sorted(each for each in events if each[:2] == "wr") == [f"wrote {i}" for i in range(4)]


def test_a_shard_that_cannot_be_written_stops_the_run(tmp_path):
    worked = []

    def work(shard, stopped):
        worked.append(shard)

        def finish():
            raise OSError("no space")

        return finish

    with pytest.raises(OSError, match="no space"):
        local.share(shards(tmp_path, 50), work, 1)
    assert len(worked) <= local.BEHIND
