"""Imports the user's modules, and libraries that may be installed but not importable."""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from steadyeye.core.code_permission import check_code
from steadyeye.core.errors import UsageError, suggest


def attribute(path: str) -> Any:
    """The object at `package.module:name`, `py:` before it or not. Raises `UsageError` if none."""
    module, colon, name = path.removeprefix("py:").partition(":")
    if not (module and colon and name):
        raise UsageError(f"'{path}' is no Python path; write package.module:name")
    loaded = user_module(module, path)
    if not hasattr(loaded, name):
        near = suggest(name, [text for text in vars(loaded) if not text.startswith("_")])
        raise UsageError(f"'{path}': the module '{module}' has no '{name}'{near}")
    return getattr(loaded, name)


def user_function(path: str) -> Callable[..., Any]:
    """The function at `package.module:name`. Raises `UsageError` if there is none."""
    function = attribute(path)
    if not callable(function):
        raise UsageError(
            f"'{path}' is a {type(function).__name__}, not a function; give the path of a function"
        )
    return cast(Callable[..., Any], function)


def user_module(name: str, path: str) -> Any:
    """The user's module `name`, which the spec `path` asks for.

    Raises `UsageError` if there is none, if its own code fails, with the line, and if the spec
    comes from a file.
    """
    check_code(path)
    search_current_folder(name)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        file = name.removesuffix(".py")
        hint = (
            f"did you mean '{path.replace(name, file, 1)}'?"
            if file != name
            else "run from its folder, install it, or add its folder to PYTHONPATH"
        )
        raise UsageError(f"cannot import '{error.name}' for '{path}'; {hint}") from error
    except Exception as error:
        raise UsageError(f"cannot import '{name}' for '{path}': {place_of(error)}") from error


def search_current_folder(module: str) -> None:
    """Allows importing a module from the current folder that exists nowhere else.

    A file there with the name of a package does not replace the package.
    """
    head, current = module.partition(".")[0], str(Path.cwd())
    if head not in sys.modules and current not in sys.path and not _is_installed(head):
        sys.path.append(current)


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def place_of(error: BaseException) -> str:
    """The error of a user's own code, with its line and file."""
    if isinstance(error, SyntaxError):
        file, line, text = error.filename, error.lineno, error.msg
    else:
        last = traceback.extract_tb(error.__traceback__)[-1]
        file, line, text = last.filename, last.lineno, " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text} ({Path(file or '?').name}, line {line}); correct it"


def library(name: str) -> Any:
    """The module `name`, of a library that imports torchvision.

    Raises `UsageError` if torchvision was built for another torch: PyPI's is a CUDA build, which
    does not import over the CPU build of torch. `ModuleNotFoundError` passes through.
    """
    if importlib.util.find_spec(name) is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
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
