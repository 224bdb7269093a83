"""The files in `$STEADYEYE_PLUGINS` as modules: `steadyeye.core.plugin_folder.operators.darken`.

They are found by their path, so that another process that has the same variable imports them too,
which unpickling asks for.
"""

import os
from pathlib import Path

VARIABLE = "STEADYEYE_PLUGINS"


def folders(text: str) -> list[Path]:
    """The folders that the variable names, between them what separates folders in `$PATH`."""
    return [Path(part).expanduser().absolute() for part in text.split(os.pathsep) if part]


def refresh() -> None:
    """Looks up again which folders the variable names."""
    __path__[:] = map(str, folders(os.environ.get(VARIABLE, "")))


__path__: list[str] = []
refresh()
