"""The folder and the size limit of the cache."""

import os
import re
from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import cache_home

VARIABLE = "STEADYEYE_CACHE"
LIMIT = "STEADYEYE_CACHE_LIMIT"
OFF = "off"
DEFAULT_LIMIT = 10 * 10**9
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def folder(setting: str = "") -> Path | None:
    """The folder of the cache; None if nothing is stored.

    The first of: `setting`; `$STEADYEYE_CACHE`; `$XDG_CACHE_HOME/steadyeye/answers`;
    `~/.cache/steadyeye/answers`. `off` stands for none.
    """
    text = setting or os.environ.get(VARIABLE, "")
    if text == OFF:
        return None
    if text:
        path = Path(text).expanduser()
        if path.is_file():
            raise UsageError(f"the cache '{text}' is a file; name a folder, or 'off' for none")
        return path
    return cache_home() / "answers"


def limit() -> int:
    """The bytes that a run leaves in the cache at most: `$STEADYEYE_CACHE_LIMIT`, or 10 GB."""
    text = os.environ.get(LIMIT, "")
    return size(text) if text else DEFAULT_LIMIT


def size(text: str) -> int:
    """The bytes of `500MB`, `10 GB`, `2T` or a plain number. Raises `UsageError` for other text."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", text.lower())
    if not match:
        raise UsageError(f"'{text}' is no size; write 500MB or 10GB")
    return int(float(match[1]) * UNITS[match[2]])


def days(text: str) -> float:
    """The days of `30d`, `12h` or a plain number of days. Raises `UsageError` for other text."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([dh]?)\s*", text.lower())
    if not match:
        raise UsageError(f"'{text}' is no age; write 30d or 12h")
    return float(match[1]) / (24 if match[2] == "h" else 1)
