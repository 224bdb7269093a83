"""Class lists: the ones we ship, and those users write."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from steadyeye.core.errors import UNPRINTABLE, UsageError, find_repeated, shorten, unknown
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place, place
from steadyeye.core.storage.number_columns import list_unread_numbers
from steadyeye.core.storage.text_files import read_json, read_table, read_text
from steadyeye.core.types import Classes
from steadyeye.data.classes import meanings, openimages, wordnet

LISTS = meanings.LISTS
WHAT = "class list"
COCO_IDS = tuple(i for i in range(1, 91) if i not in {12, 26, 29, 30, 45, 66, 68, 69, 71, 83})
"""The ids of COCO's 80 categories, which are the class numbers of networks with 91 outputs."""

Entry: TypeAlias = tuple[str, str | None]
"""A name and its wnid; either may be empty, and is then found from the other."""


@cache
def shipped_classes(name: str) -> Classes:
    """A class list we ship, one of `LISTS`, in the order of its release; it is the whole of it.

    `coco`: the 80 classes with boxes. `imagenet1k`: ILSVRC-2012 in the order models answer in,
    with short unique English names. `openimages`: the 601 with boxes, with their hierarchy. `voc`:
    Pascal VOC's 20. `kitti`: the 8 of its object benchmark, "DontCare" regions aside. `bdd`: the 10
    of BDD100K's detection. Raises `UsageError` for any other name.
    """
    if name not in LISTS:
        raise unknown(WHAT, name, LISTS)
    if name == "openimages":
        mids = tuple(openimages.released_names())
        above = openimages.parents(mids, openimages.hierarchy())
        return Classes(tuple(openimages.released_names().values()), parents=above, closed=True)
    rows = wordnet.read_list(name)
    texts = tuple(row["name"] for row in rows)
    wnids = tuple(row["wnid"] for row in rows)
    if not any(wnids):
        wnids = tuple(meanings.wnid_of(name, texts) or "" for name in texts)
    return Classes(texts, wnids, closed=True)


def classes_of_names(
    names: Iterable[str] | Mapping[str, str | None], path: Place | None = None
) -> Classes:
    """The classes of names, each once, or of name → wnid; names are kept as they are.

    A wnid that is None or not given is looked up: what the name means in the lists we ship that
    have all the names, or in any of them, else the lowest sense of the noun among the shipped
    synsets. It is "" for other names, and for those that lists use in several senses (`kite`,
    `mouse`). Raises `UsageError` for names that cannot be printed or look the same; `path`: where
    they stand.
    """
    pairs = names if isinstance(names, Mapping) else dict.fromkeys(names)
    texts = tuple(pairs)
    _check_names(texts, f"'{path}': " if path else "")
    for name, wnid in pairs.items():
        if wnid and not wordnet.is_wnid(wnid):
            raise UsageError(
                f"the class '{name}' has the WordNet id '{wnid}'; ids look like n02084071"
            )
    wnids = tuple(wnid or _meaning(name, texts) for name, wnid in pairs.items())
    return Classes(texts, wnids if any(wnids) else None)


def find_class(name: str, classes: Classes, title: str) -> int:
    """The position of a class by its name, whose accents may be written in either form.

    Raises `UsageError` for a name of no class; `title`: "class of 'a.jpg'".
    """
    place = _places(classes.names).get(unicodedata.normalize("NFC", name))
    if place is None:
        raise unknown(title, name, classes.names)
    return place


@cache
def _places(names: tuple[str, ...]) -> dict[str, int]:
    return {unicodedata.normalize("NFC", name): place for place, name in enumerate(names)}


def list_positions(classes: Classes) -> dict[str, int]:
    """WordNet id, or name as `compose` writes it → the position of its class."""
    by_wnid = {wnid: place for place, wnid in enumerate(classes.wnids or ()) if wnid}
    return by_wnid | _places(classes.names)


def close_list(classes: Classes) -> Classes:
    """The same classes as all that there are: a released set's, or a list given as the whole."""
    return replace(classes, closed=True)


def from_names(texts: Sequence[str]) -> Classes:
    """The classes that names or wnids stand for, in their order; wnids are given English names.

    The 1,000 labels of ILSVRC-2012, in its order, as Hugging Face (`tench, Tinca tinca`), Keras
    or torchvision write them, are `imagenet1k`. Raises `UsageError` on a name that comes twice.
    """
    return _classes([("", text) if wordnet.is_wnid(text) else (text, None) for text in texts])


