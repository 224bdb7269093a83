"""Changes of answer from one frame to the next, and how much confidence jumps with them."""

import numpy as np
from numpy.typing import NDArray

from steadyeye.core import blocks
from steadyeye.core.intervals import Interval, proportion
from steadyeye.core.table import Predictions


def flipped(predictions: Predictions, pairs: NDArray[np.intp]) -> NDArray[np.bool_]:
    """(pairs,) True where the two frames have other top-1 classes."""
    before, after = predictions.predicted[pairs[:, 0]], predictions.predicted[pairs[:, 1]]
    return np.asarray(before != after, dtype=np.bool_)


def flip_share(predictions: Predictions, pairs: NDArray[np.intp]) -> Interval:
    """The share of pairs, in the order of time, whose answer changes.

    Of a whole video the pairs follow each other, and the interval is by blocks of them; of pm-sets
    it is that of a proportion, clustered by video.
    """
    changed, videos = flipped(predictions, pairs), video_of(predictions, pairs[:, 0])
    if "scene" in predictions.tags:
        return blocks.share(changed, videos, blocks.length(len(pairs)))
    return proportion(changed, videos)


def jumps(predictions: Predictions, pairs: NDArray[np.intp]) -> NDArray[np.float64] | None:
    """(pairs,) |Δ confidence| from each frame to the next, 0…1; None without probabilities."""
    sure = certainty(predictions)
    return None if sure is None else np.abs(sure[pairs[:, 1]] - sure[pairs[:, 0]])


def certainty(predictions: Predictions) -> NDArray[np.float64] | None:
    """(n,) the probability of the best class; NaN in rows with an error.

    Scores in 0…1 are taken for probabilities, others for logits: a softmax over the classes of the
    data. None where they are logits of which only the best was kept. A detector that finds nothing
    is sure of nothing: 0.
    """
    scores, valid = predictions.scores[predictions.valid], predictions.valid
    finite = scores[np.isfinite(scores)] if scores.size else predictions.confidence[valid]
    if not finite.size or (finite.min() >= 0 and finite.max() <= 1):
        return np.asarray(predictions.confidence, dtype=np.float64)
    if not scores.size:
        return None
    best = np.full(len(predictions), np.nan)
    shifted = scores.astype(np.float64) - scores.max(axis=1, keepdims=True)
    best[valid] = 1 / np.exp(shifted).sum(axis=1)
    return best


def video_of(predictions: Predictions, rows: NDArray[np.intp]) -> NDArray[np.str_]:
    """(rows,) the video of each row; without a `video` tag every set is one."""
    videos = predictions.tags.get("video", predictions.groups)
    return np.asarray(videos[rows], dtype=np.str_)
