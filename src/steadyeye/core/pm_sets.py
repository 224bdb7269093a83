"""The pm-sets of a table: which anchors break, at which distance, and which are left out.

Shankar et al., "Do Image Classifiers Generalize Across Time?", Section 2: a set is the anchor and
the accepted frames around it; a model survives distance k if it is right on every one of them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.predictions import Predictions

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class PmSets:
    """The sets of a table, in the order of their anchors; m sets.

    `anchors`: (m,) row of each anchor. `set_of`: (n,) set of each row, −1: in none. `offsets`: (n,)
    signed distance from the anchor in native frames. `breaks_at`: (m,) smallest distance |offset|
    with a wrong frame; 0: the anchor itself; `NEVER`: none. Right on all of N_k is exactly
    `breaks_at > k`. `neighbours`: (m,) predicted neighbours. `videos`: (m,) the video of each
    anchor. `lost_anchors`, `lost_neighbours`: sets and frames left out because they were not
    predicted; `unlabelled_anchors`, `unlabelled_neighbours`: left out because they have no label.
    """

    anchors: NDArray[np.intp]
    set_of: NDArray[np.intp]
    offsets: NDArray[np.int64]
    breaks_at: NDArray[np.int64]
    neighbours: NDArray[np.int64]
    videos: NDArray[np.str_]
    lost_anchors: int
    lost_neighbours: int
    unlabelled_anchors: int
    unlabelled_neighbours: int

    def __len__(self) -> int:
        return len(self.anchors)

    def note_lost(self) -> tuple[str, ...]:
        """Notes on the sets and frames that are left out because they were not predicted."""
        notes = []
        if self.lost_anchors:
            lost = number_of(self.lost_anchors, "set")
            notes.append(f"{lost} left out: the anchor has no prediction")
        if self.lost_neighbours:
            lost = number_of(self.lost_neighbours, "neighbour")
            notes.append(f"{lost} left out: no prediction")
        return tuple(notes)

    @property
    def anchor_of(self) -> NDArray[np.intp]:
        """(n,) the row of the anchor of each row's set; −1: in none."""
        return np.append(self.anchors, -1)[self.set_of]


def pm_sets(
    predictions: Predictions, selected: NDArray[np.bool_] | None = None, *, labels: bool = True
) -> PmSets:
    """The pm-sets of a table whose rows carry `group` and the tag `offset`.

    A set whose anchor has an error is left out; a neighbour with an error leaves its set.
    `selected`: (n,) the rows that count, all if left out; the others count as rows with an error.
    So do frames without a label if the data have labels: no prediction could be right on them, as
    on frames without a box in a video with boxes. Without `labels` they count. Raises `UsageError`
    if two frames of a set are anchors.
    """
    predicted = predictions.valid if selected is None else predictions.valid & selected
    known = predictions.has_label if labels and "truth" in predictions.columns else True
    counted = predicted & known
    offsets = np.asarray(predictions.tags["offset"], dtype=np.int64)
    names, group = predictions.distinct_groups
    anchors = np.full(len(names), -1, dtype=np.intp)
    is_anchor = np.flatnonzero((offsets == 0) & counted)
    bare = predicted & ~counted
    anchors[group[is_anchor]] = is_anchor
    _refuse_second_anchors(predictions, is_anchor, anchors[group[is_anchor]])
    order = np.argsort(anchors, kind="stable")
    order = order[anchors[order] >= 0]
    position = np.full(len(names), -1, dtype=np.intp)
    position[order] = np.arange(len(order))
    set_of = np.where(counted, position[group], -1)

    wrong = (set_of >= 0) & ~predictions.right
    breaks_at = np.full(len(order), NEVER, dtype=np.int64)
    np.minimum.at(breaks_at, set_of[wrong], np.abs(offsets[wrong]))
    member = (set_of >= 0) & (offsets != 0)
    return PmSets(
        anchors=anchors[order],
        set_of=set_of,
        offsets=offsets,
        breaks_at=breaks_at,
        neighbours=np.bincount(set_of[member], minlength=len(order)),
        videos=predictions.videos[anchors[order]],
        lost_anchors=len(names) - len(order) - int(np.sum(bare & (offsets == 0))),
        lost_neighbours=int(np.sum(~predicted & (offsets != 0))),
        unlabelled_anchors=int(np.sum(bare & (offsets == 0))),
        unlabelled_neighbours=int(np.sum(bare & (offsets != 0))),
    )


def _refuse_second_anchors(
    predictions: Predictions, anchors: NDArray[np.intp], last: NDArray[np.intp]
) -> None:
    """Raises `UsageError` if an anchor differs from the `last` anchor of its set.

    The same frame may be repeated, for example if a sampler of several processes pads its last
    batch.
    """
    if "frame" not in predictions.tags:
        return
    frame = np.asarray(predictions.tags["frame"])
    others = np.flatnonzero(frame[anchors] != frame[last])
    if len(others):
        first, second = predictions.ids[[anchors[others[0]], last[others[0]]]]
        raise UsageError(
            f"the set '{predictions.groups[anchors[others[0]]]}' has two anchors, '{first}' and "
            f"'{second}'; a set has one frame of offset 0: give each its own group"
        )


def farthest(sets: PmSets, k: int | None) -> int:
    """The distance to report: `k`, or the largest in the data if k is None.

    Raises `UsageError` for a k that the data do not reach.
    """
    largest = int(abs(sets.offsets).max(initial=0))
    if k is None:
        return largest
    if not 0 <= k <= largest:
        raise UsageError(f"k={k}, but {say_reach(largest)}")
    return k


def say_reach(largest: int, of: str = "the data") -> str:
    """The error text for a k beyond the farthest neighbour, for which pm-k would be pm-`largest`.

    If some sets have a neighbour as far as ±k, sets with fewer neighbours count as they are.
    """
    return (
        f"{of} reach ±{largest}; choose k from 0 to {largest}, or data with a larger k and longer "
        "scenes"
    )


def consecutive(predictions: Predictions) -> NDArray[np.intp]:
    """(pairs, 2) rows of consecutive frames, each pair of frames of a video once, in order.

    Consecutive is one `step` apart (one native frame without this tag) in the same set or scene, so
    that no pair lies across a scene cut; a pair that several sets hold counts once. Frames that
    were not predicted form no pair.
    """
    frame = np.asarray(predictions.tags["frame"], dtype=np.int64)
    step = predictions.tags.get("step", np.ones(len(frame), dtype=np.int64))
    _, clip = predictions.clusters
    _, group = predictions.distinct_groups
    rows = np.flatnonzero(predictions.valid)
    rows = rows[np.lexsort((frame[rows], group[rows]))]
    before, after = rows[:-1], rows[1:]
    adjacent = (group[before] == group[after]) & (frame[after] - frame[before] == step[before])
    pairs = np.stack([before[adjacent], after[adjacent]], axis=1)
    # the pair is named by its video and first frame; the first row in the source stands for it
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    names = np.stack([clip[pairs[:, 0]], frame[pairs[:, 0]]], axis=1)
    _, first = np.unique(names, axis=0, return_index=True)
    return np.asarray(pairs[first], dtype=np.intp)
