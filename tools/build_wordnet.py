"""Derives the class lists and the WordNet excerpt that steadyeye ships.

    python tools/build_wordnet.py --nouns data.noun --index index.noun --synsets synsets.txt \
        --vid30 vid30.json --ytbb ytbb_class_index.json --out src/steadyeye/data/classes/data

`data.noun` and `index.noun` are WordNet 3.0's (Debian: `wordnet-base`); `synsets.txt` lists the
1,000 ILSVRC-2012 synsets in order (timm ships it as `data/_info/imagenet_synsets.txt`); the JSON
files are the class lists of ImageNet-Vid and of the YTBB-Robust release. What the folder's own
`meanings.csv` names is part of the excerpt too.
"""

import argparse
import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# the meaning of each YTBB class; docs/reference/class-maps.md explains the three marked ones
YTBB = {
    "person": "n00007846",
    "bird": "n01503061",
    "bicycle": "n02834778",
    "boat": "n02858304",
    "bus": "n02924116",
    "bear": "n02131653",
    "cow": "n02403454",  # cow, not cattle
    "cat": "n02121620",
    "giraffe": "n02439033",
    "potted plant": "n11669921",  # flower, not pot plant
    "horse": "n02374451",
    "motorcycle": "n03790512",
    "knife": "n03623556",
    "airplane": "n02691156",
    "skateboard": "n04225987",
    "train": "n04468005",
    "truck": "n04490091",
    "zebra": "n02391049",
    "toilet": "n04446521",  # the fixture, not the room
    "dog": "n02084071",
    "elephant": "n02503517",
    "umbrella": "n04507155",
    "none": "",
    "car": "n02958343",
}


@dataclass(frozen=True)
class Synset:
    """Lemmas as in WordNet (`pot_plant`), their sense numbers, wnids of hypernyms."""

    lemmas: tuple[str, ...]
    senses: tuple[int, ...]
    hypernyms: tuple[str, ...]


def main() -> None:
    """Writes the data files into the folder given by `--out`."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for option in ("nouns", "index", "synsets", "vid30", "ytbb", "out"):
        parser.add_argument(f"--{option}", type=Path, required=True)
    paths = parser.parse_args()
    ilsvrc = paths.synsets.read_text(encoding="utf-8").split()
    vid = [(entry["name"], entry["wnid"]) for entry in json.loads(paths.vid30.read_text())]
    ytbb = [(name, YTBB[name]) for name in json.loads(paths.ytbb.read_text()).values()]
    targets = [wnid for _, wnid in vid + ytbb if wnid]
    every = nouns(paths.nouns, senses(paths.index))
    synsets = closure([*ilsvrc, *targets], every)
    write_classes(paths.out / "imagenet1k.csv", zip(labels(ilsvrc, synsets), ilsvrc, strict=True))
    write_classes(paths.out / "vid30.csv", vid)
    write_classes(paths.out / "ytbb.csv", ytbb)
    # ILSVRC's labels stay unchanged, whatever other classes are shipped
    meant = meanings(paths.out / "meanings.csv")
    write_synsets(paths.out / "wordnet.csv", closure([*ilsvrc, *targets, *meant], every))
    (paths.out / "WORDNET_LICENSE.txt").write_text(licence(paths.nouns), encoding="utf-8")


def meanings(path: Path) -> list[str]:
    """The wnids of the detectors' classes."""
    with path.open(newline="", encoding="utf-8") as file:
        return [row["wnid"] for row in csv.DictReader(file) if row["wnid"]]


def senses(path: Path) -> dict[tuple[str, str], int]:
    """(lower-case lemma, wnid) → sense number, from 1, the most frequent sense first."""
    by_synset = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):  # the licence
            continue
        fields = line.split()
        for number, offset in enumerate(fields[-int(fields[2]) :], start=1):
            by_synset[fields[0], f"n{offset}"] = number
    return by_synset


def nouns(path: Path, sense: Mapping[tuple[str, str], int]) -> dict[str, Synset]:
    """Wnid → synset for every line of `data.noun` (format: wndb(5WN))."""
    by_offset = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            continue
        fields = line.split(" ")
        wnid = f"n{fields[0]}"
        after = 4 + 2 * int(fields[3], 16)
        lemmas = tuple(fields[4:after:2])
        pointers = fields[after + 1 : after + 1 + 4 * int(fields[after])]
        above = [o for s, o in zip(pointers[::4], pointers[1::4], strict=True) if s in {"@", "@i"}]
        by_offset[wnid] = Synset(
            lemmas=lemmas,
            senses=tuple(sense[lemma.lower(), wnid] for lemma in lemmas),
            hypernyms=tuple(f"n{offset}" for offset in above),
        )
    return by_offset


def labels(wnids: Iterable[str], synsets: Mapping[str, Synset]) -> list[str]:
    """A short label for each class that means this class and no other of the `kept` synsets.

    The first lemma whose lowest sense is the class (`flowerpot`, not `pot`); without one, the first
    lemma with the hypernym in brackets: `crane (wading bird)`.
    """
    senses = sorted(
        (number, wnid, lemma.lower())
        for wnid, synset in synsets.items()
        for lemma, number in zip(synset.lemmas, synset.senses, strict=True)
    )
    meaning = {lemma: wnid for _, wnid, lemma in reversed(senses)}
    texts = []
    for wnid in wnids:
        own = [lemma for lemma in synsets[wnid].lemmas if meaning[lemma.lower()] == wnid]
        above = synsets[synsets[wnid].hypernyms[0]].lemmas[0]
        label = own[0] if own else f"{synsets[wnid].lemmas[0]} ({above})"
        texts.append(label.replace("_", " "))
    return texts


def closure(wnids: Iterable[str], synsets: Mapping[str, Synset]) -> dict[str, Synset]:
    """The synsets and all their ancestors, sorted by wnid."""
    ancestors: set[str] = set()
    queue = list(wnids)
    while queue:
        wnid = queue.pop()
        if wnid not in ancestors:
            ancestors.add(wnid)
            queue.extend(synsets[wnid].hypernyms)
    return {wnid: synsets[wnid] for wnid in sorted(ancestors)}


def write_classes(path: Path, classes: Iterable[tuple[str, str]]) -> None:
    """Writes (name, wnid) pairs as index,wnid,name."""
    rows = [(index, wnid, name) for index, (name, wnid) in enumerate(classes)]
    _write(path, ("index", "wnid", "name"), rows)


def write_synsets(path: Path, synsets: Mapping[str, Synset]) -> None:
    """Writes wnid, lemmas with sense numbers (`car#1|auto#1`) and hypernyms."""
    rows = []
    for wnid, synset in synsets.items():
        lemmas = zip(synset.lemmas, synset.senses, strict=True)
        marked = "|".join(f"{lemma}#{number}" for lemma, number in lemmas)
        rows.append((wnid, marked, "|".join(synset.hypernyms)))
    _write(path, ("wnid", "lemmas", "hypernyms"), rows)


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def licence(path: Path) -> str:
    """The licence at the start of `data.noun`, without its line numbers, and what was taken."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line[:2] == "  "]
    text = "\n".join(line.lstrip().partition(" ")[2].rstrip() for line in lines)
    return (
        "wordnet.csv, and the WordNet ids and labels in the other files of this folder, are an\n"
        "excerpt of WordNet 3.0 (nouns: the classes of ILSVRC-2012, ImageNet-Vid, YTBB-Robust and\n"
        "of meanings.csv, with all their hypernyms), reformatted by tools/build_wordnet.py.\n\n"
        + text
        + "\n"
    )


if __name__ == "__main__":
    main()
