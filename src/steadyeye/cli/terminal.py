"""What is printed: sentences that wrap at words, and tables that fit the terminal.

Where the output is no terminal (a pipe, a file), nothing is wrapped: a sentence is one line. What
other packages would print is kept from stderr, where only our lines and errors belong.
"""

import codecs
import io
import logging
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from textwrap import TextWrapper
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len
from rich.console import Console

if TYPE_CHECKING:
    from steadyeye.core.types import Evaluated, Result

open_console = partial(Console, highlight=False, soft_wrap=True, emoji=False)
"""A console that prints lines as they are; `stderr`: whether to there."""

console = open_console()
"""Prints what the command was asked for, to stdout."""

progress_console = open_console(stderr=True)
"""Prints what happens meanwhile, to stderr."""

NARROW = "\u202f"
"""The space between a number and its unit, at which no line is broken."""

Row = Sequence[str]


CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def say(text: str, *, style: str = "", to: Console = console, hang: int = 2) -> None:
    """Prints sentences, a line each; on a terminal they wrap at words.

    `hang`: by how many columns the lines after the first are indented more.
    """
    for line in text.splitlines():
        for part in wrap_sentence(line, width(to), hang):
            show(part, style=style, to=to)


def show(line: str, *, style: str = "", to: Console = console) -> None:
    """Prints a line as it is, so that a path or a command in it can be copied."""
    to.print(name_controls(line.replace(NARROW, " ")), markup=False, style=style or None)


def name_controls(line: str) -> str:
    r"""The line with its control characters written out, `\x1b` for an escape.

    Names of files and classes are others' words; those characters would move the cursor, colour
    what follows or turn its direction.
    """
    return CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), line)


SPELLINGS = {
    "–": "-",
    "−": "-",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
    "±": "+/-",
    "✓": "+",
    "✗": "x",
    "→": "->",
}
"""Our signs in ASCII, for an output without them; a number that loses its sign is wrong."""


def spell_signs() -> None:
    """Lets stdout print every character in any encoding, as in a terminal of ISO 8859-1.

    Characters that it does not have are printed as in `SPELLINGS`, others by their number.
    """
    codecs.register_error("spelled", _spell)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="spelled")


def _spell(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    sign = error.object[error.start]
    spelling = SPELLINGS.get(sign) or sign.encode("ascii", "backslashreplace").decode()
    return spelling, error.start + 1


def show_table(columns: Row, rows: Sequence[Row], numbers: int, *, heading: str = "") -> None:
    """Prints a table under a heading; of its columns the first `numbers` are of numbers."""
    if heading:
        show("")
        show(heading, style="bold")
    # a line break in the name of a class is no line of the table
    visible = [[name_controls(cell) for cell in row] for row in rows]
    title, *lines = table_lines(columns, visible, numbers, width(console))
    for line in title.splitlines():
        show(line, style="dim")
    for line in "\n".join(lines).split("\n"):
        show(line)


def table_lines(columns: Row, rows: Sequence[Row], numbers: int, limit: int | None) -> Row:
    """The title and the rows of a table, each one line or, where that does not fit, several.

    `numbers`: how many columns, the first, are aligned to the right. `limit`: the width of
    the terminal, None where anything fits. Where a row does not fit, its words stand below its
    numbers: no word is broken.
    """
    every = [columns, *rows]
    short = [row for row in every if limit is None or cell_len("  ".join(row)) <= limit]
    widths = [*_widths(every)[:numbers], *_widths(short or every)[numbers:]]
    if limit is not None and sum(widths) + 2 * (len(widths) - 1) > limit:
        short = []
    return [
        "  ".join(_cells(row, widths, numbers)).rstrip()
        if row in short
        else "\n".join(_stack_row(row, widths, numbers, limit or 0))
        for row in every
    ]


def _widths(rows: Sequence[Row]) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


def wrap_sentence(line: str, limit: int | None, hang: int = 2) -> list[str]:
    """A sentence in lines of at most `limit` columns, all but the first indented more by `hang`.

    Broken between words only, never within a name or between a number and its unit; None: anything
    fits.
    """
    if limit is None or cell_len(line) <= limit:
        return [line]
    first = len(line) - len(line.lstrip())
    # a hang of more than half the line would leave no room for a word of some length
    later = first + (hang if first + hang <= limit // 2 else 2)
    return TextWrapper(
        limit,
        initial_indent=" " * first,
        subsequent_indent=" " * later,
        break_long_words=False,
        break_on_hyphens=False,
    ).wrap(line.lstrip())


def width(to: Console) -> int | None:
    """The columns of the terminal that a console prints to; None where that is none."""
    return to.width if to.file.isatty() else None


def _cells(row: Row, widths: Sequence[int], numbers: int) -> Iterator[str]:
    for i, (text, wide) in enumerate(zip(row, widths, strict=True)):
        space = " " * (wide - cell_len(text))
        yield space + text if i < numbers else text + space


def _stack_row(row: Row, widths: Sequence[int], numbers: int, columns: int) -> Iterable[str]:
    """A row's numbers, and below them its words in as few lines as they fit in."""
    if numbers:
        yield "  ".join(_cells(row[:numbers], widths[:numbers], numbers)).rstrip()
    indent = "  " if numbers else ""
    line = ""
    for text in filter(None, row[numbers:]):
        longer = f"{line}  {text}" if line else indent + text
        if line and cell_len(longer) > columns:
            yield line
            longer = indent + text
        line = longer
    if line:
        yield line


ENVIRONMENT = {
    "PYTHONWARNINGS": "ignore",  # of processes that are started; this one has its own rule below
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "HF_HUB_VERBOSITY": "error",  # without network it prints a line for each of its tries
}
"""What is read when a package is imported; what a user has set stays."""

INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")
PACKAGES = (
    *(Path(sysconfig.get_path(name)).resolve() for name in INSTALLED),
    Path(__file__).resolve().parent.parent,
)


def quiet_packages() -> None:
    """Drops the warnings of packages; those of the user's own modules are printed, a line each.

    Errors are still printed, and with `python -W …` or `PYTHONWARNINGS` everything is as they say.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if not sys.warnoptions:
        warnings.showwarning = _show_warning
    # what is logged without anybody listening: lines of torch's exporter, of timm …
    if logging.lastResort is not None:
        logging.lastResort.setLevel(logging.ERROR)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Prints a warning of the user's own modules in one line; drops one of a package."""
    path = Path(filename)
    if path.is_file() and not any(map(path.resolve().is_relative_to, PACKAGES)):
        text = " ".join(str(message).split())
        say(f"{filename}:{lineno}: {category.__name__}: {text}", to=progress_console)


def show_numbers(evaluated: "Evaluated") -> None:
    """Prints the numbers of one model on one of the data, a line each."""
    from steadyeye.report.render.document import numbers

    rows = [(*number_cells(result), result.name) for result in numbers(evaluated)]
    if rows:
        heading = f"{evaluated.predictions.model} on {evaluated.predictions.data}"
        show_table((*NUMBERS, "metric"), rows, len(NUMBERS), heading=heading)


NUMBERS = ("value", "95 % interval", "n", "classes")


def number_cells(result: "Result") -> tuple[str, str, str, str]:
    """What stands under `NUMBERS`, as text."""
    from steadyeye.core.format import format_metric, format_metric_ends
    from steadyeye.core.result_lookup import among

    value = format_metric(result.name, result.value, result.unit)
    ends = format_metric_ends(result.name, result.low, result.high, result.unit)
    return value, ends, f"{result.n:,}", among(result)
