"""How much linking gains when the motion of the camera is taken out of it, and what that costs.

    python benchmarks/camera_motion.py RUN

`RUN`: the folder of a run of a detector on whole videos, `every_frame(…)`. Before each frame the
boxes of the objects in view are moved with the camera, by a shift (phase correlation of pictures of
160 pixels) or a similarity (sparse flow of corners at 320 pixels, RANSAC). Prints a row each, as of
`object_steadiness.py`, and the processor time of the motion a frame, without decoding.
"""

import argparse
import time
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
"""Of a phase correlation, below which the pictures have nothing in common."""
LEAST_CORNERS = 8


def shrink(image, side):
    """A grey picture whose longer side has so many pixels, and its scale."""
    height, width = image.shape[:2]
    scale = side / max(height, width)
    size = (round(width * scale), round(height * scale))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), scale


def find_shift(before, image):
    """(2, 3) from one picture to the next, a shift."""
    (first, scale), (second, _) = shrink(before, 160), shrink(image, 160)
    window = cv2.createHanningWindow(first.shape[::-1], cv2.CV_32F)
    (x, y), response = cv2.phaseCorrelate(
        first.astype(np.float32), second.astype(np.float32), window
    )
    if response < LEAST_RESPONSE:
        x = y = 0.0
    return np.array([[1, 0, x / scale], [0, 1, y / scale]])


def find_similarity(before, image):
    """(2, 3) from one picture to the next: turned, scaled and shifted."""
    (first, scale), (second, _) = shrink(before, 320), shrink(image, 320)
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
    motion = np.eye(2, 3) if motion is None else motion.copy()
    motion[:, 2] /= scale
    return motion


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


def measure_motions(find, predictions, source):
    """The motion before each frame of each scene, and milliseconds a frame."""
    motions, spent, frames = {}, 0.0, 0
    for scene in list_scenes(predictions, predictions.raw_detections, SCORE):
        own, before = [np.eye(2, 3)], None
        for row in scene.rows:
            image = np.asarray(source[int(row)].image())
            if before is not None:
                begin = time.process_time()
                own.append(find(before, image))
                spent += time.process_time() - begin
                frames += 1
            before = image
        motions[int(scene.rows[0])] = own
    return motions, 1000 * spent / max(frames, 1)


def main():
    """Prints a table a cell of the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    cv2.setNumThreads(1)
    for cell in sorted((parser.parse_args().run / "cells").iterdir()):
        predictions = read(cell)
        source = plugins.build("sources", parse(open_cell(cell).identity["data"]["spec"]))
        print(f"{predictions.model} on {predictions.data}, {len(predictions):,} frames")
        print(HEAD, "|---|" + "--:|" * 8, sep="\n")
        print(measure("as it is", assign_frame_by_frame, predictions))
        for name, find in (("shift", find_shift), ("similarity", find_similarity)):
            motions, took = measure_motions(find, predictions, source)
            row = measure(name, link_with(motions), predictions)
            print(f"{row} motion: {took:.1f} ms a frame", flush=True)


if __name__ == "__main__":
    main()
