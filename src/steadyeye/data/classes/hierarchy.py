"""Classes that stand above and below each other."""

from collections.abc import Sequence
from typing import TypeAlias

Parents: TypeAlias = Sequence[Sequence[int]] | None
"""For each class those directly above it; None: there is no hierarchy."""


def ancestors(parents: Parents, classes: int) -> tuple[frozenset[int], ...]:
    """For each of n classes all that are above it, itself not among them, also in a circle."""
    return tuple(_above(label, parents) if parents else frozenset() for label in range(classes))


def descendants(parents: Parents, classes: int) -> tuple[frozenset[int], ...]:
    """For each of n classes all that are below it, itself not among them."""
    below: list[set[int]] = [set() for _ in range(classes)]
    for label, above in enumerate(ancestors(parents, classes)):
        for ancestor in above:
            below[ancestor].add(label)
    return tuple(map(frozenset, below))


def _above(label: int, parents: Sequence[Sequence[int]]) -> frozenset[int]:
    ancestors_: set[int] = set()
    waiting = list(parents[label])
    while waiting:
        label_ = waiting.pop()
        if label_ not in ancestors_ and label_ != label:
            ancestors_.add(label_)
            waiting += parents[label_]
    return frozenset(ancestors_)
