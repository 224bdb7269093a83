"""The local engine: distribution of work, decoding ahead and writing behind."""

import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import simplejpeg

import steadyeye as se
from steadyeye.core.errors import SampleError
from steadyeye.data.images import image_file
from steadyeye.models.runtimes.onnx_session import OnnxSession
from steadyeye.models.runtimes.python_function import FunctionClassifier
from steadyeye.predictions.shard_store import Cell
from steadyeye.runner import threads, validate
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent, run
from steadyeye.runner.threads import AHEAD, Turns, WorkerThread


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
    shard_numbers = []
    for turn in range(100):
        # worker 0 is asked twice as often as the others together
        shard = turns.next(0 if turn % 3 else turn % workers)
        shard_numbers += [] if shard is None else [shard]
    assert sorted(shard_numbers) == list(range(5, 25))


def worker(prefetches):
    return WorkerThread(lambda: False, prefetches)


def test_a_second_thread_makes_what_was_begun_in_its_order():
    results = []

    def make(i, stopwatch):
        results.append((i, threading.current_thread()))
        with stopwatch.time_stage("decode"):
            return i

    with worker(True) as worker_thread:
        begun = [worker_thread.start(partial(make, i)) for i in range(20)]
        values = [task.result(worker_thread.stopwatch) for task in begun]
        assert values == list(range(20)) == [i for i, _ in results]
    assert len({thread for _, thread in results} - {threading.current_thread()}) == 1
    assert worker_thread.stopwatch.take_sums()["decode"] > 0
    assert worker_thread.stopwatch.take_sums()["decode"] == 0


def test_without_a_second_thread_nothing_is_made_before_it_is_due():
    results = []
    with worker(False) as worker_thread:
        begun = [worker_thread.start(lambda _, i=i: results.append(i)) for i in range(3)]
        begun[1].result(worker_thread.stopwatch)
    assert results == [1]


