"""What torch reads of a TorchScript archive without checks of its own, checked before it does."""

import io
import pickle
import pickletools
import zipfile
from pathlib import Path
from typing import Any

SUFFIXES = (".pkl", ".debug_pkl")
TABLE = "FORMAT_WITH_STRING_TABLE"
INTEGERS = ("torch.jit._pickle", "build_intlist")
LARGEST = 2**63


def check_pickles(file: Path) -> None:
    """Raises `ValueError` for pickles of an archive that torch's reader would not survive.

    One that gives an object a number beyond its own length: a table of that many places is made,
    whatever the memory. And source ranges (`.debug_pkl`) that are anything else: their texts are
    looked up without a check.
    """
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if not entry.filename.endswith(SUFFIXES):
                continue
            # texts of source ranges repeat, and are packed
            if entry.file_size > max(16 * file.stat().st_size, 2**20):
                raise ValueError(f"{entry.filename} is larger than the file")
            content = archive.read(entry)
            for operation, argument, _ in pickletools.genops(content):
                if operation.name.endswith("PUT") and int(argument or 0) > len(content):
                    raise ValueError(f"{entry.filename} numbers an object {argument}")
            if entry.filename.endswith(".debug_pkl") and not _are_ranges(content):
                raise ValueError(f"{entry.filename} holds no source ranges")


class _Plain(pickle.Unpickler):
    """Reads numbers, texts, tuples and lists of integers; no class can be named."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) != INTEGERS:
            raise ValueError(f"it names {module}.{name}")
        return list


def _are_ranges(content: bytes) -> bool:
    """Whether a pickle holds source ranges, with a table of their texts or, as once, with each."""
    ranges = _Plain(io.BytesIO(content)).load()
    if not isinstance(ranges, tuple):
        return False
    if ranges[:1] != (TABLE,):
        return all(_is_range(record, None) for record in ranges)
    texts, records = ranges[1:] if len(ranges) == 3 else (None, None)
    return (
        isinstance(texts, tuple)
        and all(isinstance(text, str) for text in texts)
        and isinstance(records, tuple)
        and all(_is_range(record, len(texts)) for record in records)
    )


def _is_range(record: Any, texts: int | None) -> bool:
    """Whether a record is (offset, ((lines, file, first line), start, end), tag).

    `texts`: how many there are in the table that lines and file are places in; None: they are
    texts themselves, and there may be no tag.
    """
    try:
        offset, ((lines, file, first), start, end), *tag = record
    except (TypeError, ValueError):
        return False
    numbers = (offset, first, start, end, *tag)
    if len(tag) > 1 or not all(map(_is_integer, numbers)) or not 0 <= start <= end:
        return False
    if texts is None:
        return isinstance(lines, str) and isinstance(file, str | None)
    return isinstance(lines, list) and all(
        _is_integer(place) and 0 <= place < texts for place in (file, *lines)
    )


def _is_integer(value: Any) -> bool:
    return type(value) is int and -LARGEST <= value < LARGEST
