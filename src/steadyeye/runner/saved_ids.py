"""The images and classes that ids of saved detections refer to, and how that was determined.

COCO's results name images and categories by the ids of the data. Ultralytics' `predictions.json`
has the stem of the image's file for `image_id` (as a number where it is one), `file_name` beside
it, and categories counted from 1 whatever the data counts from.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.abilities import HasFileNames, Numbered
from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.format import number_of
from steadyeye.core.types import Classes, Source
from steadyeye.data.classes import class_mapping
from steadyeye.data.classes.class_lists import COCO_IDS, from_names, shipped_classes
from steadyeye.runner.saved_boxes import ENOUGH, Matches, on_true_boxes
from steadyeye.runner.saved_entries import SavedEntries


@dataclass(frozen=True, eq=False)
class Images:
    """`sample`: (n,) the index of each entry's sample, −1 for none; `notes`: how it was found."""

    sample: NDArray[np.int32]
    notes: tuple[str, ...]


def images(entries: SavedEntries, source: Source) -> Images:
    """The sample of each entry.

    By `file_name` where every entry has one and all are there; else by the id of the image; else by
    the stem of its file.
    """
    place_of = {id_: place for place, id_ in enumerate(source.ids)}
    by_file = _by_file(source)

    def look_up(find: Callable[[str], str | None], texts: Sequence[str]) -> NDArray[np.int32]:
        ids = (find(text) for text in texts)
        return np.array([-1 if id_ is None else place_of[id_] for id_ in ids], dtype=np.int32)

    by_id = look_up(lambda text: text if text in place_of else None, entries.image_ids)
    by_stem = look_up(by_file, entries.image_ids)
    ways = [
        ("image_id", by_id[entries.image]),
        ("the stem of the image's file in image_id", by_stem[entries.image]),
    ]
    if entries.file is not None:
        ways.insert(0, ("file_name", look_up(by_file, entries.file_names)[entries.file]))
    # an id of the data may be the number of another image's file: the boxes tell
    words, sample = min(ways, key=lambda way: int((way[1] < 0).sum()))
    stems = ways[-1][1]
    if words == "image_id" and (stems >= 0).all() and (stems != sample).any():
        on_boxes = [_count_on_boxes(entries, way, source) for _, way in ways]
        if on_boxes[1] >= ENOUGH and on_boxes[0] <= on_boxes[1] / 5:
            words, sample = ways[1]
    return Images(sample, (*_way_notes(words, ways), *_lack_notes(sample, source)))


def _count_on_boxes(entries: SavedEntries, sample: NDArray[np.int32], source: Source) -> int:
    """How many detections lie on a true box of the images that they are taken to be of."""
    grouping = entries.group_by_sample(sample, len(source))
    return len(on_true_boxes(entries, grouping, source)[0])


def _way_notes(words: str, ways: Sequence[tuple[str, NDArray[np.int32]]]) -> tuple[str, ...]:
    if words == "image_id":
        return ()
    own, plain = (dict(ways)[key] for key in (words, "image_id"))
    other = int(((plain >= 0) & (plain != own)).sum())
    more = f"; as ids, {other:,} of them would be of other images" if other else ""
    return (f"{number_of(len(own), 'detection')} matched to images by {words}{more}",)


def _lack_notes(sample: NDArray[np.int32], source: Source) -> tuple[str, ...]:
    has_one = np.zeros(len(source), dtype=np.bool_)
    has_one[sample[sample >= 0]] = True
    lacking = np.flatnonzero(~has_one)
    if not len(lacking):
        return ()
    return (
        f"no detection in the file for {len(lacking):,} of {number_of(len(source), 'image')}, "
        f"first '{source.ids[int(lacking[0])]}': nothing was found, or they were not predicted",
    )


def _by_file(source: Source) -> Callable[[str], str | None]:
    """Finds a sample by its file's path, name or stem, if these are distinct."""
    files = (isinstance(source, HasFileNames) and source.file_names) or source.ids
    tables: list[dict[str, str | None]] = []
    for spell in (str, _name, _stem):
        table: dict[str, str | None] = {}
        for file, id_ in zip(files, source.ids, strict=True):
            key = spell(file)
            table[key] = None if key in table else id_
        tables.append(table)

    def find(name: str) -> str | None:
        keys = (name, _name(name), _stem(name))
        matches = (table.get(key) for table, key in zip(tables, keys, strict=True))
        return next(filter(None, matches), None)

    return find


def _name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _stem(path: str) -> str:
    """The stem of a file; a number without its leading zeros."""
    name = _name(path)
    stem = name.rpartition(".")[0] or name
    return str(int(stem)) if stem.isascii() and stem.isdecimal() else stem


