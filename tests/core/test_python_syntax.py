"""Python code as a syntax tree: as from `ast.parse`, also while another thread parses."""

import ast
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import ROOT

from steadyeye.core.python_syntax import TRIES, parse_expression, parse_module

SOURCES = [path.read_bytes() for path in sorted((ROOT / "src/steadyeye/core").glob("*.py"))]


def test_trees_are_those_of_ast_from_eight_threads():
    with ThreadPoolExecutor(8) as threads:
        trees = list(threads.map(parse_module, SOURCES))
    assert len(trees) > 20
    for tree, source in zip(trees, SOURCES, strict=True):
        assert ast.dump(tree) == ast.dump(ast.parse(source))
    assert ast.dump(parse_expression("f(a=1)")) == ast.dump(ast.parse("f(a=1)", mode="eval").body)


def test_invalid_python_raises_a_syntax_error():
    with pytest.raises(SyntaxError):
        parse_module("def f(:")
    with pytest.raises(SyntaxError):
        parse_expression("a = 1")


@pytest.mark.parametrize("faults", [1, TRIES - 1, TRIES])
def test_a_parse_that_another_thread_disturbs_is_made_again(monkeypatch, faults):
    """The fault of Python 3.11 cannot be caused on purpose."""
    real, calls = ast.parse, []

    def disturb_parse(*args, **kwargs):
        calls.append(args)
        if len(calls) <= faults:
            raise SystemError("AST constructor recursion depth mismatch (before=63, after=44)")
        return real(*args, **kwargs)

    monkeypatch.setattr(ast, "parse", disturb_parse)
    if faults < TRIES:
        assert isinstance(parse_expression("x"), ast.Name)
    else:
        with pytest.raises(SystemError, match="recursion depth"):
            parse_expression("x")
