"""Parses Python code into a syntax tree while other threads parse, too.

`ast.parse` of Python 3.11 counts its depth in one place for all threads, and raises `SystemError`
if two threads are in it (https://github.com/python/cpython/issues/106905).
"""

import ast
import threading
from typing import Any

TRIES = 20

_ONE_AT_A_TIME = threading.Lock()


def parse_module(source: str | bytes) -> ast.Module:
    """The syntax tree of a module. Raises `SyntaxError` as `ast.parse` does."""
    tree: ast.Module = _parse(source, "exec")
    return tree


def parse_expression(text: str) -> ast.expr:
    """The syntax tree of an expression. Raises `SyntaxError` as `ast.parse` does."""
    body: ast.expr = _parse(text, "eval").body
    return body


def _parse(source: str | bytes, mode: str) -> Any:
    with _ONE_AT_A_TIME:
        for _ in range(TRIES - 1):
            try:
                return ast.parse(source, mode=mode)
            except SystemError:
                continue  # another thread is parsing
        return ast.parse(source, mode=mode)
