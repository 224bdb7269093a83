"""Class maps: from the classes of a model to those of a dataset."""

from collections.abc import Iterable, Mapping

from steadyeye.classes import openimages, wordnet
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
    "by_name",
    "by_wordnet",
    "from_file",
    "identity",
    "nearest",
    "reduce_max",
    "reduce_sum",
    "to_csv",
]


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


def by_wordnet(source: Classes, target: Classes) -> ClassMap:
    """The map of a source class to the target class that is its WordNet ancestor, or itself.

    Of several, those above another of them drop out, then the fewest hypernym steps decide, then
    the lower index: ILSVRC's minivan is one step below `car` and three below `truck`, so it is a
    car. Where one of two classes has no wnid, the same name maps them.
    """
    place = _places(target.wnids or ())
    place.pop("", None)
    nameless = by_name(source, target).destinations
    found = {}
    for index, wnid in enumerate(source.wnids or ("",) * len(source)):
        nearest = _nearest(wnid, place) if wnid else None
        named = nameless[index]
        if nearest is not None:
            found[index] = place[nearest]
        elif named >= 0 and not (wnid and target.wnids and target.wnids[named]):
            found[index] = named
    return of_destinations(source, target, found, "by WordNet")


def between(source: Classes, target: Classes) -> ClassMap:
    """The map for two class lists: identity, Open Images', by name where that reaches all, WordNet.

    The first of these that applies. Raises `UsageError` where none does: WordNet needs ids on both
    sides.
    """
    if source.names == target.names:
        return identity(target)
    if (shipped := openimages.between(source, target)) is not None:
        return shipped
    same = by_name(source, target)
    if not same.missing:
        return same
    if source.wnids and target.wnids:
        ancestral = by_wordnet(source, target)
        if any(ancestral.members):
            return ancestral
    raise UsageError(
        f"cannot map the model's {len(source)} classes to the data's {len(target)}: "
        f"missing {listed(same.missing)}; give --class-map map.csv"
    )


def nearest(source: Classes, target: Classes) -> ClassMap:
    """The map by name, or by WordNet where that reaches more; target classes may stay empty.

    Open Images' and COCO's classes have a map of their own, as names mislead: COCO's `mouse` is
    no animal. Raises `UsageError` where it reaches none.
    """
    if source.names != target.names:
        shipped = openimages.between(source, target)
        if shipped is not None:
            return shipped
    maps = [by_name(source, target)]
    if source.wnids and target.wnids:
        maps.append(by_wordnet(source, target))
    best = min(maps, key=lambda each: len(each.missing))
    if len(best.missing) == len(target):
        raise UsageError(
            f"none of the model's {len(source)} classes maps to any of the data's: "
            f"{', '.join(target.names[:5])}; give --class-map map.csv"
        )
    return best


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
