"""Prints figures of the source tree: sizes, imports between packages, loops, names.

::

    python tools/measure_house.py                 # of this checkout
    python tools/measure_house.py other/checkout  # of another

It reads only the files, so that trees before and after a move are measured alike. An arrow is an
ordered pair of packages of which one imports the other somewhere (except the root, which re-exports
public names); a loop is a set of packages, files, or files and folders of one folder that import
one another in a circle. Imports inside functions count as arrows; loops between files are printed
without them, too.
"""

import argparse
import ast
import gc
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "steadyeye"
PARTICIPLES = re.compile(
    r"[a-z]{2,}ed|"
    r"begun|bent|blown|bought|bound|bred|broken|brought|built|caught|chosen|dealt|drawn|"
    r"driven|eaten|fallen|fed|felt|forgotten|found|given|gone|grown|heard|held|hidden|"
    r"hung|kept|known|laid|led|left|lent|lost|made|meant|met|paid|ridden|risen|said|"
    r"seen|sent|shaken|shown|shut|sought|spent|spoken|stood|struck|sung|sunk|swept|"
    r"taken|taught|thrown|told|torn|understood|won|worn|woven|written"
)
"""Regular participles, and irregular ones that are not also verbs or nouns."""
NOT = {"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed"}
"""Words in `ed` that are no participles."""

Graph = Mapping[str, set[str]]


