"""The class map that a user names: a mapping file, or class lists that say what names mean."""

import re
from dataclasses import replace
from pathlib import Path

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import place
from steadyeye.core.types import Classes
from steadyeye.data.classes import class_lists, wordnet
from steadyeye.data.classes.class_map import ClassMap
from steadyeye.data.classes.class_mapping import by_meaning
from steadyeye.data.classes.map_file import WHAT, from_file

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
            raise unknown(WHAT, text, class_lists.names())
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
            f"--class-map {text}: none of the model's {number_of(len(source), 'class')} means any "
            f"of the data's {len(target)}; give a mapping file"
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
    return text in class_lists.names() or Path(text).suffix.lower() == ".txt"


def _assign_meanings(classes: Classes, list_classes: Classes) -> Classes | None:
    """The classes with the meanings of a list; None where it does not hold them all."""
    if len(classes) == len(list_classes) and all(map(NUMBER.fullmatch, classes.names)):
        return list_classes
    places = {wordnet.plain(name): at for at, name in enumerate(list_classes.names)}
    places_ = [places.get(wordnet.plain(name)) for name in classes.names]
    if None in places_:
        return None
    wnids = (
        tuple(list_classes.wnids[at] for at in places_ if at is not None)
        if list_classes.wnids
        else None
    )
    return replace(classes, wnids=wnids)


def _absent(whose: str, classes: Classes, list_classes: Classes, name: str) -> str:
    places = {wordnet.plain(text) for text in list_classes.names}
    first = next((text for text in classes.names if wordnet.plain(text) not in places), "")
    return f"'{first}' of the {whose}'s {number_of(len(classes), 'class')} is not in {name}"
