"""Frames per second of `steadyeye watch` compared with its detector alone, for large frames.

    python benchmarks/watch_rate.py VIDEO --model SPEC [--model SPEC] [--size 1920x1080]
    python benchmarks/watch_rate.py VIDEO --model SPEC --live 20 [--times 1.3]

The video is encoded once at `--size` (H.264, x264's ultrafast). *Own rate*: that of preparing and
predicting decoded frames. The watch reads the file, and with `--live` also an RTSP stream of it for
that many seconds, served as in `watch_streams.py` at `--times` the own rate, so that frames must be
skipped. All take turns (`--rounds`); prints one row per model, source and round.

`received`, `left out`: frames per second that arrived, and that arrived while the detector was
busy. `latency`: from the arrival of a frame to its prediction, median and 95th percentile; the
delay of a frame by the stream's own clock counts. `processor time`: milliseconds per frame, by
thread; `alone`: those of the detector by itself. To compare two versions, run it with the
`PYTHONPATH` of each in turn.
"""

import argparse
import os
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from watch_streams import end, find_port, serve, write_video

from steadyeye.core import plugins
from steadyeye.core.model_stages import stages
from steadyeye.core.spec import parse
from steadyeye.runner.short_forms import expand_model
from steadyeye.watch.feeds import open_feed
from steadyeye.watch.frames import FrameCounts
from steadyeye.watch.memory import WatchSettings
from steadyeye.watch.session import Watch

FRAMES = 60
"""Frames that are decoded for the model alone: of 1080p they take 370 MB."""
SERVER_START = 3.0
"""Seconds until a server of RTSP answers."""
EVERY = 0.5
"""Seconds from one look at the processor time of threads to the next."""


class LimitedFeed:
    """A feed that is over so many seconds after its first frame."""

    def __init__(self, feed: Any, seconds: float) -> None:
        self.feed, self.seconds, self.ends = feed, seconds, float("inf")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.feed, name)

    @property
    def is_over(self) -> bool:
        """Whether no more will come."""
        return self.feed.is_over or time.monotonic() > self.ends

    def take(self, seconds: float) -> Any:
        """The next frame, or None."""
        frame = self.feed.take(seconds)
        if frame is not None and self.ends == float("inf"):
            self.ends = time.monotonic() + self.seconds
        return frame


class Course:
    """What becomes of the frames of a watch: when each was answered, and what threads took."""

    def __init__(self, watch: Watch) -> None:
        self.counts = watch.memory.counts
        self.answered: list[tuple[float, float]] = []
        self.looks: list[tuple[int, FrameCounts, Counter[str]]] = []
        self._observe = watch.observer.add
        watch.observer.add = self.add  # type: ignore[method-assign]

    def add(self, number: int, scene: int, seconds: float, *rest: Any) -> Any:
        """Observes a frame as the watch does."""
        result = self._observe(number, scene, seconds, *rest)
        now = time.time()
        if not self.answered or now > self.answered[self.looks[-1][0]][0] + EVERY:
            counts = FrameCounts(self.counts.received, self.counts.left_out)
            self.looks.append((len(self.answered), counts, processor_times()))
        self.answered.append((now, now - seconds))
        return result

    def describe(self, own: tuple[float, float], is_live: bool) -> str:
        """The cells of a row, from the first look to the last; `own`: of `own_rate`."""
        (first, before, start), (last, after, stop) = self.looks[0], self.looks[-1]
        frames, seconds = last - first, self.answered[last][0] - self.answered[first][0]
        rate = frames / seconds
        cells = [f"{own[0]:.1f}", f"{rate:.1f}", f"{100 * rate / own[0]:.0f} %"]
        received, left_out = after.received - before.received, after.left_out - before.left_out
        cells += [f"{n / seconds:.1f}" if is_live else "–" for n in (received, left_out)]
        delays = [1_000 * delay for _, delay in self.answered[first:last]]
        middle, late = np.percentile(delays, [50, 95])
        cells.append(f"{middle:.0f}, {late:.0f}" if is_live else "–")
        spent = {name: 1_000 * used / frames for name, used in (stop - start).items()}
        parts = [f"{name} {spent[name]:.1f}" for name in sorted(spent) if spent[name] >= 0.05]
        cells.append(f"{sum(spent.values()):.1f} ({', '.join(parts)}; alone: {own[1]:.1f})")
        return " | ".join(cells)


