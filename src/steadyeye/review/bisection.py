"""Fewer pairs to ask: what lies between an anchor and a neighbour that is similar is so as well.

On one side of an anchor the farthest neighbour is asked first; if it is not similar, one half way,
and so on. What is nearer than the farthest similar one is *implied*: it is accepted in bulk, but
only once a random audit has bounded how often that is wrong. What is farther than the nearest
dissimilar one is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Side:
    """One side of an anchor. `ask`: the distance to ask next, None once it is settled."""

    ask: int | None
    implied: Sequence[int] = ()
    beyond: Sequence[int] = ()


def side(similar: Mapping[int, bool | None]) -> Side:
    """What follows from the answers on one side of an anchor.

    `similar`: distance → whether that neighbour is similar; None: not asked. What was answered
    for other reasons (an audit) is neither implied nor beyond.
    """
    distances = sorted(similar)
    low, high, middle = 0, len(distances), len(distances) - 1
    while low < high:
        said = similar[distances[middle]]
        if said is None:
            return Side(distances[middle])
        low, high = (middle + 1, high) if said else (low, middle)
        middle = (low + high) // 2
    unknown = [distance for distance in distances if similar[distance] is None]
    edge = distances[low - 1] if low else 0
    return Side(None, [d for d in unknown if d <= edge], [d for d in unknown if d > edge])
