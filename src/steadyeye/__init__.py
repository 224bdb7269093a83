"""steadyeye: how steady a vision model stays when the world changes naturally."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steadyeye.api import Run, compare, evaluate, opened
    from steadyeye.core.errors import UsageError

__version__ = "0.1.0"
__all__ = ["Run", "UsageError", "compare", "evaluate", "opened"]


def __getattr__(name: str) -> Any:
    """The public names, imported when first used: `steadyeye --help` stays quick."""
    if name not in __all__:
        raise AttributeError(f"module 'steadyeye' has no attribute '{name}'")
    home = "steadyeye.core.errors" if name == "UsageError" else "steadyeye.api"
    return getattr(import_module(home), name)
