"""The data card of an export: what is in it, how it was made, and what is left to be said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadyeye.core.format import number_of
from steadyeye.data.annotations.coco_images import OUTSIDE
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.protocol.stages import STAGES
from steadyeye.review.sampling.splits import SHARES

Row = Sequence[str]


def card(content: Mapping[str, Any], manifest: Mapping[str, Any], plan: ReviewPlan) -> str:
    """The README of an export, Markdown.

    `content`: its annotations.json. `manifest`: the set.json of what was reviewed.
    """
    info = content["info"]
    parts = [
        f"# {info['description']}",
        _what(info["statistics"]),
        "## What is in it",
        _statistics(content),
        "## How it was made",
        _describe_making(info["reviewed"], manifest, plan),
        "## Splits",
        _splits(content, plan),
        "## Use",
        _use(info["statistics"]),
        "## Licence",
        "To be filled in before this is passed on:\n\n- images: …\n- annotations: …",
        _origin(info["provenance"]),
    ]
    return "\n\n".join(parts) + "\n"


def _what(counted: Mapping[str, Any]) -> str:
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


def _statistics(content: Mapping[str, Any]) -> str:
    """Table 1 of Lau et al., and every class."""
    counted = content["info"]["statistics"]
    classes = counted["classes"]
    first = [f"{each['name']} ({each['objects']:,})" for each in classes[:3]]
    head = ("images", "objects", "1st object", "2nd object", "3rd object")
    numbers = (f"{counted['images']:,}", f"{counted['objects']:,}")
    table = _table(head, [(*numbers, *[*first, "—", "—", "—"][:3])])
    every = [(each["name"], f"{each['images']:,}", f"{each['objects']:,}") for each in classes]
    return f"{table}\n\n{_table(('class', 'images', 'objects'), every)}"


def _describe_making(
    reviewed: Mapping[str, Any], manifest: Mapping[str, Any], plan: ReviewPlan
) -> str:
    counts, status = reviewed["counts"], reviewed["status"]
    sources = ", ".join(f"`{one['name']}`" for one in manifest.get("sources", ())) or "—"
    answered = [one for one in status["reviewers"] if one["decisions"]]
    agreed = {one["stage"]: one for one in status["agreement"]}
    settled = {one["stage"]: one for one in status["table"]}
    rows = []
    for name, votes in plan.votes.items():
        alpha, n = agreed[name]["alpha"], agreed[name]["n"]
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
    decisions = sum(one["decisions"] for one in answered)
    return (
        f"{number_of(counts['boxes_suggested'], 'box')} in {number_of(counts['images'], 'image')} "
        f"were suggested ({sources}). {number_of(len(answered), 'reviewer')} made "
        f"{number_of(decisions, 'decision')} on them in the "
        f"review app of steadyeye:\n\n{_table(head, rows)}\n\n{counts['boxes_rejected']:,} "
        "suggested boxes were rejected; they are listed in annotations.json under `rejected`, "
        "with the reason. Left out: images with no accepted suggestion, and undecided ones "
        f"({counts['undecided']:,})."
    )


def _splits(content: Mapping[str, Any], plan: ReviewPlan) -> str:
    rows = []
    for name, share in SHARES.items():
        images = {one["id"]: one for one in content["images"] if one["split"] == name}
        boxes = [one for one in content["annotations"] if one["image_id"] in images]
        sources = {one["source"] for one in images.values()}
        numbers = (f"{len(each):,}" for each in (images, boxes, sources))
        rows.append((name, f"{share:.0%}", *numbers))
    table = _table(("split", "aimed at", "images", "boxes", "sources"), rows)
    return (
        f"{table}\n\nBalanced class by class (Sechidis et al. 2011), with all images of one source "
        "in one split: those of one folder, such as the frames of a video, and those that nearly "
        f"equal each other. Drawn with the seed {plan.seed}; with few sources the shares are off."
    )


def _use(counted: Mapping[str, Any]) -> str:
    metrics = "map, map_without_ood, mar" if counted["outside"] else "map, mar"
    return (
        "`annotations.json` holds everything, `annotations/instances_*.json` one split each, all "
        "COCO's JSON of instances; `images/` the pictures.\n\n```\n"
        "steadyeye run --model … --data \"nao(root='.')\" "
        f'--metrics "{metrics}"\n```'
    )


def _origin(made: Mapping[str, str]) -> str:
    commit = f", commit {made['commit'][:12]}" if made.get("commit") else ""
    return f"Written by steadyeye {made['steadyeye']}{commit}."


def _table(head: Row, rows: Sequence[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(each.replace('|', '/') for each in line)} |" for line in lines)


@dataclass(frozen=True)
class ClassCount:
    """A class with how many images show it, and how many objects of it there are."""

    name: str
    images: int
    objects: int


@dataclass(frozen=True)
class Statistics:
    """A set of boxes. `images`: all; `annotated`: those with an object of any class.

    `objects`: of the classes, `outside`: outside them. `classes`: those that occur, most objects
    first.
    """

    images: int
    annotated: int
    objects: int
    outside: int
    classes: tuple[ClassCount, ...]


def statistics(content: Mapping[str, Any], outside: str | None = None) -> Statistics:
    """The numbers of COCO's JSON of instances; crowds are no objects.

    `outside`: the name of the category of objects outside the classes. Lau et al., "Natural
    Adversarial Objects", 2021, Table 1: images, objects, and the three commonest classes.
    """
    names = {each["id"]: each["name"] for each in content["categories"]}
    shown: dict[str, list[Any]] = {}
    for each in content["annotations"]:
        if not each.get("iscrowd"):
            shown.setdefault(names[each["category_id"]], []).append(each["image_id"])
    beyond = shown.pop(outside, []) if outside else []
    classes = [ClassCount(name, len(set(found)), len(found)) for name, found in shown.items()]
    return Statistics(
        len(content["images"]),
        len({image for found in shown.values() for image in found}),
        sum(each.objects for each in classes),
        len(beyond),
        tuple(sorted(classes, key=lambda each: (-each.objects, each.name))),
    )
