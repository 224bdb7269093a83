"""Limits the unpacked size of zip archives, in which models are saved."""

import zipfile
from pathlib import Path

from steadyeye.core.errors import UsageError

TIMES = 16
"""The largest ratio of unpacked to packed size; weights hardly shrink, code shrinks by five."""
SMALLEST = 1 << 24
"""Unpacked bytes that every archive may have."""


def check_unpacked_size(file: Path) -> None:
    """Raises `UsageError` for an archive that would fill the memory when unpacked.

    And `BadZipFile` for other files.
    """
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    packed = file.stat().st_size
    if unpacked > max(TIMES * packed, SMALLEST):
        raise UsageError(
            f"'{file}' has {packed:,} bytes and unpacks to {unpacked:,}; no model is packed so "
            "tightly: save it again, or copy it again"
        )
