"""Whether words that people type mean one class: capitals, hyphens, plurals, synonyms."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from steadyeye.core.types import Classes
from steadyeye.data.classes import meanings, wordnet

# between digits it separates numbers: "type 1-1" is not "type 11"
_SEPARATOR = re.compile(r"(?<!\d)[\s_\-‐‑–]+|[\s_\-‐‑–]+(?!\d)")
_IRREGULAR = {
    **{"men": "man", "women": "woman", "children": "child", "people": "person"},
    **{"mice": "mouse", "geese": "goose", "feet": "foot", "teeth": "tooth", "oxen": "ox"},
    **{"wolves": "wolf", "leaves": "leaf", "loaves": "loaf", "shelves": "shelf", "calves": "calf"},
    **{"knives": "knife", "scarves": "scarf", "halves": "half", "hooves": "hoof"},
}
_PLURAL = re.compile(r"(?<![sui])s$")
_ENDING = re.compile(r"ie$|oe$|(?<=ss|zz|ch|sh)e$|(?<=x)e$")
_LAST = re.compile(r"[^\W_]+$")


@lru_cache(maxsize=4096)
def fold_class(name: str) -> str:
    """A form that is equal for all names of one class.

    Equal are spellings that differ in capitals, hyphens, blanks and underscores, the singular and
    the plural, and names of one class in the shipped list of aliases or in WordNet. Only the first
    WordNet meaning of a word counts.
    """
    text = " ".join(name.split())
    forms = [text, *_list_singulars(text)]
    more = [] if text.endswith("s") else [f"{text}s"]  # of which there is no singular: scissors
    for form in (*forms, *more):
        meaning = _find_meaning(form)
        if meaning:
            return meaning
    # without a dictionary "caches" may be of "cache" or of "cach"
    singular = _ENDING.sub(lambda end: {"ie": "y", "oe": "o"}.get(end[0], ""), forms[-1])
    return squeeze(singular) or text


def match_class(name: str, classes: Sequence[str]) -> str:
    """The one of a list of classes that a name means; the name where it is none, or several."""
    if name in classes:
        return name
    keys = _fold(name), squeeze(name), fold_class(name)
    for index, key in zip(_index_classes(tuple(classes)), keys, strict=True):
        if index.get(key):
            return index[key]
    return name


def squeeze(name: str) -> str:
    """A name without capitals and separators, which people write or not."""
    return _SEPARATOR.sub("", _fold(name))


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name.casefold())


@lru_cache(maxsize=8)
def _index_classes(classes: tuple[str, ...]) -> tuple[Mapping[str, str], ...]:
    """Key → class, for each of the ways to compare; "" where several classes have the key."""
    # as a whole the list may say which of its meanings a word has: COCO's mouse is no animal
    whole = meanings.of(Classes(classes))
    indices: list[dict[str, str]] = [{}, {}, {}]
    for name, meaning in zip(classes, whole, strict=True):
        keys = _fold(name), squeeze(name), meaning or fold_class(name)
        for index, key in zip(indices, keys, strict=True):
            index[key] = "" if key in index else name
    return tuple(indices)


def _find_meaning(name: str) -> str:
    """The shipped name of a class, or its WordNet id; empty where neither is known."""
    (meaning,) = meanings.of(Classes((name,)))
    if meaning:
        return meaning
    for text in (name, name.replace("-", " ")):
        wnid = wordnet.synset(text)
        if wnid and _is_first_sense(text, wnid):
            own = (meaning.name for meaning in meanings.meanings().values() if meaning.wnid == wnid)
            return next(own, wnid)
    return ""


def _is_first_sense(name: str, wnid: str) -> bool:
    lemmas = wordnet.synsets()[wnid].lemmas
    return wordnet.plain(name) in (wordnet.plain(lemma) for lemma, n in lemmas.items() if n == 1)


def _list_singulars(name: str) -> Iterator[str]:
    """The possible singulars of a name, the likeliest last."""
    last = _LAST.search(name.casefold())
    if not last:
        return
    head, word = name.casefold()[: last.start()], last[0]
    if word in _IRREGULAR:
        yield head + _IRREGULAR[word]
    elif word.endswith("ies") and len(word) > 4:
        yield f"{head}{word[:-1]}"  # cookies
        yield f"{head}{word[:-3]}y"
    elif re.search(r"(s|x|z|ch|sh)es$", word):
        yield f"{head}{word[:-1]}"  # horses
        if re.search(r"(ss|x|zz|ch|sh)es$", word):
            yield f"{head}{word[:-2]}"
    elif word.endswith("oes"):
        yield f"{head}{word[:-1]}"  # canoes
        yield f"{head}{word[:-2]}"
    elif _PLURAL.search(word) and len(word) > 3:
        yield f"{head}{word[:-1]}"
