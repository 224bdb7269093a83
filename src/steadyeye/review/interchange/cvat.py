"""CVAT: a task a stage, its pictures and suggested boxes, and what its people said.

::

    pairs/labels.json      the labels of the task, for the raw view of its constructor
    pairs/images/          its pictures; related_images/ holds the anchor of each
    pairs/annotations.xml  suggested boxes, "CVAT for images 1.1"
    pairs/results/ann.xml  what one reviewer decided here, in the same form

The form is that of https://docs.cvat.ai/docs/other/xml_format. The tag `steadyeye` on a picture
carries the answer; a picture without it was not answered.
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import write_file
from steadyeye.data.annotations.coco_geometry import inside
from steadyeye.data.annotations.review_set import SetFolder, image_path
from steadyeye.review.interchange.asked import (
    FORMS,
    AnsweredItem,
    Said,
    as_choices,
    from_choices,
    list_answered,
)
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.protocol.stages import REASONS, STAGES, list_labels
from steadyeye.review.results.import_decisions import Annotation, Annotations
from steadyeye.review.sampling.image_store import place, size

ANSWER = "steadyeye"
"""The label of the tag that carries an answer."""

NOTHING = "-"
"""The choice that a question has before anybody chose."""


def labels(stage: str, classes: Sequence[str]) -> bytes:
    """The labels of the task of a stage, JSON as the constructor of CVAT's tasks takes it."""
    return (json.dumps(_labels(stage, classes), indent=1, ensure_ascii=False) + "\n").encode()


def as_xml(stage: str, classes: Sequence[str]) -> Element:
    """The same, as in the head of CVAT's files."""
    root = Element("labels")
    for each in _labels(stage, classes):
        label = SubElement(root, "label")
        for key in ("name", "type"):
            SubElement(label, key).text = each[key]
        attributes = SubElement(label, "attributes")
        for one in each["attributes"]:
            attribute = SubElement(attributes, "attribute")
            told = {**one, "mutable": str(one["mutable"]), "values": "\n".join(one["values"])}
            for key, text in told.items():
                SubElement(attribute, key).text = text
    return root


def flags(stage: str) -> Sequence[str]:
    """The questions of a stage that are answered by a tick."""
    return REASONS if stage in ("pairs", "joint") else ()


def shape(stage: str) -> str:
    """What a class marks in a stage: the whole picture, or a box."""
    return "tag" if stage == "anchors" else "rectangle"


def _labels(stage: str, classes: Sequence[str]) -> list[Mapping[str, Any]]:
    asked = [_attribute(n, "select", (NOTHING, *words)) for n, words in FORMS[stage].items()]
    asked += [_attribute(name, "checkbox", ("false",)) for name in flags(stage)]
    asked.append(_attribute("comment", "text", ("",)))
    answer = {"name": ANSWER, "type": "tag", "attributes": asked}
    if stage in ("pairs", "joint"):
        return [answer]
    kind, names = shape(stage), list_labels(stage, classes)
    return [answer, *({"name": name, "type": kind, "attributes": []} for name in names)]


def _attribute(name: str, kind: str, values: Sequence[str]) -> Mapping[str, Any]:
    first = values[0]
    told = {"mutable": False, "input_type": kind, "default_value": first}
    return {"name": name, **told, "values": list(values)}


Size = tuple[int, int]


