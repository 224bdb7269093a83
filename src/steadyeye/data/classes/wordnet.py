"""The WordNet 3.0 nouns that the known classes and all their ancestors need.

A wnid is `n` and the eight-digit offset of a noun synset in WordNet 3.0, as ILSVRC writes it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from steadyeye.core.storage.text_files import read_shipped

DATA = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True)
class Synset:
    """One meaning: `lemmas` → sense number of each, and the wnids directly above it."""

    lemmas: Mapping[str, int]
    hypernyms: tuple[str, ...]


@cache
def synsets() -> Mapping[str, Synset]:
    """Wnid → synset: the classes of imagenet1k, vid30 and ytbb and every ancestor of them."""
    entries = {}
    for row in read_list("wordnet"):
        lemmas = (entry.rpartition("#") for entry in row["lemmas"].split("|"))
        hypernyms = tuple(filter(None, row["hypernyms"].split("|")))
        senses = {lemma: int(number) for lemma, _, number in lemmas}
        entries[row["wnid"]] = Synset(senses, hypernyms)
    return MappingProxyType(entries)


def read_list(name: str) -> Sequence[Mapping[str, str]]:
    """The rows of one of the tables of classes that we ship."""
    return read_shipped(DATA / f"{name}.csv")


@cache
def steps(wnid: str) -> Mapping[str, int]:
    """Ancestor → the fewest hypernym steps up to it; the synset itself is 0 steps away.

    Instance hypernyms count as hypernyms. A wnid that is not shipped has only itself.
    """

    def above(wnid_: str) -> tuple[str, ...]:
        return synsets()[wnid_].hypernyms if wnid_ in synsets() else ()

    return MappingProxyType(count_steps(wnid, above))


def count_steps(name: str, above: Callable[[str], Iterable[str]]) -> dict[str, int]:
    """Ancestor → the fewest steps up to it; the class itself is 0 steps away.

    `above`: of a class those directly above it in a hierarchy.
    """
    distances = {name: 0}
    level = [name]
    while level:
        distance = distances[level[0]] + 1
        level = [up for lower in level for up in above(lower) if up not in distances]
        distances |= dict.fromkeys(level, distance)
    return distances


def find_nearest(
    name: str, place: Mapping[str, int], steps_of: Callable[[str], Mapping[str, int]]
) -> str | None:
    """The class of `place` that equals a class, or its nearest ancestor that is of no other class.

    `place`: classes by number, of which the lower wins a tie; `steps_of`: as `steps` of a class.
    """
    distance = steps_of(name)
    candidates = place.keys() & distance.keys()
    higher = {up for candidate in candidates for up in steps_of(candidate) if up != candidate}
    return min(candidates - higher, key=lambda near: (distance[near], place[near]), default=None)


def synset(name: str) -> str | None:
    """The wnid an English noun means among the shipped synsets, its lowest WordNet sense first.

    "traffic light", "traffic_light" and "Traffic Light" are the same. None: no synset has it.
    """
    return _meanings().get(plain(name))


def of_sense(text: str) -> str | None:
    """The wnid of a synset as NLTK and LVIS write it, `cab.n.03`. None: it is not shipped."""
    return _senses().get(text.casefold())


@cache
def _senses() -> Mapping[str, str]:
    return {
        f"{lemma.casefold()}.n.{number:02d}": wnid
        for wnid, entry in synsets().items()
        for lemma, number in entry.lemmas.items()
    }


def is_wnid(text: str) -> bool:
    """Whether `text` is written like a wnid, `n02084071`."""
    return re.fullmatch(r"n\d{8}", text) is not None


def plain(name: str) -> str:
    """A name as it is compared: lower case, underscores and runs of blanks as one blank.

    Letters with accents are the same whether they are one character or two (Unicode's form C): the
    names of folders on a Mac are of two.
    """
    return unicodedata.normalize("NFC", " ".join(name.replace("_", " ").split()).casefold())


@cache
def _meanings() -> Mapping[str, str]:
    senses = [
        (number, wnid, plain(lemma))
        for wnid, entry in synsets().items()
        for lemma, number in entry.lemmas.items()
    ]
    return {lemma: wnid for _, wnid, lemma in sorted(senses, reverse=True)}
