"""Open Images' classes: their hierarchy, what COCO's mean among them, and the maps these give.

A class goes by its machine id (`/m/01yrx`, a cat), as names changed between the releases.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType

from steadyeye.data.classes import wordnet

RELATIONS = ("same", "narrower", "broader")
"""The relation of an Open Images class to the COCO class in its row of `openimages_coco.csv`."""

GAP = re.compile(r"(n/a|(__)?background(__)?)( \d+)?", re.IGNORECASE)
"""Names that detectors of COCO's 91 numbers have in the gaps between its 80 classes."""


@cache
def released_names() -> Mapping[str, str]:
    """Machine id → name, as V4 writes it, of the 601 classes, in the order of the release."""
    return MappingProxyType({row["mid"]: row["name"] for row in wordnet.read_list("openimages")})


@cache
def hierarchy() -> Mapping[str, tuple[str, ...]]:
    """Machine id → those directly above it in the 600-class hierarchy; is-a only, no parts."""
    rows = ((row["mid"], row["parents"].split("|")) for row in wordnet.read_list("openimages"))
    return MappingProxyType({mid: tuple(filter(None, parents)) for mid, parents in rows})


@cache
def meanings(*relations: str) -> Mapping[str, tuple[str, ...]]:
    """COCO class → the machine ids that stand in one of `relations` to it."""
    mids: dict[str, tuple[str, ...]] = {}
    for row in wordnet.read_list("openimages_coco"):
        if row["relation"] in relations:
            mids[row["coco"]] = (*mids.get(row["coco"], ()), row["mid"])
    return MappingProxyType(mids)


def parents(mids: Sequence[str], above: Mapping[str, Sequence[str]]) -> tuple[tuple[int, ...], ...]:
    """For each class the indices of those next above it, past classes that are not in the list."""
    place = {mid: index for index, mid in enumerate(mids)}
    return tuple(tuple(sorted(_list_ancestors(mid, above, place))) for mid in mids)


def steps(mid: str, above: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Ancestor → the fewest steps up to it; the class itself is 0 steps away."""
    return wordnet.count_steps(mid, lambda lower: above.get(lower, ()))


def find_nearest_targets(
    source: Sequence[Iterable[str]], target: Sequence[Iterable[str]]
) -> dict[int, int]:
    """Class of a model → the class of the data that is the same, or else the nearest above it.

    `source`, `target`: the machine ids that each class stands for, none where it has none; of a
    source class with several the first decides. `Man` and `Woman` are COCO's `person`, COCO's `cup`
    is a `Tableware`.
    """
    place = {mid: index for index, mids in enumerate(target) for mid in mids}
    steps_of = partial(steps, above=hierarchy())
    targets = {}
    for index, mids in enumerate(source):
        first = next(iter(mids), None)
        nearest = wordnet.find_nearest(first, place, steps_of) if first else None
        if nearest is not None:
            targets[index] = place[nearest]
    return targets


def space(names: Sequence[str]) -> str | None:
    """`coco` or `openimages`, whose classes all these names are; None: of neither, or unclear.

    Spelt exactly as there decides, so that `mouse` is COCO's computer mouse and `Mouse` Open
    Images' animal; else case does not count, and names that both have tell nothing.
    """
    known = {"coco": frozenset(meanings(*RELATIONS)), "openimages": frozenset(_ids())}
    own = [name for name in names if not GAP.fullmatch(name)]
    for spell in (str, wordnet.plain):
        spellings = {key: frozenset(map(spell, all_of)) for key, all_of in known.items()}
        fitting = [key for key in known if own and spellings[key].issuperset(map(spell, own))]
        if len(fitting) == 1:
            return fitting[0]
    return None


@cache
def _ids() -> Mapping[str, str]:
    """Name → machine id, in the words of V4 and of the later releases."""
    rows = wordnet.read_list("openimages")
    later = {row["later"]: row["mid"] for row in rows if row["later"]}
    return MappingProxyType({row["name"]: row["mid"] for row in rows} | later)


@cache
def ids() -> Mapping[str, str]:
    """Name, in any case → machine id."""
    return MappingProxyType({wordnet.plain(name): mid for name, mid in _ids().items()})


def _list_ancestors(
    mid: str, above: Mapping[str, Iterable[str]], place: Mapping[str, int]
) -> frozenset[int]:
    ancestors: set[int] = set()
    for up in above.get(mid, ()):
        ancestors |= {place[up]} if up in place else _list_ancestors(up, above, place)
    return frozenset(ancestors)
