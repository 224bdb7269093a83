"""The reviews of frames and of pairs of frames, as in the release of YTBB-Robust.

::

    {"labels": ["similar", "dissimilar", …],
     "annotations": [{"key": "<video>_<ms>/frame-<n>.jpg,<video>_<ms>/frame-<m>.jpg",
                      "labels": [0]}]}

`labels` of an annotation are numbers in the file's own list, or names from it. Keys may have
folders in front. Where a key occurs several times the last holds, as in the released scorer.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError, shorten
from steadyeye.core.format import number_of
from steadyeye.core.storage.text_files import read_json

SIMILAR, BAD_ANCHOR = "similar", "bad-anchor"
FLAWS = (
    *("dissimilar", "problematic", "incorrect", "dont know", "deformation"),
    *("background-change", "occlusion-increased", "blur-increase", BAD_ANCHOR),
)
"""The labels with which a pair counts as not similar, independent of others."""

SET, FILE = re.compile(r".+_\d+"), re.compile(r"[^,]+-\d+\.\w+")
LONGEST = 255
"""Bytes that the name of a file can have."""
EXPECTED = '{"labels": [names], "annotations": [{"key": frame, "labels": [numbers]}]}'


@dataclass(frozen=True)
class PairReviews:
    """The reviewed pairs. Frames are `<set>/<file>`.

    `accepted`: (anchor, neighbour) of each pair that is similar and has no flaw. `anchors`: those
    with a reviewed pair. `bad_anchors`: those that a pair's review drops. `pairs`: number of pairs.
    """

    accepted: frozenset[tuple[str, str]]
    anchors: frozenset[str]
    bad_anchors: frozenset[str]
    pairs: int

    def accepts(self, name: str, anchor: str, neighbour: str) -> bool:
        """Whether the pair of two files of a set is accepted."""
        return (f"{name}/{anchor}", f"{name}/{neighbour}") in self.accepted


def read_pairs(path: Path) -> PairReviews | None:
    """The reviews of pairs in a file; None where there is no such file.

    Raises `UsageError` for one that is not in the released layout, or that lacks one of the labels
    of the rules: it would have been spelled in another way, and every pair would pass it.
    """
    if not path.is_file():
        return None
    reviews = {_pair(key, path): labels for key, labels in read_reviews(path, (SIMILAR, *FLAWS))}
    rows = reviews.items()
    good = (pair for pair, labels in rows if SIMILAR in labels and not labels & {*FLAWS})
    anchors = (anchor for anchor, _ in reviews)
    bad = (anchor for (anchor, _), labels in rows if BAD_ANCHOR in labels)
    return PairReviews(frozenset(good), frozenset(anchors), frozenset(bad), len(reviews))


def read_reviews(path: Path, needed: Sequence[str]) -> list[tuple[str, frozenset[str]]]:
    """Key and label names of each annotation of a file, in order.

    `needed`: names that the file's list must have. Raises `UsageError` for a missing file or
    another layout.
    """
    names, annotations = _content(path)
    absent = [name for name in needed if name not in names]
    if absent:
        raise UsageError(
            f"'{path}' has no label '{absent[0]}' among {', '.join(names)}; take the released file"
        )
    reviews = []
    for number, row in enumerate(annotations):
        where = f"'{path}', annotation {number}"
        if not isinstance(row, dict) or not isinstance(row.get("labels"), list):
            raise UsageError(f"{where} is {_short(row)}; expected {EXPECTED}")
        key = row.get("key")
        if isinstance(key, list) and all(isinstance(part, str) for part in key):
            key = ",".join(key)
        if not isinstance(key, str):
            raise UsageError(f"{where} has the key {_short(key)}; expected the path of a frame")
        reviews.append((key, frozenset(_label(label, names, where) for label in row["labels"])))
    return reviews


def frame_of(key: str, path: Path) -> tuple[str, str]:
    """The set and the file of a frame's key, whatever folders are in front."""
    *_, name, file = ["", *key.rsplit("/", 2)]
    longest = max(len(part.encode()) for part in (name, file))
    if not SET.fullmatch(name) or not FILE.fullmatch(file) or longest > LONGEST:
        raise UsageError(f"'{path}' has the key {_short(key)}; expected <video>_<ms>/frame-<n>.jpg")
    return name, file


def _pair(key: str, path: Path) -> tuple[str, str]:
    ends = key.split(",")
    if len(ends) != 2:
        raise UsageError(
            f"'{path}' has the key {_short(key)}; expected an anchor and a neighbour, "
            "<video>_<ms>/frame-<n>.jpg,<video>_<ms>/frame-<m>.jpg"
        )
    anchor, neighbour = ("/".join(frame_of(end, path)) for end in ends)
    return anchor, neighbour


def _content(path: Path) -> tuple[list[str], list[Any]]:
    """The names of the labels, in their order, and the annotations."""
    if not path.is_file():
        raise UsageError(f"no '{path}'; root must hold the released metadata folder")
    content = read_json(path, "metadata")
    names = content.get("labels") if isinstance(content, dict) else None
    if isinstance(names, dict) and sorted(names) == sorted(map(str, range(len(names)))):
        names = [names[str(i)] for i in range(len(names))]
    annotations = content.get("annotations") if isinstance(content, dict) else None
    if (
        not isinstance(names, list)
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) < len(names)
        or not isinstance(annotations, list)
    ):
        raise UsageError(f"'{path}' is not in the released layout; expected {EXPECTED}")
    return names, annotations


def _label(label: Any, names: Sequence[str], where: str) -> str:
    if isinstance(label, str) and label in names:
        return label
    if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < len(names):
        return names[label]
    raise UsageError(
        f"{where} has the label {_short(label)}; the file lists {number_of(len(names), 'label')}"
    )


def _short(value: object) -> str:
    return shorten(repr(value), 60)
