"""The names in the code: functions are verb and object, values are nouns; and its texts."""

import ast
import sys
from collections import defaultdict

import pytest
from conftest import ROOT
from test_wording import faults

sys.path.insert(0, str(ROOT / "tools"))

import measure_house

SOURCE = ROOT / "src" / "steadyeye"
PARTICIPLES = {
    "reviewed": "a source's registered name, which stands in jobs and runs",
}
"""Functions that are named by a participle → why."""
BANNED = frozenset(
    [
        "ahead",
        "asked",
        "beyond",
        "desk",
        "drawn",
        "each",
        "elsewhere",
        "found",
        "given",
        "held",
        "here",
        "kept",
        "kinship",
        "listed",
        "made",
        "named",
        "one",
        "opened",
        "ours",
        "reach",
        "said",
        "seen",
        "shown",
        "theirs",
        "there",
        "told",
        "wanted",
        "what",
        "which",
    ]
)
"""Words that do not say what a value is."""
OUTSIDE = ("tests", "tools", "benchmarks")
"""Folders beside the package in which the words are banned too."""
PACKAGES = sorted(file.stem for file in SOURCE.iterdir() if file.suffix == ".py" or file.is_dir())
PACKAGES = [name for name in PACKAGES if not name.startswith("__")]


def nodes_of(package):
    """The nodes of the files of a package, or of a module at the root."""
    path = SOURCE / package
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return {str(file.relative_to(SOURCE)): measure_house.list_nodes(file) for file in files}


def read_names(nodes):
    """Every name that functions, classes, parameters and assignments bind, with its line."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.alias | ast.ExceptHandler):
            name = node.asname if isinstance(node, ast.alias) else node.name
            if name:
                yield name, node.lineno


def is_banned(name):
    """Whether a name is one of the words; constants are not."""
    return name.strip("_").lower() in BANNED and not name.isupper()


def find_banned(file, nodes):
    """`file:line name` of every name in a file that is one of the words."""
    return [f"{file}:{line} {name}" for name, line in read_names(nodes) if is_banned(name)]


def read_functions(nodes):
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_no_function_is_named_by_a_participle(package):
    places = [
        f"{file}:{line} {name}"
        for file, nodes in nodes_of(package).items()
        for name, line in read_functions(nodes)
        if measure_house.is_participle(name) and name not in PARTICIPLES
    ]
    assert not places, "\n".join(places)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_is_a_word_that_says_nothing(package):
    places = [
        place for file, nodes in nodes_of(package).items() for place in find_banned(file, nodes)
    ]
    assert not places, "\n".join(places)


@pytest.mark.parametrize("folder", OUTSIDE)
def test_no_name_outside_the_package_is_a_word_that_says_nothing(folder):
    paths = {str(path.relative_to(ROOT)): path for path in sorted((ROOT / folder).rglob("*.py"))}
    assert paths
    places = [
        place
        for file, path in paths.items()
        for place in find_banned(file, measure_house.list_nodes(path))
    ]
    assert not places, "\n".join(places)


def test_no_public_class_name_stands_in_two_files():
    files = defaultdict(set)
    for package in PACKAGES:
        for file, nodes in nodes_of(package).items():
            for node in nodes:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    files[node.name].add(file)
    assert not {name: sorted(places) for name, places in files.items() if len(places) > 1}


def read_strings(nodes):
    """The strings of a module that are no docstrings, {} where values go."""
    bare = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    parts = set()
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts |= {id(value) for value in node.values}
            text = "".join(
                part.value if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
            yield text
        elif isinstance(node, ast.Constant) and id(node) not in bare | parts:
            yield str(node.value)


def test_texts_in_the_source_keep_to_the_guide():
    texts = {
        file: " ¶ ".join(read_strings(nodes))
        for package in (*PACKAGES, "__init__", "__main__")
        for file, nodes in nodes_of(package).items()
    }
    assert not {file: hits for file, text in texts.items() if (hits := faults(text))}


def test_exceptions_are_still_there():
    functions = {
        name
        for package in PACKAGES
        for nodes in nodes_of(package).values()
        for name, _ in read_functions(nodes)
    }
    assert functions >= PARTICIPLES.keys()


def test_names_of_all_kinds_are_read():
    text = (
        "import a as told\n"
        "def found(kept, *given, each=1):\n"
        "    for one in kept:\n"
        "        with open(one) as opened, other as (here, _):\n"
        "            [said for said in opened]\n"
        "class Asked:\n"
        "    held: int\n"
    )
    names = {name.lower() for name, _ in read_names(ast.walk(ast.parse(text)))}
    assert names - BANNED == {"_"}
    assert len(names) == 12
