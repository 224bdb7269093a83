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
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import write_file
from steadyeye.data.annotations.review_set import SetFolder, image_path
from steadyeye.review.interchange import cvat_labels as config
from steadyeye.review.interchange.asked import AnsweredItem, Said, as_choices, list_answered
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.sampling.image_store import place, size

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
    if config.ANSWER in classes:
        raise UsageError(f"a class is named '{config.ANSWER}', as the tag of answers; rename it")
    counts = {"pictures": 0, "answers": 0}
    for stage in plan.votes:
        rows = sorted(list_answered(connection, stage), key=picture)
        if not rows:
            continue
        target = out / "cvat" / stage
        _pictures(folder, rows, target / "images")
        write_file(target / "labels.json", config.labels(stage, classes))
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
    task.append(config.as_xml(stage, classes))
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
        answer = SubElement(image, "tag", {"label": config.ANSWER, "source": "manual"})
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
    return {r: str(r in given).lower() for r in config.flags(row.stage)}


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
