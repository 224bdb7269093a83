"""The code that a function or class runs, read from its file with all that it refers to.

The unit is a definition in a module, not the module: an edit of another function in the same file
changes nothing. Comments, docstrings, annotations of parameters and the layout do not count.
"""

import ast
import hashlib
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from steadyeye.core.python_syntax import parse_module

OURS = __name__.partition(".")[0]
ROOT = Path(__file__).resolve().parent.parent

Symbol: TypeAlias = tuple[str, str]
"""A module and a name that it defines; "" for all of them."""

Reference: TypeAlias = tuple[str, str]
"""A name in the code, and the attribute read from it, or ""."""


@dataclass(frozen=True)
class Definition:
    """A statement of a module. `text`: its normalised code; `references`: the names in it."""

    text: str
    references: frozenset[Reference]
    constants: frozenset[str]


@dataclass(frozen=True)
class Module:
    """A module in its parts.

    `imports`: local name → (module, name in it or ""). `defined`: name → its definitions. `always`:
    the statements that bind no name, which run on every import.
    """

    imports: dict[str, list[Symbol]] = field(default_factory=dict)
    defined: dict[str, list[Definition]] = field(default_factory=dict)
    always: list[Definition] = field(default_factory=list)


@dataclass(frozen=True)
class Closure:
    """All code that some symbols run.

    `digest`: of the normalised code. `files`: the files with the code. `packages`: import names of
    the third-party packages that it refers to.
    """

    digest: str
    files: tuple[Path, ...]
    packages: frozenset[str]


def closure(
    roots: Collection[Symbol], packages: Collection[str] = (), leave: Collection[str] = ()
) -> Closure:
    """The code that `roots` run.

    Only our modules and those of the roots' own packages are followed; of others the package is
    listed. `packages`: import names that count if a constant names them, as `library("timm")`.
    `leave`: modules that do not count.
    """
    entered = {OURS, *(module.partition(".")[0] for module, _ in roots)}
    todo, visited = list(roots), set(roots)
    definitions: set[tuple[str, str]] = set()
    outside: set[str] = set()
    files: set[Path] = set()
    while todo:
        module, name = todo.pop()
        file = None if module in leave else file_of(module)
        if file is None:
            continue
        files.add(file)
        parsed = parse(file, module)
        for definition in _definitions(parsed, name):
            definitions.add((module, definition.text))
            outside |= definition.constants & set(packages)
            for symbol in _find_referred_symbols(parsed, module, definition):
                if symbol[0].partition(".")[0] not in entered:
                    outside.add(symbol[0].partition(".")[0])
                elif symbol not in visited:
                    visited.add(symbol)
                    todo.append(symbol)
    digest = hashlib.sha256(repr(sorted(definitions)).encode()).hexdigest()[:32]
    third_party = outside - {OURS, ""} - sys.stdlib_module_names
    return Closure(digest, tuple(sorted(files)), frozenset(third_party))


@cache
def file_of(module: str) -> Path | None:
    """The Python file of a module, without importing it; None if there is none."""
    head, _, rest = module.partition(".")
    is_ours = head == OURS and not rest.startswith(("plugin_file_", "core.plugin_folder."))
    spec = None if is_ours or module not in sys.modules else sys.modules[module].__spec__
    if spec is not None:
        origin = spec.origin or ""
        return Path(origin) if origin.endswith(".py") else None
    for folder in [ROOT] if is_ours else _folders(head):
        path = folder.joinpath(*rest.split(".")) if rest else folder
        for file in (path / "__init__.py", path.parent / f"{path.name}.py"):
            if file.is_file():
                return file
    return None


