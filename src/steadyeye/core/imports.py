"""Importing what a user names, and libraries that can be installed yet not importable."""

import importlib
import importlib.util
from typing import Any

from steadyeye.core.errors import UsageError


def attribute(path: str) -> Any:
    """The object at `package.module:name`, `py:` before it or not. Raises `UsageError` if none."""
    module, colon, name = path.removeprefix("py:").partition(":")
    if not (module and colon and name):
        raise UsageError(f"'{path}' is no Python path; write package.module:name")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"cannot import '{error.name}' for '{path}'; install it or add its folder to PYTHONPATH"
        ) from error
    except AttributeError as error:
        raise UsageError(f"the module '{module}' has no '{name}'") from error


def library(name: str) -> Any:
    """The module `name`, of a library that imports torchvision.

    Raises `UsageError` where torchvision was built for another torch: PyPI's is a CUDA build,
    which does not import over the CPU build of torch. `ModuleNotFoundError` passes through.
    """
    try:
        # first on its own, because transformers hides why it failed; it can do without torchvision
        if importlib.util.find_spec("torchvision"):
            importlib.import_module("torchvision")
        return importlib.import_module(name)
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        raise UsageError(
            f"'{name}' needs a torchvision built for this torch ({error}); "
            "install torch and torchvision together, from the same package index"
        ) from error
