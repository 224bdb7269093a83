"""The answers that name classes: of a suggested object, and of a set of a label study.

A suggested object: Lau et al., "Natural Adversarial Objects", 2021, Section 3.4: five people say
what the object in the box is, then whether the box fits and the object is blurry, occluded, or a
depiction.

A set is a frame and those around it. It may have several classes, for example if an object has two
names in the list or the picture shows two objects; a prediction of any of them is right. Of a
single image of a detector people name all classes, or that there is none.
"""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import stream
from steadyeye.data.annotations.coco_file import OUTSIDE
from steadyeye.data.classes.synonyms import fold_class, match_class, squeeze

FLAWS = ("blurry", "occluded", "depiction")
CRITERIA = ("well_sized", *FLAWS)

UNCLEAR = "cannot tell what it is"
DISAGREED = "no class has a majority"
RIGHT = "the detector was right"
"""Reasons why a suggested object is not accepted."""

MOST_LETTERS = 80

COMPLETE = "complete"
"""Value of `whole` for a single image: the labels are all its classes."""

WHOLE = ("yes", "no", "unsure", COMPLETE)
MOST_LABELS = 10  # of one set; who means more has not decided
MOST_OF_IMAGE = 50  # classes that an image shows

UNCLEAR_SET = "cannot tell"
CHANGES = "changes within the set"
UNSURE = "unsure whether all frames show it"
"""Reasons why a set has no label that all its frames show."""


def majority(votes: Sequence[bool]) -> bool:
    """Whether a strict majority is true; a tie is not."""
    return bool(2 * sum(votes) > len(votes))


def describe_object(row: Mapping[str, Any], seed: int) -> Mapping[str, Any]:
    """The question about the class of a suggested box.

    `choices`: the classes of the detector and of the data, in an order that does not reveal which
    is which. `predicted`: the detector's class, which no reviewer receives.
    """
    names: dict[str, str] = {}
    for name in (row["label"], row["annotated"]):
        if name and name != OUTSIDE:  # that is no name for what it is
            names.setdefault(fold_class(name), name)
    choices = list(names.values())
    order = stream(seed, "choices", row["id"]).permutation(len(choices))
    return {
        "image": row["image"],
        "box": [row[corner] for corner in ("x0", "y0", "x1", "y1")],
        "choices": [choices[i] for i in order],
        "predicted": None if isnan(row["score"]) else row["label"],
    }


def hide_source(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of an item that a reviewer receives: it does not reveal the detector's class."""
    return {key: value for key, value in payload.items() if key != "predicted"}


def check_object(answer: Mapping[str, Any], classes: Sequence[str]) -> Mapping[str, Any]:
    """`object`: the class of the object in words, None: cannot tell; and, unless None, `CRITERIA`.

    A name may be outside the class list; `listed` says whether it is not. One that means a class of
    it, in another spelling or word, is that class. The criteria are true or false.
    """
    if "object" not in answer:
        raise UsageError("say what the object is: a class, or null where you cannot tell")
    if answer["object"] is None:
        return {"object": None}
    name = match_class(clean_class(answer["object"]), classes)
    tidy = {key: answer.get(key) for key in CRITERIA}
    for key, value in tidy.items():
        if not isinstance(value, bool):
            raise UsageError(f"{key}={value!r}; answer true or false")
    return {"object": name, "listed": name in classes, **tidy}


def clean_class(text: Any, key: str = "object") -> str:
    """The name of a class as somebody typed it, without needless blanks.

    Raises `UsageError`, in which it is called `key`, for what is no name.
    """
    name = " ".join(unicodedata.normalize("NFC", text).split()) if isinstance(text, str) else ""
    hidden = [letter for letter in name if unicodedata.category(letter)[0] == "C"]
    if not 1 <= len(name) <= MOST_LETTERS or hidden:
        raise UsageError(f"{key}={text!r:.100}; name a class in 1 to {MOST_LETTERS} letters")
    return name


def find_object(answers: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], str]:
    """What a strict majority calls an object, and why it is not good to test with; empty: it is.

    The first: `object`, the class, and whether it is `listed`; empty without a majority. The
    criteria are decided by a strict majority of those who could tell what it is.
    """
    certain = [answer for answer in answers if answer["object"] is not None]
    counts = Counter(fold_class(answer["object"]) for answer in certain)
    name, votes = counts.most_common(1)[0] if counts else ("", 0)
    if 2 * votes <= len(answers):
        unclear = majority([answer["object"] is None for answer in answers])
        return {}, UNCLEAR if unclear else DISAGREED
    first = next(answer for answer in certain if fold_class(answer["object"]) == name)
    named_class = {"object": first["object"], "listed": first["listed"]}
    if not majority([answer["well_sized"] for answer in certain]):
        return named_class, "box not well sized"
    return named_class, ", ".join(f for f in FLAWS if majority([answer[f] for answer in certain]))


