"""steadyeye: how steady a vision model stays when the world changes naturally."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steadyeye.api import Run, compare, evaluate, opened
    from steadyeye.core.errors import UsageError

    __version__: str

__all__ = ["Run", "UsageError", "compare", "evaluate", "opened"]


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: `steadyeye --help` stays quick."""
    if name == "__version__":
        return _read_version()
    if name not in __all__:
        raise AttributeError(f"module 'steadyeye' has no attribute '{name}'")
    home = "steadyeye.core.errors" if name == "UsageError" else "steadyeye.api"
    return getattr(import_module(home), name)


def _read_version() -> str:
    """The version of the installed package, which its build takes from the git tag."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("steadyeye")
    except PackageNotFoundError:
        # a checkout on the import path; outputs record its commit
        return "0+unknown"
