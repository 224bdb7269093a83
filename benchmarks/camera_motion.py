"""What a shaking camera does to the numbers of objects, with and without its motion, and the cost.

    python benchmarks/camera_motion.py --make VIDEOS FOLDER
    python benchmarks/camera_motion.py RUN

`--make`: writes each video of `VIDEOS` (files, or folders of pictures at 24 frames a second) cut to
a window 40 pixels inside its edges: FOLDER/still, one that stays; FOLDER/hand, that trembles as a
hand does (1.3, 3.1 and 5.3 times a second); FOLDER/white, that is somewhere else in each frame;
FOLDER/roll and FOLDER/zoom, that turn and grow as the hand trembles. The standard deviation is 10
pixels, 1.5 degrees or 2.5 %; the motions lie beside the videos. Run detectors on each,
`every_frame(path='FOLDER/hand', cuts='CUTS.json')`: what moves may look like a cut. `RUN`: the
folder of such a run, or of any other on whole videos. Prints the numbers of its objects, linked
with the motion of the camera, without it and, where the motions are known, with these; and the
processor time of measuring and matching the projections of its frames.
"""

import argparse
import subprocess
import time
import zlib
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from object_steadiness import METRICS, measure

from steadyeye.core import plugins
from steadyeye.core.predictions import PROJECTIONS
from steadyeye.core.spec import parse
from steadyeye.metrics.covariates.projections import measure_projections
from steadyeye.metrics.sequences.camera_motion import find_shifts
from steadyeye.metrics.sequences.scenes import list_followed
from steadyeye.metrics.sequences.tracklets import assign_frame_by_frame
from steadyeye.predictions.read import read
from steadyeye.predictions.shard_store import open_cell

MARGIN = 40
"""Pixels inside the edges of a video, which no motion exceeds."""
DEVIATION = 10
DEGREES = 1.5
GROWTH = 0.025
FREQUENCIES = (1.3, 3.1, 5.3)
TIMED = 100
"""Frames whose projections are timed."""
HEAD = (
    "| linked with | objects | gaps | unsure | dips | misses | naive | "
    + " | ".join(METRICS)
    + " |\n|---|"
    + "--:|" * (6 + len(METRICS))
)


def read_frames(path):
    """The frames of a video or of a folder of pictures, and their rate."""
    if path.is_dir():
        return [cv2.imread(str(file)) for file in sorted(path.iterdir())], 24.0
    video, frames = cv2.VideoCapture(str(path)), []
    while (read := video.read())[0]:
        frames.append(read[1])
    return frames, video.get(cv2.CAP_PROP_FPS)


