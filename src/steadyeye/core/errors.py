"""Errors that a user can cause, each in one line: what, which value, what to do."""

import errno
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

MOST = 20  # names an error lists
MOST_FAULTS = 1_000  # of a file, after which the rest is not read
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
LONGEST = 1_500  # letters of an error; what a file says may have any length
LONGEST_NAME = 100  # letters of a name that may be a misspelt known one

Item = TypeVar("Item")
Value = TypeVar("Value")


class UsageError(Exception):
    """An error in the user's input. Its text is the line that the command line prints.

    Several errors are several arguments, one line each.

    Example, of a mistyped kind:

        >>> import steadyeye as se
        >>> try:
        ...     se.ls("metric")
        ... except se.UsageError as error:
        ...     print(error)
        no kind named 'metric'; did you mean 'metrics'?
    """

    def __str__(self) -> str:
        """Each argument on one line, its middle left out if it is long.

        Texts of files may contain anything: control characters and halves of surrogate pairs are
        escaped, so that they neither end the line nor reach the terminal.
        """
        return "\n".join(_in_one_line(str(argument)) for argument in self.args)


def _in_one_line(text: str) -> str:
    text = UNPRINTABLE.sub(lambda character: ascii(character[0])[1:-1], text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


class SampleError(UsageError):
    """One sample that cannot be evaluated; `--on-error skip` records it and goes on."""


def describe_failure(error: OSError) -> str:
    """An error of the operating system in words: its file, and what to do."""
    about = f" '{error.filename}'" if error.filename else ""
    cure = {
        errno.ENOSPC: "free some space, or choose a place on another disk with --out",
        errno.EDQUOT: "free some space, or choose a place on another disk with --out",
        errno.EACCES: "choose a place that you may read and write",
        errno.EPERM: "choose a place that you may read and write",
        errno.EROFS: "choose a place that can be written to",
    }.get(error.errno or 0, "check the path")
    return f"cannot use{about}: {error.strerror or error}; {cure}"


def every(items: Iterable[Item], read: Callable[[Item], Value]) -> list[Value]:
    """The result of `read` for each item.

    Raises `UsageError` with the first fault and the number of faulty items, after all items or
    `MOST_FAULTS` faults, because each fault searches a near name, which takes time.
    """
    results, faults = [], []
    for item in items:
        try:
            results.append(read(item))
        except UsageError as error:
            faults.append(str(error))
            if len(faults) > MOST_FAULTS:
                break
    if faults:
        is_whole = len(faults) <= MOST_FAULTS
        count = f"{len(faults):,}" if is_whole else f"over {MOST_FAULTS:,}"
        raise UsageError(f"{faults[0]} (faults of this file or folder: {count})")
    return results


def join_errors(texts: Iterable[str]) -> UsageError:
    """One error with the texts of several, each line once."""
    lines = (line for text in texts for line in text.split("\n"))
    return UsageError(*dict.fromkeys(lines))


def list_texts(texts: Sequence[str], most: int = 5) -> str:
    """The first `most` texts with commas, and the number of the others, as one text."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return f"{', '.join(texts[:most])}{more}"


def shorten(text: str, most: int = 200) -> str:
    """A text for an error: in one line, cut after `most`."""
    line = "".join(letter if letter.isprintable() else " " for letter in text[: most + 1])
    return line if len(text) <= most else f"{line[:most]}…"


def find_repeated(values: Iterable[Value]) -> list[Value]:
    """The values that occur more than once, in the order of their first occurrence."""
    return [value for value, times in Counter(values).items() if times > 1]


def one_line(error: BaseException, most: int = 240) -> str:
    """The message of a library's error in one line; its type if it has no message or one word."""
    text = shorten(" ".join(str(error).split()), most)
    return text if " " in text else f"{type(error).__name__} {text}".strip()


def suggest(name: str, known: Iterable[str]) -> str:
    """A hint with the nearest known name; empty if none is near."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"; did you mean '{near[0]}'?" if near else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error that `name` is not among `known`, with the nearest known name if one is near."""
    choices, name = sorted(known), shorten(name)
    near = get_close_matches(name, choices, n=1, cutoff=0.5)
    names = ", ".join(choices[:MOST]) + (", …" if len(choices) > MOST else "")
    hint = f"did you mean '{near[0]}'?" if near else f"known: {names or 'none'}"
    return UsageError(f"no {kind} named '{name}'; {hint}")


def fold_name(name: str) -> str:
    """A name without its case, blanks and hyphens, by which names of columns and keys agree."""
    return re.sub(r"[\s_-]+", "_", name.strip()).casefold()


def refuse_misspelt(names: Collection[str], known: Collection[str], where: str) -> None:
    """Raises `UsageError` for a name that is nearly a known one which is not among the names.

    `where`: the start of the error, such as "the boxes 'a.csv' has a column".
    """
    lacking = {fold_name(name): name for name in known if name not in names}
    for name in names:
        if name in known or len(name) > LONGEST_NAME:
            continue
        if near := get_close_matches(fold_name(name), lacking, n=1, cutoff=0.8):
            raise UsageError(
                f"{where} '{shorten(name)}'; did you mean '{lacking[near[0]]}'? rename it, or "
                "take it out"
            )
