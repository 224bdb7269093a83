"""One list of classes for a set whose frames come from sources with lists of their own."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.format import number_of
from steadyeye.core.types import Classes
from steadyeye.data.classes.class_mapping import by_meaning
from steadyeye.data.classes.matching import ALIAS, LIST, NAME, SYNSET
from steadyeye.review.sampling.sampling import Stored

SAME = (LIST, ALIAS, SYNSET, NAME)
"""The ways in which two classes are one; a kind of a class is another one."""


@dataclass(frozen=True)
class Labelled:
    """What a source labels its frames with: its list of classes, and those of it that occur.

    `name`: what the source is called in errors.
    """

    name: str
    classes: Classes | None
    present: frozenset[int]


def merge_classes(
    sources: Sequence[Labelled], given: Classes | None
) -> tuple[Classes | None, tuple[tuple[int, ...], ...]]:
    """The list of a set, and for each source the place in it of each of its own classes.

    `given`: the list that the user wants; None: all that the sources have, those of the same
    meaning, WordNet id or name once, in the order they come first. A place is −1 where the list has
    not the class. Raises `UsageError` where a class that occurs has no place, and where two sources
    mean different things by one name.
    """
    whole = given
    if given is None:
        for each in sources:
            whole = _with(whole, each) if each.classes else whole
    return whole, tuple(_places(each, whole) for each in sources)


def relabel_frames(stored: Iterable[Stored], places: Sequence[int]) -> Iterator[Stored]:
    """Stored frames with their labels in the list of the set; `places`: of the source's classes."""
    for each in stored:
        labels = sorted({places[label] for label in each.row["labels"]})
        yield replace(each, row={**each.row, "labels": labels})


def _with(whole: Classes | None, source: Labelled) -> Classes:
    """A list with the classes of a source that it has not yet."""
    assert source.classes is not None, "asked before"
    more = source.classes
    if whole is None:
        return replace(more, parents=None)
    found = _same(more, whole)
    names, wnids = list(whole.names), list(whole.wnids or ("",) * len(whole))
    for index, name in enumerate(more.names):
        if found[index] >= 0:
            continue
        if name in names:
            raise UsageError(
                f"'{source.name}' means something else by '{name}' than an earlier source; "
                "rename one of the two, or sample them separately"
            )
        names.append(name)
        wnids.append(more.wnids[index] if more.wnids else "")
    both = whole.closed and more.closed
    return Classes(tuple(names), tuple(wnids) if any(wnids) else None, closed=both)


def _places(source: Labelled, whole: Classes | None) -> tuple[int, ...]:
    if source.classes is None or whole is None:
        return ()
    places = _same(source.classes, whole)
    lost = [source.classes.names[i] for i in sorted(source.present) if places[i] < 0]
    if lost:
        raise UsageError(
            f"--classes lacks {number_of(len(lost), 'class')} of '{source.name}', "
            f"{list_texts(lost)}; add them to --classes or leave it out"
        )
    return places


def _same(source: Classes, target: Classes) -> tuple[int, ...]:
    """For each class the one of a list that is the same, −1: none is."""
    if source.names == target.names and source.wnids == target.wnids:
        return tuple(range(len(source)))
    found = by_meaning(source, target)
    pairs = zip(found.destinations, found.ways, strict=True)
    return tuple(to if way in SAME else -1 for to, way in pairs)