def _folders(package: str) -> list[Path]:
    """The paths at which a top-level package may be, or its module without the suffix."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return []
    if spec is None:
        # the user's modules may be in the current folder, see `imports.search_current_folder`
        return [Path.cwd() / package]
    if spec.submodule_search_locations is not None:
        return [Path(folder) for folder in spec.submodule_search_locations]
    return [Path(spec.origin).with_suffix("")] if spec.origin else []


def parse(file: Path, name: str) -> Module:
    """The parts of the module `name` in a file; an unchanged file is not read again."""
    stat = file.stat()
    return _parse(file, name, stat.st_size, stat.st_mtime_ns)


@cache
def _parse(file: Path, name: str, size: int, modified: int) -> Module:
    tree, module = parse_module(file.read_bytes()), Module()
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in _walk(tree):
        for local, symbol in _read_bound_names(node, package):
            module.imports.setdefault(local, []).append(symbol)
    _Normal().visit(tree)
    for statement in tree.body:
        if isinstance(statement, ast.Pass):
            continue
        definition, names = _definition(statement), _names(statement)
        for bound in names:
            module.defined.setdefault(bound, []).append(definition)
        if not names:
            module.always.append(definition)
    return module


def _read_bound_names(node: ast.AST, package: str) -> Iterator[tuple[str, Symbol]]:
    """The names that an import binds, each with its symbol."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            whole = alias.name if alias.asname else alias.name.partition(".")[0]
            yield alias.asname or whole, (whole, "")
            if not alias.asname and whole != alias.name:
                yield whole, (alias.name, "")
    if isinstance(node, ast.ImportFrom):
        above = package.split(".")[: 1 - node.level or None] if node.level else []
        module = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            yield alias.asname or alias.name, (module, alias.name)


class _Normal(ast.NodeTransformer):
    """Removes parts that have no effect on running code: docstrings, annotations, imports."""

    def visit(self, node: ast.AST) -> ast.AST:
        body = vars(node).get("body")
        if isinstance(body, list) and body and _is_text(body[0]):
            body[:] = body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_for_types(node):
            return ast.Pass()
        return self.generic_visit(node)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_for_types(node: ast.AST) -> bool:
    """Whether a statement serves the type checker only."""
    if not isinstance(node, ast.If):
        return False
    test = node.test
    called = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return called == "TYPE_CHECKING" and not node.orelse


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes except those for the type checker and the annotations."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_for_types(child):
                yield from _walk(child)


def _definition(statement: ast.stmt) -> Definition:
    references: set[Reference] = set()
    constants: set[str] = set()
    for node in _walk(statement):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            references.add((node.value.id, node.attr))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            constants.add(node.value)
        if isinstance(node, ast.Name):
            references.add((node.id, ""))
    # `a.b` contains the name `a`, too; if only its attributes are read, these count
    apart = {name for name, attribute in references if attribute}
    before_dots = {id(n.value) for n in ast.walk(statement) if isinstance(n, ast.Attribute)}
    bare = {
        node.id
        for node in _walk(statement)
        if isinstance(node, ast.Name) and id(node) not in before_dots
    }
    symbols = {
        reference
        for reference in references
        if reference[1] or reference[0] not in apart or reference[0] in bare
    }
    return Definition(ast.dump(statement), frozenset(symbols), frozenset(constants))


def _names(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement binds or changes."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    targets: list[ast.AST] = []
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            targets.append(ast.Name(node.name))
        elif isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For):
            targets.append(node.target)
    return {
        part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
    }


def _definitions(module: Module, name: str) -> list[Definition]:
    if not name:
        whole = [definition for several in module.defined.values() for definition in several]
        return [*whole, *module.always]
    return [*module.defined.get(name, ()), *module.always]


def _find_referred_symbols(module: Module, own: str, definition: Definition) -> Iterator[Symbol]:
    """The symbols to which the names in a definition refer, if they are in modules."""
    for name, attribute in definition.references:
        if name in module.defined:
            yield own, name
        for home, part in module.imports.get(name, ()):
            yield from _resolve_symbol(home, part, attribute)
    for text in definition.constants:
        if text.startswith(f"{OURS}.") and file_of(text):
            yield text, ""


def _resolve_symbol(home: str, part: str, attribute: str) -> Iterator[Symbol]:
    """The symbol to which `from home import part` and then `part.attribute` refer."""
    inner = f"{home}.{part}" if part else home
    if home.partition(".")[0] != OURS and not part:
        yield inner, attribute
    elif part and not _has_module(inner):
        yield from _follow_import(home, part)
    elif attribute and _has_module(f"{inner}.{attribute}"):
        yield f"{inner}.{attribute}", ""
    else:
        yield inner, attribute


def _has_module(name: str) -> bool:
    # looking into other packages would import their parents; their names are enough
    return name.partition(".")[0] == OURS and file_of(name) is not None


def _follow_import(home: str, part: str) -> Iterator[Symbol]:
    """The name in its module, and if that imports it from another, the name there."""
    yield home, part
    file = file_of(home) if home.partition(".")[0] == OURS else None
    parsed = parse(file, home) if file else Module()
    if part not in parsed.defined:
        for further, name in parsed.imports.get(part, ()):
            yield from _resolve_symbol(further, name, "")
