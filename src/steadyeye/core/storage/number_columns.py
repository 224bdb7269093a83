"""Columns of numbers in CSV files that are not read, such as frames under a name of one's own."""

import re
from collections.abc import Sequence

from steadyeye.core.errors import fold_name
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.text_files import read_rows

NUMBER = re.compile(r"[+-]?\d[\d:.,]*")
"""A number, or a time such as 00:01:02.5."""


def list_unread_numbers(path: Place, title: str, read: Sequence[str]) -> list[str]:
    """The columns of a CSV file besides `read` with numbers or times in all cells that are filled.

    `read`: names as of `fold_name`. Raises `UsageError` as `read_rows`.
    """
    rows = read_rows(path, title)
    _, header = next(rows, (1, []))
    only_numbers: dict[int, bool] = {}
    for _, cells in rows:
        for i, cell in enumerate(cells):
            if cell:
                only_numbers[i] = only_numbers.get(i, True) and bool(NUMBER.fullmatch(cell))
    return [n for i, n in enumerate(header) if only_numbers.get(i) and fold_name(n) not in read]
