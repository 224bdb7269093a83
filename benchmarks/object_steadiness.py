"""Dependence of the steadiness of objects on the tracker, and the cost of linking.

    python benchmarks/object_steadiness.py RUN
    python benchmarks/object_steadiness.py --studies 500

`RUN`: the folder of a run of a detector on whole videos, `every_frame(…)`. Other trackers are those
of the package `trackers` (Apache-2.0), if it is installed; each gets the same detections without
pictures, and every gap is examined in the same way. Prints one row per tracker: its objects, the
gaps and their kinds, and `blink_rate`; `naive` counts every gap of a tracker as a blink.
`--studies`: the recovery of planted gaps, classes, jitter, scores and false boxes in 300 videos,
and the coverage of the intervals of 5 and 10 videos. `--true`: of a run on true tracks,
`blink_rate` of the linked objects compared with that of the same true objects. `--time`: processor
time of linking and of the metrics, beside that of the detectors given as `--model`.
"""

import argparse
import importlib.util
import inspect
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from steadyeye.core import plugins
from steadyeye.core.boxes import Detections, detection_table, iou
from steadyeye.core.spec import parse
from steadyeye.metrics.blink_rate import blink_rate
from steadyeye.metrics.box_jitter import box_jitter
from steadyeye.metrics.class_change_rate import class_change_rate
from steadyeye.metrics.confidence_swing import confidence_swing
from steadyeye.metrics.covariates.projections import measure_projections
from steadyeye.metrics.flicker_rate import flicker_rate
from steadyeye.metrics.sequences.object_steadiness import LEAST, find_blinks, select_steady
from steadyeye.metrics.sequences.tracklets import (
    DETECTED,
    DIP,
    GAP,
    MISS,
    SCORE,
    UNSURE,
    TrackedObject,
    _linked,
    assign_frame_by_frame,
    link,
    link_by,
    remove_duplicates,
)
from steadyeye.metrics.sequences.true_tracks import FOUND, RENAMED, follow
from steadyeye.predictions.read import read
from steadyeye.predictions.shard_store import open_cell
from steadyeye.testing import example_video

SETTINGS = {
    "minimum_consecutive_frames": 1,
    "high_conf_det_threshold": SCORE,
    "track_activation_threshold": SCORE,
    "enable_cmc": False,
}
HEAD_OF_STUDIES = (
    "| metric | planted | recovered | holds, 5 videos | width | holds, 10 videos | width |\n"
    "|---|--:|--:|--:|--:|--:|--:|"
)
METRICS = {
    "blink_rate": blink_rate,
    "flicker_rate": flicker_rate,
    "class_change_rate": class_change_rate,
    "box_jitter": box_jitter,
    "confidence_swing": confidence_swing,
}
HEAD_OF_TRUTH = (
    "| detector | linked objects | frames | blink rate | true objects | frames | blink rate |\n"
    "|---|--:|--:|--:|--:|--:|--:|"
)
SIDE = 80
"""Pixels of the planted objects."""
TRACKERS = ("ByteTrackTracker", "OCSORTTracker", "BoTSORTTracker", "SORTTracker")
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
            indices = remove_duplicates(scene.raw, detections)
            boxes = supervision.Detections(
                xyxy=scene.raw.boxes[indices].astype(np.float32),
                confidence=scene.raw.score[indices].astype(np.float32),
                class_id=scene.raw.label[indices].astype(int),
                data={"row": indices},
            )
            tracked = tracker.update(boxes)
            # for a frame without boxes it returns none of the columns
            rows = tracked.data.get("row", ())
            for number, row in zip(tracked.tracker_id if len(rows) else (), rows, strict=True):
                if number >= 0 and scene.raw.score[row] >= scene.score:
                    box = scene.raw.boxes[row]
                    tracked_object = objects.setdefault(
                        int(number), TrackedObject([], [], box, 0, 0)
                    )
                    tracked_object.places.append(place)
                    tracked_object.detections.append(int(row))
        return list(objects.values())

    return link


def list_linkers():
    """Our linker and, if the package is installed, those of `TRACKERS`, by name."""
    others = TRACKERS if importlib.util.find_spec("trackers") else ()
    return {"steadyeye": assign_frame_by_frame, **{name: use(name) for name in others}}


def measure(name, linker, predictions):
    """The row of a tracker."""
    begin = time.perf_counter()
    objects = link_by(linker, predictions, predictions.raw_detections, SCORE)
    took = 1000 * (time.perf_counter() - begin) / len(predictions)
    _linked[predictions] = {SCORE: objects}
    rate = blink_rate(predictions, SCORE)
    steady = select_steady(objects)
    blinks = find_blinks(objects)
    state = blinks.state[steady[blinks.first]]
    kinds = " | ".join(f"{int((state == kind).sum())}" for kind in (UNSURE, DIP, MISS))
    naive = np.mean(objects.state[steady] != DETECTED)
    objects = len(np.unique(objects.track[steady]))
    shares = f"{naive:.1%} | {rate.value:.1%} | {took:.2f}"
    return f"| {name} | {objects} | {len(state)} | {kinds} | {shares} |"


