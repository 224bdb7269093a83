"""The code that a prediction depends on: that of the model, and that which makes its image."""

import json
import platform
import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any

from steadyeye.core import plugins
from steadyeye.core.abilities import Composed
from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.core.source_code import Symbol, closure
from steadyeye.core.storage.files import write_lightly
from steadyeye.core.types import Sample

FILE = "code.json"
MOST = 16  # parts of a list that are looked at: its others are of the same kinds

NO_ANSWER = ("steadyeye.core.plugins", "steadyeye.core.errors", "steadyeye.core.notebook")
"""Modules that find plugins, write errors and print: no prediction depends on them."""

ALONGSIDE: Mapping[str, tuple[str, ...]] = {
    "keras": ("jax", "tensorflow", "torch"),
    "onnxruntime": ("onnxruntime-gpu",),
    "scenedetect": ("scenedetect-headless",),
}
"""Import name → other packages that it may use, or be installed as."""


def mark(objects: Collection[object], plugin_modules: Collection[str], folder: Path | None) -> str:
    """A fingerprint of the code that objects run, and of the versions of packages that it uses.

    `plugin_modules`: the modules that built them, whose whole code counts. `folder`: where the
    results are stored until a file changes; None: nowhere.
    """
    symbols, packages = parts(objects)
    roots = frozenset({*symbols, *((module, "") for module in plugin_modules)})
    digest, further = _code(roots, folder)
    return fingerprint(digest, versions(frozenset({*packages, *further})))


def image_shape(sample: Sample) -> object:
    """A cheap value that is equal for samples of a source whose images the same code makes."""
    return _shape(sample.image), sample.measure and _shape(sample.measure)


def _shape(value: object) -> object:
    if isinstance(value, FunctionType):
        return (value.__code__, *map(_shape, _cells(value)))
    if isinstance(value, MethodType):
        return value.__func__, _shape(value.__self__)
    if isinstance(value, Sample):
        return image_shape(value)
    if isinstance(value, partial):
        inner: Sequence[object] = (value.func,)
    elif _is_composed(type(value)):  # type: ignore[arg-type]
        inner = value.made_of()  # type: ignore[attr-defined]
    else:
        inner = _list_wrapped(value)
    return (type(value), *map(_shape, inner))


@cache
def _is_composed(kind: type) -> bool:
    return issubclass(kind, Composed)  # asked once a kind: for a Protocol it takes a while


def parts(objects: Collection[object]) -> tuple[frozenset[Symbol], frozenset[str]]:
    """What objects are made of: functions and classes of ours, and import names of other packages.

    Goes through closures, attributes and containers; stops at objects of others. For a `Composed`
    object, only the parts that it declares count.
    """
    todo, visited = list(objects), set[int]()
    symbols: set[Symbol] = set()
    packages: set[str] = set()
    while todo:
        value = todo.pop()
        if id(value) in visited:
            continue
        visited.add(id(value))
        if _is_composed(type(value)):  # type: ignore[arg-type]
            todo += value.made_of()  # type: ignore[attr-defined]
            continue
        for kind in _code_of(value):
            if plugins.is_plugin_code(kind.__module__):
                symbols.add((kind.__module__, kind.__qualname__.partition(".")[0]))
            else:
                packages.add(kind.__module__.partition(".")[0])
        todo += _list_inner(value)
    return frozenset(symbols), frozenset(packages)


def _code_of(value: object) -> Iterator[Any]:
    """The function or the classes whose code an object runs."""
    if isinstance(value, FunctionType | type):
        yield value
    elif not isinstance(value, MethodType | BuiltinMethodType):
        yield from type(value).__mro__[:-1]


def _cells(function: FunctionType) -> list[object]:
    try:
        return [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:
        return []  # one that is not filled yet


def _list_wrapped(value: object) -> list[object]:
    """The function inside an object made by a decorator, such as numba's."""
    own = {} if isinstance(value, type) else _attributes(value)
    return [own["__wrapped__"]] if "__wrapped__" in own else []


def _list_inner(value: object) -> list[object]:
    """The contents of an object that may have code."""
    inner: list[object] = _list_wrapped(value)
    if isinstance(value, FunctionType):
        inner += _cells(value)
    elif isinstance(value, MethodType):
        inner += [value.__func__, value.__self__]
    elif isinstance(value, partial):
        inner += [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, Sample):
        inner += [value.image, value.measure]
    elif isinstance(value, list | tuple):
        inner += value[:MOST]
    elif isinstance(value, dict):
        inner += list(value.values())[:MOST]
    elif plugins.is_plugin_code(type(value).__module__):
        inner += _attributes(value).values()
    return inner


def _attributes(value: object) -> Mapping[str, object]:
    try:
        return vars(value)
    except TypeError:
        return {}


_ONE_AT_A_TIME = threading.Lock()
"""A lock: one thread reads the code, and the others use its stored result."""


def _code(roots: frozenset[Symbol], folder: Path | None) -> tuple[str, frozenset[str]]:
    """The digest of the code that roots run, and the packages that it names."""
    with _ONE_AT_A_TIME:
        name = fingerprint(repr(sorted(roots)), platform.python_version(), str(plugins.ROOT))
        known = _read(folder).get(name) if folder else None
        if known and all(_stamp(Path(file)) == stamp for file, stamp in known["files"].items()):
            return known["digest"], frozenset(known["packages"])
        of_extras = {*plugins.EXTRAS, *plugins.DISTRIBUTIONS}
        code = closure(roots, of_extras, leave=NO_ANSWER)
        if folder:
            files = {str(file): _stamp(file) for file in code.files}
            entry = {"files": files, "digest": code.digest, "packages": sorted(code.packages)}
            # where nothing can be kept, it is found out again
            with suppress(OSError, UsageError):
                folder.mkdir(parents=True, exist_ok=True)
                write_lightly(folder / FILE, json.dumps({**_read(folder), name: entry}).encode())
        return code.digest, code.packages


def _stamp(file: Path) -> list[int]:
    try:
        stat = file.stat()
    except OSError:
        return []
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def _read(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


@cache
def versions(packages: frozenset[str]) -> str:
    """The versions of packages, given by import names, and of their requirements."""
    installed = {"python": platform.python_version()}
    installed["platform"] = f"{platform.system()} {platform.machine()}"
    for package in packages:
        name = plugins.DISTRIBUTIONS.get(package, package)
        for distribution in (name, *ALONGSIDE.get(package, ())):
            if _version(distribution):
                installed |= {
                    need: _version(need) for need in (distribution, *_list_required(distribution))
                }
    return repr(sorted(installed.items()))


@cache
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


@cache
def _list_required(distribution: str) -> tuple[str, ...]:
    """The distributions that one requires without any extra."""
    lines = [line for line in requires(distribution) or () if "extra ==" not in line]
    return tuple(re.split(r"[^\w.-]", line.strip(), maxsplit=1)[0] for line in lines)
