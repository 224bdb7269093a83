"""Answers about a set of a label study: its classes, and whether all its frames show them.

A set is a frame and those around it. A set may have several classes, for example if an object has
two names in the list or the picture shows two objects; a prediction of any of them is right. For a
single image of a detector people name all classes, or that there is none.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.data.classes.synonyms import match_class, squeeze
from steadyeye.review.protocol.objects import clean_class, majority

COMPLETE = "complete"
"""Value of `whole` for a single image: the labels are all its classes."""

WHOLE = ("yes", "no", "unsure", COMPLETE)
MOST_LABELS = 10  # of one set; who means more has not decided
MOST_OF_IMAGE = 50  # classes that an image shows

UNCLEAR = "cannot tell"
DISAGREED = "no class has a majority"
CHANGES = "changes within the set"
UNSURE = "unsure whether all frames show it"
"""Reasons why a set has no label that all its frames show."""


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
        return {"labels": []}, UNCLEAR if unclear else DISAGREED
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