def plant(videos, frames, rng):
    """Predictions of videos with three objects each, and the planted values, by metric.

    Each video has its own rates: of gaps, from a beta distribution of mean 10 %, which begin at
    random and last for one to four frames, half of them with a weak box; of frames with another
    class (mean 4 %); of noise on the corners (0.5 to 2 pixels); and two false boxes on average, for
    one frame or two.
    """
    table = example_video(frames)
    answers, counts = [], {name: [0.0, 0] for name in METRICS}
    for _ in range(videos):
        missing = np.zeros((3, frames), dtype=np.int8)
        start, sigma = rng.beta(1, 9) / 2.5, rng.uniform(0.5, 2)
        for track in range(3):
            for frame in np.flatnonzero(rng.random(frames) < start):
                missing[track, frame : frame + rng.integers(1, 5)] = rng.integers(1, 3)
        labels = (rng.random((3, frames)) < rng.beta(1, 24)).astype(np.int32)
        scores = np.where(missing == 1, 0.3, rng.uniform(0.7, 0.9, (3, frames)))
        speed, noise = rng.normal(0, 3, (3, 2)), rng.normal(0, sigma, (frames, 3, 4))
        flickers = {
            int(rng.integers(5, frames - 5)): int(rng.integers(1, 3)) for _ in range(rng.poisson(2))
        }
        # each at a different place: at one place they are linked to one object that blinks
        nothing = np.full(frames, -1)
        for frame, length in flickers.items():
            nothing[frame : frame + length] = frame
        count_planted(counts, missing, labels, scores, sigma, nothing)
        for frame in range(frames):
            corner = np.array([[300, 100], [300, 300], [300, 500]]) + speed * frame
            boxes = np.concatenate([corner, corner + SIDE], axis=1) + noise[frame]
            present = missing[:, frame] < 2
            more = int(nothing[frame] >= 0)
            left = 900.0 + 60 * nothing[frame]
            rows = [boxes[present], np.full((more, 4), [left, 900, left + 40, 940])]
            answers.append(
                Detections(
                    np.concatenate(rows),
                    np.append(labels[present, frame], np.zeros(more, dtype=np.int32)).astype(
                        np.int32
                    ),
                    np.append(scores[present, frame], np.full(more, 0.6)),
                )
            )
    planted = {name: total / max(n, 1) for name, (total, n) in counts.items()}
    return tabulate(table, answers, videos, frames), planted


def count_planted(counts, missing, labels, scores, sigma, nothing):
    """Adds what a video was made with to `counts`, metric → sum and number."""
    whole = 0
    for fate, label, score in zip(missing, labels, scores, strict=True):
        detected = np.flatnonzero(fate == 0)
        if len(detected) < 5:
            continue
        inside = fate[detected[0] : detected[-1] + 1]
        whole += detected[0] > 0 and detected[-1] < len(fate) - 1
        boxed = detected[0] + np.flatnonzero(inside < 2)
        values = {
            "blink_rate": inside != 0,
            "class_change_rate": np.diff(label[detected]) != 0,
            "confidence_swing": np.abs(np.diff(score[boxed])),
        }
        for name, value in values.items():
            counts[name][0] += float(value.sum())
            counts[name][1] += len(value)
    starts = int(((nothing >= 0) & (nothing != np.append(-1, nothing[:-1]))).sum())
    counts["flicker_rate"][0] += starts
    counts["flicker_rate"][1] += starts + int(whole)
    # the centre has half the variance of the corners; minus a parabola through five
    mean = sigma / np.sqrt(2) * np.sqrt(18 / 35) * np.sqrt(np.pi / 2) / SIDE
    counts["box_jitter"][0] += mean
    counts["box_jitter"][1] += 1


def tabulate(table, answers, videos, frames):
    """The predictions of detections, video after video."""
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
    """Recovery of the planted values, and coverage of the intervals."""
    rng = np.random.default_rng(0)
    large, planted = plant(300, frames, rng)
    recovered = {name: metric(large, SCORE).value for name, metric in METRICS.items()}
    print(f"{studies:,} studies", HEAD_OF_STUDIES, sep="\n")
    coverage = {}
    for videos in (5, 10):
        results = []
        for _ in range(studies):
            sample, _ = plant(videos, frames, rng)
            results.append({name: metric(sample, SCORE) for name, metric in METRICS.items()})
        for name in METRICS:
            every = [result[name] for result in results if result[name].value is not None]
            holds = np.mean([result.low <= planted[name] <= result.high for result in every])
            coverage[name, videos] = (
                holds,
                np.mean([result.high - result.low for result in every]),
            )
    for name in METRICS:
        cells = " | ".join(
            f"{coverage[name, n][0]:.1%} | {coverage[name, n][1]:.1%}" for n in (5, 10)
        )
        print(f"| `{name}` | {planted[name]:.2%} | {recovered[name]:.2%} | {cells} |")