def fold_object(answer: Mapping[str, Any]) -> str:
    """The answer in a form that is equal for answers with the same meaning."""
    name = answer["object"]
    return word_object(answer if name is None else {**answer, "object": fold_class(name)})


def word_object(answer: Mapping[str, Any]) -> str:
    """An answer in words."""
    if answer["object"] is None:
        return "cannot tell"
    sized = "well sized" if answer["well_sized"] else "not well sized"
    return ", ".join([answer["object"], sized, *(flaw for flaw in FLAWS if answer[flaw])])


def check_set_labels(answer: Mapping[str, Any], classes: Sequence[str]) -> Mapping[str, Any]:
    """`labels`: the classes of a set, none: cannot tell; and `whole` yes, no or unsure, with some.

    Where `whole` is `COMPLETE`, the labels are all that an image shows, none: no object. A name may
    be outside the list of classes. One that means a class of it, in another spelling or word, is
    that class. Raises `UsageError` for anything else.
    """
    labels, whole = answer.get("labels"), answer.get("whole")
    most = MOST_OF_IMAGE if whole == COMPLETE else MOST_LABELS
    if not isinstance(labels, list) or len(labels) > most:
        raise UsageError(f"labels must be a list of at most {most} classes")
    names = [match_class(clean_class(label, "labels"), classes) for label in labels]
    barred = [name for name in names if "|" in name and name not in classes]
    if barred:
        raise UsageError(
            f"labels={barred[0]!r}; label files separate classes by |, so write another word"
        )
    distinct = list({squeeze(name): name for name in reversed(names)}.values())
    if not distinct:
        return {"labels": [], "whole": COMPLETE} if whole == COMPLETE else {"labels": []}
    if whole not in WHOLE:
        raise UsageError(f"whole={whole!r}; choose from {', '.join(WHOLE)}")
    return {"labels": sorted(distinct), "whole": whole}


def find_set_labels(answers: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], str]:
    """The majority's answer about a set, and why it is no label of the set; empty if it is one.

    The first: `labels` and `whole`, as `check_set_labels` returns them.
    """
    clear = [answer for answer in answers if _is_clear(answer)]
    if majority([_is_clear(answer) and not answer["labels"] for answer in answers]):
        return {"labels": [], "whole": COMPLETE}, ""
    names = {squeeze(name): name for answer in reversed(clear) for name in answer["labels"]}
    counts = Counter(squeeze(name) for answer in clear for name in answer["labels"])
    labels = sorted(names[key] for key, votes in counts.items() if 2 * votes > len(answers))
    if not labels:
        unclear = majority([not _is_clear(answer) for answer in answers])
        return {"labels": []}, UNCLEAR_SET if unclear else DISAGREED
    words = (word for word in WHOLE if majority([answer["whole"] == word for answer in clear]))
    whole = next(words, "unsure")
    return {"labels": labels, "whole": whole}, {"no": CHANGES, "unsure": UNSURE}.get(whole, "")


def _is_clear(answer: Mapping[str, Any]) -> bool:
    """Whether the answer names classes, or says that there is no object."""
    return bool(answer["labels"]) or answer.get("whole") == COMPLETE


def word_set_labels(answer: Mapping[str, Any]) -> str:
    """An answer in words."""
    if not _is_clear(answer):
        return "cannot tell"
    if answer["whole"] == COMPLETE:
        return " and ".join(answer["labels"]) or "no object"
    more = {"no": ", not on all frames", "unsure": ", unsure whether on all frames"}
    return " or ".join(answer["labels"]) + more.get(answer["whole"], "")


def is_right_label(known: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Whether an answer is right where the classes of a set are known.

    Each class of it must be among them; which of several a person names does not matter, unless
    they are all that an image shows.
    """
    allowed = {squeeze(name) for name in known["labels"]}
    own = {squeeze(name) for name in answer["labels"]}
    if known.get("whole") == COMPLETE:
        return allowed == own and answer.get("whole") == COMPLETE
    if not allowed or not own:
        return allowed == own
    return own <= allowed and known["whole"] == answer["whole"]
