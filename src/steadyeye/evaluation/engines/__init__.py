"""Where inference runs: `local` threads, or `ray` actors of a cluster."""

import importlib
from typing import Any

from steadyeye.core.plugins import not_installed


def cluster() -> Any:
    """The module `ray`. Raises `UsageError` where Ray is not installed."""
    try:
        return importlib.import_module("steadyeye.evaluation.engines.ray")
    except ModuleNotFoundError as error:
        raise not_installed("the engine 'ray'", error) from error
