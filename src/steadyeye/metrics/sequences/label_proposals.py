"""Labels that a steady detector suggests: long objects whose class never changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from steadyeye.core.boxes import reach_score
from steadyeye.core.errors import UsageError
from steadyeye.core.predictions import Predictions
from steadyeye.metrics.sequences.scenes import ROUNDED
from steadyeye.metrics.sequences.tracklets import DETECTED, SCORE, UNSURE, link

SECONDS = 1.0
"""How long an object has to be followed."""
SURE = 0.7
"""The mean score that it has to have."""
MOST_LOST = 0.05
"""Of its frames the share in which it may be lost or below the threshold."""


@dataclass(frozen=True)
class Proposal:
    """Frames `first` … `last` of a video, both included, show an object of class `label`.

    `label`: of the model's own. `frames`: how many predicted frames they are. `score`: the mean.
    `middle`: the id of the frame in the middle, to look at.
    """

    video: str
    first: int
    last: int
    label: str
    frames: int
    score: float
    middle: str


def propose_labels(
    predictions: Predictions, seconds: float = SECONDS, sure: float = SURE
) -> list[Proposal]:
    """The objects that are followed for `seconds`, always with one class and a high mean score.

    Detected in all frames but `MOST_LOST`, of those that count in `blink_rate`, with a mean score
    of `sure` or more. In the order of videos and time. Raises `UsageError` for values that are
    none, and for what is no video or no detector.

    Example:
        >>> from steadyeye.testing import example_tracks
        >>> propose_labels(example_tracks())
        []

    """
    if not (seconds > 0 and 0 < sure <= 1):
        raise UsageError(
            f"seconds={seconds:g}, sure={sure:g}: give seconds above 0 and sure in 0…1"
        )
    if predictions.raw_detections is None or not {"frame", "seconds"} <= set(predictions.tags):
        raise UsageError(
            f"{predictions.model} on {predictions.data} has no detections in frames of videos, "
            "which labels are proposed from; run a detector on a video"
        )
    objects, raw = link(predictions, SCORE), predictions.raw_detections
    assert raw is not None, "they were linked"
    tags = predictions.tags
    proposals = []
    for track in range(len(objects)):
        places = np.flatnonzero(objects.track == track)
        detected = places[objects.state[places] == DETECTED]
        rows = objects.row[places]
        judged = int((objects.state[places] != UNSURE).sum())
        long = float(tags["seconds"][rows[-1]] - tags["seconds"][rows[0]])
        labels = np.unique(raw.label[objects.detection[detected]])
        score = raw.score[objects.detection[detected]].mean()
        # 1 − 19 / 20 is more than 0.05
        is_kept = judged - len(detected) <= MOST_LOST * judged
        steady = long >= seconds - ROUNDED and is_kept and len(labels) == 1
        if not (steady and reach_score(score, sure)):
            continue
        proposals.append(
            Proposal(
                str(predictions.videos[rows[0]]),
                int(tags["frame"][rows[0]]),
                int(tags["frame"][rows[-1]]),
                predictions.model_classes[int(labels[0])],
                len(rows),
                float(score),
                str(predictions.ids[rows[len(rows) // 2]]),
            )
        )
    return sorted(
        proposals,
        key=lambda proposal: (proposal.video, proposal.first, proposal.last, proposal.label),
    )


def list_ranges(proposals: Sequence[Proposal]) -> dict[str, list[tuple[int, int, list[str]]]]:
    """Video → stretches of frames, both ends included, with all labels proposed there, sorted."""
    videos: dict[str, list[tuple[int, int, list[str]]]] = {}
    for video in dict.fromkeys(proposal.video for proposal in proposals):
        own = [proposal for proposal in proposals if proposal.video == video]
        edges = sorted({edge for proposal in own for edge in (proposal.first, proposal.last + 1)})
        ranges: list[tuple[int, int, list[str]]] = []
        for start, stop in pairwise(edges):
            labels = sorted(
                {proposal.label for proposal in own if proposal.first <= start <= proposal.last}
            )
            if labels and ranges and ranges[-1][1:] == (start - 1, labels):
                ranges[-1] = (ranges[-1][0], stop - 1, labels)
            elif labels:
                ranges.append((start, stop - 1, labels))
        videos[video] = ranges
    return videos
