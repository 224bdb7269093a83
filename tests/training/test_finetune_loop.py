"""The training loop on real frames: killed, altered, interrupted, diverging and searched."""

import json
import math
import os
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import toy_training
from forked import Command
from toy_training import COURSE, RecordingWatcher, lesson, scenes

from steadyeye.core.errors import UsageError
from steadyeye.core.prepare_ahead import prepare_ahead
from steadyeye.training import batches, checkpoint, hyperparameters, report
from steadyeye.training.batches import (
    EpochSteps,
    ImageCache,
    Lesson,
    read_training_batches,
)
from steadyeye.training.hyperparameters import Constant, Course, Plateau
from steadyeye.training.hyperparameters import Steps as Falling
from steadyeye.training.loop import DivergedError, train
from steadyeye.training.lr_search import search
from steadyeye.training.metrics_log import History, TrainingRound

SCRIPT = Path(toy_training.__file__)


def start(folder, *more, **environment):
    return Command(folder, *more, script=SCRIPT, env=environment)


def read_results(folder):
    names = ("history.json", "weights.pt", "last.pt")
    return {name: (folder / name).read_bytes() for name in names}


def run_whole(folder):
    """Trains to the end; returns the messages."""
    folder.mkdir(exist_ok=True)
    return toy_training.main(folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    run_whole(folder)
    return folder


def checkpoints(folder):
    return sorted(file.name for file in (folder / "checkpoints").glob("step-*.pt"))


@pytest.mark.slow
def test_killed_and_interrupted_the_end_is_that_of_one_that_was_not(whole, tmp_path):
    victim = start(tmp_path, "0.3")
    while not (names := checkpoints(tmp_path)) or names[-1] < "step-0000006.pt":
        assert victim.poll() is None, victim.communicate()[1]
        time.sleep(0.02)
    time.sleep(float(np.random.default_rng(7).uniform(0, 0.6)))
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    assert not (tmp_path / "weights.pt").exists(), "it was over before it could be killed"
    with pytest.raises(KeyboardInterrupt):
        train(interrupt_lesson(lesson(), 3), COURSE, tmp_path / "checkpoints", RecordingWatcher())
    lines = run_whole(tmp_path)
    assert lines[0].startswith("continuing after step ")
    assert int(lines[0].split()[3]) >= 9
    assert read_results(tmp_path) == read_results(whole)


def test_a_checkpoint_cut_short_gives_way_to_the_one_before_it(whole, tmp_path):
    watcher = RecordingWatcher()
    with pytest.raises(KeyboardInterrupt):
        train(interrupt_lesson(lesson(), 7), COURSE, tmp_path / "checkpoints", watcher)
    assert checkpoints(tmp_path)[-2:] == ["step-0000006.pt", "step-0000007.pt"]
    latest = tmp_path / "checkpoints" / "step-0000007.pt"
    latest.write_bytes(latest.read_bytes()[:-100])
    lines = run_whole(tmp_path)
    changed = f"the checkpoint '{latest}' was changed after it was written; "
    assert lines[0] == f"{changed}continuing from step-0000006.pt"
    assert lines[1] == "continuing after step 6 of 16"
    assert read_results(tmp_path) == read_results(whole)


def interrupt_lesson(toy_lesson, after):
    """The lesson with a Ctrl-C in the step after so many."""
    task, steps = toy_lesson.task, iter(range(1, 10**6))
    loss = task.loss

    def interrupt_step(module, prepared):
        if next(steps) == after:
            os.kill(os.getpid(), signal.SIGINT)
        return loss(module, prepared)

    task.loss = interrupt_step
    return toy_lesson


def test_an_altered_checkpoint_is_reported_and_without_any_training_starts_again(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(interrupt_lesson(lesson(), 3), COURSE, tmp_path, RecordingWatcher())
    for file in tmp_path.glob("step-*.pt"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    watcher = RecordingWatcher()
    went = train(lesson(), COURSE, tmp_path, watcher)
    ends = [line.rpartition("; ")[2] for line in watcher.lines[:2]]
    assert ends == ["continuing from step-0000002.pt", "starting again"]
    assert went.step == 16


def test_finished_it_is_read_and_not_trained_again(tmp_path):
    went = train(lesson(), COURSE, tmp_path, RecordingWatcher())
    watcher = RecordingWatcher()
    assert train(interrupt_lesson(lesson(), 1), COURSE, tmp_path, watcher) == went
    assert watcher.lines == []


def test_the_last_two_checkpoints_and_the_best_are_kept(tmp_path):
    went = train(lesson(), COURSE, tmp_path, RecordingWatcher())
    assert went.best is not None
    steps = {int(file.stem[5:]) for file in tmp_path.glob("step-*.pt")}
    assert steps == {went.best.step, 14, 16}
    # those are all there is: digests of exactly these, and nothing half written
    assert len(list(tmp_path.iterdir())) == 2 * len(steps)


def test_training_overfits_32_frames(tmp_path):
    frames = scenes(8)
    toy_lesson = Lesson(toy_training.Scenes(), frames, frames, workers=2)
    went = train(toy_lesson, Course(epochs=12, batch=8, rate=3e-3), tmp_path, RecordingWatcher())
    assert went.start["accuracy"] < 0.5
    assert went.rounds[-1].measures["accuracy"] == 1.0
    assert went.rounds[-1].loss < 0.1 < went.rounds[0].loss


def check_finite(file):
    assert all(torch.isfinite(v.double()).all() for v in checkpoint.read(file).module.values())


def test_a_loss_that_is_no_number_stops_it_and_says_where(tmp_path):
    toy_lesson = lesson(broken_at="bikes.mp4/000031")
    steps = EpochSteps(20, COURSE)
    index = [example.id for example in toy_lesson.learn.items].index("bikes.mp4/000031")
    at = next(i for i in range(4) if index in steps.batch(i))
    with pytest.raises(DivergedError) as caught:
        train(toy_lesson, replace(COURSE, every=1), tmp_path, RecordingWatcher())
    line = str(caught.value)
    assert line.startswith(f"the loss is nan in epoch 1, step {at + 1}; ")
    ids = {toy_lesson.learn.items[i].id for i in steps.batch(at)}
    assert set(line.rpartition("batch: ")[2].split(", ")) == ids
    if at:
        good = checkpoint.path(tmp_path, at)
        assert f"the last good checkpoint is {good};" in line
        check_finite(good)
    else:
        assert "there is no checkpoint yet" in line
    assert "\n" not in line


def test_weights_that_overflow_are_never_kept(tmp_path):
    course = replace(COURSE, rate=9.0, optimizer="sgd", momentum=0.99, every=1, batch=20)
    course = replace(course, epochs=400)
    with pytest.raises(DivergedError, match=r"is (nan|inf|no finite number) in epoch|a weight"):
        train(overflow_gradient(lesson()), course, tmp_path, RecordingWatcher())
    for file in tmp_path.glob("step-*.pt"):
        check_finite(file)


def overflow_gradient(toy_lesson):
    """The lesson with a loss that is finite while its gradient is not."""
    task = toy_lesson.task
    loss, steps = task.loss, iter(range(10**6))

    def huge(module, prepared):
        value = loss(module, prepared)
        return value * 1e38 * 1e38 * 0 + value if next(steps) < 2 else value.log() * 1e37

    task.loss = huge
    return toy_lesson


def test_training_stops_when_nothing_improves(tmp_path):
    course = replace(COURSE, epochs=30, rate=1e-9, patience=2, schedule=Constant())
    went = train(lesson(), course, tmp_path, RecordingWatcher())
    assert went.ended == "stopped early: accuracy no better in 2 rounds"
    assert went.best is not None
    assert len(went.rounds) == went.rounds.index(went.best) + 3


def test_a_rate_search_tries_each_from_the_same_start_and_continues(tmp_path):
    course = replace(COURSE, epochs=3)
    search_result = search(lesson(), course, tmp_path, RecordingWatcher(), (3e-3, 1e-9))
    assert [trial.rate for trial in search_result.tried] == [3e-3, 1e-9]
    assert search_result.steps == 4, "a tenth of 12 steps is less than an epoch"
    first, second = search_result.tried
    assert first.losses[0] == second.losses[0], "the first loss is that of the start"
    assert first.losses[-1] < second.losses[-1]
    assert search_result.rate == 3e-3
    # what is there is not trained again, what is not is
    (tmp_path / "lr-1e-09" / "trial.json").unlink()
    untouched = interrupt_lesson(lesson(), 5)
    assert search(untouched, course, tmp_path, RecordingWatcher(), (3e-3, 1e-9)) == search_result


def test_a_rate_that_diverges_is_recorded_and_not_taken(tmp_path):
    toy_lesson = lesson(broken_at="bikes.mp4/000031")
    with pytest.raises(UsageError, match="not finite at any learning rate"):
        search(toy_lesson, COURSE, tmp_path, RecordingWatcher(), (1e-3, 1e-4))
    tried = json.loads((tmp_path / "lr-0.0001" / "trial.json").read_text())["tried"]
    assert tried["fault"].startswith("the loss is nan in epoch 1, step ")


def test_an_epoch_holds_every_example_once_in_even_batches():
    for n, batch in ((20, 6), (19, 6), (7, 7), (6, 7), (1, 4), (13, 4), (9, 4), (3, 1)):
        steps = EpochSteps(n, Course(epochs=2, batch=batch))
        for epoch in range(2):
            parts = [steps.batch(epoch * steps.epoch + i) for i in range(steps.epoch)]
            assert sorted(i for part in parts for i in part) == list(range(n))
            sizes = sorted(map(len, parts))
            assert sizes[-1] <= batch
            assert sizes[-1] - sizes[0] <= 1
            assert len(parts) == math.ceil(n / batch)
        assert steps.images(steps.total) == 2 * n
    orders = [steps_of(seed)[:20] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    both = steps_of(0)
    assert both[:20] != both[20:40], "another epoch, another order"


def steps_of(seed):
    steps = EpochSteps(20, Course(batch=5, seed=seed))
    return [i for _, batch in steps.batches(0) for i in batch]


def test_steps_from_the_middle_are_the_rest_of_the_steps():
    steps = EpochSteps(19, Course(iterations=11, batch=4))
    every = list(steps.batches(0))
    assert [step for step, _ in every] == list(range(11))
    for first in range(11):
        assert list(steps.batches(first)) == every[first:]
        assert every[first][1] == steps.batch(first)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_processes_share_a_batch(ranks):
    values = np.random.default_rng(0).normal(size=7)
    parts = [batches.share_batch(range(7), rank, ranks) for rank in range(ranks)]
    taken = [i for part, weight in parts for i in part if weight]
    assert sorted(taken) == list(range(7))
    means = [weight * np.mean(values[part]) for part, weight in parts]
    assert np.mean(means) == pytest.approx(values.mean())


def test_the_rate_falls_on_a_plateau_and_at_steps():
    fall = Plateau(0.1, 1)
    went = [1, 2, 2, 2, 2, 2, 3]
    rates = [hyperparameters.learning_rate(fall, 1.0, 0, went[:n]) for n in range(8)]
    # by hand: two rounds without a gain, and two more
    assert rates == pytest.approx([1, 1, 1, 1, 0.1, 0.1, 0.01, 0.01])
    stairs, places = Falling((20, 30)), (0, 19, 20, 29, 30, 40)
    steps = [hyperparameters.learning_rate(stairs, 1e-2, at, []) for at in places]
    assert steps == pytest.approx([1e-2, 1e-2, 1e-3, 1e-3, 1e-4, 1e-4])
    assert hyperparameters.find_best_round([1, 3, 3]) == 1
    assert [hyperparameters.is_over([1, 3, 3, 2][:n], 2) for n in range(5)] == [False] * 4 + [True]


def test_of_equally_good_rounds_the_one_with_the_least_loss_is_the_best():
    """A detector whose AP is 0 in each round kept its first weights, of the highest loss."""
    rounds = [
        TrainingRound(step, step / 10, 1e-3, loss, {"ap": ap, "loss": loss})
        for step, ap, loss in [(1, 0.0, 9.0), (2, 0.0, 6.5), (3, 0.0, 6.6)]
    ]
    history = History("ap", False, {}, (9.0,) * 3, tuple(rounds))
    assert history.best == rounds[1]
    assert history.record()["best_step"] == 2
    # without losses, and with the same, the first
    for measures in ({"ap": 0.0}, {"ap": 0.0, "loss": None}, {"ap": 0.0, "loss": 1.0}):
        same = tuple(replace(earlier, measures=measures) for earlier in rounds)
        assert replace(history, rounds=same).best == same[0]


def test_the_course_refuses_what_cannot_be_meant():
    for values, line in (
        ({"optimizer": "adamm"}, "no optimizer named 'adamm'; did you mean 'adam'?"),
        ({"batch": 0}, "batch=0: give 1 or more"),
        ({"rate": -1.0}, "--lr -1: give a learning rate above 0"),
        ({"precision": "int8"}, "no precision named 'int8'"),
        ({"momentum": 1.0}, "momentum=1: give 0 or more"),
    ):
        with pytest.raises(UsageError) as caught:
            Course(**values)
        assert str(caught.value).startswith(line)


def test_half_precision_is_refused_where_it_does_not_run(tmp_path):
    if torch.cuda.is_available():
        pytest.skip("a GPU has it")
    with pytest.raises(UsageError, match="--precision fp16"):
        train(lesson(), replace(COURSE, precision="fp16"), tmp_path, RecordingWatcher())


def test_bfloat16_trains_with_weights_in_fp32(tmp_path):
    course = replace(COURSE, epochs=1)
    went = train(lesson(), replace(course, precision="bf16"), tmp_path, RecordingWatcher())
    plain = train(lesson(), course, tmp_path / "plain", RecordingWatcher())
    assert went.losses != plain.losses
    assert went.losses == pytest.approx(plain.losses, rel=0.2)
    state = checkpoint.read(checkpoint.path(tmp_path, 4))
    assert {v.dtype for v in state.module.values()} <= {torch.float32, torch.int64}


def test_images_are_decoded_ahead_in_order_and_once_where_there_is_room():
    decoded_ids, toy_lesson = [], lesson()
    items = toy_lesson.learn.items

    def count_image(example):
        decoded_ids.append(example.id)
        return example.image()

    counted = tuple(replace(e, image=lambda e=e: count_image(e)) for e in items)
    watched = replace(toy_lesson, learn=replace(toy_lesson.learn, items=counted))
    batches = [(0, 0, [3, 1]), (1, 0, [0])]
    cache = ImageCache(toy_lesson.task.fit)
    for _ in range(2):
        prepared_batches = list(read_training_batches(watched, cache, batches, 2))
        assert [step for step, _ in prepared_batches] == [0, 1]
        labels = [label for _, part in prepared_batches for _, label in part]
        assert labels == [items[i].labels[0] for i in (3, 1, 0)]
    assert sorted(decoded_ids) == sorted(items[i].id for i in (3, 1, 0))
    decoded_ids.clear()
    full = ImageCache(toy_lesson.task.fit, room=0)
    for _ in range(2):
        list(read_training_batches(watched, full, batches, 2))
    assert len(decoded_ids) == 6


def test_no_more_is_made_ahead_than_asked_for():
    numbers = []
    ready = prepare_ahead(range(100), lambda i: numbers.append(i) or i, 2, 5)
    assert [next(ready) for _ in range(3)] == [0, 1, 2]
    ready.close()
    assert len(numbers) <= 8


def test_the_threads_of_torch_are_those_it_began_with(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(interrupt_lesson(lesson(), 3), COURSE, tmp_path, RecordingWatcher())
    before, state = torch.get_num_threads(), torch.random.get_rng_state()
    torch.set_num_threads(before + 1)
    toy_lesson, thread_counts = lesson(), set()
    loss = toy_lesson.task.loss
    toy_lesson.task.loss = lambda *parts: thread_counts.add(torch.get_num_threads()) or loss(*parts)
    try:
        train(toy_lesson, COURSE, tmp_path, RecordingWatcher())
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)
    assert thread_counts == {before}
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.slow
def test_two_processes_train_as_one(tmp_path):
    port = socket.create_server(("127.0.0.1", 0))
    # accelerate waits on the GPU of each process, even where they train on the processor
    on_processor = {"ACCELERATE_USE_CPU": "1", "CUDA_VISIBLE_DEVICES": ""}
    together = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", **on_processor}
    together["MASTER_PORT"] = str(port.getsockname()[1])
    port.close()
    for name in ("two", "one"):
        (tmp_path / name).mkdir()
    plain = ("0", "plain")
    ranks = [
        start(tmp_path / "two", *plain, **together, RANK=str(i), LOCAL_RANK=str(i))
        for i in range(2)
    ]
    errors = [rank.communicate()[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(errors)
    toy_training.main(tmp_path / "one", plain=True)
    two_ranks, one_rank = (
        json.loads((tmp_path / folder / "history.json").read_text()) for folder in ("two", "one")
    )
    assert two_ranks["losses"] == pytest.approx(one_rank["losses"], rel=1e-4)
    first, second = (history["rounds"][-1]["held"] for history in (two_ranks, one_rank))
    assert first == pytest.approx(second, rel=1e-3)


# --- its report


def test_the_report_names_the_best_round_and_draws_each_fall_of_the_rate():
    """The rate falls within a round, at steps 4 and 5 of ten; the second round of three is best."""
    rounds = tuple(
        TrainingRound(step, step / 5, rate, 1.0, {"ap": ap, "loss": 2.0})
        for step, rate, ap in [(3, 0.1, 0.2), (6, 0.001, 0.5), (10, 0.001, 0.4)]
    )
    went = History("ap", False, {"ap": 0.0, "loss": 3.0}, (1.0,) * 10, rounds, "all steps are done")
    schedule = {"kind": "steps", "at": [4, 5], "factor": 0.1}
    data = {"train": {"name": "shapes"}, "held": {"n": 7}}
    record = {"recipe": {"schedule": schedule}, "data": data, "base": {"name": "m"}, "task": {}}
    (line,) = report.summarize(record, went)
    assert ", on 7 held-out examples, at step 6 of 10 (it started with a new head)." in line
    (last_best,) = report.summarize(record, replace(went, rounds=rounds[:2]))
    assert ", over 6 steps (it" in last_best
    figure = next(f for f in report.figures(record, went) if f.name == "training_rate")
    rows = figure.spec["data"]["values"]
    assert [row["step"] for row in rows] == [0, 4, 5, 10]
    for step in range(10):
        expected = 0.1 * 0.1 ** ((step >= 4) + (step >= 5))
        assert [r["rate"] for r in rows if r["step"] <= step][-1] == pytest.approx(expected), step
