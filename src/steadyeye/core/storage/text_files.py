"""Reads text, tables, settings and XML written by people, spreadsheets and tools.

Every error is one line with the file, the place in it, and what to do.
"""

import configparser
import csv
import io
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

from steadyeye.core.errors import UsageError, find_repeated, fold_name, refuse_misspelt, shorten
from steadyeye.core.storage.files import Place

BYTE_ORDER_MARK = "\ufeff"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""The first bytes of UTF-16 texts of spreadsheets and editors."""

SEPARATORS = (",", ";", "\t")
"""The separators of cells: spreadsheets use a semicolon where a comma is the decimal mark."""
SEPARATOR_LINE = re.compile(r'\s*"?sep=([^"\r\n])"?[,;\t ]*(?=\r|\n|$)', re.IGNORECASE)
"""The first line by which Excel reads the separator."""

MOST_COLUMNS = 20_000
"""More than a spreadsheet has; each is compared with the known ones."""

LARGEST_WHOLE = 2**53
"""Whole numbers up to here are exact as float64, and fit into every column."""


def read_text(path: Place, title: str = "file") -> str:
    """The text of a UTF-8 file, or of a UTF-16 file with its mark; marks at the start are left out.

    `title`: names it in errors, "class list". Raises `UsageError` for a missing file, and for one
    that is no text, with the line.
    """
    return decode_text(_read_bytes(path, title), f"the {title} '{path}'")


def _read_bytes(path: Place, title: str) -> bytes:
    try:
        if isinstance(path, Path) and path.is_char_device():
            raise UsageError(f"the {title} '{path}' is a device; give a file")
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise UsageError(f"no {title} at '{path}'; check the path") from None
    except OSError as error:
        raise UsageError(f"cannot read the {title} '{path}': {error.strerror}") from error


def decode_text(content: bytes, title: str) -> str:
    """The text in bytes, as `read_text` reads it; `title`: "the class list 'a.txt'"."""
    coding = "utf-16" if content.startswith(UTF_16) else "utf-8"
    if coding == "utf-8" and b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        cure = "; save it as UTF-8" if _looks_like_utf_16(content) else ""
        raise UsageError(f"cannot read {title}: it is no text (line {line} has a zero byte){cure}")
    try:
        text = content.decode(coding)
    except UnicodeDecodeError as error:
        if coding == "utf-16":
            raise UsageError(f"cannot read {title}: it is no text; save it as UTF-8") from None
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"cannot read {title}: line {line} has the byte 0x{content[error.start]:02x}, which is "
            "not UTF-8; save it as UTF-8"
        ) from None
    if "\0" in text:
        raise UsageError(f"cannot read {title}: it is no text (it has a zero byte)")
    # concatenated files have marks inside as well, which are invisible
    return text.replace(BYTE_ORDER_MARK, "")


def _looks_like_utf_16(content: bytes) -> bool:
    """Whether most of every second byte at the start is zero, as of Latin letters in UTF-16."""
    start = content[:200]
    halves = start[0::2], start[1::2]
    return max(half.count(0) for half in halves) > len(start) / 4


class Row(NamedTuple):
    """A row of a table: its cells by column, without blanks around them, and its place."""

    path: Place
    line: int
    cells: Mapping[str, str]

    @property
    def place(self) -> str:
        """Its place for errors: "'boxes.csv' line 12"."""
        return f"'{self.path}' line {self.line}"

    def get(self, column: str, default: str = "") -> str:
        """The text of a cell; `default` without such a column."""
        return self.cells.get(column, default)

    def number(self, column: str) -> float:
        """The finite number in a cell. Raises `UsageError` for any other text."""
        return read_number(self.cells.get(column, ""), f"{self.place}, column {column}")

    def whole(self, column: str) -> int:
        """The whole number in a cell. Raises `UsageError` for any other text."""
        return read_whole(self.cells.get(column, ""), f"{self.place}, column {column}")


def read_table(
    path: Place, title: str, needed: Sequence[str] = (), optional: Sequence[str] = ()
) -> list[Row]:
    """The rows of a CSV file, whose separator is that of its first line: comma, semicolon or tab.

    Rows have the columns that are read; short ones are filled, empty ones left out. `needed`: the
    required columns; `optional`: the others that are read. Names are compared without case, blanks,
    hyphens and underscores. Raises `UsageError` for a file that is no table, a column that is
    missing, repeated or misspelt, and a row with more cells than the first line.
    """
    rows = read_rows(path, title)
    _, written = next(rows, (1, []))
    header = _name_columns(written, (*needed, *optional), f"the {title} '{path}'")
    twice = find_repeated(filter(None, header))
    if twice:
        raise UsageError(
            f"the {title} '{path}' has the column '{shorten(twice[0])}' twice; rename one"
        )
    lacking = [name for name in needed if name not in header]
    if lacking:
        raise UsageError(
            f"the {title} '{path}' has no column {', '.join(lacking)}; its columns are "
            f"{shorten(', '.join(header)) or 'none'}; give {', '.join(needed)} in the first line"
        )
    read = [(header.index(name), name) for name in (*needed, *optional) if name in header]
    table = []
    for line, cells in rows:
        if any(cells[len(header) :]):
            raise UsageError(
                f"the {title} '{path}' line {line} has more cells than the header; "
                "quote names that hold commas"
            )
        # columns that are not read are not kept, however wide the table is
        known = {name: cells[i] if i < len(cells) else "" for i, name in read}
        table.append(Row(path, line, known))
    return table


def _name_columns(header: Sequence[str], known: Sequence[str], title: str) -> list[str]:
    """The known names of the columns. Raises `UsageError` for a misspelt one."""
    if len(header) > MOST_COLUMNS:
        raise UsageError(
            f"{title} has {len(header):,} columns, over {MOST_COLUMNS:,}; take out those that it "
            "does not need"
        )
    plain = {fold_name(name): name for name in known}
    columns = [plain.get(fold_name(name), name) for name in header]
    refuse_misspelt(columns, known, f"{title} has a column")
    return columns


def read_rows(path: Place, title: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row of a non-empty CSV file, without blanks around.

    A first line `sep=;`, as of Excel, names the separator. Apostrophes of `protect_cells` are
    removed. Raises `UsageError` as `read_text`, and for quotes that are not closed.
    """
    text = read_text(path, title)
    first = SEPARATOR_LINE.match(text)
    separator = first[1] if first else find_separator(text)
    # replaced by an empty line, so that lines keep their numbers
    text = text[first.end() :] if first else text
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for raw in reader:
            cells = [_restore(cell.strip()) for cell in raw]
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise UsageError(
            f"cannot read the {title} '{path}': line {reader.line_num}: {error}; "
            "check its quotes and line ends"
        ) from None


