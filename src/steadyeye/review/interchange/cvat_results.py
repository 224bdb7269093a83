"""What people said in CVAT, as annotations."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.data.annotations.coco_geometry import inside
from steadyeye.data.annotations.review_set import SetFolder
from steadyeye.review.interchange import cvat_labels as config
from steadyeye.review.interchange.asked import FORMS, from_choices
from steadyeye.review.interchange.cvat import name_of, parse
from steadyeye.review.protocol.stages import STAGES
from steadyeye.review.results.import_decisions import Annotation, Annotations

CORNERS = ("xtl", "ytl", "xbr", "ybr")
SHAPES = ("polygon", "polyline", "points", "cuboid", "mask", "ellipse", "skeleton")


def read(folder: SetFolder, path: Path, annotator: str = "") -> Annotations:
    """The annotations in a file of "CVAT for images 1.1", all of one annotator.

    That is the assignee the file names, else `annotator`. CVAT does not say how long an answer
    took, nor when each was given: all count as of the task's last change. Pictures without an
    answer are counted, not taken. Raises `UsageError` with how many, and the first, that are of no
    item or hold no answer of their stage.
    """
    root = parse(path)
    who = next((e.text for e in root.iterfind("./meta//assignee/username") if e.text), annotator)
    if not who:
        raise UsageError(f"'{path}' names no assignee; give --annotator")
    task = root.findtext("./meta//id") or root.findtext("./meta//name") or ""
    changed = root.findtext("./meta//updated") or root.findtext("./meta/dumped") or ""
    items = _items(folder)
    found: list[Annotation] = []
    wrong: list[str] = []
    skipped: Counter[str] = Counter({"not_answered": 0})
    for image in root.iter("image"):
        name = image.get("name", "")
        try:
            stage, key = _item(items, name)
            answered = _answer(image, stage)
            if answered is None:
                skipped["not_answered"] += 1
                continue
            identity = f"cvat/{task}/{changed}"
            told = (identity, f"picture '{name}'", answered[1], 0.0, _time(changed))
            found.append(Annotation(stage, key, who, answered[0], *told))
        except UsageError as error:
            wrong.append(f"picture '{name}': {error}")
    if wrong:
        raise UsageError(
            f"'{path}': {number_of(len(wrong), 'picture')} cannot be read, first {wrong[0]}"
        )
    return Annotations(found, skipped)


def _items(folder: SetFolder) -> Mapping[str, tuple[str, str]]:
    """Picture → (stage, key), of everything that a set may ask."""
    frames = folder.frames.to_pylist()
    pairs = {row["id"] for row in frames if row["offset"]}
    images = set(folder.boxes["image"].to_pylist())
    keys = {
        "anchors": {row["group"] for row in frames},
        "pairs": pairs,
        "joint": pairs,
        "classification": set(folder.boxes["id"].to_pylist()),
        "boxes": images,
        "box_check": images,
    }
    return {name_of(stage, key): (stage, key) for stage in STAGES for key in keys[stage]}


def _item(items: Mapping[str, tuple[str, str]], name: str) -> tuple[str, str]:
    # CVAT keeps the folders of what was uploaded in the name
    found = items.get(name.rpartition("/")[2])
    if found is None:
        raise UsageError("it belongs to no item of this set; annotate what was exported from it")
    return found


def _answer(image: Element, stage: str) -> tuple[Mapping[str, Any], str] | None:
    """The answer a picture carries and its comment; None where it carries none."""
    tags = [tag for tag in image.iterfind("tag") if tag.get("label") == config.ANSWER]
    if not tags:
        return None
    if len(tags) > 1:
        raise UsageError(f"it has {len(tags)} tags '{config.ANSWER}'; leave one")
    said = {each.get("name", ""): each.text or "" for each in tags[0].iterfind("attribute")}
    known = (*FORMS[stage], *config.flags(stage), "comment")
    for name in said:
        if name not in known:
            raise unknown("question", name, known)
    open_ones = [name for name in FORMS[stage] if said.get(name, config.NOTHING) == config.NOTHING]
    if open_ones:
        raise UsageError(f"its question '{open_ones[0]}' was not answered")
    answer: dict[str, Any] = dict(from_choices(stage, {name: said[name] for name in FORMS[stage]}))
    if config.flags(stage):
        answer["reasons"] = [name for name in config.flags(stage) if said.get(name) == "true"]
    if stage == "anchors":
        labels = [tag.get("label", "") for tag in image.iterfind("tag")]
        answer["labels"] = [label for label in labels if label != config.ANSWER]
    if stage in ("boxes", "box_check"):
        answer["boxes"] = _boxes(image)
    return answer, said.get("comment", "")


def _boxes(image: Element) -> Sequence[Mapping[str, Any]]:
    other = [each.tag for each in image if each.tag in SHAPES]
    if other:
        raise UsageError(f"it has a {other[0]}; draw boxes only")
    size = float(image.get("width", "nan")), float(image.get("height", "nan"))
    found = []
    for number, each in enumerate(image.iterfind("box"), start=1):
        try:
            corners = [float(each.get(name, "nan")) for name in CORNERS]
        except ValueError:
            corners = [math.nan] * 4
        box = inside(corners, *size)
        if box is None or float(each.get("rotation", 0)):
            raise UsageError(f"its box {number} is rotated or outside the image; correct it")
        found.append({"box": list(box), "label": each.get("label", "")})
    return found


def _time(text: str) -> float | None:
    if not text:
        return None
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"'{text}' is not a date; export the task again") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
