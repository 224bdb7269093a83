"""Draws the packages and their imports, and lists the folders, for the docs.

::

    python tools/draw_house.py   # docs/images/house.svg and docs/explanation/architecture.md

The arrows are read from the imports. Arrows that follow from others are left out: a package may
import everything that its arrows lead to, directly or not. The lines of the table are the first
lines of the packages' docstrings.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools")]

import measure_house  # noqa: E402

SOURCE = ROOT / "src" / "steadyeye"
PICTURE = ROOT / "docs" / "images" / "house.svg"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
START, END = "<!-- folders: written by tools/draw_house.py -->\n", "<!-- end of folders -->\n"

BOXES: Mapping[str, tuple[int, int, str]] = {
    "cli": (1, 0, "commands"),
    "review": (0, 1, "decisions of people"),
    "training": (1, 1, "fine-tuning"),
    "watch": (2, 1, "streams, bounds, alerts"),
    "report": (1, 2, "analyses, comparison, gate"),
    "explain": (1, 3, "probes, mining"),
    "runner": (1, 4, "job → predictions, cache"),
    "predictions": (2, 5, "written, sealed, read"),
    "models": (1, 6, "backends, detectors"),
    "metrics": (2, 6, "numbers with intervals"),
    "data": (0, 7, "sources, videos, classes"),
    "degradation": (2, 7, "operators, sweeps"),
    "core": (1, 8, "types, specs, statistics, storage"),
}
"""Package → its column and row in the picture, and its contents."""

NOT_CODE: Mapping[str, str] = {
    "data": "Tables that are installed with the package.",
    "guidelines": "The guidelines for reviewers of each stage, in Markdown.",
    "static": "Scripts and styles of its pages.",
    "templates": "The HTML of its pages.",
}
"""The contents of a folder without Python files, by its name."""

WIDTH, HEIGHT, ACROSS, DOWN, EDGE = 226, 46, 262, 78, 12
"""Pixels: of a box, from one box to the next, and around the picture."""


def main() -> None:
    """Writes the picture and the table."""
    PICTURE.write_text(draw(), encoding="utf-8")
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


@cache
def read_arrows() -> dict[str, set[str]]:
    """Package → the packages that it imports."""
    files = {measure_house.module_of(SOURCE, file): file for file in SOURCE.rglob("*.py")}
    arrows: dict[str, set[str]] = {}
    for module, file in files.items():
        package = measure_house.package_of(SOURCE, file)
        if (SOURCE / package).is_dir():
            imported = measure_house.find_imports(module, file, files)
            names = {(name + ".").split(".")[1] for name in imported}
            arrows.setdefault(package, set()).update(names - {package})
    return {package: names & set(arrows) for package, names in arrows.items()}


def list_reached(arrows: Mapping[str, set[str]], package: str) -> set[str]:
    """All packages that arrows lead to from one, directly or not."""
    return arrows[package].union(*(list_reached(arrows, name) for name in arrows[package]))


def reduce_arrows(arrows: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The arrows that do not follow from others, sorted (Aho, Garey and Ullman 1972)."""
    return sorted(
        (package, name)
        for package, names in arrows.items()
        for name in names
        if not any(name in list_reached(arrows, other) for other in names - {name})
    )


def draw() -> str:
    """The picture as SVG."""
    width = 2 * (ACROSS + EDGE) + WIDTH
    height = max(row for _, row, _ in BOXES.values()) * DOWN + HEIGHT + 2 * EDGE
    return "".join(
        f"{line}\n"
        for line in (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="sans-serif" text-anchor="middle">',
            "<title>The thirteen packages of steadyeye and what they import</title>",
            '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#555"/></marker>',
            # with its own background, for dark pages
            f'<rect width="{width}" height="{height}" rx="8" fill="#fff"/>',
            *map(draw_arrow, reduce_arrows(read_arrows())),
            *map(draw_box, BOXES),
            "</svg>",
        )
    )


def place(package: str) -> tuple[int, int]:
    """The left and the upper edge of a box, in pixels."""
    column, row, _ = BOXES[package]
    return EDGE + column * ACROSS, EDGE + row * DOWN


def draw_arrow(arrow: tuple[str, str]) -> str:
    """An arrow from the lower edge of one box to the upper edge of another."""
    (x0, y0), (x1, y1) = map(place, arrow)
    # slanted arrows start and end at the near side, apart from straight ones
    slant = (x1 > x0) - (x1 < x0)
    x0, x1 = x0 + WIDTH // 2 + 40 * slant, x1 + WIDTH // 2 - 40 * slant
    return (
        f'<path d="M{x0} {y0 + HEIGHT}L{x1} {y1 - 2}" '
        'stroke="#555" stroke-width="1.5" fill="none" marker-end="url(#head)"/>'
    )


def draw_box(package: str) -> str:
    """A box with the name of a package and its contents."""
    x, y = place(package)
    middle = x + WIDTH // 2
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#eef3fa" '
        f'stroke="#3d5a80"/><text x="{middle}" y="{y + 19}" font-size="15" font-weight="bold">'
        f'{package}</text><text x="{middle}" y="{y + 37}" font-size="13" fill="#333">'
        f"{BOXES[package][2]}</text>"
    )


def list_folders() -> Iterator[tuple[str, str]]:
    """(folder, contents) of every folder of the package, in the order of their names."""
    for folder in sorted(path for path in SOURCE.rglob("*") if path.is_dir()):
        file = folder / "__init__.py"
        name = folder.relative_to(SOURCE).as_posix()
        if file.is_file():
            docstring = ast.get_docstring(measure_house.parse(file)) or ""
            yield name, docstring.partition("\n")[0]
        # a removed folder may still have compiled files
        elif folder.name != "__pycache__" and any(path.is_file() for path in folder.iterdir()):
            yield name, NOT_CODE[folder.name]


def fill_page(text: str) -> str:
    """The page with the table of folders between its two marks."""
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2]
    rows = "".join(f"| `{folder}/` | {line} |\n" for folder, line in list_folders())
    return f"{before}{START}\n| folder | what is in it |\n|---|---|\n{rows}\n{END}{after}"


if __name__ == "__main__":
    main()