@cache
def read_shipped(path: Path) -> tuple[Mapping[str, str], ...]:
    """The rows of a CSV file that the package ships, as they stand there: column → text."""
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def encode_csv(rows: Iterable[Iterable[object]]) -> str:
    """The rows of a table, its header first, as the text of a CSV file, with protected cells."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(protect_cells, rows))
    return text.getvalue()


def protect_cells(row: Iterable[object]) -> list[object]:
    """The cells of a row for a CSV file, so that a spreadsheet reads no text as a formula.

    A text that begins like one, with `=`, `+`, `-`, `@` (in full width too), a tab or a line end,
    gets an apostrophe in front, which `read_rows` removes. Numbers stay, also as texts.
    """
    return [f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell for cell in row]


def _restore(cell: str) -> str:
    """A cell before `protect_cells`."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell[1:]) else cell


def _is_formula(text: str) -> bool:
    return bool(_FORMULA.match(text)) and not _is_number(text)


# apostrophes before it count, too, so that reading restores the original
_FORMULA = re.compile(
    r"'*[=+\-@\t\r\n\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}"
    r"\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}]"
)


def find_separator(text: str) -> str:
    """The separator of a table: the most frequent one in its first line; a comma at a tie."""
    first = text.lstrip().partition("\n")[0]
    # cells in quotes may contain the others
    outside = "".join(first.split('"')[0::2])
    return max(SEPARATORS, key=outside.count)


