"""How long it takes until an object is detected, with true tracks and without."""

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import iou, move_boxes
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import block_bootstrap
from steadyeye.core.types import Result
from steadyeye.metrics.sequences.answer_runs import median
from steadyeye.metrics.sequences.object_steadiness import LEAST, count_detections
from steadyeye.metrics.sequences.scenes import note_sparse
from steadyeye.metrics.sequences.tracklets import SAME, Scene, link, list_scenes
from steadyeye.metrics.sequences.true_tracks import follow, note_left_out, rename


def measure_delay(predictions: Predictions, score: float) -> Result:
    """`detection_delay`: from the first box at the place of an object to its first detection."""
    objects = link(predictions, score)
    assert predictions.raw_detections is not None, "they were linked"
    scenes = {
        int(row): (scene, place)
        for scene in list_scenes(predictions, predictions.raw_detections, score)
        for place, row in enumerate(scene.rows)
    }
    first = np.flatnonzero(np.append(True, np.diff(objects.track) > 0)[: len(objects.track)])
    steady = first[(count_detections(objects) >= LEAST) & ~objects.starts]
    delays, ended = np.zeros(len(steady)), np.ones(len(steady), dtype=np.bool_)
    for at, start in enumerate(steady):
        scene, place = scenes[int(objects.row[start])]
        box = move_boxes(objects.boxes[start], -scene.camera[place])
        begin = trace_back(scene, place, box)
        delays[at] = scene.seconds[place] - scene.seconds[begin]
        ended[at] = begin > 0
    rows = objects.row[steady]
    videos = predictions.videos[rows]
    from_start = int(objects.starts[count_detections(objects) >= LEAST].sum())
    note = f"{number_of(from_start, 'object')} left out: present from the first frame of a scene on"
    notes = ((note,) if from_start else ()) + note_sparse(predictions)
    return _median("detection_delay", score, delays, ended, videos, notes)


def trace_back(scene: Scene, place: int, box: NDArray[np.float64]) -> int:
    """The first of the frames before `place` in which, one after the other, a box lies here.

    In each frame the box, however weak, that overlaps that of the frame after by more than `SAME`,
    and most of those.
    """
    while place > 0:
        near = scene.detections[place - 1]
        overlap = iou(box[None], scene.raw.boxes[near])[0]
        if not len(near) or overlap.max() <= SAME:
            break
        box = scene.raw.boxes[near[overlap.argmax()]]
        place -= 1
    return place


def measure_true_delay(predictions: Predictions, score: float) -> Result:
    """`true_detection_delay`: from the first frame of a true object to the first it is found in."""
    objects = follow(predictions, score)
    seconds = np.asarray(predictions.tags["seconds"], dtype=np.float64)[objects.row]
    begin, end, hit = (np.full(len(objects), np.inf) for _ in range(3))
    np.minimum.at(begin, objects.track, seconds)
    np.minimum.at(hit, objects.track[objects.is_found], seconds[objects.is_found])
    end = np.full(len(objects), -np.inf)
    np.maximum.at(end, objects.track, seconds)
    ended = np.isfinite(hit)
    delays = np.where(ended, hit, end) - begin
    never = int((~ended).sum())
    note = f"{number_of(never, 'object')} never found, counted as not found up to the last frame"
    notes = note_left_out(objects, note if never else "")
    return _median("true_detection_delay", score, delays, ended, objects.video, notes)


def _median(
    name: str,
    score: float,
    delays: NDArray[np.float64],
    ended: NDArray[np.bool_],
    videos: NDArray[np.str_],
    notes: tuple[str, ...],
) -> Result:
    estimate = block_bootstrap.bootstrap(
        lambda rows: median(delays[rows], ended[rows]), videos, block_bootstrap.length(len(delays))
    )
    return Result.of(rename(name, score), estimate, notes=notes, unit="seconds")
