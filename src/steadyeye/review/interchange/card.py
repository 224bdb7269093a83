"""The data card of an export: what is in it, how it was made, and what is to be filled in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadyeye.core.format import number_of
from steadyeye.data.annotations.coco_images import OUTSIDE
from steadyeye.review.protocol.stages import STAGES, ReviewPlan
from steadyeye.review.sampling.splits import SHARES

Row = Sequence[str]


def write_card(content: Mapping[str, Any], manifest: Mapping[str, Any], plan: ReviewPlan) -> str:
    """The README of an export in Markdown.

    `content`: its annotations.json. `manifest`: the set.json of what was reviewed.
    """
    info = content["info"]
    parts = [
        f"# {info['description']}",
        _describe_set(info["statistics"]),
        "## What is in it",
        _build_statistics(content),
        "## How it was made",
        _describe_making(info["reviewed"], manifest, plan),
        "## Splits",
        _describe_splits(content, plan),
        "## Use",
        _describe_use(info["statistics"]),
        "## Licence",
        "To be filled in before this is passed on:\n\n- images: …\n- annotations: …",
        _describe_origin(info["provenance"]),
    ]
    return "\n\n".join(parts) + "\n"


def _describe_set(counted: Mapping[str, Any]) -> str:
    outside = (
        f", and {number_of(counted['outside'], 'object')} outside them (category `{OUTSIDE}`)"
        if counted["outside"]
        else ""
    )
    return (
        f"{number_of(counted['images'], 'image')} with {number_of(counted['objects'], 'box')} of "
        f"{number_of(len(counted['classes']), 'class')}{outside}, confirmed by people. Where a "
        "detector's confident mistakes were suggested, as in Lau et al., *Natural Adversarial "
        "Objects*, 2021, the set is hard by design: values measured on it do not apply to other "
        "data."
    )


def _build_statistics(content: Mapping[str, Any]) -> str:
    """Table 1 of Lau et al., and every class."""
    counted = content["info"]["statistics"]
    classes = counted["classes"]
    first = [f"{row['name']} ({row['objects']:,})" for row in classes[:3]]
    head = ("images", "objects", "1st object", "2nd object", "3rd object")
    numbers = (f"{counted['images']:,}", f"{counted['objects']:,}")
    table = _build_table(head, [(*numbers, *[*first, "—", "—", "—"][:3])])
    rows = [(row["name"], f"{row['images']:,}", f"{row['objects']:,}") for row in classes]
    return f"{table}\n\n{_build_table(('class', 'images', 'objects'), rows)}"


def _describe_making(
    reviewed: Mapping[str, Any], manifest: Mapping[str, Any], plan: ReviewPlan
) -> str:
    counts, status = reviewed["counts"], reviewed["status"]
    sources = ", ".join(f"`{source['name']}`" for source in manifest.get("sources", ())) or "—"
    people = [person for person in status["reviewers"] if person["decisions"]]
    agreements = {stage["stage"]: stage for stage in status["agreement"]}
    settled = {stage["stage"]: stage for stage in status["table"]}
    rows = []
    for name, votes in plan.votes.items():
        alpha, n = agreements[name]["alpha"], agreements[name]["n"]
        rows.append(
            (
                STAGES[name].title,
                f"{votes or 'all'}",
                f"{settled[name]['reviewed']:,}",
                f"{settled[name]['accepted']:,}",
                "—" if alpha is None else f"{alpha:.2f} ({number_of(n, 'item')})",
            )
        )
    head = ("stage", "votes", "settled", "accepted", "agreement, Krippendorff's α")
    decisions = sum(person["decisions"] for person in people)
    return (
        f"{number_of(counts['boxes_suggested'], 'box')} in {number_of(counts['images'], 'image')} "
        f"were suggested ({sources}). {number_of(len(people), 'reviewer')} made "
        f"{number_of(decisions, 'decision')} on them in the "
        f"review app of steadyeye:\n\n{_build_table(head, rows)}\n\n{counts['boxes_rejected']:,} "
        "suggested boxes were rejected; they are listed in annotations.json under `rejected`, "
        "with the reason. Left out: images with no accepted suggestion, and undecided ones "
        f"({counts['undecided']:,})."
    )


def _describe_splits(content: Mapping[str, Any], plan: ReviewPlan) -> str:
    rows = []
    for name, share in SHARES.items():
        images = {image["id"]: image for image in content["images"] if image["split"] == name}
        boxes = [box for box in content["annotations"] if box["image_id"] in images]
        sources = {image["source"] for image in images.values()}
        numbers = (f"{len(part):,}" for part in (images, boxes, sources))
        rows.append((name, f"{share:.0%}", *numbers))
    table = _build_table(("split", "aimed at", "images", "boxes", "sources"), rows)
    return (
        f"{table}\n\nBalanced class by class (Sechidis et al. 2011), with all images of one source "
        "in one split: those of one folder, such as the frames of a video, and those that nearly "
        f"equal each other. Drawn with the seed {plan.seed}; with few sources the shares are off."
    )


def _describe_use(counted: Mapping[str, Any]) -> str:
    metrics = "map, map_without_ood, mar" if counted["outside"] else "map, mar"
    return (
        "`annotations.json` holds everything, `annotations/instances_*.json` one split each, all "
        "COCO's JSON of instances; `images/` the pictures.\n\n```\n"
        "steadyeye run --model … --data \"nao(root='.')\" "
        f'--metrics "{metrics}"\n```'
    )


def _describe_origin(source: Mapping[str, str]) -> str:
    commit = f", commit {source['commit'][:12]}" if source.get("commit") else ""
    return f"Written by steadyeye {source['steadyeye']}{commit}."


def _build_table(head: Row, rows: Sequence[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


@dataclass(frozen=True)
class ClassCount:
    """A class with how many images show it, and how many objects of it there are."""

    name: str
    images: int
    objects: int


@dataclass(frozen=True)
class Statistics:
    """The numbers of a set of boxes. `images`: all; `annotated`: those with an object of any class.

    `objects`: of the classes, `outside`: outside them. `classes`: those that occur, most objects
    first.
    """

    images: int
    annotated: int
    objects: int
    outside: int
    classes: tuple[ClassCount, ...]


def count_objects(content: Mapping[str, Any], outside: str | None = None) -> Statistics:
    """The numbers of COCO's JSON of instances; crowds are no objects.

    `outside`: the name of the category of objects outside the classes. Lau et al., "Natural
    Adversarial Objects", 2021, Table 1: images, objects, and the three commonest classes.
    """
    names = {category["id"]: category["name"] for category in content["categories"]}
    images: dict[str, list[Any]] = {}  # class → the image of each of its objects
    for box in content["annotations"]:
        if not box.get("iscrowd"):
            images.setdefault(names[box["category_id"]], []).append(box["image_id"])
    others = images.pop(outside, []) if outside else []
    classes = [ClassCount(name, len(set(own)), len(own)) for name, own in images.items()]
    return Statistics(
        len(content["images"]),
        len({image for own in images.values() for image in own}),
        sum(row.objects for row in classes),
        len(others),
        tuple(sorted(classes, key=lambda row: (-row.objects, row.name))),
    )