def list_motions(name, frames, fps):
    """The motions of each kind of camera, (frames, 4): whole pixels, degrees, and size − 1."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    white = rng.normal(0, 1, (frames, 2))
    turns = np.arange(frames)[:, None] / fps
    hand = sum(np.sin(2 * np.pi * (turns * f + rng.random(2))) for f in FREQUENCIES)
    hand, still = hand / hand.std(), np.zeros((frames, 1))
    shifts = {
        kind: np.clip(np.round(DEVIATION * path), -MARGIN, MARGIN)
        for kind, path in (("still", 0 * white), ("white", white), ("hand", hand))
    }
    motions = {kind: np.hstack([shift, still, still]) for kind, shift in shifts.items()}
    motions["roll"] = np.hstack([still, still, DEGREES * hand[:, :1], still])
    motions["zoom"] = np.hstack([still, still, still, GROWTH * hand[:, :1]])
    return motions


def build_matrix(motion, size):
    """(2, 3) from the window's pixels to the video's; the window turns about its middle."""
    x, y, degrees, growth = motion
    middle = (np.array(size) - 1) / 2
    matrix = cv2.getRotationMatrix2D(tuple(middle), degrees, 1 + growth)
    matrix[:, 2] += MARGIN + np.array([x, y])
    return matrix


def make(videos, folder):
    """Writes the videos of each kind of camera with H.264."""
    for path in sorted(videos.iterdir()):
        if path.suffix not in ("", ".mp4"):
            continue
        frames, fps = read_frames(path)
        height, width = ((side - 2 * MARGIN) // 2 * 2 for side in frames[0].shape[:2])
        for kind, motions in list_motions(path.stem, len(frames), fps).items():
            (folder / kind).mkdir(parents=True, exist_ok=True)
            np.save(folder / kind / f"{path.stem}.npy", motions)
            out = str(folder / kind / f"{path.stem}.mp4")
            options = f"-v error -y -f rawvideo -pix_fmt bgr24 -s {width}x{height} -r {fps} -i -"
            codec = "-c:v libx264 -crf 12 -pix_fmt yuv420p"
            with subprocess.Popen(
                ["ffmpeg", *options.split(), *codec.split(), out], stdin=subprocess.PIPE
            ) as encoder:
                for frame, motion in zip(frames, motions, strict=True):
                    matrix = build_matrix(motion, (width, height))
                    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
                    window = cv2.warpAffine(frame, matrix, (width, height), flags=flags)
                    encoder.stdin.write(window.tobytes())
                encoder.stdin.close()


def forget(predictions):
    """The predictions without the projections of their frames."""
    tags = {name: values for name, values in predictions.tags.items() if name != PROJECTIONS}
    return replace(predictions, tags=tags)


def move_by_known(predictions, folder):
    """The predictions with boxes moved back by the known motions; None where they are not known."""
    raw = predictions.raw_detections
    middles, sides = (
        raw.boxes.reshape(-1, 2, 2).mean(axis=1),
        np.diff(raw.boxes.reshape(-1, 2, 2), axis=1)[:, 0],
    )
    for rows in list_followed(predictions):
        file = folder / f"{Path(str(predictions.tags['video'][rows[0]])).stem}.npy"
        if not file.is_file():
            return None
        motions = np.load(file)
        for row in rows:
            motion = motions[predictions.tags["frame"][row]]
            size = predictions.tags[PROJECTIONS][row, -2:]
            own = raw.image == row
            # a box stays upright: its middle is moved, and it grows
            matrix = build_matrix(motion, size)
            middles[own] = middles[own] @ matrix[:, :2].T + matrix[:, 2]
            sides[own] *= 1 + motion[3]
    boxes = np.hstack([middles - sides / 2, middles + sides / 2])
    return replace(forget(predictions), raw_detections=replace(raw, boxes=boxes))


def print_row(name, predictions):
    """One row of the table."""
    row = measure(name, assign_frame_by_frame, predictions).rsplit("|", 3)[0]
    values = (metric(predictions).value for metric in METRICS.values())
    print(f"{row}| " + " | ".join(f"{100 * value:.1f} %" for value in values) + " |", flush=True)


def print_times(source, rows):
    """Milliseconds a frame of measuring projections, and of finding the shift."""
    images = [np.asarray(source[int(row)].image()) for row in rows]
    begin = time.process_time()
    projections = np.array([measure_projections(image) for image in images])
    measured = time.process_time() - begin
    begin = time.process_time()
    find_shifts(projections)
    matched = time.process_time() - begin
    begin = time.process_time()
    for place in range(len(images) - 1):
        find_shifts(projections[place : place + 2])
    live = time.process_time() - begin
    per_frame = (f"{1000 * spent / len(images):.2f} ms" for spent in (measured, matched, live))
    height, width = images[0].shape[:2]
    print(
        f"{width} × {height}: projections {next(per_frame)} a frame, the shift {next(per_frame)}, "
        f"frame by frame {next(per_frame)}"
    )


def main():
    """Writes the videos, or prints one table per cell of the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--make", type=Path, nargs=2, metavar=("VIDEOS", "FOLDER"))
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    if arguments.make:
        make(*arguments.make)
        return
    for cell in sorted((arguments.run / "cells").iterdir()):
        predictions = read(cell)
        data = parse(open_cell(cell).identity["data"]["spec"])
        print(f"{predictions.model} on {predictions.data}, {len(predictions):,} frames")
        print_times(plugins.build("sources", data), list_followed(predictions)[0][:TIMED])
        print(HEAD)
        print_row("no motion", forget(predictions))
        print_row("projections", predictions)
        known = move_by_known(predictions, Path(data.kwargs.get("path", "")))
        if known is not None:
            print_row("known motions", known)


if __name__ == "__main__":
    main()
