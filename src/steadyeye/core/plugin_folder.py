"""The files in `$STEADYEYE_PLUGINS` as modules: `steadyeye.core.plugin_folder.operators.darken`.

They are imported by path, so that another process with the same variable can import them too,
which unpickling needs.
"""

import os
from pathlib import Path

VARIABLE = "STEADYEYE_PLUGINS"


def folders(text: str) -> list[Path]:
    """The folders that the variable names, separated as in `$PATH`."""
    return [Path(part).expanduser().absolute() for part in text.split(os.pathsep) if part]


def refresh() -> None:
    """Reads the folders again from the variable."""
    __path__[:] = map(str, folders(os.environ.get(VARIABLE, "")))


__path__: list[str] = []
refresh()