@dataclass(frozen=True, eq=False)
class Naming:
    """One way to read category ids: `places`, id → class of the model, and what to call it."""

    words: str
    places: Mapping[int, int]


def namings(source: Source, classes: Classes | None, base: str | None) -> list[Naming]:
    """The ways in which a file may number its classes, the one it should come first.

    `classes`: the model's, where they are given; `base`: "0" or "1" where the user says what the
    first class is, "data" for the ids of the data.
    """
    count = len(classes or source.classes or ())
    ids = None if classes or not isinstance(source, Numbered) else source.category_ids
    by_name = (
        {} if ids is None else {"data": Naming("the data's category ids", _number_classes(ids))}
    )
    by_name["0"] = Naming("counted from 0", _number_classes(range(count)))
    by_name["1"] = Naming("counted from 1", _number_classes(range(1, count + 1)))
    if base is not None:
        if base not in by_name:
            raise UsageError(
                f"--category-ids '{base}' does not fit '{source.name}'; give "
                f"{list_texts(list(by_name))}"
            )
        return [by_name[base]]
    own = classes or source.classes
    if (
        own
        and from_names(own.names).names == shipped_classes("coco").names
        and count == len(COCO_IDS)
    ):
        by_name["coco"] = Naming("COCO's own numbers, 1 to 90", _number_classes(COCO_IDS))
    return list(by_name.values())


def _number_classes(ids: Sequence[int]) -> Mapping[int, int]:
    return {int(number): place for place, number in enumerate(ids)}


def by_name(entries: SavedEntries, classes: Classes | None) -> Naming | None:
    """The naming that the entries' own names of categories give; None where they have none.

    Raises `UsageError` for an id of two names.
    """
    if not entries.names or classes is None:
        return None
    names: dict[int, str] = {}
    for number, name in entries.names:
        if names.setdefault(number, name) != name:
            raise UsageError(
                f"the category_id {number} is '{names[number]}' and '{name}' in one file; give "
                f"each one {entries.name_key}"
            )
    class_list = from_names(list(dict.fromkeys(names.values())))
    to = dict(
        zip(
            class_list.names,
            class_mapping.by_meaning(class_list, classes).destinations,
            strict=True,
        )
    )
    places = {number: to[name] for number, name in names.items() if to[name] >= 0}
    return Naming(f"matched by {entries.name_key}", places)


def choose_naming(
    ways: Sequence[Naming],
    used: Sequence[int],
    match: Callable[[], Matches],
    to: Sequence[int],
    plain: bool,
) -> tuple[Naming | None, tuple[str, ...]]:
    """The way that a file numbers its classes, with the note of it; None: in none of these.

    Another way than the first needs five detections on true boxes, half of them of the right class,
    five times as many as any other way. `match`: finds what lies on true boxes; `to`: the class of
    the data of each of the model. `plain`: whether the first way holds where nothing speaks
    against it.
    Raises `UsageError` where several fit and none stands out.
    """
    fitting: dict[tuple[int, ...], Naming] = {}
    for way in ways:
        if all(number in way.places for number in used):
            fitting.setdefault(tuple(way.places[number] for number in used), way)
    if not fitting:
        return None, ()
    left = list(fitting.values())
    if len(left) == 1:
        only = left[0]
        return only, () if only is ways[0] else (f"category ids are read as {only.words}",)
    matches = match()
    agreed = [_count_agreeing(way, matches, to) for way in left]
    total, best = len(matches[0]), int(np.argmax(agreed))
    others = max(count for place, count in enumerate(agreed) if place != best)
    clear = total >= ENOUGH and agreed[best] >= total / 2 and others <= agreed[best] / 5
    counts = ", ".join(f"{a:,} {way.words}" for a, way in zip(agreed, left, strict=True))
    counts_text = (
        f"of {number_of(total, 'detection')} on true boxes, the class is right in: {counts}"
    )
    if clear:
        first = left[best] is ways[0] and plain
        return left[best], () if first else (
            f"category ids are read as {left[best].words}; {counts_text}",
        )
    if left[0] is ways[0] and (plain or agreed[0] > max(agreed[1:])):
        return left[0], () if plain else (
            f"category ids are read as {left[0].words}; {counts_text}",
        )
    raise UsageError(
        f"category ids may be {' or '.join(way.words for way in left)} ({counts_text}); give "
        "--category-ids 0 or 1"
    )


def _count_agreeing(way: Naming, matches: Matches, to: Sequence[int]) -> int:
    classes = np.array([to[way.places[int(number)]] for number in matches[0]], dtype=np.int64)
    return int((classes == matches[1]).sum())
