"""A class map and its effect on scores; ancestors and descendants of a class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.types import Classes, Scores

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


REDUCTIONS: Mapping[str, np.ufunc] = {"max": np.maximum, "sum": np.add}
"""How the scores of the members of a class become its own."""


@dataclass(frozen=True)
class ClassMap:
    """Model classes (`source`) → dataset classes (`target`).

    `members`: for each target class the source classes that map to it, ascending; a source class is
    a member of at most one. Source classes that are no member do not compete, except `others`,
    which compete individually, because the data's list is open. `origin`: the origin of the map,
    for the record of a run. `ways`: how each source class was matched, "" if it was not; empty if
    not computed.
    """

    source: Classes
    target: Classes
    members: tuple[tuple[int, ...], ...]
    origin: str
    ways: tuple[str, ...] = ()
    others: tuple[int, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """The target classes no source class maps to."""
        return tuple(n for n, own in zip(self.target.names, self.members, strict=True) if not own)

    @property
    def competing(self) -> int:
        """How many classes an answer is chosen among."""
        return sum(bool(own) for own in self.members) + len(self.others)

    @cached_property
    def places(self) -> tuple[int, ...]:
        """For each source class its place among the target classes and the others, −1: none."""
        places = list(self.destinations)
        for place, source in enumerate(self.others, start=len(self.target)):
            places[source] = place
        return tuple(places)

    @cached_property
    def destinations(self) -> tuple[int, ...]:
        """For each source class its target class, −1: none."""
        targets = [-1] * len(self.source)
        for target, own in enumerate(self.members):
            for source in own:
                targets[source] = target
        return tuple(targets)

    def apply(self, scores: Scores, reduce: str = "max") -> Scores:
        """(n, source) scores → (n, target), by "max" or "sum" over the scores of the members.

        A sum is of probabilities. A target class without members scores −inf. Raises `UsageError`
        for another `reduce`, and for scores of another width.
        """
        if reduce not in REDUCTIONS:
            raise unknown("reduction", reduce, REDUCTIONS)
        if scores.ndim != 2 or scores.shape[1] != len(self.source.names):
            raise UsageError(
                f"the model gives scores of shape {scores.shape}, but its class list has "
                f"{number_of(len(self.source), 'class')}; give the class list the model was "
                "trained on"
            )
        columns, starts, reached = self._layout
        reduced = np.full((len(scores), len(self.target.names)), -np.inf, dtype=np.float32)
        if len(columns) > len(reached):
            reduced[:, reached] = REDUCTIONS[reduce].reduceat(scores[:, columns], starts, axis=1)
        else:  # one member each
            reduced[:, reached] = scores[:, columns]
        return reduced

    @cached_property
    def _layout(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Member columns target by target, where each target starts, and the targets reached."""
        reached = [i for i, own in enumerate(self.members) if own]
        sizes = [len(self.members[i]) for i in reached]
        columns = np.array([c for i in reached for c in self.members[i]], dtype=np.intp)
        starts = np.cumsum([0, *sizes[:-1]], dtype=np.intp)
        return columns, starts, np.array(reached, dtype=np.intp)


def of_destinations(
    source: Classes,
    target: Classes,
    destinations: Mapping[int, int],
    origin: str,
    ways: tuple[str, ...] = (),
) -> ClassMap:
    """The map of source index → target index."""
    members: list[list[int]] = [[] for _ in target.names]
    for index in sorted(destinations):
        members[destinations[index]].append(index)
    return ClassMap(source, target, tuple(map(tuple, members)), origin, ways)


def with_others(class_map: ClassMap) -> ClassMap:
    """The map with every source class that is no member competing for itself."""
    others = (index for index, to in enumerate(class_map.destinations) if to < 0)
    return replace(class_map, others=tuple(others))
