"""Derives the class list and the hierarchy of Open Images V4 to V7 that steadyeye ships.

    python tools/build_openimages.py --descriptions class-descriptions-boxable.csv \
        --hierarchy bbox_labels_600_hierarchy.json --out
        src/steadyeye/data/classes/data/openimages.csv

Both files are those of the release of V4, by Google LLC under CC BY 4.0.
"""

import argparse
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# names that later releases, and detectors trained on them, spell differently
LATER = {
    "Asparagus": "Garden Asparagus",
    "Bat": "Bat (Animal)",
    "Dairy": "Dairy Product",
    "Doughnut": "Donut",
    "Drill": "Drill (Tool)",
    "Egg": "Egg (Food)",
    "Horn": "French horn",
    "Jaguar": "Jaguar (Animal)",
    "Lavender": "Lavender (Plant)",
    "Lifejacket": "Personal flotation device",
    "Nail": "Nail (Construction)",
    "Organ": "Organ (Musical Instrument)",
    "Pitcher": "Pitcher (Container)",
    "Ratchet": "Ratchet (Device)",
    "Squash": "Squash (Plant)",
    "Sunflower": "Common sunflower",
    "Volleyball": "Volleyball (Ball)",
}


def main() -> None:
    """Reads the release and writes `index, mid, name, later, parents`, one row per class."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for option in ("descriptions", "hierarchy", "out"):
        parser.add_argument(f"--{option}", type=Path, required=True)
    paths = parser.parse_args()
    with paths.descriptions.open(newline="", encoding="utf-8") as file:
        classes = [(mid, name) for mid, name in csv.reader(file) if mid.startswith("/m/")]
    tree = json.loads(paths.hierarchy.read_text(encoding="utf-8"))
    above: dict[str, set[str]] = {mid: set() for mid, _ in classes}
    for parent, child in edges(tree):
        above[child] |= {parent} - {tree["LabelName"]}
    with paths.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("index", "mid", "name", "later", "parents"))
        for index, (mid, name) in enumerate(classes):
            parents = "|".join(sorted(above[mid]))
            writer.writerow((index, mid, name, LATER.get(name, ""), parents))


def edges(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(parent, child) for every is-a relation; part-of relations are left out."""
    for child in node.get("Subcategory", ()):
        yield node["LabelName"], child["LabelName"]
        yield from edges(child)
    for part in node.get("Part", ()):
        yield from edges(part)


if __name__ == "__main__":
    main()
