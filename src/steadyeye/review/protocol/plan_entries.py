"""What the entries of `review` in a set's set.json may hold: people write them by hand.

Here are also the entries of a plan that have several entries of their own: gold and quiz.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from steadyeye.core.errors import UsageError, shorten, unknown
from steadyeye.core.storage.text_files import LARGEST_WHOLE


@dataclass(frozen=True)
class Gold:
    """Questions with a known answer, mixed in unmarked.

    `every`: one in so many questions, on average. `least`: the share of the last `window` questions
    that a reviewer must have right, judged from `minimum` questions on; below it they are paused.
    `answers`: stage → item → its known answer.
    """

    every: int = 20
    least: float = 0.8
    minimum: int = 5
    window: int = 20
    answers: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Quiz:
    """The entry quiz: `size` gold questions of a stage, before the first vote in it; 0: none.

    `least`: the share that must be right. Stages without gold questions have none.
    """

    size: int = 0
    least: float = 0.8


MOST = 2**31 - 1  # of what the database counts

_FROM_0 = Annotated[int, Meta(ge=0, le=MOST)]
_FROM_1 = Annotated[int, Meta(ge=1, le=MOST)]
_SHARE = Annotated[float, Meta(ge=0, le=1)]
_MINUTES = Annotated[float, Meta(ge=0, le=LARGEST_WHOLE)]
_SEED = Annotated[int, Meta(ge=-LARGEST_WHOLE, le=LARGEST_WHOLE)]


class Entry(NamedTuple):
    """An entry with one value.

    `kind`: its type; `cure`: what to do if the value has another type.
    """

    kind: Any
    cure: str


Entries: TypeAlias = Mapping[str, "Entry | Entries"]

SWITCH = Entry(bool, "say true or false")
COUNT = Entry(_FROM_0, "give a whole number, 0 for none")
NUMBER = Entry(_FROM_1, "give a whole number from 1")
SHARE = Entry(_SHARE, "give a share in 0…1")
MINUTES = Entry(_MINUTES, "give a number of minutes from 0")
SEED = Entry(_SEED, f"give a whole number up to {LARGEST_WHOLE:,}")
VOTES = Entry(_FROM_0, "give a number of votes, 0 for all reviewers")
KEY_FRAMES = Entry(_FROM_0, "give a whole number, 1 for every frame, 0 for no key frames")
ANSWERS = Entry(
    dict[str, dict[str, Any]], 'give the known answer of each item, as in {"ITEM": {"KEY": …}}'
)


def check_entries(record: Any, entries: Entries, place: str) -> None:
    """Raises `UsageError` for the first entry that is not known or whose value has a wrong type.

    `place`: what `record` is called, such as `review`.
    """
    if not isinstance(record, dict):
        raise UsageError(
            f"set.json: {place} is {show_value(record)}; put its entries in braces, such as "
            f'{{"{next(iter(entries))}": …}}, or leave it out'
        )
    for key, value in record.items():
        entry = entries.get(key)
        if entry is None:
            raise UsageError(f"set.json: {unknown(f'key of {place}', key, entries)}")
        if isinstance(entry, Entry):
            _check_value(value, entry, f"{place}.{key}")
        else:
            check_entries(value, entry, f"{place}.{key}")


def _check_value(value: Any, entry: Entry, place: str) -> None:
    try:
        msgspec.convert(value, entry.kind)
    except msgspec.ValidationError:
        raise UsageError(f"set.json: {place} is {show_value(value)}; {entry.cure}") from None


def show_value(value: Any) -> str:
    """A value as the file has it, in one line."""
    return shorten(json.dumps(value, ensure_ascii=False), 100)
