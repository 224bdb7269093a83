"""The meanings of classes of detectors and data, independent of spelling.

`data/meanings.csv` has a row a meaning: `meaning`, our name for it (COCO's where COCO has it);
`wnid`, its WordNet 3.0 id, empty where WordNet has none; `also`, other ids that lists give to the
same class; `above`, the meaning that it is a kind of where WordNet does not say so; `names`, its
spellings, `list:name` for one that means this in that list alone (`bdd:bike`, `coco:mouse`).
Columns with several entries are joined by `|`. Case, blanks, hyphens and underscores do not count,
and a plural in -s is the same name.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType

from steadyeye.core.types import Classes
from steadyeye.data.classes import openimages, wordnet

LISTS = ("bdd", "coco", "imagenet1k", "kitti", "openimages", "vid30", "voc", "ytbb")
"""The class lists we ship."""
MOST_FOUND = 150
"""Classes that a word finds at most: "animal" finds hundreds of ImageNet's, and helps nobody."""


@dataclass(frozen=True)
class Meaning:
    """One row of `meanings.csv`."""

    name: str
    wnid: str
    also: frozenset[str]
    above: str

    def agrees(self, wnid: str) -> bool:
        """Whether a class with this wnid, which may be empty, can have this meaning."""
        return not wnid or wnid == self.wnid or wnid in self.also


@cache
def meanings() -> Mapping[str, Meaning]:
    """Name → meaning."""
    return MappingProxyType(
        {
            row["meaning"]: Meaning(
                row["meaning"], row["wnid"], frozenset(_entries(row["also"])), row["above"]
            )
            for row in wordnet.read_list("meanings")
        }
    )


def of(classes: Classes) -> tuple[str, ...]:
    """The meaning of each class by its list or a shipped spelling, "" if not known.

    A spelling counts only where the class's own WordNet id, if it has one, agrees with it.
    """
    lists = fitting(classes.names)
    wnids = classes.wnids or ("",) * len(classes)
    keys = [_common_meaning(name, lists) for name in classes.names]
    pairs = zip(keys, wnids, strict=True)
    return tuple(key if key and meanings()[key].agrees(wnid) else "" for key, wnid in pairs)


def wnid_of(name: str, names: Sequence[str]) -> str | None:
    """The wnid that a name has as one of a list of names; None: the lists we ship do not say.

    "" where they have the name and no wnid for it, or say different things.
    """
    lists = fitting(names)
    key = _common_meaning(name, lists)
    wnids = {wnid for _, wnid in _meanings_by_list(name, lists)} - {""}
    if len(wnids) == 1:
        return wnids.pop()
    if key:
        return meanings()[key].wnid
    return "" if wnids or normalise_spelling(name) in _homonyms() else None


@cache
def mids(name: str, *relations: str) -> tuple[str, ...]:
    """The Open Images classes that stand in one of `relations` to a meaning, "same" first."""
    names = {normalise_spelling(own): mid for mid, own in openimages.released_names().items()}
    spellings = _spellings()
    mine = {**spellings[""], **spellings["openimages"]}
    same = [mid for own, mid in names.items() if name and mine.get(own) == name]
    others = [r for r in relations if r != "same"]
    return (*(same if "same" in relations else ()), *openimages.meanings(*others).get(name, ()))


@cache
def fitting(names: Sequence[str]) -> frozenset[str]:
    """The lists we ship that have all these names; spelt exactly as there, or else in any way."""
    own = [name for name in names if not openimages.GAP.fullmatch(name)]
    for spell in (str, normalise_spelling):
        spellings = set(map(spell, own))
        lists = frozenset(
            name for name in LISTS if spellings and _spelled_names(name, spell) >= spellings
        )
        if lists:
            return lists
    return frozenset()


def normalise_spelling(name: str) -> str:
    """A name as its spelling is compared: letters and digits in lower case."""
    return re.sub(r"[\W_]+", "", name.casefold())


def _common_meaning(name: str, lists: frozenset[str]) -> str:
    """The meaning of a name in all of the lists that it may come from, "" where they differ."""
    keys = {key for key, _ in _meanings_by_list(name, lists)}
    return keys.pop() if len(keys) == 1 else ""


