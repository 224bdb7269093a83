"""Class maps: from the classes of a model to those of a dataset."""

from difflib import get_close_matches

from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.format import number_of
from steadyeye.core.types import Classes
from steadyeye.data.classes.class_map import (
    REDUCTIONS,
    ClassMap,
    of_destinations,
    reduce_max,
    reduce_sum,
    with_others,
)
from steadyeye.data.classes.map_file import from_file, to_csv
from steadyeye.data.classes.matching import (
    ALIAS,
    BELOW,
    LIST,
    NAME,
    SYNSET,
    Found,
    Sense,
    by_alias,
    by_ancestor,
    by_openimages,
    by_row_above,
    by_spelling,
    same_names,
    sense,
)

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
    "with_others",
]


def identity(classes: Classes) -> ClassMap:
    """The map of every class to itself."""
    return ClassMap(classes, classes, tuple((i,) for i in range(len(classes))), "identity")


def by_name(source: Classes, target: Classes) -> ClassMap:
    """The map between classes of the same name; case, underscores and blanks do not count."""
    return of_destinations(source, target, same_names(source.names, target.names), "by name")


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
    ours, theirs = sense(source), sense(target)
    steps = (
        by_alias(ours, theirs),
        by_openimages(ours, theirs),
        by_ancestor(ours, theirs),
        by_row_above(ours, theirs),
        by_spelling(ours, theirs),
    )
    found: Found = {}
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
            f"cannot map the model's {number_of(len(source), 'class')} to the data's "
            f"{len(target)}: none of them means any of {list_texts(target.names)}; give "
            "--class-map map.csv"
        )
    return found


def proposals(found: ClassMap) -> dict[str, str]:
    """Target class without a source class → the source class that is nearest to it, "": none is.

    One that stands above it in WordNet or in `meanings.csv`, or else one that is spelt much alike.
    """
    ours, theirs = sense(found.source), sense(found.target)
    upward = by_ancestor(theirs, ours) | by_row_above(theirs, ours)
    said = {}
    for index, (name, own) in enumerate(zip(found.target.names, found.members, strict=True)):
        if own:
            continue
        if index in upward:
            said[name] = found.source.names[upward[index][0]]
        else:
            said[name] = next(iter(get_close_matches(name, found.source.names, 1, 0.75)), "")
    return said


def _contradict(source: Classes, target: Classes) -> bool:
    """Whether classes of the same names are known to mean different things."""
    pairs = zip(source.wnids or (), target.wnids or (), strict=False)
    return any(one and other and one != other for one, other in pairs)


def _origin(ours: Sense, theirs: Sense, ways: tuple[str, ...]) -> str:
    """What the map of a run is called in its record."""
    if ours.open_images or theirs.open_images:
        return "by Open Images' classes"
    words = {LIST: "meaning", ALIAS: "meaning", SYNSET: "WordNet", BELOW: "WordNet", NAME: "name"}
    met = dict.fromkeys(words[way] for way in words if way in ways)
    return f"by {' and '.join(met)}" if met else "by name"
