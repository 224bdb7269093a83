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
    found: list[set[int]] = [set() for _ in range(classes)]
    for label, above in enumerate(ancestors(parents, classes)):
        for each in above:
            found[each].add(label)
    return tuple(map(frozenset, found))


def _above(label: int, parents: Sequence[Sequence[int]]) -> frozenset[int]:
    found: set[int] = set()
    waiting = list(parents[label])
    while waiting:
        each = waiting.pop()
        if each not in found and each != label:
            found.add(each)
            waiting += parents[each]
    return frozenset(found)
