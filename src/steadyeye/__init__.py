"""steadyeye: how steady a vision model stays when the world changes naturally."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steadyeye.api import Run, compare, evaluate, leaderboard, ls, open_run
    from steadyeye.core.code_permission import allow_code
    from steadyeye.core.errors import UsageError
    from steadyeye.core.predictions import Predictions
    from steadyeye.core.types import Model, Result, Source

    __version__: str

__all__ = [
    "Model",
    "Predictions",
    "Result",
    "Run",
    "Source",
    "UsageError",
    "allow_code",
    "compare",
    "evaluate",
    "leaderboard",
    "ls",
    "open_run",
]

HOMES = {
    "UsageError": "steadyeye.core.errors",
    "allow_code": "steadyeye.core.code_permission",
    "Predictions": "steadyeye.core.predictions",
    **dict.fromkeys(("Model", "Result", "Source"), "steadyeye.core.types"),
}
"""The module of a public name, if it is not `steadyeye.api`."""


def __getattr__(name: str) -> Any:
    """The public names, imported on first use, so that `steadyeye --help` is fast."""
    if name == "__version__":
        return _read_version()
    if name not in __all__:
        raise AttributeError(f"module 'steadyeye' has no attribute '{name}'")
    return getattr(import_module(HOMES.get(name, "steadyeye.api")), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", *(n for n in globals() if n.startswith("__"))])


def _read_version() -> str:
    """The version of the installed package, which the build takes from the git tag."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("steadyeye")
    except PackageNotFoundError:
        # a checkout on the import path; outputs record its commit
        return "0+unknown"
