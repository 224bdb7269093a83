"""Which images and classes the ids of saved detections stand for, and how that was found out.

COCO's results name images and categories by the ids of the data. Ultralytics' `predictions.json`
has the stem of the image's file for `image_id` (as a number where it is one), `file_name` beside
it, and categories counted from 1 whatever the data counts from.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np

from steadyeye.core.abilities import HasFileNames, Numbered
from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.types import Classes, Source
from steadyeye.data.classes import class_mapping
from steadyeye.data.classes.class_lists import from_names, shipped_classes
from steadyeye.runner.saved_boxes import ENOUGH, Entry, Matches, on_true_boxes, text

NAMES = ("category_name", "class_name", "name")
"""Keys under which tools write the name of a category."""

GAPS = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}
COCO_NUMBERS = tuple(number for number in range(1, 91) if number not in GAPS)
"""COCO's own ids of its 80 categories."""


@dataclass(frozen=True, eq=False)
class Images:
    """Sample id → its entries; `notes`: how they were found."""

    entries: Mapping[str, Sequence[Entry]]
    notes: tuple[str, ...]


def images(entries: Sequence[Entry], source: Source) -> tuple[Images, list[Entry]]:
    """The entries of each sample, and those that name none.

    By `file_name` where every entry has one and all are there; else by the id of the image; else by
    the stem of its file.
    """
    by_id = dict(zip(source.ids, source.ids, strict=True)).get
    by_file = _by_file(source)
    ways: list[tuple[str, Callable[[Entry], str | None]]] = [
        ("image_id", lambda entry: by_id(text(entry["image_id"]))),
        ("the stem of the image's file in image_id", lambda e: by_file(text(e["image_id"]))),
    ]
    if entries and all(isinstance(entry.get("file_name"), str) for entry in entries):
        ways.insert(0, ("file_name", lambda entry: by_file(entry["file_name"])))
    answers = [(words, [way(entry) for entry in entries]) for words, way in ways]
    # an id of the data may be the number of another image's file: the boxes tell
    words, ids = min(answers, key=lambda answer: answer[1].count(None))
    if words == "image_id" and None not in answers[-1][1] and answers[-1][1] != ids:
        on_boxes = [_on_boxes(entries, answer, source) for _, answer in answers]
        if on_boxes[1] >= ENOUGH and on_boxes[0] <= on_boxes[1] / 5:
            words, ids = answers[1]
    foreign = [entry for entry, id_ in zip(entries, ids, strict=True) if id_ is None]
    grouped = _group_entries(entries, ids)
    return Images(grouped, (*_way_notes(words, answers), *_lack_notes(grouped, source))), foreign


def _group_entries(
    entries: Sequence[Entry], ids: Sequence[str | None]
) -> Mapping[str, Sequence[Entry]]:
    grouped: dict[str, list[Entry]] = defaultdict(list)
    for entry, id_ in zip(entries, ids, strict=True):
        grouped[id_ or ""].append(entry)
    return grouped


def _on_boxes(entries: Sequence[Entry], ids: Sequence[str | None], source: Source) -> int:
    """How many detections lie on a true box of the images that they are taken to be of."""
    grouped = _group_entries(entries, ids)
    samples = (source[i] for i, id_ in enumerate(source.ids) if id_ in grouped)
    return len(on_true_boxes(grouped, samples)[0])


def _way_notes(words: str, answers: Sequence[tuple[str, Sequence[str | None]]]) -> tuple[str, ...]:
    if words == "image_id":
        return ()
    own, plain = (dict(answers)[key] for key in (words, "image_id"))
    other = sum(
        first is not None and first != second for first, second in zip(plain, own, strict=True)
    )
    more = (
        f"; {other:,} of their image_id values are ids of other images in the data" if other else ""
    )
    return (f"{len(own):,} detections are matched to images by {words}{more}",)


def _lack_notes(grouped: Mapping[str, Sequence[Entry]], source: Source) -> tuple[str, ...]:
    lacking = [id_ for id_ in source.ids if id_ not in grouped]
    if not lacking:
        return ()
    return (
        f"no detection in the file for {len(lacking):,} of {number_of(len(source), 'image')}, "
        f"first '{lacking[0]}': nothing was found, or they were not predicted",
    )


def _by_file(source: Source) -> Callable[[str], str | None]:
    """What finds a sample by its file's path, name or stem, each where no two have the same."""
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
    return PurePosixPath(path.replace("\\", "/")).name


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
            raise UsageError(f"category ids '{base}': write {', '.join(by_name)}")
        return [by_name[base]]
    own = classes or source.classes
    if (
        own
        and from_names(own.names).names == shipped_classes("coco").names
        and count == len(COCO_NUMBERS)
    ):
        by_name["coco"] = Naming("COCO's own numbers, 1 to 90", _number_classes(COCO_NUMBERS))
    return list(by_name.values())


def _number_classes(ids: Sequence[int]) -> Mapping[int, int]:
    return {int(number): place for place, number in enumerate(ids)}


def by_name(entries: Sequence[Entry], classes: Classes | None) -> Naming | None:
    """The naming that the entries' own names of categories give; None where they have none.

    Raises `UsageError` for an id of two names.
    """
    key = next(
        (k for k in NAMES if entries and all(isinstance(e.get(k), str) for e in entries)), ""
    )
    if not key or classes is None:
        return None
    names: dict[int, str] = {}
    for entry in entries:
        if names.setdefault(entry["category_id"], entry[key]) != entry[key]:
            raise UsageError(
                f"the category_id {entry['category_id']} is '{names[entry['category_id']]}' and "
                f"'{entry[key]}' in one file; give each one {key}"
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
    return Naming(f"matched by {key}", places)


def choose_naming(
    ways: Sequence[Naming], used: Sequence[int], matches: Matches, to: Sequence[int], plain: bool
) -> tuple[Naming | None, tuple[str, ...]]:
    """The way that a file numbers its classes, with the note of it; None: in none of these.

    Another way than the first needs five detections on true boxes, half of them of the right class,
    five times as many as any other way. `matches`: what lies on true boxes; `to`: the class of the
    data of each of the model. `plain`: whether the first way holds where nothing speaks against it.
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