def _meanings_by_list(name: str, lists: frozenset[str]) -> list[tuple[str, str]]:
    """What a name means in each of some lists, or in any: its meaning and its wnid."""
    text, spellings = normalise_spelling(name), _spellings()
    general = spellings[""].get(text) or spellings[""].get(text.removesuffix("s"), "")
    meanings_ = []
    for list_ in sorted(lists) or [""]:
        key = spellings.get(list_, {}).get(text, general)
        wnid = _wnid(list_, name) if list_ else ""
        # a list may have the spelling in a sense of its own: ImageNet's kite is a bird
        key = key if key and meanings()[key].agrees(wnid) else ""
        meanings_.append((key, wnid or (meanings()[key].wnid if key else "")))
    return meanings_


@cache
def _spellings() -> Mapping[str, Mapping[str, str]]:
    """List, or "" for any → squeezed spelling → meaning."""
    spellings: dict[str, dict[str, str]] = {"": {}}
    for row in wordnet.read_list("meanings"):
        for entry in _entries(row["names"]):
            where, _, name = entry.rpartition(":")
            spellings.setdefault(where, {})[normalise_spelling(name)] = row["meaning"]
    mids = openimages.released_names()
    for key, same in openimages.meanings("same").items():
        spellings["openimages"] |= {normalise_spelling(mids[mid]): key for mid in same}
    return spellings


@cache
def _homonyms() -> frozenset[str]:
    """Spellings that mean something in some lists only: alone they mean nothing."""
    own = (spellings for name, spellings in _spellings().items() if name)
    return frozenset().union(*own) - frozenset(_spellings()[""])


@cache
def _spelled_names(name: str, spell: Callable[[str], str]) -> frozenset[str]:
    """The names of a list we ship, with the others that it goes by."""
    own = [row["name"] for row in wordnet.read_list(name)]
    if name == "openimages":
        own += [row["later"] for row in wordnet.read_list(name) if row["later"]]
    more = [
        entry.partition(":")[2]
        for row in wordnet.read_list("meanings")
        for entry in _entries(row["names"])
        if entry.startswith(f"{name}:")
    ]
    return frozenset(map(spell, [*own, *more]))


def _wnid(where: str, name: str) -> str:
    """The wnid that a list gives a name, "" where it gives none or several."""
    wnids = _wnids(where)
    return wnids.get(name) or wnids.get(normalise_spelling(name), "")


@cache
def _wnids(where: str) -> Mapping[str, str]:
    """Name → wnid of a list that gives them; also squeezed, "" where two classes are the same."""
    rows = [row for row in wordnet.read_list(where) if row.get("wnid")]
    times = Counter(normalise_spelling(row["name"]) for row in rows)
    wnids = {normalise_spelling(row["name"]): row["wnid"] for row in rows}
    wnids |= {name: "" for name, count in times.items() if count > 1}
    return wnids | {row["name"]: row["wnid"] for row in rows}


def _entries(text: str) -> Iterable[str]:
    return filter(None, text.split("|"))


@lru_cache(maxsize=4)
def list_class_words(names: tuple[str, ...]) -> Mapping[str, Sequence[int]]:
    """Word in lower case → the classes that it finds, as indices of `names`, nearest kinds first.

    The words are the WordNet nouns of a class and of its hypernyms: "dog" finds every breed. Names
    of classes are left out, and words that find more than `MOST_FOUND`. Classes that no shipped
    list knows have none.
    """
    classes_of: dict[str, dict[int, int]] = defaultdict(dict)
    for index, name in enumerate(names):
        wnid = wnid_of(name, names)
        for above, steps in wordnet.steps(wnid).items() if wnid else ():
            entry = wordnet.synsets().get(above)
            for lemma in entry.lemmas if entry else ():
                word = wordnet.plain(lemma)
                classes_of[word][index] = min(steps, classes_of[word].get(index, steps))
    own = {wordnet.plain(name) for name in names}
    return {
        word: sorted(classes, key=lambda index: (classes[index], index))
        for word, classes in sorted(classes_of.items())
        if len(classes) <= MOST_FOUND and not (word in own and len(classes) == 1)
    }