def read(text: str) -> Classes:
    """A class list, given as the whole: a known name, or a file with one class after the other.

    `.txt`: a line is a wnid, a name, `wnid name`, `wnid,name` or `name,wnid`; all lines may have
    their number in front, `0 name` or `0: name`, and those that start with `#` are comments.
    `.csv`: columns `name` and, where known, `wnid`. `.json`: a list of names, {name: wnid or null},
    Hugging Face's id2label, {"0": name}, or torchvision's class_to_idx, {name: 0}. Raises
    `UsageError` for an unknown name, and for a file that is absent, empty or invalid.
    """
    if not isinstance(text, str):
        raise UsageError(f"{text!r} is no {WHAT}; write the names into a file, one a line")
    path = place(text)
    if text in LISTS:
        return shipped_classes(text)
    if path.suffix.lower() not in READERS:
        if path.exists():
            raise UsageError(f"the {WHAT} '{text}' is none of {', '.join(READERS)}; convert it")
        raise unknown(WHAT, text, LISTS)
    entries = READERS[path.suffix.lower()](path)
    if not entries:
        raise UsageError(f"the {WHAT} '{path}' is empty; give one class a line")
    try:
        return close_list(_classes(entries))
    except UsageError as error:
        raise UsageError(f"cannot use the {WHAT} '{path}': {error}") from error


def list_classes(classes: object) -> str | list[str] | None:
    """The classes given by a Python program: a known list, a file, or names in order.

    None if there are none. Raises `UsageError` for collections without order.
    """
    if classes is None or isinstance(classes, str):
        return classes or None
    if isinstance(classes, PathLike):
        return str(classes)
    names = classes.tolist() if isinstance(classes, np.ndarray) else classes
    if not isinstance(names, list | tuple):
        raise UsageError(
            f"classes is {repr(names)[:60]}; give a list of names in the order of the model's "
            "outputs, a known list or a file"
        )
    return [str(name) for name in names] or None


def read_given(classes: str | Sequence[str]) -> Classes:
    """The whole class list that names, a known list or a file gives."""
    if isinstance(classes, str):
        return read(classes)
    return close_list(from_names([str(name) for name in classes]))


def read_index_to_label(metadata: object) -> Sequence[str] | None:
    """The names of the classes in the metadata of a MAITE model or dataset, None without any.

    Raises `UsageError` for indices that do not go from 0 without gaps.
    """
    names = metadata.get("index2label") if isinstance(metadata, Mapping) else None
    if not names:
        return None
    if set(names) != set(range(len(names))):
        raise UsageError("metadata['index2label'] must go from 0 without gaps; give classes=[…]")
    return [str(names[index]) for index in range(len(names))]


def _classes(entries: Sequence[Entry]) -> Classes:
    if _is_ilsvrc(entries):
        return shipped_classes("imagenet1k")
    for number, (name, wnid) in enumerate(entries, start=1):
        if not name.strip() and not wnid:
            raise UsageError(f"class {number} has neither name nor wnid; give one")
    pairs = [(name or _label(wnid or ""), wnid or None) for name, wnid in entries]
    twice = find_repeated(name for name, _ in pairs)
    if twice:
        raise UsageError(f"two classes are named '{twice[0]}'; rename one")
    return classes_of_names(dict(pairs))


def _check_names(texts: Sequence[str], origin: str) -> None:
    """Raises `UsageError` for a name that cannot be printed, and for two that look the same.

    `origin`: how the message begins.
    """
    alike: dict[str, str] = {}
    for name in texts:
        if unprintable := UNPRINTABLE.search(name):
            raise UsageError(
                f"{origin}the class '{shorten(name)}' holds {unprintable[0]!a}, which is no "
                "letter; take it out"
            )
        key = " ".join(unicodedata.normalize("NFC", name).split())
        if key in alike:
            raise UsageError(
                f"{origin}the classes {alike[key]!a} and {name!a} look the same: they differ "
                "only in blanks or in the Unicode form of a letter; rename one"
            )
        alike[key] = name


def _is_ilsvrc(entries: Sequence[Entry]) -> bool:
    """Whether these are 1,000 names, each of the ILSVRC-2012 class at its place."""
    ilsvrc = shipped_classes("imagenet1k").wnids or ()
    if len(entries) != len(ilsvrc) or any(wnid for _, wnid in entries):
        return False
    return all(_begins(name, wnid) for (name, _), wnid in zip(entries, ilsvrc, strict=True))


def _begins(name: str, wnid: str) -> bool:
    """Whether a name is a lemma of a synset, or one with more behind it.

    "tench, Tinca tinca" is Hugging Face's way, "crane bird" torchvision's.
    """
    text = wordnet.plain(name)
    lemmas = [wordnet.plain(lemma) for lemma in wordnet.synsets()[wnid].lemmas]
    return any(text == lemma or text.startswith((f"{lemma} ", f"{lemma},")) for lemma in lemmas)


def _meaning(name: str, texts: tuple[str, ...]) -> str:
    """The wnid of a name among others, "" where no shipped synset has it or several lists do."""
    if wordnet.is_wnid(name):
        return name
    if (wnid := meanings.wnid_of(name, texts)) is not None:
        return wnid
    # `crane (wading bird)` is a name of ours and no noun
    return wordnet.synset(name) or _ilsvrc_wnids().get(name, "")


