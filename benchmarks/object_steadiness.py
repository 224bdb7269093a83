"""How little the steadiness of objects depends on who links them, and what linking costs.

    python benchmarks/object_steadiness.py RUN
    python benchmarks/object_steadiness.py --studies 500

`RUN`: the folder of a run of a detector on whole videos, `every_frame(…)`. Other trackers are those
of the package `trackers` (Apache-2.0), where it is installed; each gets the same detections without
pictures, and every gap is looked up in the same way. Prints a row a tracker: its objects, the gaps
and what they are, and `blink_rate`; `naive` counts every gap of a tracker as a blink. `--studies`:
how often the interval holds the rate that videos were drawn with.
"""

import argparse
import importlib.util
import inspect
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from steadyeye.core.boxes import Detections, detection_table
from steadyeye.metrics.sequences.object_steadiness import count_blinks, find_blinks, select_steady
from steadyeye.metrics.sequences.tracklets import (
    DETECTED,
    DIP,
    MISS,
    SCORE,
    UNSURE,
    TrackedObject,
    _linked,
    assign_frame_by_frame,
    link_by,
    remove_duplicates,
)
from steadyeye.predictions.read import read
from steadyeye.testing import example_video

SETTINGS = {
    "minimum_consecutive_frames": 1,
    "high_conf_det_threshold": SCORE,
    "track_activation_threshold": SCORE,
    "enable_cmc": False,
}
HEAD_OF_STUDIES = "| videos | mean blink_rate | interval holds | width |\n|--:|--:|--:|--:|"
HEAD = "| tracker | objects | gaps | unsure | dips | misses | naive | blink_rate | ms a frame |"


def use(name):
    """A tracker of the package as a linker of scenes."""
    import supervision
    import trackers

    def link(scene):
        settings = {**SETTINGS, "frame_rate": 1 / np.median(np.diff(scene.seconds))}
        known = inspect.signature(getattr(trackers, name)).parameters
        tracker = getattr(trackers, name)(**{k: v for k, v in settings.items() if k in known})
        objects = {}
        for place, detections in enumerate(scene.detections):
            kept = remove_duplicates(scene.raw, detections)
            boxes = supervision.Detections(
                xyxy=scene.raw.boxes[kept].astype(np.float32),
                confidence=scene.raw.score[kept].astype(np.float32),
                class_id=scene.raw.label[kept].astype(int),
                data={"row": kept},
            )
            tracked = tracker.update(boxes)
            # of a frame without boxes it gives back none of the columns
            rows = tracked.data.get("row", ())
            for number, row in zip(tracked.tracker_id if len(rows) else (), rows, strict=True):
                if number >= 0 and scene.raw.score[row] >= scene.score:
                    box = scene.raw.boxes[row]
                    one = objects.setdefault(int(number), TrackedObject([], [], box, 0, 0))
                    one.places.append(place)
                    one.detections.append(int(row))
        return list(objects.values())

    return link


def measure(name, linker, predictions):
    """The row of a tracker."""
    begin = time.perf_counter()
    objects = link_by(linker, predictions, predictions.raw_detections, SCORE)
    took = 1000 * (time.perf_counter() - begin) / len(predictions)
    _linked[predictions] = {SCORE: objects}
    rate = count_blinks(predictions, SCORE)
    steady = select_steady(objects)
    blinks = find_blinks(objects)
    state = blinks.state[steady[blinks.first]]
    kinds = " | ".join(f"{int((state == kind).sum())}" for kind in (UNSURE, DIP, MISS))
    naive = np.mean(objects.state[steady] != DETECTED)
    objects = len(np.unique(objects.track[steady]))
    shares = f"{naive:.1%} | {rate.value:.1%} | {took:.2f}"
    return f"| {name} | {objects} | {len(state)} | {kinds} | {shares} |"


def plant(videos, frames, rng):
    """Predictions of videos with three objects each, and the rate of blinks they were drawn with.

    A video has a rate of its own, from a beta distribution of mean 10 %; its gaps begin at random
    and last for one to four frames, half of them with a weak box.
    """
    table = example_video(frames)
    answers = []
    for _ in range(videos):
        missing = np.zeros((3, frames), dtype=np.int8)
        start = rng.beta(1, 9) / 2.5
        for track in range(3):
            for frame in np.flatnonzero(rng.random(frames) < start):
                missing[track, frame : frame + rng.integers(1, 5)] = rng.integers(1, 3)
        speed, noise = rng.normal(0, 3, (3, 2)), rng.normal(0, 1, (frames, 3, 4))
        for frame in range(frames):
            corner = np.array([[300, 100], [300, 300], [300, 500]]) + speed * frame
            boxes = np.concatenate([corner, corner + 80], axis=1) + noise[frame]
            present = missing[:, frame] < 2
            scores = np.where(missing[:, frame] == 1, 0.3, 0.8)[present]
            labels = np.zeros(present.sum(), dtype=np.int32)
            answers.append(Detections(boxes[present], labels, scores))
    tags = {
        name: np.resize(values[:frames], videos * frames) for name, values in table.tags.items()
    }
    video = np.repeat([f"v{i}" for i in range(videos)], frames)
    ids = np.array([f"{name}/{frame}" for name, frame in zip(video, tags["frame"], strict=True)])
    empty = np.full(len(video), "")
    return replace(
        table,
        ids=ids,
        groups=video,
        errors=empty,
        tags={**tags, "video": video},
        raw_detections=detection_table(answers),
        **{
            name: np.resize(getattr(table, name), (len(video), *getattr(table, name).shape[1:]))
            for name in ("truth", "scores", "top", "top_scores")
        },
    )


def simulate(studies, frames=60):
    """How often the interval of `blink_rate` holds the rate of a large draw of such videos."""
    rng = np.random.default_rng(0)
    truth = count_blinks(plant(4000, frames, rng), SCORE).value
    print(
        f"planted rate {truth:.2%} (4,000 videos), {studies:,} studies", HEAD_OF_STUDIES, sep="\n"
    )
    for videos in (5, 10, 30):
        results = [count_blinks(plant(videos, frames, rng), SCORE) for _ in range(studies)]
        holds = np.mean([result.low <= truth <= result.high for result in results])
        value = np.mean([result.value for result in results])
        width = np.mean([result.high - result.low for result in results])
        print(f"| {videos} | {value:.2%} | {holds:.1%} | {width:.1%} |")


def main():
    """Of a run the trackers, and with `--studies` the coverage of the intervals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--studies", type=int, default=0)
    options = parser.parse_args()
    if options.studies:
        simulate(options.studies)
    for cell in sorted((options.run / "cells").iterdir()) if options.run else ():
        predictions = read(cell)
        print(f"{predictions.model} on {predictions.data}, {len(predictions):,} frames")
        print(HEAD, "|---|" + "--:|" * 8, sep="\n")
        print(measure("steadyeye", assign_frame_by_frame, predictions))
        for name in ("ByteTrackTracker", "OCSORTTracker", "BoTSORTTracker", "SORTTracker"):
            if importlib.util.find_spec("trackers"):
                print(measure(name, use(name), predictions))


if __name__ == "__main__":
    main()
