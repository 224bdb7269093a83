"""Class maps: from the classes of a model to those of a dataset."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from steadyeye.classes import meanings, openimages, wordnet
from steadyeye.classes.class_map import (
    REDUCTIONS,
    ClassMap,
    of_destinations,
    reduce_max,
    reduce_sum,
)
from steadyeye.classes.map_file import from_file, to_csv
from steadyeye.core.errors import UsageError, listed
from steadyeye.core.types import Classes

__all__ = [
    "REDUCTIONS",
    "ClassMap",
    "between",
    "by_meaning",
    "by_name",
    "from_file",
    "identity",
    "proposals",
    "reduce_max",
    "reduce_sum",
    "to_csv",
]


LIST, ALIAS, SYNSET, BELOW, OPEN, NAME = (
    "shipped list",
    "alias",
    "WordNet id",
    "kind of",
    "Open Images",
    "name alone",
)
"""How a class of a model met one of the data; "kind of": the data's stands above it."""


def identity(classes: Classes) -> ClassMap:
    """The map of every class to itself."""
    return ClassMap(classes, classes, tuple((i,) for i in range(len(classes))), "identity")


def by_name(source: Classes, target: Classes) -> ClassMap:
    """The map between classes of the same name; case, underscores and blanks do not count."""
    place = _places(wordnet.plain(name) for name in target.names)
    # spelt exactly the same wins: "Cardigan" and "cardigan" are two classes of ILSVRC
    place |= _places(target.names)
    found = {}
    for index, name in enumerate(source.names):
        to = place.get(name, place.get(wordnet.plain(name)))
        if to is not None:
            found[index] = to
    return of_destinations(source, target, found, "by name")


def by_meaning(source: Classes, target: Classes) -> ClassMap:
    """The map of each source class to the target class that it is, or that is the nearest above it.

    The first of these decides: the same meaning by a shipped list or spelling (aeroplane is
    airplane); Open Images' hierarchy, where one list is Open Images'; the nearest WordNet ancestor;
    the meaning that stands above it in `meanings.csv`; and the same name, where neither class is
    known to mean something else.

    Of several WordNet ancestors, those above another of them drop out, then the fewest hypernym
    steps decide, then the lower index: ILSVRC's minivan is one step below `car` and three below
    `truck`, so it is a car.
    """
    ours, theirs = _sense(source), _sense(target)
    steps = (
        _by_alias(ours, theirs),
        _by_openimages(ours, theirs),
        _by_ancestor(ours, theirs),
        _by_row_above(ours, theirs),
        _by_spelling(ours, theirs),
    )
    found: dict[int, tuple[int, str]] = {}
    for step in steps:
        found = step | found
    ways = tuple(found[index][1] if index in found else "" for index in range(len(source)))
    to = {index: place for index, (place, _) in found.items()}
    return of_destinations(source, target, to, _origin(ours, theirs, ways), ways)


def between(source: Classes, target: Classes) -> ClassMap:
    """The map for two class lists: identity where they are the same, else `by_meaning`.

    Target classes may stay empty. Raises `UsageError` where it reaches none.
    """
    if source.names == target.names and not _contradict(source, target):
        return identity(target)
    found = by_meaning(source, target)
    if len(found.missing) == len(target):
        raise UsageError(
            f"cannot map the model's {len(source)} classes to the data's {len(target)}: none of "
            f"them means any of {listed(target.names)}; give --class-map map.csv"
        )
    return found


def proposals(found: ClassMap) -> dict[str, str]:
    """Target class without a source class → the source class that is nearest to it, "": none is.

    One that stands above it in WordNet or in `meanings.csv`, or else one that is spelt much alike.
    """
    ours, theirs = _sense(found.source), _sense(found.target)
    upward = _by_ancestor(theirs, ours) | _by_row_above(theirs, ours)
    said = {}
    for index, (name, own) in enumerate(zip(found.target.names, found.members, strict=True)):
        if own:
            continue
        if index in upward:
            said[name] = found.source.names[upward[index][0]]
        else:
            said[name] = next(iter(get_close_matches(name, found.source.names, 1, 0.75)), "")
    return said


@dataclass(frozen=True)
class _Sense:
    """What the classes of a list are: names, meanings, wnids, each "" where it is not known."""

    names: tuple[str, ...]
    keys: tuple[str, ...]
    wnids: tuple[str, ...]
    open_images: bool


def _sense(classes: Classes) -> _Sense:
    own = openimages.space(classes.names) == "openimages"
    keys = meanings.of(classes)
    wnids = tuple(
        wnid or (meanings.meanings()[key].wnid if key else "")
        for key, wnid in zip(keys, classes.wnids or ("",) * len(classes), strict=True)
    )
    return _Sense(classes.names, keys, wnids, own)


