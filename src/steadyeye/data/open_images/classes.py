"""The classes of Open Images' files and what stands above them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError, find_repeated
from steadyeye.core.format import number_of
from steadyeye.core.storage.text_files import read_json, read_rows
from steadyeye.core.types import Classes
from steadyeye.data.classes import openimages
from steadyeye.data.classes.class_lists import classes_of_names, close_list, shipped_classes
from steadyeye.data.classes.class_map import ancestors, descendants


@dataclass(frozen=True)
class Kinds:
    """The classes of the data, and the machine id of each (`/m/01g317`)."""

    classes: Classes
    mids: tuple[str, ...]

    @cached_property
    def place(self) -> Mapping[str, int]:
        """Machine id → class."""
        return {mid: index for index, mid in enumerate(self.mids)}

    @cached_property
    def above(self) -> tuple[frozenset[int], ...]:
        """For each class itself and all that stand above it."""
        sets = ancestors(self.classes.parents, len(self.mids))
        return tuple(above | {index} for index, above in enumerate(sets))

    @cached_property
    def below(self) -> tuple[frozenset[int], ...]:
        """For each class itself and all that stand below it."""
        sets = descendants(self.classes.parents, len(self.mids))
        return tuple(below | {index} for index, below in enumerate(sets))


def kinds(descriptions: Path | None, hierarchy: Path | None) -> Kinds:
    """The classes in a file of class descriptions, with the parents that a hierarchy gives them.

    `descriptions`: a CSV of machine id and name, with a header or without; None: the 601 classes
    of V4 to V7. `hierarchy`: the released JSON, of which "Part" is no is-a; None: the one shipped.
    Raises `UsageError` for a file that is none.
    """
    if descriptions is None:
        mids, classes = tuple(openimages.released_names()), shipped_classes("openimages")
    else:
        mids, classes = _read_descriptions(descriptions)
    above = _tree(hierarchy) if hierarchy else openimages.hierarchy()
    return Kinds(replace(classes, parents=openimages.parents(mids, above)), mids)


def _read_descriptions(path: Path) -> tuple[tuple[str, ...], Classes]:
    rows = list(read_rows(path, "class descriptions"))
    short = [line for line, cells in rows if len(cells) < 2]
    if short:
        raise UsageError(
            f"'{path}' has {number_of(len(short), 'line')} without a name, first line {short[0]}; "
            "write machine id, name"
        )
    # later releases begin with LabelName, DisplayName
    pairs = [(cells[0], cells[1]) for _, cells in rows if cells[0].startswith("/")]
    if not pairs:
        raise UsageError(f"'{path}' holds no class; write lines such as /m/01g317,Person")
    for column in zip(*pairs, strict=True):
        twice = find_repeated(column)
        if twice:
            raise UsageError(
                f"'{path}' has {number_of(len(twice), 'class')} twice, first '{twice[0]}'; "
                "keep one line of each"
            )
    mids, names = zip(*pairs, strict=True)
    return mids, close_list(classes_of_names(names, path))


def _tree(path: Path) -> Mapping[str, tuple[str, ...]]:
    content = read_json(path, "hierarchy")
    if not isinstance(content, dict) or not isinstance(content.get("LabelName"), str):
        raise UsageError(f"'{path}' is no hierarchy; give bbox_labels_600_hierarchy.json")
    parents: dict[str, tuple[str, ...]] = {}
    for parent, child in _edges(path, content):
        parents[child] = (*parents.get(child, ()), parent)
    for mid, above in parents.items():
        if any(mid in openimages.steps(parent, parents) for parent in above):
            raise UsageError(f"'{path}' puts '{mid}' above itself; correct the hierarchy")
    return parents


def _edges(path: Path, node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(parent, child) of every is-a; within the parts of something too, but not from it to them."""
    for key in ("Subcategory", "Part"):
        children = node.get(key, [])
        if not isinstance(children, list):
            raise UsageError(f"'{path}': {key} of '{node['LabelName']}' is no list; correct it")
        for child in children:
            if not isinstance(child, dict) or not isinstance(child.get("LabelName"), str):
                above = node["LabelName"]
                raise UsageError(f"'{path}' has a class without LabelName below '{above}'; add it")
            if key == "Subcategory":
                yield node["LabelName"], child["LabelName"]
            yield from _edges(path, child)
