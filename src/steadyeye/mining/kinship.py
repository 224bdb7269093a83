"""Classes that are above or below each other, where the data's classes have a hierarchy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Parents: TypeAlias = Sequence[Sequence[int]] | None
"""For each class those directly above it; None: there is no hierarchy."""


@dataclass(frozen=True, eq=False)
class Kin:
    """For each of n classes those above and below it, itself not among them.

    Class i has `members[first[i]:first[i + 1]]`, rising; `first`: (n + 1,) int64, `members`: int64.
    """

    first: NDArray[np.int64]
    members: NDArray[np.int64]


def kin(parents: Parents, classes: int) -> Kin:
    """The ancestors and descendants of each of n classes; none without a hierarchy."""
    near: list[set[int]] = [set() for _ in range(classes)]
    for label, above in enumerate(ancestors(parents, classes)):
        near[label] |= above
        for each in above:
            near[each].add(label)
    counts = [len(each) for each in near]
    members = [label for each in near for label in sorted(each)]
    first = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return Kin(np.asarray(first, dtype=np.int64), np.array(members, dtype=np.int64))


def ancestors(parents: Parents, classes: int) -> list[set[int]]:
    """For each of n classes all that are above it, itself not among them."""
    found: list[set[int]] = []
    for label in range(classes):
        above: set[int] = set()
        waiting = list(parents[label]) if parents else []
        while waiting:
            each = waiting.pop()
            if each not in above and each != label:
                above.add(each)
                waiting += parents[each] if parents else ()
        found.append(above)
    return found


def stood_for(reach: NDArray[np.int64], parents: Parents, classes: int) -> NDArray[np.bool_]:
    """(n,) bool, the data's classes that a class of the detector stands for.

    Those it reaches and all below them: for a detector of persons a woman is no foreign object.
    `reach`: the data's class of each of the detector's own, −1: none.
    """
    reached = {int(label) for label in reach if label >= 0}
    above = ancestors(parents, classes)
    return np.array([i in reached or bool(reached & above[i]) for i in range(classes)], np.bool_)