def mark_true(objects, truth):
    """(m,) the frames of objects whose detections mostly overlap a true box (IoU ≥ 0.5)."""
    detected = np.flatnonzero(objects.state == DETECTED)
    overlap = [
        iou(objects.boxes[[row]], truth.boxes[truth.image == objects.row[row]]).max(initial=0)
        for row in detected
    ]
    track = objects.track[detected]
    share = np.bincount(track, np.array(overlap) >= 0.5) / np.bincount(track)
    return (share > 0.5)[objects.track]


def compare_with_truth(run):
    """The blink rate of the linked and of the true objects, for each cell of a run on true tracks.

    Linked: objects of `link` that `mark_true` marks. True: each true object, found if any detection
    above the threshold overlaps it, of any class; a gap of more than a second starts another
    object, as in `link`; five found frames or more.
    """
    print(HEAD_OF_TRUTH)
    for cell in sorted((run / "cells").iterdir()):
        table = read(cell)
        objects = link(table)
        linked = select_steady(objects) & mark_true(objects, table.boxes)
        known = linked & (objects.state != UNSURE)
        followed = follow(table)
        seconds = np.asarray(table.tags["seconds"])[followed.row]
        frames = lost = number = 0
        for track in range(len(followed)):
            own = followed.track == track
            detected = np.isin(followed.state[own], (FOUND, RENAMED))
            times, places = seconds[own], np.flatnonzero(detected)
            for part in np.split(places, np.flatnonzero(np.diff(times[places]) > GAP) + 1):
                if len(part) >= LEAST:
                    inside = detected[part[0] : part[-1] + 1]
                    frames, lost, number = (
                        frames + len(inside),
                        lost + int((~inside).sum()),
                        number + 1,
                    )
        print(
            f"| {table.model} | {len(np.unique(objects.track[linked]))} | {known.sum()} | "
            f"{np.mean(objects.state[known] != DETECTED):.1%} | {number} | {frames} | "
            f"{lost / frames:.1%} |"
        )


def time_parts(run, models):
    """Processor time a frame: the detector; projections of frames, linking, five numbers.

    Linking includes the motion of the camera, and is compiled beforehand. Of each cell whose model
    is one of `models`, specs of detectors, on its first 60 frames.
    """
    built = {model.name: model for model in (plugins.build("models", parse(m)) for m in models)}
    print("| detector | data | detector, ms | frames, ms | linking, ms | metrics, ms | share |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for cell in sorted((run / "cells").iterdir()):
        table = read(cell)
        if table.model not in built:
            continue
        source = plugins.build("sources", parse(open_cell(cell).identity["data"]["spec"]))
        images = [np.asarray(source[i].image()) for i in range(60)]
        model = built[table.model]
        model(images[:2])
        begin = time.process_time()
        model(images)
        detector = 1000 * (time.process_time() - begin) / len(images)
        begin = time.process_time()
        for image in images:
            measure_projections(image)
        camera = 1000 * (time.process_time() - begin) / len(images)
        link(replace(table))
        begin = time.process_time()
        link(table)
        linking = 1000 * (time.process_time() - begin) / len(table)
        begin = time.process_time()
        for metric in METRICS.values():
            metric(table, SCORE)
        numbers = 1000 * (time.process_time() - begin) / len(table)
        share = (camera + linking + numbers) / detector
        cells = f"{detector:.1f} | {camera:.2f} | {linking:.2f} | {numbers:.2f} | {share:.1%}"
        print(f"| {table.model} | {table.data} | {cells} |")


def main():
    """Of a run the trackers, and with `--studies` the coverage of the intervals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--studies", type=int, default=0)
    parser.add_argument("--true", type=Path)
    parser.add_argument("--time", type=Path)
    parser.add_argument("--model", action="append", default=[])
    options = parser.parse_args()
    if options.studies:
        simulate(options.studies)
    if options.time:
        time_parts(options.time, options.model)
    if options.true:
        compare_with_truth(options.true)
    for cell in sorted((options.run / "cells").iterdir()) if options.run else ():
        predictions = read(cell)
        print(f"{predictions.model} on {predictions.data}, {len(predictions):,} frames")
        print(HEAD, "|---|" + "--:|" * 8, sep="\n")
        for name, linker in list_linkers().items():
            print(measure(name, linker, predictions))


if __name__ == "__main__":
    main()
