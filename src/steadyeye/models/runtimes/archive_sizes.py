"""Zip archives, which models are saved as: no more is unpacked of one than its size allows."""

import zipfile
from pathlib import Path

from steadyeye.core.errors import UsageError

TIMES = 16
"""How many times its own size an archive may hold; weights are hardly packed, code is, by five."""
SMALLEST = 1 << 24
"""Bytes that every archive may hold."""


def check_unpacked_size(file: Path) -> None:
    """Raises `UsageError` for an archive that would take all the memory there is once unpacked.

    And `BadZipFile` for a file that is none.
    """
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    packed = file.stat().st_size
    if unpacked > max(TIMES * packed, SMALLEST):
        raise UsageError(
            f"'{file}' has {packed:,} bytes and unpacks to {unpacked:,}; no model is packed so "
            "tightly: save it again, or copy it again"
        )