def processor_times() -> Counter[str]:
    """Seconds of a processor that the threads of this process have used, by name."""
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    times: Counter[str] = Counter()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            used = int((task / "schedstat").read_text().split()[0]) / 1e9
            times[names.get(int(task.name), "others")] += used
    # of threads that have ended the process alone knows
    times["others"] += time.process_time() - sum(times.values())
    return times


def own_rate(model: Any, path: Path) -> tuple[float, float]:
    """Frames a second that the model takes, of pictures in memory, and its ms of processor time."""
    feed = open_feed(str(path), FrameCounts(), None)
    images = [frame.image() for frame in islice(iter(lambda: feed.take(0), None), FRAMES)]
    feed.close()
    steps = stages(model)
    began, used = time.perf_counter(), time.process_time()
    for image in images:
        steps.infer([steps.prepare(image)])
    seconds, used = time.perf_counter() - began, time.process_time() - used
    return len(images) / seconds, 1_000 * used / len(images)


def watch_file(model: Any, spec: str, path: Path) -> Course:
    """The course of a watch of a whole file."""
    return run_watch(model, WatchSettings(str(path), spec), lambda feed: feed)


def watch_stream(model: Any, spec: str, path: Path, seconds: float) -> Course:
    """The course of a watch of a file that is served by RTSP."""
    port = find_port()
    server = serve("rtsp", path, path.parent, port)
    try:
        time.sleep(SERVER_START)
        settings = WatchSettings(f"rtsp://127.0.0.1:{port}/live", spec)
        return run_watch(model, settings, partial(LimitedFeed, seconds=seconds))
    finally:
        end(server)


def run_watch(model: Any, settings: WatchSettings, limit: Any) -> Course:
    """The course of a watch of the feed that `limit` makes of the source's."""
    with tempfile.TemporaryDirectory() as out:
        watch = Watch(
            settings,
            model,
            lambda memory: limit(open_feed(settings.source, memory.counts, None)),
            Path(out),
            lambda line: print(f"   {line}", flush=True),
        )
        course = Course(watch)
        watch.run()
    return course


def measure(options: argparse.Namespace, model: Any, spec: str, folder: Path) -> None:
    """Print the rows of a model."""
    path = folder / "file.mp4"
    watch_file(model, spec, path)  # the first frames of a session are slow
    for turn in range(options.rounds):
        own = own_rate(model, path)
        row = watch_file(model, spec, path).describe(own, is_live=False)
        print(f"| {model.name} | file | {row} |", flush=True)
        if not options.live:
            continue
        rate = round(own[0] * options.times)
        served = folder / f"served-{turn}.mp4"
        write_video(options.video, served, options.size, rate, round(options.live) + 20)
        own = own_rate(model, path)
        row = watch_stream(model, spec, served, options.live).describe(own, is_live=True)
        print(f"| {model.name} | RTSP, {rate} frames/s | {row} |", flush=True)
        served.unlink()


def main() -> None:
    """Read the options and print a row a model, source and round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("video", type=Path)
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--live", type=float, default=0.0)
    parser.add_argument("--times", type=float, default=1.3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_video(options.video, Path(folder) / "file.mp4", options.size, 30, None)
        print(f"load {os.getloadavg()[0]:.1f}")
        print(
            "| model | source | own rate, frames/s | watch, frames/s | share | received, frames/s "
            "| left out, frames/s | latency, ms | processor time, ms a frame |"
        )
        print("|---|---|--:|--:|--:|--:|--:|--:|---|")
        for spec in options.model:
            model = plugins.build("models", parse(expand_model(spec)))
            measure(options, model, spec, Path(folder))
        print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
