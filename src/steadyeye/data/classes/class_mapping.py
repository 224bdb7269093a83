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
    Matches,
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
    senses, target_senses = sense(source), sense(target)
    steps = (
        by_alias(senses, target_senses),
        by_openimages(senses, target_senses),
        by_ancestor(senses, target_senses),
        by_row_above(senses, target_senses),
        by_spelling(senses, target_senses),
    )
    matches: Matches = {}
    for step in steps:
        matches = step | matches
    ways = tuple(matches[index][1] if index in matches else "" for index in range(len(source)))
    to = {index: place for index, (place, _) in matches.items()}
    return of_destinations(source, target, to, _origin(senses, target_senses, ways), ways)


def between(source: Classes, target: Classes) -> ClassMap:
    """The map for two class lists: identity where they are the same, else `by_meaning`.

    Target classes may stay empty. Raises `UsageError` where it reaches none.
    """
    if source.names == target.names and not _contradict(source, target):
        return identity(target)
    class_map = by_meaning(source, target)
    if len(class_map.missing) == len(target):
        raise UsageError(
            f"cannot map the model's {number_of(len(source), 'class')} to the data's "
            f"{len(target)}: none of them means any of {list_texts(target.names)}; give "
            "--class-map map.csv"
        )
    return class_map


def proposals(class_map: ClassMap) -> dict[str, str]:
    """Target class without a source class → the source class that is nearest to it, "": none is.

    One that stands above it in WordNet or in `meanings.csv`, or else one that is spelt much alike.
    """
    senses, target_senses = sense(class_map.source), sense(class_map.target)
    upward = by_ancestor(target_senses, senses) | by_row_above(target_senses, senses)
    nearest = {}
    for index, (name, own) in enumerate(
        zip(class_map.target.names, class_map.members, strict=True)
    ):
        if own:
            continue
        if index in upward:
            nearest[name] = class_map.source.names[upward[index][0]]
        else:
            nearest[name] = next(iter(get_close_matches(name, class_map.source.names, 1, 0.75)), "")
    return nearest


def _contradict(source: Classes, target: Classes) -> bool:
    """Whether classes of the same names are known to mean different things."""
    pairs = zip(source.wnids or (), target.wnids or (), strict=False)
    return any(first and second and first != second for first, second in pairs)


def _origin(senses: Sense, target_senses: Sense, ways: tuple[str, ...]) -> str:
    """What the map of a run is called in its record."""
    if senses.open_images or target_senses.open_images:
        return "by Open Images' classes"
    words = {LIST: "meaning", ALIAS: "meaning", SYNSET: "WordNet", BELOW: "WordNet", NAME: "name"}
    met = dict.fromkeys(words[way] for way in words if way in ways)
    return f"by {' and '.join(met)}" if met else "by name"
