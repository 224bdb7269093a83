"""Faults on one machine: altered files, clocks, two drivers, interrupts with a cache."""

import json
import random
import shutil
import signal
import time

import pytest
from forked import Command
from whole_runs import Watcher, compute, davis, flip_a_byte, tree

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.spec import parse
from steadyeye.predictions.read import cells, read
from steadyeye.predictions.shard_store import mend, open_cell
from steadyeye.runner import collect, validate
from steadyeye.runner.cache import eviction
from steadyeye.runner.job import Job
from steadyeye.runner.run import run

pytestmark = pytest.mark.usefixtures("one_lite0")

__all__ = ["davis"]


@pytest.fixture(scope="module")
def whole(davis, tmp_path_factory):
    out = tmp_path_factory.mktemp("faults") / "whole"
    compute(out, davis)
    return out


@pytest.fixture
def copy(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def cell_of(run):
    return cells(run)[0][0]


def stripped(run):
    return {name: data for name, data in tree(run).items() if name.startswith("cells/")}


@pytest.mark.slow
def test_an_altered_shard_is_found_and_computed_again(davis, whole, copy):
    folder = cell_of(copy)
    flip_a_byte(folder / "00002.arrow")
    (folder / "00003.arrow").write_bytes((folder / "00003.arrow").read_bytes()[:700])
    (folder / "00001.arrow").write_bytes(b"")
    watcher = compute(copy, davis)
    shards = open_cell(folder).shards
    assert watcher.said == [
        f"{folder.name}: 3 of {shards} shards had changed after they were written "
        "(00001.arrow, 00002.arrow, 00003.arrow); computed again"
    ]
    assert watcher.found[folder.name] == shards - 3
    assert stripped(copy) == stripped(whole)
    events = [json.loads(line)["event"] for line in (copy / "log.jsonl").read_text().splitlines()]
    assert "altered" in events
    assert not compute(copy, davis).said


def test_a_shard_or_a_seal_that_is_gone_is_made_again(davis, whole, copy):
    folder = cell_of(copy)
    (folder / "00003.arrow").unlink()
    assert "1 of" in compute(copy, davis).said[0]
    (folder / "seal.json").write_text("{}")
    assert not compute(copy, davis).said  # every shard still has a mark of its own
    assert stripped(copy) == stripped(whole)


def test_any_single_flipped_bit_of_a_shard_is_found(davis, copy):
    cell = open_cell(cell_of(copy))
    data = cell.path(0).read_bytes()
    for place in {0, len(data) - 1, *random.Random(0).sample(range(len(data)), 100)}:
        flipped = bytearray(data)
        flipped[place] ^= 1 << random.Random(place).randrange(8)
        cell.path(0).write_bytes(bytes(flipped))
        mark = cell.mark(0).read_bytes()
        assert mend(cell) == ["00000.arrow"], place
        cell.path(0).write_bytes(data)
        cell.mark(0).write_bytes(mark)
    assert mend(cell) == []


def test_a_damaged_cell_json_is_made_again_if_the_shards_are_of_the_same(davis, whole, copy):
    folder = cell_of(copy)
    for text in ("", '{"model": {"spec', "[]"):
        (folder / "cell.json").write_text(text)
        with pytest.raises(se.UsageError, match=r"cell\.json' is damaged.*is rebuilt if") as error:
            read(folder)
        assert "\n" not in str(error.value)
        watcher = compute(copy, davis)
        assert watcher.said == [
            f"{folder.name}: cell.json was damaged and was rebuilt from its shards"
        ]
        assert watcher.found[folder.name] == open_cell(folder).shards
    (folder / "seal.json").unlink()
    (folder / "00001.arrow").unlink()
    (folder / "cell.json").unlink()
    compute(copy, davis)
    assert stripped(copy) == stripped(whole)


@pytest.mark.parametrize("origin", ["another model", "an earlier version"])
def test_shards_of_something_else_are_not_taken_over(davis, copy, origin):
    folder = cell_of(copy)
    for file in (*folder.glob("*.seal"), folder / "seal.json"):
        mark = json.loads(file.read_text())
        for key in ("cell", "checksum", "format"):
            mark.pop(key, None)
        if origin == "another model":
            mark["cell"] = "of another"
        file.write_text(json.dumps(mark))
    assert compute(copy, davis).found  # what cell.json says is what counts
    before = tree(copy)
    for damage in ((folder / "cell.json").unlink, lambda: (folder / "cell.json").write_text("{")):
        damage()
        with pytest.raises(se.UsageError, match=r"cell\.json' is lost or damaged.*delete") as error:
            compute(copy, davis)
        assert "\n" not in str(error.value)
        files = tree(copy)
        assert [name for name in before if before[name] != files.get(name)] == [
            f"cells/{folder.name}/cell.json"
        ]


def test_a_damaged_record_of_a_run_is_one_line_and_costs_no_shard(davis, whole, copy):
    count = open_cell(cell_of(whole)).shards
    for text in ("", '{"job": {"mod', "{}"):
        (copy / "run.json").write_text(text)
        for action in (
            lambda: compute(copy, davis),
            lambda: cells(copy),
            lambda: collect.record(copy),
        ):
            with pytest.raises(se.UsageError, match=r"run\.json' is damaged: .*delete it") as error:
                action()
            assert "\n" not in str(error.value)
        (copy / "run.json").unlink()
        assert list(compute(copy, davis).found.values()) == [count]
    assert tree(copy)["run.json"] == tree(whole)["run.json"]


def test_a_damaged_seal_is_one_line_and_made_again(davis, whole, copy):
    (cell_of(copy) / "seal.json").write_text('{"rows"')
    with pytest.raises(se.UsageError, match=r"seal\.json' is damaged.*run the same command"):
        read(cell_of(copy))
    compute(copy, davis)
    assert stripped(copy) == stripped(whole)


def test_temporary_files_of_a_killed_process_are_cleared(davis, whole, copy):
    (cell_of(copy) / ".00003.arrow.12345.tmp").write_bytes(b"half")
    (copy / ".run.json.12345.tmp").write_bytes(b"half")
    compute(copy, davis)
    assert not list(copy.rglob("*.tmp"))


@pytest.mark.slow
def test_a_clock_that_goes_backwards_changes_nothing(davis, whole, tmp_path, monkeypatch):
    real, started = time.time, time.time()
    monkeypatch.setattr(time, "time", lambda: started - 1000 * (real() - started) - 1e8)
    cache = tmp_path / "cache"
    compute(tmp_path / "run", davis, cache=str(cache))
    again = compute(tmp_path / "again", davis, cache=str(cache))
    assert stripped(tmp_path / "run") == stripped(tmp_path / "again") == stripped(whole)
    assert next(iter(again.counts.values()))["hits"] == again.rows
    monkeypatch.setattr(time, "time", real)
    (group,) = eviction.groups(cache)
    assert group.used > 1000  # days: the clock of the run was years behind
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert eviction.groups(cache)[0].used == 0
    assert not eviction.prune(cache, lambda group: group.used > 1, None)


@pytest.mark.slow
def test_the_second_of_two_drivers_refuses_and_the_first_is_not_disturbed(davis, whole, tmp_path):
    words = ["run", "--model", "efficientnet_lite0", "--data", davis, "--workers", 1]
    words += ["--cache", "kept", "--out"]
    job = Job(models=("efficientnet_lite0",), data=(davis,), out=str(tmp_path / "run"))
    second = validate.check(job)
    first = Command(*words, "run", cwd=tmp_path)
    deadline = time.monotonic() + 600
    while not list(tmp_path.glob("run/cells/*/*.arrow")) and time.monotonic() < deadline:
        time.sleep(0.002)
    with pytest.raises(se.UsageError, match="another process is writing to"):
        run(second, Watcher())
    assert first.poll() is None, "the first was over before the second could refuse"
    first.communicate()
    assert first.returncode == 0
    assert stripped(tmp_path / "run") == stripped(whole)


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_answered(davis, tmp_path):
    longer = davis.replace("anchors=3", "anchors=10")
    words = ["run", "--model", "efficientnet_lite0", "--data", longer, "--workers", 1]
    words += ["--cache", "kept", "--progress", "json", "--out"]
    victim = Command(*words, "run", cwd=tmp_path)
    deadline = time.monotonic() + 600
    while len(list(tmp_path.glob("run/cells/*/*.arrow"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.002)
    victim.send_signal(signal.SIGINT)
    _, stderr = victim.communicate()
    assert victim.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert json.loads(stderr.splitlines()[-1])["event"] == "stopped"
    source = plugins.build("sources", parse(longer))
    # pm-sets of a video overlap, and a frame is kept once
    frames = [source[row].key() for row in range(len(source))]
    answer_count = sum(group.entries for group in eviction.groups(tmp_path / "kept"))
    assert len(set(frames[:32])) <= answer_count < len(set(frames))
    # another folder: what is kept answers for shards that were never written
    watcher = compute(tmp_path / "other", longer, cache=str(tmp_path / "kept"), workers=1)
    (counts,) = watcher.counts.values()
    assert counts["hits"] == len(frames) - (len(set(frames)) - answer_count)
    assert (tmp_path / "other" / "run.json").is_file()
