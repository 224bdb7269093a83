"""Classes that are above or below each other, where the data's classes have a hierarchy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.data.classes.hierarchy import Parents, ancestors, descendants


@dataclass(frozen=True, eq=False)
class Kin:
    """For each of n classes those above and below it, itself not among them.

    Class i has `members[first[i]:first[i + 1]]`, rising; `first`: (n + 1,) int64, `members`: int64.
    """

    first: NDArray[np.int64]
    members: NDArray[np.int64]


def kin(parents: Parents, classes: int) -> Kin:
    """The ancestors and descendants of each of n classes; none without a hierarchy."""
    pairs = zip(ancestors(parents, classes), descendants(parents, classes), strict=True)
    near = [above | below for above, below in pairs]
    counts = [len(each) for each in near]
    members = [label for each in near for label in sorted(each)]
    first = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return Kin(np.asarray(first, dtype=np.int64), np.array(members, dtype=np.int64))


def stood_for(reach: NDArray[np.int64], parents: Parents, classes: int) -> NDArray[np.bool_]:
    """(n,) bool, the data's classes that a class of the detector stands for.

    Those it reaches and all below them: for a detector of persons a woman is no foreign object, so
    what it says wrongly of her is a misclassification. `metrics.detection.frame_ap.outside` asks
    what AP can count and leaves the classes below out. `reach`: the data's class of each of the
    detector's own, −1: none.
    """
    reached = {int(label) for label in reach if label >= 0}
    above = ancestors(parents, classes)
    return np.array([i in reached or bool(reached & above[i]) for i in range(classes)], np.bool_)