_Found: TypeAlias = dict[int, tuple[int, str]]
"""Source class → target class, and how they met."""


def _by_alias(ours: _Sense, theirs: _Sense) -> _Found:
    same: dict[str, list[int]] = {}
    for to, key in enumerate(theirs.keys):
        same.setdefault(key, []).append(to)
    found = {}
    for index, key in enumerate(ours.keys):
        if not key or key not in same:
            continue

        def nearness(to: int, index: int = index) -> tuple[bool, bool, int]:
            ids = ours.wnids[index], theirs.wnids[to]
            spelt = meanings.squeezed(ours.names[index]), meanings.squeezed(theirs.names[to])
            return ids[0] != ids[1], spelt[0] != spelt[1], to

        to = min(same[key], key=nearness)
        spelt = meanings.squeezed(ours.names[index]) == meanings.squeezed(theirs.names[to])
        same_id = ours.wnids[index] and ours.wnids[index] == theirs.wnids[to]
        found[index] = to, (SYNSET if same_id else LIST) if spelt else ALIAS
    return found


def _by_openimages(ours: _Sense, theirs: _Sense) -> _Found:
    if not (ours.open_images or theirs.open_images):
        return {}
    up = [meanings.mids(key, "same", "broader") for key in _listed_meanings(ours)]
    down = [meanings.mids(key, "same", "narrower") for key in theirs.keys]
    source = [_own(name) for name in ours.names] if ours.open_images else up
    target = [_own(name) for name in theirs.names] if theirs.open_images else down
    return {index: (to, OPEN) for index, to in openimages.reach(source, target).items()}


def _own(name: str) -> tuple[str, ...]:
    return tuple(filter(None, [openimages.ids().get(wordnet.plain(name))]))


def _listed_meanings(ours: _Sense) -> list[str]:
    """The meaning of each class, or the nearest above it in WordNet, "" where there is none."""
    place = {one.wnid: number for number, one in enumerate(meanings.meanings().values())}
    place.pop("", None)
    names = tuple(meanings.meanings())
    return [
        key or (names[place[near]] if wnid and (near := _nearest(wnid, place)) else "")
        for key, wnid in zip(ours.keys, ours.wnids, strict=True)
    ]


def _by_ancestor(ours: _Sense, theirs: _Sense) -> _Found:
    place = _places(theirs.wnids)
    place.pop("", None)
    found = {}
    for index, wnid in enumerate(ours.wnids):
        nearest = _nearest(wnid, place) if wnid else None
        if nearest is not None:
            found[index] = place[nearest], SYNSET if nearest == wnid else BELOW
    return found


def _by_row_above(ours: _Sense, theirs: _Sense) -> _Found:
    place = _places(theirs.keys)
    place.pop("", None)
    found = {}
    for index, key in enumerate(ours.keys):
        above = meanings.meanings()[key].above if key else ""
        if above in place:
            found[index] = place[above], BELOW
    return found


def _by_spelling(ours: _Sense, theirs: _Sense) -> _Found:
    """The same name, unless both are known and mean different things."""
    plain = by_name(Classes(ours.names), Classes(theirs.names)).destinations
    found = {}
    for index, to in enumerate(plain):
        if to < 0:
            continue
        pairs = (ours.wnids[index], theirs.wnids[to]), (ours.keys[index], theirs.keys[to])
        if not any(one and other and one != other for one, other in pairs):
            found[index] = to, NAME
    return found


def _contradict(source: Classes, target: Classes) -> bool:
    """Whether classes of the same names are known to mean different things."""
    pairs = zip(source.wnids or (), target.wnids or (), strict=False)
    return any(one and other and one != other for one, other in pairs)


def _origin(ours: _Sense, theirs: _Sense, ways: tuple[str, ...]) -> str:
    """What the map of a run is called in its record."""
    if ours.open_images or theirs.open_images:
        return "by Open Images' classes"
    words = {LIST: "meaning", ALIAS: "meaning", SYNSET: "WordNet", BELOW: "WordNet", NAME: "name"}
    met = dict.fromkeys(words[way] for way in words if way in ways)
    return f"by {' and '.join(met)}" if met else "by name"


def _places(keys: Iterable[str]) -> dict[str, int]:
    """Key → index; the first of several the same."""
    found: dict[str, int] = {}
    for index, key in enumerate(keys):
        found.setdefault(key, index)
    return found


def _nearest(wnid: str, place: Mapping[str, int]) -> str | None:
    """The ancestor of `wnid` that is its target, among the wnids of `place`."""
    distance = wordnet.steps(wnid)
    candidates = place.keys() & distance.keys()
    above = {up for one in candidates for up in wordnet.ancestors(one) if up != one}
    return min(candidates - above, key=lambda one: (distance[one], place[one]), default=None)
