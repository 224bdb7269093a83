"""Frames a second of `steadyeye watch` beside those of its model alone, of a large video.

    python benchmarks/watch_rate.py VIDEO --model SPEC [--model SPEC] [--size 1920x1080]

The video is enlarged to the size (H.264). The model's own rate is that of preparing and answering
frames that are decoded before. Both take turns (`--rounds`); prints a row a model and round.
"""

import argparse
import tempfile
import time
from itertools import islice
from pathlib import Path

import av

from steadyeye.core import plugins
from steadyeye.core.model_stages import stages
from steadyeye.core.spec import parse
from steadyeye.watch.feeds import open_feed
from steadyeye.watch.frames import FrameCounts
from steadyeye.watch.memory import WatchSettings
from steadyeye.watch.session import Watch

FRAMES = 60
"""Frames that are decoded for the model alone: of 1080p they take 370 MB."""


def enlarge(video: Path, size: tuple[int, int], path: Path) -> int:
    """Writes a video at another size; how many frames it has."""
    frames = 0
    with av.open(str(video)) as source, av.open(str(path), "w") as target:
        stream = source.streams.video[0]
        out = target.add_stream("libx264", rate=stream.average_rate)
        (out.width, out.height), out.pix_fmt = size, "yuv420p"
        for frame in source.decode(stream):
            larger = frame.reformat(*size, format="yuv420p")
            larger.pts = None
            target.mux(out.encode(larger))
            frames += 1
        target.mux(out.encode(None))
    return frames


def own_rate(model, path: Path) -> float:
    """Frames a second that the model takes, of pictures in memory."""
    feed = open_feed(str(path), FrameCounts(), None)
    images = [frame.image() for frame in islice(iter(lambda: feed.take(0), None), FRAMES)]
    feed.close()
    steps = stages(model)
    began = time.perf_counter()
    for image in images:
        steps.infer([steps.prepare(image)])
    return len(images) / (time.perf_counter() - began)


def watch_rate(model, spec: str, path: Path, frames: int) -> float:
    """Frames a second of a whole watch."""
    settings = WatchSettings(str(path), spec)
    with tempfile.TemporaryDirectory() as out:
        watch = Watch(
            settings,
            model,
            lambda memory: open_feed(settings.source, memory.counts, None),
            Path(out),
            lambda line: None,
        )
        began = time.perf_counter()
        watch.run()
        seconds = time.perf_counter() - began
    assert watch.memory.processed == frames
    return frames / seconds


def main() -> None:
    """Reads the options and prints a row a model and round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("video", type=Path)
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.mp4"
        frames = enlarge(args.video, (width, height), path)
        print(f"{frames} frames of {args.size}")
        print("| model | own rate, frames/s | `watch`, frames/s | share |")
        print("|---|--:|--:|--:|")
        for spec in args.model:
            model = plugins.build("models", parse(spec))
            watch_rate(model, spec, path, frames)  # the first frames of a session are slow
            for _ in range(args.rounds):
                own, watched = own_rate(model, path), watch_rate(model, spec, path, frames)
                print(f"| {model.name} | {own:.1f} | {watched:.1f} | {100 * watched / own:.0f} % |")


if __name__ == "__main__":
    main()
