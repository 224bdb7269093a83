"""Class maps: from the classes of a model to those of a dataset."""

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from steadyeye.core.errors import UsageError, list_texts, unknown
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import place
from steadyeye.core.types import Classes
from steadyeye.data.classes import class_lists, wordnet
from steadyeye.data.classes.class_map import ClassMap, of_destinations
from steadyeye.data.classes.map_file import WHAT, from_file
from steadyeye.data.classes.matching import (
    ALIAS,
    BELOW,
    LIST,
    NAME,
    OPEN,
    SYNSET,
    Matches,
    Sense,
    by_alias,
    by_ancestor,
    by_openimages,
    by_row_above,
    by_spelling,
    sense,
)

# what models without class names call their classes: "class 7", "LABEL_7", "7"
NUMBER = re.compile(r"(class|label)?[ _]?\d+", re.IGNORECASE)


def named_map(text: str, source: Classes, target: Classes) -> ClassMap:
    """The map from a model's classes to the data's that a text names.

    `text`: the path of a mapping file (`.csv`, `.json`), or class lists as `steadyeye classmap`
    takes them (`vid30`, `classes.txt`): `imagenet1k:vid30` says that the model's names mean what
    they mean in the first and the data's what they mean in the second, one list alone that those do
    which are all in it; the classes then meet by meaning. Classes that are only numbered are those
    of a list of the same length. Raises `UsageError` for a text that is none of this, for a list
    that does not hold the names, and where no class meets another.
    """
    lists = _lists(text)
    if not lists:
        if not place(text).suffix and not place(text).exists():
            raise unknown(WHAT, text, class_lists.LISTS)
        return from_file(place(text), source, target)
    read = [class_lists.read(name_) for name_ in lists]
    of_model, of_data = _assign_meanings(source, read[0]), _assign_meanings(target, read[-1])
    missing = [
        _absent(whose, classes, list_classes, name)
        for whose, classes, list_classes, name, class_map in (
            ("model", source, read[0], lists[0], of_model),
            ("data", target, read[-1], lists[-1], of_data),
        )
        if class_map is None
    ]
    if len(missing) > 2 - len(lists):
        raise UsageError(f"--class-map {text}: {', and '.join(missing)}")
    class_map = by_meaning(of_model or source, of_data or target)
    if len(class_map.missing) == len(target):
        raise UsageError(
            f"--class-map {text} maps none of the model's {number_of(len(source), 'class')} to "
            f"the data's {len(target)}; give a mapping file"
        )
    names = f"{class_map.origin}, names as in {text}"
    return replace(class_map, source=source, target=target, origin=names)


def _lists(text: str) -> tuple[str, ...]:
    """The class lists that a text names, one or two; none where it is a mapping file's path."""
    colons = (at for at, letter in enumerate(text) if letter == ":")
    pairs = ((text[:at], text[at + 1 :]) for at in colons)
    alone = (text,) if _is_list(text) else ()
    return next((pair for pair in pairs if all(map(_is_list, pair))), alone)


def _is_list(text: str) -> bool:
    return text in class_lists.LISTS or Path(text).suffix.lower() == ".txt"


def _assign_meanings(classes: Classes, list_classes: Classes) -> Classes | None:
    """The classes with the meanings of a list; None where it does not hold them all."""
    if len(classes) == len(list_classes) and all(map(NUMBER.fullmatch, classes.names)):
        return list_classes
    places = {wordnet.plain(name): at for at, name in enumerate(list_classes.names)}
    places_ = [places.get(wordnet.plain(name)) for name in classes.names]
    if None in places_:
        return None
    wnids = list_classes.wnids
    own = tuple(wnids[at] for at in places_ if at is not None) if wnids else None
    return replace(classes, wnids=own)


def _absent(whose: str, classes: Classes, list_classes: Classes, name: str) -> str:
    places = {wordnet.plain(text) for text in list_classes.names}
    first = next((text for text in classes.names if wordnet.plain(text) not in places), "")
    return f"'{first}' of the {whose}'s {number_of(len(classes), 'class')} is not in {name}"


def identity(classes: Classes) -> ClassMap:
    """The map of every class to itself."""
    return ClassMap(classes, classes, tuple((i,) for i in range(len(classes))), "identity")


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
            f"{len(target)}: none of them matches any of {list_texts(target.names)}; the model's "
            f"are {list_texts(source.names)}; correct the names, or give --class-map map.csv"
        )
    return class_map


def proposals(class_map: ClassMap) -> dict[str, str]:
    """Target class without a source class → the nearest source class, "" if there is none.

    An ancestor in WordNet or in `meanings.csv`, or else one with a similar spelling.
    """
    senses, target_senses = sense(class_map.source), sense(class_map.target)
    upward = by_ancestor(target_senses, senses) | by_row_above(target_senses, senses)
    nearest = {}
    for index, name in enumerate(class_map.target.names):
        if class_map.members[index]:
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
    """The name of a run's map in its record."""
    if senses.open_images or target_senses.open_images:
        return "by Open Images' classes"
    words = {LIST: "meaning", ALIAS: "meaning", SYNSET: "WordNet", BELOW: "WordNet", NAME: "name"}
    met = dict.fromkeys(words[way] for way in words if way in ways)
    return f"by {' and '.join(met)}" if met else "by name"


WAYS_IN_WORDS = {
    SYNSET: "by WordNet id",
    LIST: "by shipped list",
    ALIAS: "by alias",
    BELOW: "as a kind of the data's class",
    OPEN: "by Open Images' hierarchy",
    NAME: "by name alone",
}
NAMED = 40  # pairs that a line names
NAMED_IN_HEADLINE = 6


def describe_matches(mapping: ClassMap) -> tuple[str, ...]:
    """How the classes of a model were matched, one line per way, then those without a match."""
    texts = []
    for way, words in WAYS_IN_WORDS.items():
        met = [i for i, kind in enumerate(mapping.ways) if kind == way]
        pairs = [_pair(mapping, index) for index in met]
        if pairs:
            texts.append(f"{words}, {len(pairs):,}: {list_texts(pairs, NAMED)}")
    if mapping.missing:
        texts.append(
            f"classes of the data without a class of the model, {len(mapping.missing):,}: "
            f"{list_texts(list_unmatched(mapping), NAMED)}; "
            "--class-map can give them one"
        )
    return tuple(texts)


def describe_unmatched(mapping: ClassMap, labels: Sequence[str]) -> str | None:
    """Which classes that occur in the data have no class of the model; None: every one has."""
    lost = [name for name in mapping.missing if name in set(labels)]
    if not lost:
        return None
    have = "has" if len(lost) == 1 else "have"
    return (
        f"{len(lost):,} of the {number_of(len(labels), 'class')} that occur in the data {have} no "
        "counterpart among the model's classes: "
        f"{list_texts(_add_proposals(mapping, lost), NAMED_IN_HEADLINE)}"
    )


def _pair(mapping: ClassMap, index: int) -> str:
    own, other = mapping.source.names[index], mapping.target.names[mapping.destinations[index]]
    is_same = mapping.ways[index] in (SYNSET, LIST, ALIAS, NAME)
    return own if own == other else f"{own} {'=' if is_same else '→'} {other}"


def list_unmatched(mapping: ClassMap) -> list[str]:
    """The classes of the data without a class of the model, each with the nearest one it has."""
    return _add_proposals(mapping, mapping.missing)


def _add_proposals(mapping: ClassMap, missing: Sequence[str]) -> list[str]:
    near = proposals(mapping)
    return [f"{name} (nearest name: {near[name]})" if near.get(name) else name for name in missing]
