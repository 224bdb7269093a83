"""Class maps in files: the user's own, and ours written out for them to change."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_files import (
    Row,
    encode_csv,
    read_json,
    read_table,
    read_whole,
)
from steadyeye.core.types import Classes
from steadyeye.data.classes import wordnet
from steadyeye.data.classes.class_map import ClassMap, of_destinations

WHAT = "class map"
COLUMNS = ("model_index", "model_wnid", "model", "data_index", "data")
READ = (*COLUMNS, "data_wnid")

Link: TypeAlias = tuple[str, int, int]
"""Where it stands, model class, data class."""


def from_file(path: Place, source: Classes, target: Classes) -> ClassMap:
    """The class map in a file; classes are named by name, wnid or index.

    `.csv`: columns `model` and `data` (or `model_index`, `data_index`, which must agree with the
    names); a row with one side empty maps nothing. `.json`: {model class: data class} or
    {data class: [model classes]}; the index maps of the releases, {"7": 4}, are the first.
    Raises `UsageError` for a class that neither list has and for one mapped to two.
    """
    readers = {".csv": _rows, ".json": _tree}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UsageError(f"the {WHAT} '{path}' is none of {', '.join(readers)}; convert it")
    pairs = reader(path, _side("model", source), _side("data", target))
    targets: dict[int, int] = {}
    for where, index, other in pairs:
        if targets.setdefault(index, other) != other:
            both = f"'{target.names[targets[index]]}' and '{target.names[other]}'"
            raise UsageError(f"{where}: '{source.names[index]}' maps to both {both}; keep one")
    if not targets:
        raise UsageError(f"the {WHAT} '{path}' maps nothing; give the columns model and data")
    return of_destinations(source, target, targets, f"file {path.name}")


def to_csv(class_map: ClassMap) -> str:
    """The map as CSV that `from_file` reads: a row a model class, unmapped ones with empty data.

    Data classes no model class maps to follow, with the model's side empty.
    """
    rows: list[tuple[object, ...]] = [COLUMNS]
    target = class_map.target
    wnids = class_map.source.wnids or ("",) * len(class_map.source)
    for index, to in enumerate(class_map.destinations):
        data = (to, target.names[to]) if to >= 0 else ("", "")
        rows.append((index, wnids[index], class_map.source.names[index], *data))
    for to, own in enumerate(class_map.members):
        if not own:
            rows.append(("", "", "", to, target.names[to]))
    return encode_csv(rows)


@dataclass(frozen=True)
class _Side:
    """One side of a map; `tables`: text → indices by name, plain name and wnid."""

    word: str
    classes: Classes
    tables: tuple[Mapping[str, Sequence[int]], ...]


def _side(word: str, classes: Classes) -> _Side:
    columns = (
        classes.names,
        map(wordnet.plain, classes.names),
        classes.wnids or (),
    )
    return _Side(word, classes, tuple(map(_places, columns)))


def _places(keys: Iterable[str]) -> Mapping[str, Sequence[int]]:
    places: dict[str, list[int]] = {}
    for index, key in enumerate(keys):
        places.setdefault(key, []).append(index)
    return places


def _find(side: _Side, text: str, where: str) -> int:
    """The index of the class `text` names; `UsageError` for none and for several."""
    keys = (text, wordnet.plain(text), text)
    for places, key in zip(side.tables, keys, strict=True):
        if len(places.get(key, ())) > 1:
            raise UsageError(f"{where}: there are two {side.word} classes '{text}'; use an index")
        if key in places:
            return places[key][0]
    if text.isdecimal():
        return _at(side, text, where)
    raise UsageError(f"{where}: {unknown(f'{side.word} class', text, side.classes.names)}")


def _at(side: _Side, index: str, where: str) -> int:
    last = len(side.classes) - 1
    number = read_whole(index, where)
    if not 0 <= number <= last:
        raise UsageError(f"{where}: there is no {side.word} class {index}; use 0 to {last}")
    return number


def _rows(path: Place, model: _Side, data: _Side) -> list[Link]:
    links = []
    for row in read_table(path, WHAT, optional=READ):
        where = f"the {WHAT} {row.place}"
        model_index, data_index = _cell(row, model, where), _cell(row, data, where)
        if model_index is not None and data_index is not None:
            links.append((where, model_index, data_index))
    return links


def _cell(row: Row, side: _Side, where: str) -> int | None:
    """The class a row gives for one side, None: empty."""
    columns = (f"{side.word}_index", side.word, f"{side.word}_wnid")
    index, name, wnid = (row.get(column) for column in columns)
    if not index:
        text = name or wnid
        return _find(side, text, where) if text else None
    place = _at(side, index, where)
    if name and wordnet.plain(name) != wordnet.plain(side.classes.names[place]):
        raise UsageError(
            f"{where}: {columns[0]} {index} is '{side.classes.names[place]}', "
            f"but {side.word} says '{name}'; correct one or leave it empty"
        )
    return place


def _tree(path: Place, model: _Side, data: _Side) -> list[Link]:
    content = read_json(path, WHAT)
    where = f"the {WHAT} '{path}'"
    if not isinstance(content, dict):
        raise UsageError(f"{where} is no JSON object; write {{model class: data class}}")
    links = []
    for key, value in content.items():
        if isinstance(value, list):
            to = _find(data, key, where)
            links += [(where, _find(model, _word(entry, where), where), to) for entry in value]
        elif value is not None:
            links.append((where, _find(model, key, where), _find(data, _word(value, where), where)))
    return links


def _word(value: object, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UsageError(f"{where} names a class {value!r}; give a name, a wnid or an index")
    return str(value)