def test_an_error_of_the_second_thread_is_raised_with_its_result():
    with worker(True) as worker_thread:
        begun = [worker_thread.start(lambda _, i=i: 1 // (1 - i)) for i in range(3)]
        assert begun[0].result(worker_thread.stopwatch) == 1
        with pytest.raises(ZeroDivisionError):
            begun[1].result(worker_thread.stopwatch)
        assert begun[2].result(worker_thread.stopwatch) == -1


def test_time_of_a_second_thread_is_not_taken_from_the_time_that_passed():
    def make(stopwatch):
        with stopwatch.time_stage("decode"):
            time.sleep(0.02)

    with worker(True) as worker_thread, worker_thread.stopwatch.time_remainder("infer"):
        worker_thread.start(make).result(worker_thread.stopwatch)
    took = worker_thread.stopwatch.take_sums()
    assert took["decode"] >= 0.02
    # the model waited for it, and nothing else passed
    assert took["infer"] >= 0.02


def test_prefetched_samples_are_passed_on_once_and_end_with_the_worker():
    with worker(True) as worker_thread:
        worker_thread.prefetched = {7: "seven"}
        assert [worker_thread.take_prefetched(), worker_thread.take_prefetched()] == [
            {7: "seven"},
            {},
        ]
        worker_thread.prefetched = {8: "eight"}
    assert worker_thread.take_prefetched() == {}


@pytest.fixture
def greys(tmp_path, one_lite0):
    """48 pictures, which a run cuts into shards of 16."""
    (tmp_path / "greys").mkdir()
    for i in range(48):
        grey = np.full((40, 40, 3), 3 * i, dtype=np.uint8)
        (tmp_path / "greys" / f"{i:02d}.jpg").write_bytes(simplejpeg.encode_jpeg(grey))
    return tmp_path / "greys"


def ran(data, out, **options):
    """The shards of a run with one worker, by name."""
    settings = {"workers": 1, "batch": 8, "cache": "off"} | options
    source = f"image_folder(root='{data}')"
    job = Job(models=("efficientnet_lite0",), data=(source,), out=str(out), **settings)
    run(validate.check(job), Silent())
    return {path.name: path.read_bytes() for path in Path(out).glob("cells/*/*.arrow")}


def watched(monkeypatch):
    """What happens in a run, as it comes: the number of a file that is decoded, -1 for a pass.

    A pass over a picture takes until all that may be decoded meanwhile is.
    """
    events, decode, forward = [], image_file.read, OnnxSession.__call__

    def read(path):
        events.append(int(Path(str(path)).stem))
        return decode(path)

    def waiting():
        decoded_files = [event for event in events if event >= 0]
        due = min(events[events.index(0) :].count(-1) + 1 + AHEAD, 48) if decoded_files else 0
        return len(decoded_files) < due

    def call(session, batch):
        until = time.monotonic() + 120
        while waiting():
            assert time.monotonic() < until, f"nothing more is made ready after {events}"
            time.sleep(0.001)
        events.append(-1)
        return forward(session, batch)

    monkeypatch.setattr(image_file, "read", read)
    monkeypatch.setattr(OnnxSession, "__call__", call)
    return events


@pytest.mark.slow
def test_images_are_made_ready_ahead_through_batches_and_shards(greys, tmp_path, monkeypatch):
    alone = ran(greys, tmp_path / "alone", workers=2)
    monkeypatch.setattr(threads, "cores", lambda: 2)
    events = watched(monkeypatch)
    assert ran(greys, tmp_path / "helped") == alone
    assert len(alone) == 3
    run_itself = events[events.index(0) :]  # what is before is of the plan
    assert [event for event in run_itself if event >= 0] == list(range(48))
    assert run_itself.count(-1) == 48
    waiting = np.cumsum([1 if event >= 0 else -1 for event in run_itself])
    # the one that the model is asked about, and those that wait
    assert waiting.max() == 1 + AHEAD


@pytest.mark.slow
def test_cached_predictions_need_no_preprocessing(greys, tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 2)
    cold = ran(greys, tmp_path / "cold", cache=str(tmp_path / "cache"))
    events = watched(monkeypatch)
    assert ran(greys, tmp_path / "warm", cache=str(tmp_path / "cache")) == cold
    assert [event for event in events if event >= 0] == []


def shards(folder, count, rows=1):
    return Cell(folder, {"rows": count * rows, "shard_rows": rows})


def test_a_worker_continues_while_its_last_shards_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "BEHIND", 2)
    events, began = [], [threading.Event() for _ in range(4)]

    def work(shard, worker):
        events.append(f"work {shard}")
        began[shard].set()

        def finish():
            # until the next is worked on, which would never be if it waited for this
            began[min(shard + 1, 3)].wait(timeout=120)
            events.append(f"wrote {shard}")

        return finish

    threads.share(shards(tmp_path, 4), work, 1)
    assert events.index("work 1") < events.index("wrote 0")
    # two are on their way at most
    assert events.index("wrote 0") < events.index("work 2")
    assert events.index("wrote 1") < events.index("work 3")
    assert sorted(event for event in events if event[:2] == "wr") == [
        f"wrote {i}" for i in range(4)
    ]


@pytest.mark.parametrize(("rows", "most"), [(100, 8), (1000, 4), (4096, 1), (9000, 1)])
def test_as_few_shards_are_on_their_way_as_their_rows_allow(tmp_path, rows, most):
    """Those of many rows take much memory."""
    counts, worked = [], threading.Semaphore(0)
    written = []

    def work(shard, worker):
        counts.append(shard - len(written))
        worked.release()

        def finish():
            # not before the worker has as many behind it as it may
            if shard == 0:
                for _ in range(most):
                    worked.acquire(timeout=120)
            written.append(shard)

        return finish

    threads.share(shards(tmp_path, 20, rows), work, 1)
    assert sorted(written) == list(range(20))
    # the worker itself has one more
    assert max(counts) <= most


def test_a_shard_that_cannot_be_written_stops_the_run(tmp_path):
    worked = []

    def work(shard, worker):
        worked.append(shard)

        def finish():
            raise OSError("no space")

        return finish

    with pytest.raises(OSError, match="no space"):
        threads.share(shards(tmp_path, 50), work, 1)
    assert len(worked) <= threads.BEHIND


class Doubled(FunctionClassifier):
    """Answers otherwise than the class it is of."""

    def __call__(self, images):
        return 2 * super().__call__(images)


class Passing:
    """Passes on what it is asked for, and answers otherwise."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __call__(self, images):
        return 3 * self.inner(images)


def light(images):
    bright = images.reshape(len(images), -1).mean(axis=1) / 255
    return np.stack([bright, 1 - bright], axis=1)


def test_a_model_that_answers_otherwise_than_its_parts_is_asked_itself(greys, tmp_path):
    source = f"image_folder(root='{greys}')"
    plain_run = se.evaluate(
        FunctionClassifier(light, size=32), source, out=tmp_path / "one", cache="off"
    )
    doubled_run = se.evaluate(Doubled(light, size=32), source, out=tmp_path / "two", cache="off")
    inner = FunctionClassifier(light, size=32)
    passing_run = se.evaluate(Passing(inner), source, out=tmp_path / "three", cache="off")
    scores = [model_run.predictions.scores for model_run in (plain_run, doubled_run, passing_run)]
    np.testing.assert_array_equal(scores[1], 2 * scores[0])
    np.testing.assert_array_equal(scores[2], 3 * scores[0])


def test_an_unreadable_sample_beyond_a_shard_is_reported_at_its_turn(greys, tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 2)
    job = Job(
        models=("efficientnet_lite0",),
        data=(f"image_folder(root='{greys}')",),
        out=str(tmp_path / "run"),
        workers=1,
        cache="off",
    )
    checked = validate.check(job)
    (task,) = checked.tasks
    read_sample = type(task.source).__getitem__

    def telling(source, index):
        if index == 33:
            raise SampleError("the header of number 33 is damaged")
        return read_sample(source, index)

    monkeypatch.setattr(type(task.source), "__getitem__", telling)
    with pytest.raises(SampleError, match="number 33"):
        run(checked, Silent())
    # the third shard holds it; the two before are there
    assert len(list((tmp_path / "run").glob("cells/*/*.arrow"))) == 2
