"""A watch in operation: counters over restarts, a failing disk, undelivered alerts."""

import socket

import pytest
from prometheus_client.openmetrics import parser
from test_watch import FAULTY, GOOD, detector, film, settings, watch_file

from steadyeye.core.errors import UsageError
from steadyeye.watch.feeds import open_feed
from steadyeye.watch.frames import FrameCounts
from steadyeye.watch.memory import STATE
from steadyeye.watch.promises import read_promise
from steadyeye.watch.session import Watch
from steadyeye.watch.watch_metrics import write_metrics
from steadyeye.watch.webhook import Webhooks


def read_counters(watch):
    families = parser.text_string_to_metric_families(write_metrics(watch.latest, watch.start))
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        if family.type == "counter"
        for sample in family.samples
    }


def test_counters_begin_at_zero_in_each_process(tmp_path):
    """One that goes back a little is taken for a restart from 0: all of it counted again."""
    clip = film(tmp_path / "a.mp4", FAULTY * 4)
    more = {"promises": (read_promise("blink_rate <= 2%"),), "stop_at_alert": True}
    first = watch_file(clip, tmp_path / "w", **more)
    assert read_counters(first)["steadyeye_alerts_total", "blink_rate <= 2.0 %"] == 1
    again = Watch(
        settings(clip, **more),
        detector(),
        lambda memory: open_feed(str(clip), memory.counts, None, memory.mark),
        tmp_path / "w",
        lambda text: None,
    )
    assert set(read_counters(again).values()) == {0}
    assert again.memory.counts.received > 0
    again.run()
    taken = sum(
        read_counters(watch)["steadyeye_frames_total", "processed"] for watch in (first, again)
    )
    # the frame that ended the first was not counted, and is read again
    assert taken == again.latest["counts"]["processed"] == len(FAULTY * 4)


def live_watch(clip, out, say, source="http://camera/live"):
    """A watch of a file as if it were a live stream."""
    promise = read_promise("blink_rate <= 2%")
    chosen = settings(source, promises=(promise,), days=0.005)
    return Watch(chosen, detector(), lambda _: open_feed(str(clip), FrameCounts(), None), out, say)


def break_folder(out):
    """Neither the state nor frames can be written."""
    (out / STATE).mkdir()
    (out / "frames").rmdir()
    (out / "frames").write_text("in the way")


def test_a_live_watch_goes_on_where_nothing_can_be_written(tmp_path):
    """It ended with an error that says to run the command again, and nobody watched any more."""
    clip, lines = film(tmp_path / "a.mp4", FAULTY * 4), []
    watch = live_watch(clip, tmp_path / "w", lines.append)
    break_folder(tmp_path / "w")
    watch.run()
    assert watch.memory.series["blink_rate"].total.n == 40
    note = watch.latest["notes"][0]
    assert note.startswith(
        f"cannot write '{tmp_path / 'w' / STATE}': Is a directory; the watch goes"
    )
    assert any(line.startswith("broken: blink_rate") for line in lines)


def test_a_watch_of_a_file_ends_where_nothing_can_be_written(tmp_path):
    clip = film(tmp_path / "a.mp4", GOOD)
    watch = live_watch(clip, tmp_path / "w", lambda text: None, str(clip))
    break_folder(tmp_path / "w")
    with pytest.raises(UsageError, match="run the same command again"):
        watch.run()


def test_alerts_that_do_not_arrive_are_reported(tmp_path):
    clip, lines = film(tmp_path / "a.mp4", FAULTY * 4), []
    watch = live_watch(clip, tmp_path / "w", lines.append)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://me:secret@127.0.0.1:{port}/hook?key=1"
    watch.webhooks = Webhooks((address,), lines.append, waits=())
    watch.run()
    watch.webhooks.close(10)
    reason = "tried once: [Errno 111] Connection refused"
    assert f"alert not delivered to http://127.0.0.1:{port}/hook, {reason}" in lines
    assert lines[-1] == "1 of 1 post not delivered"