def _label(wnid: str) -> str:
    """The English name of a wnid; the wnid itself where it is not shipped."""
    shipped = wordnet.synsets().get(wnid)
    first = next(iter(shipped.lemmas)).replace("_", " ") if shipped else wnid
    return _ilsvrc_names().get(wnid, first)


@cache
def _ilsvrc_names() -> Mapping[str, str]:
    ilsvrc = shipped_classes("imagenet1k")
    return dict(zip(ilsvrc.wnids or (), ilsvrc.names, strict=True))


@cache
def _ilsvrc_wnids() -> Mapping[str, str]:
    return {name: wnid for wnid, name in _ilsvrc_names().items()}


def _lines(path: Place) -> list[Entry]:
    lines = (line.strip() for line in read_text(path, WHAT).splitlines())
    names = [line for line in lines if line and not line.startswith("#")]
    return [_line(line) for line in _without_numbers(names, path)]


def _without_numbers(lines: Sequence[str], path: Place) -> Sequence[str]:
    """The lines without their numbers, if all are numbered, as `0 cat`, `1: dog`.

    Raises `UsageError` for numbers from 0 or 1 that are not in order.
    """
    parts = [re.fullmatch(r"(\d+)(?:\s*[:,]\s*|\s+)(.+)", line) for line in lines]
    numbers = [int(part[1]) for part in parts if part]
    if len(lines) < 2 or len(numbers) < len(lines) or min(numbers) > 1:
        return lines
    expected = list(range(min(numbers), min(numbers) + len(lines)))
    if sorted(numbers) != expected:
        return lines
    if numbers != expected:
        raise UsageError(
            f"the lines of the {WHAT} '{path}' are not in the order of their numbers; sort them, "
            "the first is the model's first class"
        )
    return [part[2] for part in parts if part]


def _line(line: str) -> Entry:
    if wordnet.is_wnid(line):
        return "", line
    if match := re.fullmatch(r"(n\d{8})\s*[,\s]\s*(.+)", line):
        return match[2], match[1]
    if match := re.fullmatch(r"(.+?)\s*[,\s]\s*(n\d{8})", line):
        return match[1], match[2]
    return line, None


def _rows(path: Place) -> list[Entry]:
    rows = read_table(path, WHAT, optional=("name", "wnid"))
    if rows and not {"name", "wnid"} & rows[0].cells.keys():
        raise UsageError(f"the {WHAT} '{path}' has no column name; give the columns name, wnid")
    for column in list_unread_numbers(path, WHAT, ("name", "wnid")):
        cells = [row.get(column) for row in read_table(path, WHAT, (column,))]
        numbers = [int(cell) for cell in cells if cell.isdecimal()]
        ranks = [number - min(numbers) for number in numbers]
        if numbers != sorted(numbers) and sorted(ranks) == list(range(len(rows))):
            raise UsageError(
                f"the {WHAT} '{path}' is not in the order of its column '{shorten(column)}'; sort "
                "its lines, of which the first is the model's first class, or take the column out"
            )
    return [(row.get("name"), row.get("wnid")) for row in rows]


def _tree(path: Place) -> list[Entry]:
    content = read_json(path, WHAT)
    if isinstance(content, dict):
        content = _read_id2label(content) or _read_class_to_idx(path, content) or content
    if isinstance(content, list) and all(isinstance(text, str) for text in content):
        return [("", text) if wordnet.is_wnid(text) else (text, None) for text in content]
    if isinstance(content, dict) and all(v is None or isinstance(v, str) for v in content.values()):
        return list(content.items())
    raise UsageError(f"'{path}' is no {WHAT}; write a list of names or {{name: wnid or null}}")


def _read_id2label(content: Mapping[str, Any]) -> list[str] | None:
    """The names of an id2label, {"0": name, "1": name}, in their order; None: it is none."""
    positions = [str(i) for i in range(len(content))]
    if set(content) != set(positions) or not all(isinstance(v, str) for v in content.values()):
        return None
    return [content[position] for position in positions]


def _read_class_to_idx(path: Place, content: Mapping[str, Any]) -> list[str] | None:
    """The names of torchvision's class_to_idx, {name: 0, name: 1}, by number; None: it is none."""
    numbers = list(content.values())
    if not numbers or any(type(number) is not int for number in numbers):
        return None
    if sorted(numbers) != list(range(len(numbers))):
        raise UsageError(
            f"'{path}' is no {WHAT}: it numbers {number_of(len(numbers), 'class')} from "
            f"{min(numbers)} to {max(numbers)}; number them from 0, each once"
        )
    return sorted(content, key=lambda name: content[name])


READERS = {".txt": _lines, ".csv": _rows, ".json": _tree}
