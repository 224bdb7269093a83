"""Writes `src/steadyeye/metric_methods.pyi`: the metrics as methods of a run, for type checkers.

    python tools/write_metric_methods.py

A test compares the file with what this writes. Needs ruff, which lays the lines out.
"""

import ast
import inspect
import subprocess
from pathlib import Path

from steadyeye.core import plugins

FILE = plugins.ROOT / "metric_methods.pyi"
HEAD = '''"""The metrics as methods of a run; written by tools/write_metric_methods.py."""

from collections.abc import Sequence

from steadyeye.core.types import Result

class MetricMethods:
'''


def write_methods() -> str:
    """The text of the file."""
    return HEAD + "".join(map(_method, plugins.names("metrics")))


def _method(name: str) -> str:
    """The metric `name` as a method, whose `self` is its predictions, with its docstring."""
    tree = ast.parse((plugins.folder("metrics") / f"{name}.py").read_text(encoding="utf-8"))
    node = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    defaults = inspect.signature(plugins.load("metrics", name)).parameters
    parameters = ["self"]
    for argument in node.args.args[1:]:
        assert argument.annotation is not None, f"{name}: {argument.arg} has no annotation"
        annotation, default = ast.unparse(argument.annotation), defaults[argument.arg].default
        # the objects in a default need not be known here
        parameters.append(f"{argument.arg}: {annotation} = {_literal(default)}")
    lines = (ast.get_docstring(node) or "").splitlines()
    docstring = "\n".join([f'        """{lines[0]}', *(f"        {x}".rstrip() for x in lines[1:])])
    ending = '"""' if len(lines) == 1 else '\n        """'
    return f"    def {name}({', '.join(parameters)}) -> Result:\n{docstring}{ending}\n"


def _literal(default: object) -> str:
    text = repr(default)
    return f'"{default}"' if isinstance(default, str) else text


if __name__ == "__main__":
    Path(FILE).write_text(write_methods(), encoding="utf-8")
    subprocess.run(["ruff", "format", "--quiet", FILE], check=True)  # noqa: S603, S607
