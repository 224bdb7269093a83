"""Changes of answer from one frame to the next, and how much confidence jumps with them."""

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.predictions import Predictions
from steadyeye.core.stats import block_bootstrap
from steadyeye.core.stats.intervals import Interval


def flipped(predictions: Predictions, pairs: NDArray[np.intp]) -> NDArray[np.bool_]:
    """(pairs,) True where the two frames have other top-1 classes, of all the model's own."""
    before, after = predictions.own[pairs[:, 0]], predictions.own[pairs[:, 1]]
    return np.asarray(before != after, dtype=np.bool_)


def flip_share(predictions: Predictions, pairs: NDArray[np.intp]) -> Interval:
    """The share of pairs, in the order of time, whose answer changes.

    Several videos are what it is clustered by; of one, pairs follow each other, and the interval is
    by blocks of them.
    """
    changed, videos = flipped(predictions, pairs), video_of(predictions, pairs[:, 0])
    return block_bootstrap.mean(changed, videos, block_bootstrap.length(len(pairs)))


def jumps(predictions: Predictions, pairs: NDArray[np.intp]) -> NDArray[np.float64] | None:
    """(pairs,) |Δ confidence| from each frame to the next, 0…1; None without probabilities."""
    sure = certainty(predictions)
    return None if sure is None else np.abs(sure[pairs[:, 1]] - sure[pairs[:, 0]])


def certainty(predictions: Predictions) -> NDArray[np.float64] | None:
    """(n,) the probability of the best of the model's own classes; NaN in rows with an error.

    Scores in 0…1 are taken for probabilities, others for logits: a softmax over all the model's
    own classes. None where they are logits of which only the best was kept, as earlier versions
    did. A detector that finds nothing is sure of nothing: 0.
    """
    valid, best = predictions.valid, predictions.own_score.astype(np.float64)
    every = predictions.stored.get("least", predictions.scores)[valid].ravel()
    told = np.append(every, best[valid])
    told = told[np.isfinite(told)]
    if not len(told) or (told.min() >= 0 and told.max() <= 1):
        return best
    if "softmax" in predictions.stored:
        return np.where(valid, predictions.stored["softmax"].astype(np.float64), np.nan)
    if predictions.scores.shape[1] != len(predictions.model_classes):
        return None
    with np.errstate(invalid="ignore"):
        shifted = predictions.scores.astype(np.float64) - best[:, None]
        return np.asarray(1 / np.exp(shifted).sum(axis=1))


def video_of(predictions: Predictions, rows: NDArray[np.intp]) -> NDArray[np.str_]:
    """(rows,) the video of each row; without a `video` tag every set is one."""
    videos = predictions.tags.get("video", predictions.groups)
    return np.asarray(videos[rows], dtype=np.str_)
