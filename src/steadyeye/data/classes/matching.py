"""How single classes of a model meet classes of the data, one way at a time."""

from collections import Counter
from collections.abc import Iterable
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
    """The classes of a list: names, meanings, wnids, each "" if not known."""

    names: tuple[str, ...]
    keys: tuple[str, ...]
    wnids: tuple[str, ...]
    open_images: bool


def sense(classes: Classes) -> Sense:
    """The meanings and wnids of the classes of a list."""
    own = openimages.space(classes.names) == "openimages"
    keys = meanings.of(classes)
    wnids = tuple(
        wnid or (meanings.meanings()[key].wnid if key else "")
        for key, wnid in zip(keys, classes.wnids or ("",) * len(classes), strict=True)
    )
    return Sense(classes.names, keys, wnids, own)


Matches: TypeAlias = dict[int, tuple[int, str]]
"""Source class → target class, and how they met."""


def by_alias(source: Sense, target: Sense) -> Matches:
    """Classes of one meaning; of several, the one of the same id, then of the same spelling."""
    same: dict[str, list[int]] = {}
    for to, key in enumerate(target.keys):
        same.setdefault(key, []).append(to)
    spellings, others = (
        [meanings.normalise_spelling(name) for name in side.names] for side in (source, target)
    )
    matches = {}
    for index, (key, wnid) in enumerate(zip(source.keys, source.wnids, strict=True)):
        if not key or key not in same:
            continue
        is_other = [
            (wnid != target.wnids[to], spellings[index] != others[to], to) for to in same[key]
        ]
        other_id, other_spelling, to = min(is_other)
        same_way = SYNSET if wnid and not other_id else LIST
        matches[index] = to, ALIAS if other_spelling else same_way
    return matches


def by_openimages(source: Sense, target: Sense) -> Matches:
    """The same class or the nearest above it in Open Images' hierarchy, where a list is theirs."""
    if not (source.open_images or target.open_images):
        return {}
    up = [meanings.mids(key, "same", "broader") for key in _listed_meanings(source)]
    down = [meanings.mids(key, "same", "narrower") for key in target.keys]
    source_ids = [_own(name) for name in source.names] if source.open_images else up
    target_ids = [_own(name) for name in target.names] if target.open_images else down
    return {
        index: (to, OPEN)
        for index, to in openimages.find_nearest_targets(source_ids, target_ids).items()
    }


def _own(name: str) -> tuple[str, ...]:
    return tuple(filter(None, [openimages.ids().get(wordnet.plain(name))]))


def _listed_meanings(source: Sense) -> list[str]:
    """The meaning of each class, or of its nearest ancestor in WordNet, "" if there is none."""
    place = {meaning.wnid: number for number, meaning in enumerate(meanings.meanings().values())}
    place.pop("", None)
    names = tuple(meanings.meanings())
    meant = []
    for key, wnid in zip(source.keys, source.wnids, strict=True):
        near = None if key or not wnid else wordnet.find_nearest(wnid, place, wordnet.steps)
        meant.append(names[place[near]] if near else key)
    return meant


def by_ancestor(source: Sense, target: Sense) -> Matches:
    """The class of the same WordNet id, or the nearest ancestor."""
    place = _places(target.wnids)
    place.pop("", None)
    matches = {}
    for index, wnid in enumerate(source.wnids):
        nearest = wordnet.find_nearest(wnid, place, wordnet.steps) if wnid else None
        if nearest is not None:
            matches[index] = place[nearest], SYNSET if nearest == wnid else BELOW
    return matches


def by_row_above(source: Sense, target: Sense) -> Matches:
    """The class that stands above a meaning in `meanings.csv`."""
    place = _places(target.keys)
    place.pop("", None)
    matches = {}
    for index, key in enumerate(source.keys):
        above = meanings.meanings()[key].above if key else ""
        if above in place:
            matches[index] = place[above], BELOW
    return matches


def by_spelling(source: Sense, target: Sense) -> Matches:
    """The same name, unless both are known and mean different things."""
    matches = {}
    for index, to in same_names(source.names, target.names).items():
        pairs = (source.wnids[index], target.wnids[to]), (source.keys[index], target.keys[to])
        if not any(first and second and first != second for first, second in pairs):
            matches[index] = to, NAME
    return matches


def same_names(source: tuple[str, ...], target: tuple[str, ...]) -> dict[int, int]:
    """Index of a name → index of the same name; case, underscores and blanks do not count.

    They do where names of one list differ in nothing else: "Cardigan" and "cardigan" are two
    classes of ILSVRC, and which of them "CARDIGAN" is nobody knows.
    """
    exact = _places(target)
    keys, target_keys = ([wordnet.plain(name) for name in names] for names in (source, target))
    place, times, target_times = _places(target_keys), Counter(keys), Counter(target_keys)
    matches = {}
    for index, (name, key) in enumerate(zip(source, keys, strict=True)):
        if name in exact:
            matches[index] = exact[name]
        elif times[key] == target_times[key] == 1:
            matches[index] = place[key]
    return matches


def _places(keys: Iterable[str]) -> dict[str, int]:
    """Key → index; the first of several the same."""
    places: dict[str, int] = {}
    for index, key in enumerate(keys):
        places.setdefault(key, index)
    return places
