"""Errors a user can cause, each told in one line: what, which value, what to do."""

import errno
import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

MOST = 20  # names an error lists
MOST_FAULTS = 1_000  # of a file, after which the rest is not read
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
LONGEST = 1_500  # letters of an error; what a file says may have any length

Item = TypeVar("Item")
Value = TypeVar("Value")


class UsageError(Exception):
    """A mistake in what the user gave us. Its text is the one line the command line prints.

    Several mistakes are several arguments, a line each.

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

        What a file says may hold anything: control characters and halves of surrogate pairs are
        escaped, so that they neither end the line nor reach the terminal.
        """
        return "\n".join(_in_one_line(str(argument)) for argument in self.args)


def _in_one_line(text: str) -> str:
    text = UNPRINTABLE.sub(lambda character: ascii(character[0])[1:-1], text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


class SampleError(UsageError):
    """One sample that cannot be evaluated; `--on-error skip` records it and goes on."""


def describe_failure(error: OSError) -> str:
    """What the operating system refused, of which file, and what to do about it."""
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
    """What `read` gives for each item.

    Raises `UsageError` with the first fault and how many items have one, once all were read or
    `MOST_FAULTS` were found: each looks for a name that is near, which takes its time.
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
    """One error of the texts of several, each line of them once."""
    lines = (line for text in texts for line in text.split("\n"))
    return UsageError(*dict.fromkeys(lines))


def list_texts(texts: Sequence[str], most: int = 5) -> str:
    """The first `most` of the texts with commas, and how many more there are, as one text."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return f"{', '.join(texts[:most])}{more}"


def shorten(text: str, most: int = 200) -> str:
    """A text as an error shows it: in one line, whatever parts its lines, and cut after `most`."""
    line = "".join(letter if letter.isprintable() else " " for letter in text[: most + 1])
    return line if len(text) <= most else f"{line[:most]}…"


def one_line(error: BaseException, most: int = 240) -> str:
    """What an error of a library says, in one line; its kind where it says nothing or one word."""
    text = shorten(" ".join(str(error).split()), most)
    return text if " " in text else f"{type(error).__name__} {text}".strip()


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for `name` not being among `known`, with the nearest known name if one is near."""
    choices, name = sorted(known), shorten(name)
    near = get_close_matches(name, choices, n=1, cutoff=0.5)
    names = ", ".join(choices[:MOST]) + (", …" if len(choices) > MOST else "")
    hint = f"did you mean '{near[0]}'?" if near else f"known: {names or 'none'}"
    return UsageError(f"no {kind} named '{name}'; {hint}")
