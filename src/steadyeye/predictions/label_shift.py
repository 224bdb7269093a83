"""Whether the labels of a data set seem to be those of the next or the previous video or image.

A table of labels that lost a row, or a list that begins one too early, gives every video the label
of its neighbour: each label is valid, and each is wrong. A model that is right otherwise predicts
the neighbour's label then.
"""

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.format import percent
from steadyeye.core.predictions import Predictions
from steadyeye.core.stats.proportions import mcnemar

TIMES, MORE = 2.0, 0.3
"""A shift is said if it makes this many times, and this share more, of the videos right."""
FAR = (2, 3, 4, 5, 6)
"""Distances whose labels show how often another video's label is right."""
CHANCE = 1e-4
"""Probability below which a sign test takes the difference for no chance; from 14 videos on."""


def describe_label_shift(predictions: Predictions) -> str:
    """Which neighbour's label the videos, or images of no video, seem to have; "" if their own.

    In the order of the data, of a classifier and videos with one label; a video is right if most of
    its samples are.
    """
    known = predictions.valid & (predictions.truth.sum(axis=1) == 1)
    rows = np.flatnonzero(known & (predictions.predicted_class >= 0))
    if predictions.boxes is not None or not len(rows):
        return ""
    in_videos = "group" in predictions.columns
    video = predictions.clusters[1][rows] if in_videos else rows
    order, place = np.unique(video, return_inverse=True)
    # by the first sample, which is the order of the data
    first = np.full(len(order), len(rows), np.intp)
    np.minimum.at(first, place, np.arange(len(rows)))
    position = np.empty(len(order), np.intp)
    position[np.argsort(first)] = np.arange(len(order))
    votes = np.zeros((len(order), predictions.truth.shape[1]), np.float64)
    answered = predictions.predicted_class[rows]
    of_data = answered < votes.shape[1]
    np.add.at(votes, (position[place[of_data]], answered[of_data]), 1)
    most = 2 * votes > np.bincount(position[place], minlength=len(order))[:, None]
    return _compare(most, _read_labels(predictions.truth[rows], position[place]), in_videos)


def _read_labels(truth: NDArray[np.bool_], video: NDArray[np.intp]) -> NDArray[np.intp]:
    """(videos,) the only label of each video; −1 if it has several."""
    occurring = np.zeros((int(video.max()) + 1, truth.shape[1]), np.bool_)
    np.logical_or.at(occurring, video, truth)
    return np.where(occurring.sum(axis=1) == 1, occurring.argmax(axis=1), -1)


def _compare(most: NDArray[np.bool_], labels: NDArray[np.intp], in_videos: bool) -> str:
    """`most`: (videos, classes) what most samples of each are predicted as; `labels`: (videos,)."""
    for words, by in (("next", 1), ("previous", -1)):
        right, shifted = _judge(most, labels, by)
        if not len(right):
            continue
        as_read, best = float(right.mean()), float(shifted.mean())
        better, worse = int((shifted & ~right).sum()), int((right & ~shifted).sum())
        if best < max(as_read * TIMES, as_read + MORE) or mcnemar(worse, better) / 2 > CHANCE:
            continue
        # of classes taken for each other, the labels of any other video are right more often
        far = [_judge(most, labels, sign * k)[1] for k in FAR for sign in (1, -1)]
        if best < max((float(other.mean()) for other in far if len(other)), default=1.0) + MORE:
            continue
        noun = "video" if in_videos else "sample"
        return (
            f"the labels seem to be shifted: with that of the {words} {noun}, {percent(best)} of "
            f"{len(right):,} {noun}s are right instead of {percent(as_read)}; check the rows of "
            "the file or list of labels"
        )
    return ""


def _judge(
    most: NDArray[np.bool_], labels: NDArray[np.intp], by: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each video is right by its own label, and by that of the one `by` after it."""
    other = np.full(len(labels), -1, np.intp)
    if by > 0:
        other[:-by] = labels[by:]
    else:
        other[-by:] = labels[:by]
    used = np.flatnonzero((labels >= 0) & (other >= 0))
    return most[used, labels[used]], most[used, other[used]]
