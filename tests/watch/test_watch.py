"""Whole watches: of a film with known faults, over restarts, as a command and in a browser."""

import json
import os
import re
import signal
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from itertools import count

import av
import numpy as np
import pytest
from conftest import TESTS
from forked import Command, refusal, steadyeye, steadyeye_each
from object_toys import bright
from page_checks import LOOKS, find_faults, find_violations, open_page, unfold
from prometheus_client.openmetrics import parser
from typer.main import get_command

from steadyeye.cli.options import app
from steadyeye.cli.watch import name_folder
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes
from steadyeye.metrics.blink_rate import blink_rate
from steadyeye.metrics.class_change_rate import class_change_rate
from steadyeye.models.detectors.function_detector import FunctionDetector
from steadyeye.models.runtimes.python_function import FunctionClassifier
from steadyeye.predictions.read import cells, read
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent, run
from steadyeye.runner.validate import check
from steadyeye.watch import server
from steadyeye.watch.feeds import open_feed
from steadyeye.watch.memory import STATE, WatchSettings, read_memory
from steadyeye.watch.promises import read_promise
from steadyeye.watch.session import Watch

ENV = {"PYTHONPATH": os.pathsep.join([TESTS, os.environ.get("PYTHONPATH", "")])}
RATE = 10


def film(path, levels, size=96, times=None, rate=RATE):
    """A square that walks slowly; `levels`: its grey level in each frame, 0 where it is not.

    `times`: of the frames, in steps of 1 / `rate` s, in each of which it goes 5 px; None: each step
    has a frame.
    """
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.width = stream.height = size
        stream.pix_fmt, stream.options = "yuv420p", {"crf": "12"}
        for number, level in enumerate(levels):
            image = np.full((size, size, 3), 20, dtype=np.uint8)
            left = 10 + (number // 4 % 40 if times is None else 5 * times[number])
            if level:
                image[30:60, left : left + 30] = level
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = number if times is None else times[number]
            frame.time_base = Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


GOOD = [190] * 100
FAULTY = [190, 190, 0, 190, 190, 190, 245, 190, 190, 190] * 10
"""One frame in ten without the square, one in ten of the other class."""


def detector(function=bright):
    return FunctionDetector(function, "bright", Classes(("grey", "white")), {}, "bright 1", False)


def settings(path, **more):
    values = {"block": 1.0, "period": 20.0, "reference": 1e6, "days": 0.001}
    return WatchSettings(str(path), "bright", **{**values, **more})


def watch_file(path, out, model=None, say=lambda text: None, **more):
    chosen = settings(path, **more)

    def feed(memory):
        return open_feed(chosen.source, memory.counts, chosen.rate, memory.mark)

    watch = Watch(chosen, model or detector(), feed, out, say)
    watch.run()
    return watch


DROPPED = {"size": 512, "rate": 30, "times": np.cumsum([0, *([1, 1, 5] * 13)]).tolist()}
"""Of 40 frames: every third step the camera lost four frames, in which the square went on."""


@pytest.mark.parametrize(
    ("levels", "how"),
    [((GOOD + FAULTY) * 2, {}), (FAULTY[:40], DROPPED)],
    ids=["every frame", "dropped frames"],
)
def test_a_watched_file_has_the_counts_of_a_run(tmp_path, monkeypatch, levels, how):
    """The same frames through `steadyeye run`: n of blinks and class changes are equal."""
    monkeypatch.chdir(tmp_path)
    film(tmp_path / "a.mp4", levels, **how)
    (tmp_path / "classes.json").write_text('["grey", "white"]')
    model = "callable_detector(path='object_toys:bright', classes='classes.json')"
    data = "every_frame(path='a.mp4', cuts='none')"
    run(check(Job((model,), (data,), str(tmp_path / "run"))), Silent())
    ((folder,),) = cells(tmp_path / "run")
    sealed = read(folder)
    sums, numbers = {}, {}
    counted = watch_file(tmp_path / "a.mp4", tmp_path / "w", block=1e6, period=1e6)
    for name in ("blink_rate", "class_change_rate"):
        series = counted.latest["measures"][name]
        sums[name], numbers[name] = series["total"]["value"], series["total"]["n"]
    assert numbers == {"blink_rate": 1, "class_change_rate": 1}, "one block holds all"
    assert sums["blink_rate"] == pytest.approx(blink_rate(sealed).value)
    assert sums["class_change_rate"] == pytest.approx(class_change_rate(sealed).value)
    assert blink_rate(sealed).value > 0.04


@pytest.mark.parametrize(
    ("frames", "blocks"), [(7, 1), (12, 1), (14, 1), (16, 2), (34, 3), (36, 4)]
)
def test_a_block_that_ends_early_counts_from_its_half_on(tmp_path, frames, blocks):
    """One frame weighed as much as 30 seconds; a file that is shorter than a block is one."""
    watch = watch_file(film(tmp_path / "a.mp4", GOOD[:frames]), tmp_path / "w")
    assert watch.latest["measures"]["confidence"]["total"]["n"] == blocks
    assert watch.latest["counts"]["processed"] == frames


def test_the_rate_of_frames_is_that_of_now(tmp_path, monkeypatch):
    """Of a stream that stopped it stayed as it was."""
    monkeypatch.setattr("steadyeye.watch.session.RECENT", 0.5)
    watch = watch_file(film(tmp_path / "a.mp4", GOOD), tmp_path / "w")
    time.sleep(0.6)
    assert watch.describe()["rate"] == 0.0


@pytest.mark.slow
def test_a_promise_that_breaks_stores_its_frames_and_says_so(tmp_path):
    film(tmp_path / "a.mp4", GOOD * 2 + FAULTY * 3 + GOOD)
    lines = []
    promise = read_promise("blink_rate <= 2%")
    watch = watch_file(
        tmp_path / "a.mp4", tmp_path / "w", say=lines.append, promises=(promise,), days=0.01
    )
    events = [alert["event"] for alert in watch.latest["alerts"]][::-1]
    assert events[0] == "broken"
    alert = watch.latest["alerts"][-1]
    assert (alert["promise"], alert["source"]) == ("blink_rate <= 2.0 %", str(tmp_path / "a.mp4"))
    assert alert["frames"], "with the frames that broke it"
    assert lines[0].startswith("broken: blink_rate <= 2.0 % (last block 10.0\u202f%, this period ")
    beside = watch.ring.describe(alert["frames"][0])
    assert (beside["measure"], beside["what"]) == ("blink_rate", "grey not found")
    assert all("blink_rate" in name for name in watch.ring.names), "only of what is promised"
    assert watch.was_broken
    # the frames are those in which the square is missing
    numbers = [watch.ring.describe(name)["frame"] for name in watch.ring.names]
    assert numbers
    assert all(200 <= number < 500 and number % 10 == 2 for number in numbers)


def test_messages_about_a_file_do_not_depend_on_the_clock(tmp_path, monkeypatch):
    """A look at its state after each frame says no more than one a second."""
    monkeypatch.setattr("steadyeye.watch.session.TICK", 0.0)
    lines = []
    watch = watch_file(film(tmp_path / "a.mp4", GOOD[:20]), tmp_path / "w", say=lines.append)
    assert watch.latest["counts"]["processed"] == 20
    assert lines == []


def test_the_first_alert_ends_it_where_that_is_asked_for(tmp_path):
    film(tmp_path / "a.mp4", FAULTY * 6)
    promise = read_promise("blink_rate <= 1%")
    watch = watch_file(tmp_path / "a.mp4", tmp_path / "w", promises=(promise,), stop_at_alert=True)
    assert watch.latest["counts"]["processed"] < 600
    assert len(watch.latest["alerts"]) == 1


@pytest.mark.slow
def test_a_watch_that_an_alert_ended_continues_after_its_frame(tmp_path):
    """No frame is lost that was decoded ahead, and none is taken twice."""
    film(tmp_path / "a.mp4", FAULTY * 6)
    promise = read_promise("flip_rate <= 1%")
    frame_counts = []
    for _ in range(2):
        watch = watch_file(
            tmp_path / "a.mp4", tmp_path / "w", promises=(promise,), days=0.0002, stop_at_alert=True
        )
        frame_counts.append(watch.latest["counts"]["processed"])
        assert (
            read_memory(watch.settings, watch.model, watch.out).counts.received == frame_counts[-1]
        )
    assert 0 < frame_counts[0] < frame_counts[1] == 600
    assert watch.latest["starts"] == 2
    # the frame with which a block was complete made a block of its own, of one frame
    assert watch.latest["measures"]["flip_rate"]["total"]["n"] == 60


def test_a_folder_holds_one_watch_and_a_damaged_state_is_reported(tmp_path):
    film(tmp_path / "a.mp4", GOOD)
    film(tmp_path / "b.mp4", GOOD)
    watch_file(tmp_path / "a.mp4", tmp_path / "w")
    with pytest.raises(UsageError, match=r"holds a watch with another source \(.*a.mp4\)"):
        watch_file(tmp_path / "b.mp4", tmp_path / "w")
    (tmp_path / "a.mp4").rename(tmp_path / "c.mp4")
    film(tmp_path / "a.mp4", FAULTY)
    with pytest.raises(
        UsageError, match=r"holds a watch with another video \(content [0-9a-f]{12}"
    ):
        watch_file(tmp_path / "a.mp4", tmp_path / "w")
    (tmp_path / "c.mp4").replace(tmp_path / "a.mp4")
    state = tmp_path / "w" / STATE
    state.write_bytes(state.read_bytes().replace(b'"processed": 100', b'"processed": 900'))
    with pytest.raises(UsageError, match="is damaged; delete it to start again"):
        watch_file(tmp_path / "a.mp4", tmp_path / "w")


def test_invalid_predictions_are_counted_and_a_failing_model_is_an_error_in_one_line(tmp_path):
    film(tmp_path / "a.mp4", GOOD)

    calls = count()

    def scores(images):
        is_none = next(calls) % 4 == 0
        return np.full((len(images), 2), np.nan if is_none else 0.5, dtype=np.float32)

    model = FunctionClassifier(scores, Classes(("a", "b")), name="nan")
    counts = watch_file(tmp_path / "a.mp4", tmp_path / "w", model).latest["counts"]
    assert (counts["failed"], counts["processed"]) == (25, 75)

    def fails(images):
        raise ValueError("no memory\nleft")

    fault = r"bad fails on images of shape 1x96x96x3: ValueError: no memory left \(test_watch.py"
    classes = Classes(("a", "b"))
    for model in (
        FunctionClassifier(fails, classes, name="bad"),
        FunctionDetector(fails, "bad", classes, {}, "", False),
    ):
        with pytest.raises(UsageError, match=fault):
            watch_file(tmp_path / "a.mp4", tmp_path / type(model).__name__, model)


# --- the page and the metrics


@contextmanager
def serve_watch(watch):
    answer = partial(server.answer_page, watch)
    metrics = partial(server.answer_metrics, watch)
    address = "127.0.0.1", 0
    with server.serving(answer, *address) as page, server.serving(metrics, *address) as endpoint:
        yield server.address_of(page), server.address_of(endpoint)


@pytest.fixture(scope="module")
def finished_watch(tmp_path_factory):
    """A watch of a film whose promise breaks, with stored frames."""
    root = tmp_path_factory.mktemp("watched")
    film(root / "a.mp4", (GOOD * 2 + FAULTY * 2) * 2)
    promises = (read_promise("blink_rate <= 3%"), read_promise("confidence >= 50%"))
    return watch_file(root / "a.mp4", root / "w", promises=promises, reference=5.0, days=0.002)


def get(address, host=None):
    request = urllib.request.Request(address, headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


@pytest.mark.slow
def test_metrics_are_read_by_the_parser_of_prometheus(finished_watch):
    with serve_watch(finished_watch) as (_, endpoint):
        status, headers, content = get(f"{endpoint}metrics")
        assert get(endpoint)[0] == 404
    assert status == 200
    assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    families = {f.name: f for f in parser.text_string_to_metric_families(content.decode())}
    values = {
        (s.name, *sorted(s.labels.items())): s.value for f in families.values() for s in f.samples
    }
    state = finished_watch.latest
    measure = (("measure", "blink_rate"), ("over", "total"))
    total = state["measures"]["blink_rate"]["total"]
    for name, part in (("", "value"), ("_low", "low"), ("_high", "high"), ("_blocks", "n")):
        got = values[f"steadyeye_measure{name}", *measure]
        assert got == pytest.approx(total[part], rel=1e-9)
    assert values["steadyeye_frames_total", ("state", "processed")] == 800
    assert values["steadyeye_alerts_total", ("promise", "blink_rate <= 3.0 %")] >= 1
    assert values["steadyeye_up",] == 0, "the file has ended"
    assert families["steadyeye_frames"].type == "counter"


def test_names_with_quotes_are_escaped_in_metrics(finished_watch):
    from steadyeye.watch.watch_metrics import write_metrics

    state = {**finished_watch.latest, "source": 'a "b"\\\nc'}
    text = write_metrics(state, finished_watch.start)
    (info,) = (f for f in parser.text_string_to_metric_families(text) if f.type == "info")
    assert info.samples[0].labels["source"] == 'a "b"\\\nc'


def test_the_page_answers_this_machine_alone(finished_watch):
    with serve_watch(finished_watch) as (page, _):
        port = page.rsplit(":", 1)[1].strip("/")
        assert get(page)[0] == 200
        assert get(page, f"localhost:{port}")[0] == 200
        assert get(page, f"evil.example:{port}")[0] == get(page, "evil.example")[0] == 403
        assert get(page, "127.0.0.1")[0] == 200, "as a browser asks at port 80"
        for path in ("state", "frames/../state.json", "frames/none.jpg", "static/watch.js"):
            assert get(f"{page}{path}")[0] == 404
        state = json.loads(get(f"{page}state.json")[2])
        newest = state["frames"]["newest"][0]
        status, headers, picture = get(f"{page}frames/{newest['name']}")
        assert (status, headers["Content-Type"], picture[:2]) == (200, "image/jpeg", b"\xff\xd8")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "img-src 'self' data:;" in headers["Content-Security-Policy"], "the page's icon"
    with server.serving(lambda path: None, "127.0.0.1", 0) as other:
        another = server.serving(lambda path: None, "127.0.0.1", other.server_port)
        with pytest.raises(UsageError, match="choose another port or host"):
            another.__enter__()


@pytest.mark.slow
def test_the_page_in_a_browser(finished_watch, browser):
    with serve_watch(finished_watch) as (page, _):
        for look in LOOKS:
            view = open_page(browser, page, look)
            try:
                view.page.wait_for_selector(".measure svg")
                view.page.locator("#frames img").first.scroll_into_view_if_needed()
                view.page.wait_for_selector("#frames .box", state="attached")
                unfold(view.page)
                faults = [f for f in find_faults(view) if not f.startswith(f"asks for {page}")]
                assert not faults, look
                assert not find_violations(view.page), look
                assert view.page.locator("#promises li").count() == 2
                assert view.page.locator(".measure").count() == 6
            finally:
                view.page.context.close()


@pytest.mark.slow
def test_the_page_calls_a_promise_kept_once_it_is_measured(finished_watch, browser):
    """Not before the first block has ended; and a single frame is one frame."""

    def answer(path):
        content = server.answer_page(finished_watch, path)
        if path != "/state.json":
            return content
        state = json.loads(content[1])
        state["promises"] = [{**p, "is_broken": False} for p in state["promises"]]
        state["measures"], state["frames"]["number"] = {}, 1
        return content[0], json.dumps(state).encode()

    with server.serving(answer, "127.0.0.1", 0) as serving:
        page = open_page(browser, server.address_of(serving), LOOKS[0]).page
        try:
            page.locator("#promises li").first.wait_for()
            texts = page.locator("#promises li").all_inner_texts()
            assert all("not measured yet" in text and "kept ·" not in text for text in texts)
            assert page.locator("#about-frames").inner_text().startswith("1 frame, ")
        finally:
            page.context.close()


@pytest.mark.slow
def test_the_page_keeps_the_focus_and_says_that_a_watch_hangs(finished_watch, browser):
    frames = finished_watch.latest["frames"]["names"]
    current, hangs = {"names": frames[1:9]}, threading.Event()

    def answer(path):
        if path == "/state.json" and hangs.is_set():
            time.sleep(30)
        content = server.answer_page(finished_watch, path)
        if path == "/state.json":
            state = json.loads(content[1])
            newest = [f for f in state["frames"]["newest"] if f["name"] in current["names"]]
            state["frames"]["newest"] = newest
            return content[0], json.dumps(state).encode()
        return content

    with server.serving(answer, "127.0.0.1", 0) as serving:
        page = open_page(browser, server.address_of(serving), LOOKS[1]).page
        try:
            link = page.locator("#frames a").nth(2)
            link.wait_for(state="attached")
            link.focus()
            before = page.evaluate("document.activeElement.href")
            current["names"] = frames[0:8]
            page.wait_for_function(f"!document.body.innerHTML.includes('{frames[8]}')")
            assert page.evaluate("document.activeElement.href") == before
            names = page.locator("#frames li").evaluate_all("all => all.map(i => i.dataset.name)")
            assert names == frames[0:8]
            hangs.set()
            page.wait_for_function(
                "document.getElementById('status').textContent.includes('cannot be reached')"
            )
        finally:
            page.context.close()


# --- the command

MODEL = "callable_detector(path='object_toys:bright', classes='classes.json')"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "classes.json").write_text('["grey", "white"]')
    return tmp_path


def command(folder, *words):
    return ("watch", *words, "--model", MODEL, "--no-page")


@pytest.mark.slow
def test_exit_codes_of_a_file(folder):
    film(folder / "good.mp4", GOOD)
    film(folder / "bad.mp4", FAULTY * 4)
    alert = ("--alert", "blink_rate <= 2%", "--block", "1", "--days", "0.005")
    done = steadyeye(*command(folder, "good.mp4", *alert), cwd=folder, env=ENV)
    assert (done.returncode, done.stderr) == (0, "")
    assert "blink_rate" in done.stdout
    assert next((folder / "watches").iterdir()).name.startswith("good-mp4-")
    for _ in range(2):  # what was broken stays so when the command is run again
        done = steadyeye(*command(folder, "bad.mp4", *alert), cwd=folder, env=ENV)
        assert (done.returncode, done.stderr) == (1, "")


def test_the_folder_of_a_watch_has_the_name_that_the_help_says():
    (option,) = (p for p in get_command(app).commands["watch"].params if p.name == "out")
    pattern = re.search(r"watches/[<>a-z-]+", option.help)[0]
    pattern = pattern.replace("<source>", "a-mp4").replace("<key>", "[0-9a-f]{6}")
    assert re.fullmatch(pattern, f"watches/{name_folder('clips/a.mp4', MODEL)}")


def test_invalid_options_of_watch_are_refused_in_one_line(folder):
    film(folder / "a.mp4", GOOD[:5])
    messages = {
        ("none.mp4",): "no file or folder 'none.mp4'; give one, an address",
        ("a.mp4", "--alert", "x <= 5%"): "no measure named 'x'",
        ("a.mp4", "--keep", "1"): "'1' is no size; write one such as 200MB",
        ("a.mp4", "--fps", "0"): "--fps 0: give more than 0 frames a second",
        ("a.mp4", "--period", "12", "--block", "20"): "is shorter than a block",
        (
            *("a.mp4", "--alert", "flip_rate <= 9%", "--days", "0.001", "--block", "90"),
        ): "--days 0.001 is shorter than a block of 90 s",
        ("a.mp4", "--webhook", "file:///x"): "is no address to post to",
    }
    commands = [command(folder, *words) for words in messages]
    for done, says in zip(steadyeye_each(commands, folder, ENV), messages.values(), strict=True):
        assert says in refusal(done)


@pytest.mark.slow
def test_a_watch_of_a_folder_ends_at_a_signal_and_continues(folder):
    (folder / "in").mkdir()
    film(folder / "in" / "a.mp4", GOOD)
    words = command(folder, "in", "--block", "1", "--out", "w")
    for start, number, code in ((1, signal.SIGTERM, 143), (2, signal.SIGINT, 130)):
        running = Command(*words, cwd=folder, env=ENV)
        until = time.monotonic() + 60
        state = folder / "w" / STATE
        while not (state.is_file() and json.loads(state.read_bytes())["starts"] == start):
            assert time.monotonic() < until
            time.sleep(0.05)
            if start == 2 and not (folder / "in" / "b.mp4").exists():
                film(folder / "b.mp4", GOOD)
                os.replace(folder / "b.mp4", folder / "in" / "b.mp4")
        running.send_signal(number)
        stdout, stderr = running.communicate()
        assert running.returncode == code
        assert stderr == "steadyeye: stopped; run the same command again to go on\n"
        assert "watching in with bright" in stdout