def export(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """Writes `cvat/`, one folder for every stage that asks something.

    Every item has a picture of its own, so that each is answered alone; the pictures' names are
    random, and so is their order. Returns how many. `partial` changes nothing: what is open is
    what there is to ask.
    """
    classes = folder.classes.names if folder.classes else ()
    if ANSWER in classes:
        raise UsageError(f"a class is named '{ANSWER}', as the tag of answers; rename it")
    counts = {"pictures": 0, "answers": 0}
    for stage in plan.votes:
        rows = sorted(list_answered(connection, stage), key=picture)
        if not rows:
            continue
        target = out / "cvat" / stage
        _pictures(folder, rows, target / "images")
        write_file(target / "labels.json", labels(stage, classes))
        empty = [_image(folder, number, row, None) for number, row in enumerate(rows)]
        write_file(target / "annotations.xml", _file(folder, stage, empty, None))
        people = sorted({said.name for row in rows for said in row.said})
        for name in people:
            write_results(folder, rows, name, target / "results")
        counts["pictures"] += len(rows)
        counts["answers"] += sum(len(row.said) for row in rows)
    return counts


def picture(row: AnsweredItem) -> str:
    """The name of an item's picture."""
    return name_of(row.stage, row.key)


def name_of(stage: str, key: str) -> str:
    """The name of the picture of what is asked under a key in a stage."""
    return hashlib.sha256(f"{stage}/{key}".encode()).hexdigest()[:24] + ".jpg"


def _pictures(folder: SetFolder, rows: Sequence[AnsweredItem], target: Path) -> None:
    for row in rows:
        name = picture(row)
        place(folder.root, row.payload["image"], target / name)
        beside = row.payload.get("anchor") or row.payload.get("duplicate_image")
        if beside:
            related = target / "related_images" / name.replace(".", "_")
            place(folder.root, beside, related / "anchor.jpg")


def write_results(folder: SetFolder, rows: Sequence[AnsweredItem], name: str, target: Path) -> None:
    """What one reviewer said of some items, as a file of CVAT."""
    said = {row.key: one for row in rows for one in row.said if one.name == name}
    images = [_image(folder, n, row, said.get(row.key)) for n, row in enumerate(rows)]
    target.mkdir(parents=True, exist_ok=True)
    file = re.sub(r"[^\w.-]", "_", name)
    last = max(one.made_at for one in said.values())
    write_file(target / f"{file}.xml", _file(folder, rows[0].stage, images, (name, last)))


def _file(
    folder: SetFolder, stage: str, images: Sequence[Element], who: tuple[str, float] | None
) -> bytes:
    root = Element("annotations")
    SubElement(root, "version").text = "1.1"
    task = SubElement(SubElement(root, "meta"), "task")
    facts = {"name": f"{folder.name} {stage}", "size": str(len(images)), "mode": "annotation"}
    if who:
        facts["updated"] = datetime.fromtimestamp(who[1], UTC).isoformat(" ")
    for key, text in facts.items():
        SubElement(task, key).text = text
    if who:
        SubElement(SubElement(task, "assignee"), "username").text = who[0]
    classes = folder.classes.names if folder.classes else ()
    task.append(as_xml(stage, classes))
    root.extend(images)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _image(folder: SetFolder, number: int, row: AnsweredItem, said: Said | None) -> Element:
    width, height = size(image_path(folder.root, row.payload["image"]))
    shape = {"width": str(width), "height": str(height)}
    image = Element("image", {"id": str(number), "name": picture(row), **shape})
    payload = row.payload
    boxes: Any = payload.get("boxes") or ([payload] if "box" in payload else [])
    if said is not None:
        answer = SubElement(image, "tag", {"label": ANSWER, "source": "manual"})
        for key, word in {**as_choices(row.stage, said.answer), **_flags(row, said)}.items():
            SubElement(answer, "attribute", {"name": key}).text = word
        SubElement(answer, "attribute", {"name": "comment"}).text = said.comment
        for label in said.answer.get("labels", ()):
            SubElement(image, "tag", {"label": label, "source": "manual"})
        boxes = said.answer.get("boxes", boxes)
    for each in boxes:
        corners = zip(("xtl", "ytl", "xbr", "ybr"), each["box"], strict=True)
        said_box = {"label": each["label"], "source": "manual" if said else "auto"}
        where = {key: repr(float(value)) for key, value in corners}
        SubElement(image, "box", {**said_box, "occluded": "0", **where, "z_order": "0"})
    return image


def _flags(row: AnsweredItem, said: Said) -> Mapping[str, str]:
    given = said.answer.get("reasons", ())
    return {r: str(r in given).lower() for r in flags(row.stage)}


def parse(path: Path) -> Element:
    """The root of a file of CVAT. Raises `UsageError` for one that is none."""
    try:
        content = path.read_bytes()
        # entities can grow without bound, and CVAT writes none
        if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
            raise UsageError(f"'{path}' defines entities, which CVAT never does; export it again")
        root = ElementTree.fromstring(content)  # noqa: S314 - entities are refused above
    except OSError as error:
        raise UsageError(f"cannot read the annotations '{path}': {error.strerror}") from error
    except ElementTree.ParseError as error:
        raise UsageError(f"cannot read the annotations '{path}': {error}") from error
    if root.tag != "annotations" or root.findall("track"):
        raise UsageError(f"'{path}' is not 'CVAT for images 1.1'; export it in that format")
    twice = [n for n, t in Counter(i.get("name") for i in root.iter("image")).items() if t > 1]
    if twice:
        raise UsageError(f"'{path}' has the picture '{twice[0]}' twice; export one task a file")
    return root


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
    tags = [tag for tag in image.iterfind("tag") if tag.get("label") == ANSWER]
    if not tags:
        return None
    if len(tags) > 1:
        raise UsageError(f"it has {len(tags)} tags '{ANSWER}'; leave one")
    said = {each.get("name", ""): each.text or "" for each in tags[0].iterfind("attribute")}
    known = (*FORMS[stage], *flags(stage), "comment")
    for name in said:
        if name not in known:
            raise unknown("question", name, known)
    open_ones = [name for name in FORMS[stage] if said.get(name, NOTHING) == NOTHING]
    if open_ones:
        raise UsageError(f"its question '{open_ones[0]}' was not answered")
    answer: dict[str, Any] = dict(from_choices(stage, {name: said[name] for name in FORMS[stage]}))
    if flags(stage):
        answer["reasons"] = [name for name in flags(stage) if said.get(name) == "true"]
    if stage == "anchors":
        labels = [tag.get("label", "") for tag in image.iterfind("tag")]
        answer["labels"] = [label for label in labels if label != ANSWER]
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
