"""Small text files that users write: their text, their table rows, their JSON."""

import csv
import io
import json
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import Place


def text(path: Place, title: str) -> str:
    """The text of a UTF-8 file; `title` names it in errors: "class list", "class map"."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise UsageError(f"no {title} at '{path}'; check the path") from None
    except OSError as error:
        raise UsageError(f"cannot read the {title} '{path}': {error.strerror}") from error
    except UnicodeDecodeError:
        raise UsageError(f"cannot read the {title} '{path}': save it as UTF-8") from None


def table(path: Place, title: str) -> list[tuple[int, dict[str, str]]]:
    """Line number and row of a CSV file, cells and column names stripped, short rows filled.

    Raises `UsageError` on a row that has more cells than the header.
    """
    reader = csv.DictReader(io.StringIO(text(path, title)), restkey="", restval="")
    rows = []
    try:
        for row in reader:
            if any(isinstance(cell, list) for cell in row.values()):
                raise UsageError(
                    f"the {title} '{path}' line {reader.line_num} has more cells than the header; "
                    "quote names that hold commas"
                )
            cells = {column.strip(): cell.strip() for column, cell in row.items()}
            rows.append((reader.line_num, cells))
    except csv.Error as error:
        raise UsageError(f"cannot read the {title} '{path}': {error}") from error
    return rows


def tree(path: Place, title: str) -> Any:
    """What a JSON file holds."""
    try:
        return json.loads(text(path, title))
    except json.JSONDecodeError as error:
        raise UsageError(f"cannot read the {title} '{path}': {error}") from error
