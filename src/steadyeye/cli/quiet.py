"""Keeps the talk of other packages from stderr, where only our lines and errors belong."""

import logging
import os
import sys
import sysconfig
import warnings
from pathlib import Path
from typing import TextIO

ENVIRONMENT = {
    "PYTHONWARNINGS": "ignore",  # of processes that are started; this one has its own rule below
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
"""What is read when a package is imported; what a user has set stays."""

INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")
PACKAGES = (
    *(Path(sysconfig.get_path(name)).resolve() for name in INSTALLED),
    Path(__file__).resolve().parent.parent,
)


def quiet_packages() -> None:
    """Drops the warnings of packages; those of the user's own modules are told in a line each.

    Errors are still told, and with `python -W …` or `PYTHONWARNINGS` everything is as they say.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if not sys.warnoptions:
        warnings.showwarning = _show
    # what is logged without anybody listening: lines of torch's exporter, of timm …
    if logging.lastResort is not None:
        logging.lastResort.setLevel(logging.ERROR)


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    path = Path(filename)
    if path.is_file() and not any(map(path.resolve().is_relative_to, PACKAGES)):
        from steadyeye.cli.terminal import progress_console, say

        told = " ".join(str(message).split())
        say(f"{filename}:{lineno}: {category.__name__}: {told}", to=progress_console)
