"""What is in a set of boxes: the numbers of NAO's Table 1, and of every class."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