def read_number(text: str, place: str) -> float:
    """The finite number in a text. Raises `UsageError` for any other; `place`: its place."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in text:
        comma = text.replace(",", ".", 1)
        hint = f"write {comma[:40]}" if comma != text and _is_number(comma) else "write a number"
        raise UsageError(f"{place}: {text[:40]!r} is no number; {hint}")
    return number


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def read_whole(text: str, place: str) -> int:
    """The whole number in a text, at most 2^53. Raises `UsageError` for any other."""
    digits = text.removeprefix("-")
    if len(digits) > 20 or not (digits.isascii() and digits.isdecimal()):
        raise UsageError(f"{place}: {text[:40]!r} is no whole number; write one such as 12")
    number = int(text)
    if abs(number) > LARGEST_WHOLE:
        raise UsageError(f"{place}: {text} is too large; write a number up to {LARGEST_WHOLE:,}")
    return number


def check_text(value: object, place: str) -> str:
    """The text itself. Raises `UsageError` if it is no text, empty, or cannot be encoded.

    `place`: its place, and what it should be.
    """
    if isinstance(value, str) and value.strip() and "\0" not in value:
        try:
            value.encode()
        except UnicodeEncodeError:
            pass  # half of a surrogate pair is no letter
        else:
            return value
    raise UsageError(f"{place} is {repr(value)[:60]}; write a text")


def read_json(
    path: Place, title: str, hook: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """The content of a JSON file; `hook`: as `object_pairs_hook` of `json.loads`."""
    return parse_json(read_text(path, title), f"the {title} '{path}'", hook)


def parse_json(
    text: str, title: str, hook: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """The content of a JSON text; `title`: "the class list 'a.json'"."""
    try:
        content = json.loads(text, object_pairs_hook=hook)
        if _HALF_PAIR.search(text):
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise UsageError(f"cannot read {title}: {_word_json(error)}") from None
    return content


_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that may be half of a surrogate pair, which is no letter and cannot be encoded."""


def _word_json(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "lists or objects in it are nested too deep; correct it"
    if isinstance(error, json.JSONDecodeError):
        return f"{error}; correct it" if error.doc.strip() else "it is empty; write it again"
    if isinstance(error, UnicodeEncodeError):
        return "a text in it has half of a surrogate pair; correct it"
    return "it has a number of too many digits; correct it"


def read_toml(path: Place, title: str, hint: str = "") -> dict[str, Any]:
    """The content of a TOML file. `hint`: advice for an invalid one. Raises `UsageError`."""
    try:
        # TOML does not have the line end of old Macs
        text = re.sub("\r\n?", "\n", read_text(path, title))
        if _DEEP_KEY.search(text):
            raise RecursionError
        return tomllib.loads(text)
    except UsageError as error:
        raise UsageError(f"{error}{hint}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"cannot read the {title} '{path}': {_reason(error)}{hint}") from None


_DEEP_KEY = re.compile(r"(?<![\w\"'-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){100}")
"""A key with so many parts that the library's memory, which grows with their square, is large."""


def read_ini(path: Place, title: str) -> configparser.ConfigParser:
    """The sections of an INI file; `%` has no meaning. Raises `UsageError`."""
    sections = configparser.ConfigParser(interpolation=None)
    try:
        text = "\n".join(read_text(path, title).splitlines())
        sections.read_string(text, str(path))
    except configparser.Error as error:
        raise UsageError(
            f"cannot read the {title} '{path}': {_reason(error)}; correct it or delete it"
        ) from None
    return sections


def read_xml(path: Place, title: str) -> Element:
    """The root of an XML file. Raises `UsageError` if it is invalid or defines entities."""
    content = _read_bytes(path, title)
    try:
        _refuse_entities(path, content)
        return ElementTree.fromstring(content)  # noqa: S314 - entities are refused above
    # for unknown encodings, expat raises a ValueError or a LookupError
    except (ElementTree.ParseError, expat.ExpatError, ValueError, LookupError) as error:
        raise UsageError(
            f"cannot read the {title} '{path}': {_reason(error)}; correct or export it again"
        ) from None


def _refuse_entities(path: Place, content: bytes) -> None:
    """Raises `UsageError` for a document that defines entities, which can grow without bound."""

    def refuse(*_: object) -> None:
        raise UsageError(
            f"'{path}' defines entities, which annotations never need; export it again"
        )

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = refuse
    parser.Parse(content, True)


def _reason(error: Exception) -> str:
    """An error as one line."""
    if isinstance(error, RecursionError):
        return "its values are nested too deeply"
    return " ".join(str(error).split())[:300]
