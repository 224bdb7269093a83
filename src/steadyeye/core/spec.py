"""Spec strings: keyword-only, Python-like text such as `video(path='clip.mp4', k=10)`.

The name may be a path to the code: `my_package.my_metrics:steadiness(k=5)` or
`plugins/steadiness.py:steadiness`.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steadyeye.core.errors import UsageError, shorten
from steadyeye.core.python_syntax import parse_expression

_AT_PATH = re.compile(r"(?P<home>[^()'\",]*):(?P<call>[A-Za-z_]\w*\s*(\(.*\))?)", re.DOTALL)


@dataclass(frozen=True)
class Spec:
    """The name of a plugin and its keyword arguments."""

    name: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """The canonical text: `parse(str(spec)) == spec`, arguments in their order."""
        if not self.kwargs:
            return self.name
        return f"{self.name}({', '.join(f'{key}={value!r}' for key, value in self.kwargs.items())})"


def parse(text: str) -> Spec:
    """The `Spec` in `text`; values are Python literals (`ast.literal_eval`).

    Raises `UsageError` for anything but a name or a name with keyword literals.
    """
    if at_path := _AT_PATH.fullmatch(text.strip()):
        thing = parse(at_path["call"])
        return Spec(f"{at_path['home']}:{thing.name}", thing.kwargs)
    try:
        node = parse_expression(text.strip())
    except (SyntaxError, ValueError) as error:
        raise _bad(text, getattr(error, "msg", "it has half of a surrogate pair")) from None
    except (RecursionError, MemoryError):
        raise _bad(text, "it is nested too deeply") from None
    if isinstance(node, ast.Name):
        return Spec(node.id)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise _bad(text, "it is neither a name nor a name with arguments in brackets")
    if node.args:
        raise _bad(text, "arguments must be named")
    kwargs: dict[str, Any] = {}
    for word in node.keywords:
        if word.arg is None:
            raise _bad(text, "'**' is not allowed")
        key = word.arg
        if key in kwargs:
            raise _bad(text, f"'{key}' is given twice")
        kwargs[key] = _literal(text, word)
    return Spec(node.func.id, kwargs)


def split(text: str) -> list[Spec]:
    """The specs in a comma-separated list, `"accuracy, pm_k(k=5)"`.

    Raises `UsageError` as `parse` does, and for a comma with nothing before it.
    """
    parts = _parts(text)
    if not all(part.strip() for part in parts):
        raise UsageError(f"'{shorten(text)}' has a comma with nothing before it; take it out")
    return [parse(part) for part in parts]


def _parts(text: str) -> list[str]:
    """The text between commas that are outside brackets and quotes."""
    parts, depth, quote, escaped, start = [], 0, "", False, 0
    for place, letter in enumerate(text):
        if quote:
            # a quote after a backslash does not end the text in quotes
            quote = "" if letter == quote and not escaped else quote
            escaped = letter == "\\" and not escaped
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    # as in a Python list, one comma may follow the last item
    return parts if parts[-1].strip() else parts[:-1]


def _literal(text: str, word: ast.keyword) -> Any:
    try:
        return ast.literal_eval(word.value)
    except (ValueError, TypeError):
        raise _bad(text, f"the value of '{word.arg}' is not a literal (quote text)") from None
    except (RecursionError, MemoryError):
        raise _bad(text, f"the value of '{word.arg}' is nested too deeply") from None


def _bad(text: str, why: str) -> UsageError:
    return UsageError(
        f"cannot read the spec '{shorten(text)}': {why}; write it like name(key='text', n=10)"
    )
