"""The gain of linking with compensated camera motion, and its cost.

    python benchmarks/camera_motion.py RUN

`RUN`: the folder of a run of a detector on whole videos, `every_frame(…)`. Before each frame the
boxes of visible objects are moved with the camera, by a shift (phase correlation of pictures of 160
pixels) or a similarity (sparse flow of corners at 320 pixels, RANSAC). Prints one row each, as in
`object_steadiness.py`, and the processor time of the motion per frame, without decoding. Further
rows are of a camera that shakes: all boxes of a frame are moved by one random shift.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from object_steadiness import HEAD, measure

from steadyeye.core import plugins
from steadyeye.core.spec import parse
from steadyeye.metrics.sequences.tracklets import (
    SCORE,
    assign_frame_by_frame,
    follow,
    list_scenes,
)
from steadyeye.predictions.read import read
from steadyeye.predictions.shard_store import open_cell

LEAST_RESPONSE = 0.05
"""The response of a phase correlation below which the pictures have nothing in common."""
LEAST_CORNERS = 8
SHAKES = (5, 10, 25)
"""Standard deviations of the shift of a frame, in pixels."""


def shrink(image, side):
    """A grey picture whose longer side has so many pixels."""
    scale = side / max(image.shape[:2])
    size = [round(length * scale) for length in image.shape[1::-1]]
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)


def find_shift(first, second):
    """(2, 3) from one grey picture to the next, a shift."""
    window = cv2.createHanningWindow(first.shape[::-1], cv2.CV_32F)
    (x, y), response = cv2.phaseCorrelate(
        first.astype(np.float32), second.astype(np.float32), window
    )
    if response < LEAST_RESPONSE:
        x = y = 0.0
    return np.array([[1, 0, x], [0, 1, y]])


def find_similarity(first, second):
    """(2, 3) from one grey picture to the next: turned, scaled and shifted."""
    motion = None
    corners = cv2.goodFeaturesToTrack(first, 200, 0.01, 5)
    if corners is not None:
        moved, status, _ = cv2.calcOpticalFlowPyrLK(
            first, second, corners, None, winSize=(15, 15), maxLevel=2
        )
        known = status[:, 0] == 1
        if known.sum() > LEAST_CORNERS:
            motion, _ = cv2.estimateAffinePartial2D(
                corners[known], moved[known], method=cv2.RANSAC, ransacReprojThreshold=1.5
            )
    return np.eye(2, 3) if motion is None else motion


def move_box(box, motion):
    """A box after a motion of the camera; it stays upright."""
    centre = motion[:, :2] @ box.reshape(2, 2).mean(axis=0) + motion[:, 2]
    half = (box[2:] - box[:2]) / 2 * np.sqrt(abs(np.linalg.det(motion[:, :2])))
    return np.concatenate([centre - half, centre + half])


def link_with(motions):
    """A linker that moves the objects in view; `motions`: first row of a scene → of its frames."""

    def link(scene):
        objects, active = [], []
        for place, motion in enumerate(motions[int(scene.rows[0])]):
            for item in active:
                item.box = move_box(item.box, motion)
            active, begun, _ = follow(scene, active, place)
            objects += begun
            active += begun
        return objects

    return link


def measure_motions(find, side, predictions, source):
    """The motion before each frame of each scene, and milliseconds a frame.

    `find`: of two grey pictures whose longer side has `side` pixels.
    """
    motions, spent, frames = {}, 0.0, 0
    for scene in list_scenes(predictions, predictions.raw_detections, SCORE):
        own, before = [np.eye(2, 3)], None
        for row in scene.rows:
            image = np.asarray(source[int(row)].image())
            begin = time.process_time()
            small = shrink(image, side)
            if before is not None:
                motion = np.array(find(before, small))
                motion[:, 2] *= max(image.shape[:2]) / side
                own.append(motion)
            spent += time.process_time() - begin
            frames += 1
            before = small
        motions[int(scene.rows[0])] = own
    return motions, 1000 * spent / max(frames, 1)


def shake(predictions, deviation):
    """The predictions of a camera whose every frame is shifted on its own."""
    raw = predictions.raw_detections
    shifts = np.random.default_rng(0).normal(0, deviation, (len(predictions), 2))[raw.image]
    return replace(predictions, raw_detections=replace(raw, boxes=raw.boxes + np.tile(shifts, 2)))


def main():
    """Prints one table per cell of the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    cv2.setNumThreads(1)
    for cell in sorted((parser.parse_args().run / "cells").iterdir()):
        predictions = read(cell)
        source = plugins.build("sources", parse(open_cell(cell).identity["data"]["spec"]))
        print(f"{predictions.model} on {predictions.data}, {len(predictions):,} frames")
        print(HEAD, "|---|" + "--:|" * 8, sep="\n")
        print(measure("as it is", assign_frame_by_frame, predictions))
        for name, find, side in (("shift", find_shift, 160), ("similarity", find_similarity, 320)):
            motions, took = measure_motions(find, side, predictions, source)
            row = measure(name, link_with(motions), predictions)
            print(f"{row} motion: {took:.1f} ms a frame", flush=True)
        for deviation in SHAKES:
            shaken = shake(predictions, deviation)
            print(measure(f"shaken by {deviation} px", assign_frame_by_frame, shaken))


if __name__ == "__main__":
    main()