def main() -> None:
    """Prints the figures of a checkout."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, nargs="?", default=ROOT)
    source = parser.parse_args().checkout / "src" / NAME
    print("\n".join(describe(source)))


def describe(source: Path) -> Iterator[str]:
    """The figures of the package in `source`, as lines."""
    files = sorted(source.rglob("*.py"))
    yield from describe_sizes(source, files)
    yield ""
    yield from describe_imports(source, files)
    yield ""
    yield from describe_names(source, files)


def describe_sizes(source: Path, files: Sequence[Path]) -> Iterator[str]:
    """Lines and files by package."""
    lines: Counter[str] = Counter()
    count: Counter[str] = Counter()
    small = 0
    for file in files:
        length = len(read(file).splitlines())
        small += length < 60 and file.name != "__init__.py"
        lines[package_of(source, file)] += length
        count[package_of(source, file)] += 1
    yield f"{len(files)} files, {sum(lines.values()):,} lines; {small} files under 60 lines"
    yield "lines   files  package"
    for package in sorted(lines):
        yield f"{lines[package]:6,}  {count[package]:5}  {package}"


def describe_imports(source: Path, files: Sequence[Path]) -> Iterator[str]:
    """Arrows between packages, and loops of packages, folders and files."""
    modules = {module_of(source, file): file for file in files}
    # the root only re-exports public names and the version
    modules.pop(NAME, None)
    everything = {name: find_imports(name, file, modules) for name, file in modules.items()}
    at_import = {name: find_imports(name, file, modules, False) for name, file in modules.items()}
    packages = group(everything, lambda name: name.split(".")[1] if "." in name else name)
    edges = sum(len(targets) for targets in everything.values())
    yield f"{edges} imports between files"
    yield f"{sum(map(len, packages.values()))} arrows between packages"
    for name in sorted(packages):
        if packages[name]:
            yield f"    {name} → {', '.join(sorted(packages[name]))}"
    for level, graph in (
        ("packages", packages),
        ("files and folders of a folder", group_siblings(everything)),
        ("files", everything),
        ("files, at import", at_import),
    ):
        loops = find_loops(graph)
        yield f"loops of {level}: {len(loops)}"
        yield from (f"    {', '.join(loop)}" for loop in loops)


def describe_names(source: Path, files: Sequence[Path]) -> Iterator[str]:
    """Participles among functions, `found`, classes and files that share a name."""
    functions: Counter[str] = Counter()
    classes: dict[str, set[str]] = defaultdict(set)
    found_bindings = 0
    for file in files:
        for node in list_nodes(file):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(
                node.name
            ):
                functions[node.name] += 1
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].add(str(file.relative_to(source)))
            found_bindings += isinstance(node, ast.Name) and node.id == "found"
    stems = Counter(file.stem for file in files if file.stem != "__init__")
    yield (
        f"{sum(functions.values())} functions named by a bare participle, most often: "
        + ", ".join(f"{name} {n}" for name, n in functions.most_common(12))
    )
    yield f"`found` stands as a name {found_bindings:,} times"
    double = {name: places for name, places in classes.items() if len(places) > 1}
    yield f"{len(double)} public class names in more than one file: {', '.join(sorted(double))}"
    again = sorted(stem for stem, n in stems.items() if n > 1)
    yield f"{len(again)} file names that recur: {', '.join(again)}"


def is_participle(name: str) -> bool:
    """Whether the name of a function is a single participle, such as `_told` or `opened`."""
    word = name.strip("_")
    return word not in NOT and bool(PARTICIPLES.fullmatch(word))


def find_imports(
    name: str, file: Path, modules: Mapping[str, Path], inside: bool = True
) -> set[str]:
    """The modules of ours that a module imports; `inside`: also in functions."""
    imports = set()
    for node in walk(parse(file), inside):
        candidates: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            candidates = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            candidates = [alias.name for alias in node.names]
        for target in candidates:
            module = target if target in modules else target.rpartition(".")[0]
            if module in modules and module != name:
                imports.add(module)
    return imports


def walk(tree: ast.AST, inside: bool) -> Iterator[ast.AST]:
    """The nodes that run when a module is imported; `inside`: all of them."""
    for node in ast.iter_child_nodes(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if inside or not (is_function or is_for_types):
            yield node
            yield from walk(node, inside)


def group(graph: Graph, name_of: object) -> dict[str, set[str]]:
    """The graph between groups of modules; `name_of`: module → its group."""
    assert callable(name_of)
    grouped: dict[str, set[str]] = {name_of(module): set() for module in graph}
    for module, targets in graph.items():
        grouped[name_of(module)] |= {name_of(target) for target in targets} - {name_of(module)}
    return grouped


def group_siblings(graph: Graph) -> dict[str, set[str]]:
    """The graphs between the files and folders of each folder, a folder taken as a whole."""
    siblings: dict[str, set[str]] = defaultdict(set)
    for module, targets in graph.items():
        for target in targets:
            own, other = module.split("."), target.split(".")
            pairs = zip(own, other, strict=False)
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            # a folder's `__init__.py` is the folder itself
            if shared < min(len(own), len(other)):
                below = ".".join(other[: shared + 1])
                siblings[".".join(own[: shared + 1])].add(below)
                siblings.setdefault(below, set())
    return dict(siblings)


def find_loops(graph: Graph) -> list[list[str]]:
    """Sets of nodes that reach one another, each sorted (Tarjan 1972)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    loops = []

    def visit(node: str) -> None:
        numbers[node] = lowest[node] = len(numbers)
        stack.append(node)
        for target in sorted(graph[node]):
            if target not in numbers:
                visit(target)
            if target in stack:
                lowest[node] = min(lowest[node], lowest[target])
        if lowest[node] == numbers[node]:
            members = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(members) > 1:
                loops.append(sorted(members))

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 20 * len(graph)))
    for node in sorted(graph):
        if node not in numbers:
            visit(node)
    return sorted(loops)


def package_of(source: Path, file: Path) -> str:
    """The package of a file, below ours; a file of no package by its own name."""
    return file.relative_to(source).parts[0].removesuffix(".py")


def module_of(source: Path, file: Path) -> str:
    """The dotted name of a file."""
    parts = [NAME, *file.relative_to(source).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def read(file: Path) -> str:
    """The text of a file."""
    return file.read_text(encoding="utf-8")


@cache
def parse(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    # trees live until the end: each garbage collection would visit all of them
    is_on = gc.isenabled()
    gc.disable()
    tree = ast.parse(read(file))
    gc.freeze()
    if is_on:
        gc.enable()
    return tree


@cache
def list_nodes(file: Path) -> Sequence[ast.AST]:
    """The nodes of the syntax tree of a file."""
    return list(ast.walk(parse(file)))


if __name__ == "__main__":
    main()
