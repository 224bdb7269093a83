"""Plugins outside this package: installed, in a folder, or named in a spec."""

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from steadyeye.core import plugin_folder
from steadyeye.core.code_permission import check_code
from steadyeye.core.errors import UsageError
from steadyeye.core.imports import search_current_folder
from steadyeye.core.source_code import OURS, file_of

VARIABLE = plugin_folder.VARIABLE

_packages: set[str] = set()  # top-level modules that a plugin was loaded from


@dataclass(frozen=True)
class Outside:
    """A plugin from outside: `object` in `module`. `origin`: its source, in words."""

    name: str
    module: str
    object: str
    file: Path | None
    origin: str


def find(kind: str) -> Mapping[str, tuple[Outside, ...]]:
    """Name → the plugins of a kind with that name, from installed packages and from the folders."""
    plugins: dict[str, tuple[Outside, ...]] = {}
    for plugin in (*_read_installed(kind), *_in_folders(kind, os.environ.get(VARIABLE, ""))):
        plugins[plugin.name] = (*plugins.get(plugin.name, ()), plugin)
    return plugins


@cache
def _read_installed(kind: str) -> tuple[Outside, ...]:
    group = f"{OURS}.{kind}"
    return tuple(_of_entry(entry) for entry in _entry_points() if entry.group == group)


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    groups = [group for group in entry_points().groups if group.startswith(f"{OURS}.")]
    return tuple(entry for group in groups for entry in entry_points(group=group))


def _of_entry(entry: EntryPoint) -> Outside:
    module, _, name = entry.value.partition(":")
    origin = f"package {entry.dist.name} {entry.dist.version}" if entry.dist else module
    return Outside(entry.name, module, name or entry.name, file_of(module), origin)


def _in_folders(kind: str, text: str) -> tuple[Outside, ...]:
    """The plugins of a kind in the folders of `$STEADYEYE_PLUGINS`."""
    plugins = []
    for folder in plugin_folder.folders(text):
        for file in sorted((folder / kind).glob("*.py")):
            if not file.stem.startswith("_"):
                module = f"{plugin_folder.__name__}.{kind}.{file.stem}"
                plugins.append(Outside(file.stem, module, file.stem, file, str(file)))
    return tuple(plugins)


def is_path(name: str) -> bool:
    """Whether the name in a spec is `module:thing` or `path/to/file.py:thing`."""
    return ":" in name


def at_path(name: str) -> Outside:
    """The plugin that a spec names by its module or file.

    Raises `UsageError` for a missing file.
    """
    home, _, thing = name.removeprefix("py:").rpartition(":")
    if not home.endswith(".py"):
        return Outside(name, home, thing, file_of(home), home)
    file = Path(home).expanduser()
    if not file.is_file():
        raise UsageError(f"there is no file '{home}' for '{name}'; check the path")
    mark = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:12]
    return Outside(name, f"{OURS}.plugin_file_{mark}", thing, file.resolve(), str(file))


def load(plugin: Outside, title: str) -> Callable[..., Any]:
    """The object of a plugin. `title`: its name in errors.

    Raises `UsageError` with one line for any error in its file, `ModuleNotFoundError` for a missing
    package.
    """
    if is_path(plugin.name):
        check_code(plugin.name)
        search_current_folder(plugin.module)
    try:
        module = _module(plugin)
    except ModuleNotFoundError as error:
        if error.name in (None, plugin.module, plugin.module.partition(".")[0]):
            raise plugin_error(plugin, title, error) from error
        raise
    except UsageError:
        raise
    except Exception as error:
        # the file is the user's code, which may raise whatever it likes when it is imported
        raise plugin_error(plugin, title, error) from error
    _packages.add(plugin.module.partition(".")[0])
    if plugin.object not in vars(module):
        raise UsageError(
            f"{title} in {plugin.origin}: it defines no '{plugin.object}'; define this function"
        )
    function: Callable[..., Any] = vars(module)[plugin.object]
    if not callable(function):
        raise UsageError(
            f"{title} in {plugin.origin}: '{plugin.object}' is no function; define it as a function"
        )
    return function


def guard(plugin: Outside, title: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a plugin, whose errors become a `UsageError` of one line."""

    @wraps(function)
    def call(*args: Any, **parameters: Any) -> Any:
        try:
            return function(*args, **parameters)
        except UsageError:
            raise
        except Exception as error:
            # the file is the user's code, which may raise whatever it likes
            raise plugin_error(plugin, title, error, "failed") from error

    return call


def _module(plugin: Outside) -> ModuleType:
    if plugin.file and plugin.module.startswith(f"{OURS}.plugin_file_"):
        return _of_file(plugin.module, plugin.file)
    if plugin.module.startswith(plugin_folder.__name__):
        plugin_folder.refresh()
    importlib.invalidate_caches()  # a file may be newer than the last listing of its folder
    return importlib.import_module(plugin.module)


def _of_file(name: str, file: Path) -> ModuleType:
    """The module of a file, with a name under which other processes find it."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None, "it ends in .py"
    assert spec.loader is not None, "it ends in .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def plugin_error(
    plugin: Outside, title: str, error: Exception, event: str = "cannot be loaded"
) -> UsageError:
    """The error for a plugin whose file fails, with the line."""
    line = f"line {error.lineno}" if isinstance(error, SyntaxError) else _line(plugin, error)
    reason = error.msg if isinstance(error, SyntaxError) else " ".join(str(error).split())[:200]
    where = f"{plugin.file or plugin.origin}{f', {line}' if line else ''}"
    return UsageError(f"{title} {event}: {type(error).__name__}: {reason} ({where})")


def _line(plugin: Outside, error: Exception) -> str:
    """The last line of the plugin's file in an error's traceback."""
    frames = inspect.getinnerframes(error.__traceback__) if error.__traceback__ else []
    lines = [frame.lineno for frame in frames if frame.filename == str(plugin.file)]
    return f"line {lines[-1]}" if lines else ""


def is_plugin_code(module: str) -> bool:
    """Whether a module is of this package or of a plugin that was loaded."""
    head = module.partition(".")[0]
    return head == OURS or head in _packages


def file_mark(plugin: Outside) -> str:
    """A fingerprint of a plugin's file, 16 hexadecimal digits; its origin without a file."""
    if plugin.file is None:
        return plugin.origin
    return hashlib.sha256(plugin.file.read_bytes()).hexdigest()[:16]
