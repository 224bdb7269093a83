"""How single classes of a model meet classes of the data, one way at a time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from steadyeye.core.types import Classes
from steadyeye.data.classes import meanings, openimages, wordnet

LIST, ALIAS, SYNSET, BELOW, OPEN, NAME = (
    "shipped list",
    "alias",
    "WordNet id",
    "kind of",
    "Open Images",
    "name alone",
)
"""How a class of a model met one of the data; "kind of": the data's stands above it."""


@dataclass(frozen=True)
class Sense:
    """What the classes of a list are: names, meanings, wnids, each "" where it is not known."""

    names: tuple[str, ...]
    keys: tuple[str, ...]
    wnids: tuple[str, ...]
    open_images: bool


def sense(classes: Classes) -> Sense:
    """What is known of the classes of a list."""
    own = openimages.space(classes.names) == "openimages"
    keys = meanings.of(classes)
    wnids = tuple(
        wnid or (meanings.meanings()[key].wnid if key else "")
        for key, wnid in zip(keys, classes.wnids or ("",) * len(classes), strict=True)
    )
    return Sense(classes.names, keys, wnids, own)


Found: TypeAlias = dict[int, tuple[int, str]]
"""Source class → target class, and how they met."""


def by_alias(ours: Sense, theirs: Sense) -> Found:
    """Classes of one meaning; of several, the one of the same id, then of the same spelling."""
    same: dict[str, list[int]] = {}
    for to, key in enumerate(theirs.keys):
        same.setdefault(key, []).append(to)
    found = {}
    for index, key in enumerate(ours.keys):
        if not key or key not in same:
            continue

        def nearness(to: int, index: int = index) -> tuple[bool, bool, int]:
            ids = ours.wnids[index], theirs.wnids[to]
            spelt = (
                meanings.normalise_spelling(ours.names[index]),
                meanings.normalise_spelling(theirs.names[to]),
            )
            return ids[0] != ids[1], spelt[0] != spelt[1], to

        to = min(same[key], key=nearness)
        spelt = meanings.normalise_spelling(ours.names[index]) == meanings.normalise_spelling(
            theirs.names[to]
        )
        same_id = ours.wnids[index] and ours.wnids[index] == theirs.wnids[to]
        found[index] = to, (SYNSET if same_id else LIST) if spelt else ALIAS
    return found


def by_openimages(ours: Sense, theirs: Sense) -> Found:
    """The same class or the nearest above it in Open Images' hierarchy, where a list is theirs."""
    if not (ours.open_images or theirs.open_images):
        return {}
    up = [meanings.mids(key, "same", "broader") for key in _listed_meanings(ours)]
    down = [meanings.mids(key, "same", "narrower") for key in theirs.keys]
    source = [_own(name) for name in ours.names] if ours.open_images else up
    target = [_own(name) for name in theirs.names] if theirs.open_images else down
    return {
        index: (to, OPEN) for index, to in openimages.find_nearest_targets(source, target).items()
    }


def _own(name: str) -> tuple[str, ...]:
    return tuple(filter(None, [openimages.ids().get(wordnet.plain(name))]))


def _listed_meanings(ours: Sense) -> list[str]:
    """The meaning of each class, or the nearest above it in WordNet, "" where there is none."""
    place = {one.wnid: number for number, one in enumerate(meanings.meanings().values())}
    place.pop("", None)
    names = tuple(meanings.meanings())
    return [
        key or (names[place[near]] if wnid and (near := _nearest(wnid, place)) else "")
        for key, wnid in zip(ours.keys, ours.wnids, strict=True)
    ]


def by_ancestor(ours: Sense, theirs: Sense) -> Found:
    """The class of the same WordNet id, or the nearest ancestor."""
    place = _places(theirs.wnids)
    place.pop("", None)
    found = {}
    for index, wnid in enumerate(ours.wnids):
        nearest = _nearest(wnid, place) if wnid else None
        if nearest is not None:
            found[index] = place[nearest], SYNSET if nearest == wnid else BELOW
    return found


def by_row_above(ours: Sense, theirs: Sense) -> Found:
    """The class that stands above a meaning in `meanings.csv`."""
    place = _places(theirs.keys)
    place.pop("", None)
    found = {}
    for index, key in enumerate(ours.keys):
        above = meanings.meanings()[key].above if key else ""
        if above in place:
            found[index] = place[above], BELOW
    return found


def by_spelling(ours: Sense, theirs: Sense) -> Found:
    """The same name, unless both are known and mean different things."""
    found = {}
    for index, to in same_names(ours.names, theirs.names).items():
        pairs = (ours.wnids[index], theirs.wnids[to]), (ours.keys[index], theirs.keys[to])
        if not any(one and other and one != other for one, other in pairs):
            found[index] = to, NAME
    return found


def same_names(source: tuple[str, ...], target: tuple[str, ...]) -> dict[int, int]:
    """Index of a name → index of the same name; case, underscores and blanks do not count."""
    place = _places(wordnet.plain(name) for name in target)
    # spelt exactly the same wins: "Cardigan" and "cardigan" are two classes of ILSVRC
    place |= _places(target)
    found = {}
    for index, name in enumerate(source):
        to = place.get(name, place.get(wordnet.plain(name)))
        if to is not None:
            found[index] = to
    return found


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
