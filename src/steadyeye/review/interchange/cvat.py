"""CVAT: one task per stage, its pictures and suggested boxes, and the answers of its annotators.

::

    pairs/labels.json      the labels of the task, for the raw view of its constructor
    pairs/images/          its pictures; related_images/ holds the anchor of each
    pairs/annotations.xml  suggested boxes, "CVAT for images 1.1"
    pairs/results/ann.xml  the decisions of one reviewer here, in the same form

The form is that of https://docs.cvat.ai/docs/other/xml_format. The tag `steadyeye` on a picture
carries the answer; a picture without it was not answered.
"""

import hashlib
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

from steadyeye.core.errors import UsageError, find_repeated, unknown
from steadyeye.core.format import clean_xml, number_of
from steadyeye.core.storage.files import encode, make_folder, write_file
from steadyeye.core.storage.text_files import read_xml
from steadyeye.data.annotations.coco_geometry import inside
from steadyeye.data.annotations.review_set import SetFolder, image_path
from steadyeye.review.interchange.answers import (
    CANNOT_TELL,
    FORMS,
    SHAPED,
    TEXTS,
    Annotation,
    Annotations,
    AnsweredItem,
    StandingDecision,
    from_choices,
    list_answered,
    list_shape_labels,
    list_shapes,
    take_boxes,
    to_choices,
    to_texts,
)
from steadyeye.review.protocol.stages import DRAWN, REASONS, ReviewPlan
from steadyeye.review.sampling.image_store import copy_image, read_size

ANSWER = "steadyeye"
"""The label of the tag that carries an answer."""

NOTHING = "-"
"""The preset choice of a question, which means no answer."""

TRACK = "track"
"""The attribute of a box with the number of its track; 0: it has none."""

DECLARATION = "<?xml version='1.0' encoding='utf-8'?>"
MANUAL = {"source": "manual"}
CORNERS = ("xtl", "ytl", "xbr", "ybr")

Labels = Sequence[Mapping[str, Any]]


def build_labels(labels: Labels) -> Element:
    """The labels as in the head of CVAT's files."""
    root = Element("labels")
    for row in labels:
        label = SubElement(root, "label")
        for key in ("name", "type"):
            SubElement(label, key).text = row[key]
        attributes = SubElement(label, "attributes")
        for question in row["attributes"]:
            attribute = SubElement(attributes, "attribute")
            mutable, values = str(question["mutable"]), "\n".join(question["values"])
            for key, text in {**question, "mutable": mutable, "values": values}.items():
                SubElement(attribute, key).text = text
    return root


def list_flags(stage: str) -> Sequence[str]:
    """The questions of a stage that are answered by a tick."""
    return REASONS if stage in ("pairs", "joint") else ()


def list_task_labels(stage: str, classes: Sequence[str], *, tracks: bool = False) -> Labels:
    """The labels of the task of a stage; `tracks`: boxes have the number of a track."""
    questions = [
        _build_attribute(name, "select", (NOTHING, *words)) for name, words in FORMS[stage].items()
    ]
    questions += [_build_attribute(name, "text", ("",)) for name in TEXTS.get(stage, ())]
    questions += [_build_attribute(name, "checkbox", ("false",)) for name in list_flags(stage)]
    questions.append(_build_attribute("comment", "text", ("",)))
    answer = {"name": ANSWER, "type": "tag", "attributes": questions}
    if stage in ("pairs", "joint"):
        return [answer]
    # of an anchor a class marks the whole picture
    kind = "tag" if stage == "anchors" else "rectangle"
    names = list_shape_labels(stage, classes)
    number = _build_attribute(TRACK, "number", ("0", str(2**31 - 1), "1"))
    more = [{**number, "mutable": True}] if tracks else []
    return [answer, *({"name": name, "type": kind, "attributes": more} for name in names)]


def _build_attribute(name: str, kind: str, values: Sequence[str]) -> Mapping[str, Any]:
    facts = {"name": name, "mutable": False, "input_type": kind, "default_value": values[0]}
    return {**facts, "values": list(values)}


def export_tasks(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """Writes pictures and answers to `cvat/`, a folder per stage with items; returns their numbers.

    Every item has a picture of its own, so that each is answered alone; the pictures' names are
    random, and so is their order. `partial` has no effect, because open items are exported too.
    """
    classes = folder.class_names
    if ANSWER in classes:
        raise UsageError(f"a class is named '{ANSWER}', as the tag of answers; rename it")
    counts = {"pictures": 0, "answers": 0}
    for stage in plan.votes:
        rows = sorted(list_answered(connection, stage), key=name_picture)
        if not rows:
            continue
        target = out / "cvat" / stage
        _copy_pictures(folder, rows, target / "images")
        labels = list_row_labels(folder, rows)
        write_file(target / "labels.json", encode(labels))
        empty = [_build_image(folder, number, row, None) for number, row in enumerate(rows)]
        write_file(target / "annotations.xml", _encode_file(folder, rows, empty, None))
        people = sorted({decision.name for row in rows for decision in row.decisions})
        for name in people:
            write_results(folder, rows, name, target / "results")
        counts["pictures"] += len(rows)
        counts["answers"] += sum(len(row.decisions) for row in rows)
    return counts


def list_row_labels(folder: SetFolder, rows: Sequence[AnsweredItem]) -> Labels:
    """The labels of the task that asks about some items of one stage."""
    tracks = any("sequence" in row.payload for row in rows)
    return list_task_labels(rows[0].stage, folder.class_names, tracks=tracks)


def name_picture(row: AnsweredItem) -> str:
    """The name of an item's picture."""
    return _name_picture(row.stage, row.key)


def _name_picture(stage: str, key: str) -> str:
    return hashlib.sha256(f"{stage}/{key}".encode()).hexdigest()[:24] + ".jpg"


def _copy_pictures(folder: SetFolder, rows: Sequence[AnsweredItem], target: Path) -> None:
    for row in rows:
        name = name_picture(row)
        copy_image(folder.root, row.payload["image"], target / name)
        beside = row.payload.get("anchor") or row.payload.get("duplicate_image")
        if beside:
            related = target / "related_images" / name.replace(".", "_")
            copy_image(folder.root, beside, related / "anchor.jpg")


def write_results(folder: SetFolder, rows: Sequence[AnsweredItem], name: str, target: Path) -> None:
    """Writes the decisions of one reviewer on some items, as a file of CVAT."""
    own = {row.key: d for row in rows for d in row.decisions if d.name == name}
    images = [_build_image(folder, n, row, own.get(row.key)) for n, row in enumerate(rows)]
    make_folder(target)
    last = max(decision.made_at for decision in own.values())
    write_file(target / f"{_name_file(name)}.xml", _encode_file(folder, rows, images, (name, last)))


def _name_file(name: str) -> str:
    """A unique file name for a reviewer."""
    plain = re.sub(r"[^\w.-]", "_", name)
    is_whole = plain == name and len(name) <= 40
    return name if is_whole else f"{plain[:40]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _encode_file(
    folder: SetFolder,
    rows: Sequence[AnsweredItem],
    images: Sequence[Element],
    who: tuple[str, float] | None,
) -> bytes:
    root = Element("annotations")
    SubElement(root, "version").text = "1.1"
    task = SubElement(SubElement(root, "meta"), "task")
    facts = {
        "name": f"{folder.name} {rows[0].stage}",
        "size": str(len(images)),
        "mode": "annotation",
    }
    if who:
        facts["updated"] = datetime.fromtimestamp(who[1], UTC).isoformat(" ")
    for key, text in facts.items():
        SubElement(task, key).text = text
    if who:
        SubElement(SubElement(task, "assignee"), "username").text = who[0]
    task.append(build_labels(list_row_labels(folder, rows)))
    root.extend(images)
    ElementTree.indent(root)
    content = clean_xml(ElementTree.tostring(root, encoding="unicode"))
    return f"{DECLARATION}\n{content}\n".encode()


def _build_image(
    folder: SetFolder, number: int, row: AnsweredItem, decision: StandingDecision | None
) -> Element:
    width, height = read_size(image_path(folder.root, row.payload["image"]))
    shape = {"width": str(width), "height": str(height)}
    image = Element("image", {"id": str(number), "name": name_picture(row), **shape})
    boxes = list_shapes(row)
    if decision is not None:
        answer, tag = decision.answer, SubElement(image, "tag", {"label": ANSWER, **MANUAL})
        words = {**to_choices(row.stage, answer), **to_texts(row.stage, answer)}
        reasons = answer.get("reasons", ())
        flags = {reason: str(reason in reasons).lower() for reason in list_flags(row.stage)}
        for key, word in {**words, **flags}.items():
            SubElement(tag, "attribute", {"name": key}).text = word
        SubElement(tag, "attribute", {"name": "comment"}).text = decision.comment
        for label in answer.get("labels", ()):
            SubElement(image, "tag", {"label": label, **MANUAL})
        boxes = answer.get("boxes", boxes)
    for box in boxes:
        corners = zip(CORNERS, box["box"], strict=True)
        facts = {"label": box["label"], "source": "manual" if decision else "auto"}
        where = {key: repr(float(value)) for key, value in corners}
        element = SubElement(image, "box", {**facts, "occluded": "0", **where, "z_order": "0"})
        if "sequence" in row.payload:
            SubElement(element, "attribute", {"name": TRACK}).text = str(box.get("track", 0))
    return image


def parse_file(path: Path) -> Element:
    """The root element of a CVAT file. Raises `UsageError` for other files."""
    root = read_xml(path, "annotations")
    if root.tag != "annotations" or root.findall("track"):
        raise UsageError(f"'{path}' is not 'CVAT for images 1.1'; export it in that format")
    twice = find_repeated(_read_name(image) for image in root.iter("image"))
    if twice:
        raise UsageError(f"'{path}' has the picture '{twice[0]}' twice; export one task a file")
    return root


def _read_name(image: Element) -> str:
    """The name of a picture without the folders of the upload, which CVAT stores in it."""
    return image.get("name", "").rpartition("/")[2]


SHAPES = ("polygon", "polyline", "points", "cuboid", "mask", "ellipse", "skeleton")


def read_annotations(folder: SetFolder, path: Path, annotator: str = "") -> Annotations:
    """The annotations in a file of "CVAT for images 1.1", all of one annotator.

    That is the assignee the file names, else `annotator`. CVAT records neither the duration nor the
    time of an answer: all get the time of the task's last change. Pictures without an answer are
    counted, not taken. Raises `UsageError` with the number and the first of those that belong to no
    item or hold no answer of their stage.
    """
    root = parse_file(path)
    who = next((e.text for e in root.iterfind("./meta//assignee/username") if e.text), annotator)
    if not who:
        raise UsageError(f"'{path}' names no assignee; give --annotator")
    task = root.findtext("./meta//id") or root.findtext("./meta//name") or ""
    changed = root.findtext("./meta//updated") or root.findtext("./meta/dumped") or ""
    items = _list_items(folder)
    annotations: list[Annotation] = []
    faults: list[str] = []
    skipped: Counter[str] = Counter({"not_answered": 0})
    for image in root.iter("image"):
        name = image.get("name", "")
        try:
            if (item := items.get(_read_name(image))) is None:
                raise UsageError(
                    "it belongs to no item of this set; annotate what was exported from it"
                )
            stage, key = item
            answer = _read_answer(folder, image, stage, key)
            if answer is None:
                skipped["not_answered"] += 1
                continue
            facts = (f"cvat/{task}/{changed}", f"picture '{name}'", answer[1], 0.0)
            annotations.append(Annotation(stage, key, who, answer[0], *facts, _parse_time(changed)))
        except UsageError as error:
            faults.append(f"picture '{name}': {error}")
    if faults:
        raise UsageError(
            f"'{path}': {number_of(len(faults), 'picture')} cannot be read, first {faults[0]}"
        )
    return Annotations(path, annotations, skipped)


def _list_items(folder: SetFolder) -> Mapping[str, tuple[str, str]]:
    """Picture → (stage, key), of all possible items of a set."""
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
    return {_name_picture(stage, key): (stage, key) for stage in keys for key in keys[stage]}


def _read_answer(
    folder: SetFolder, image: Element, stage: str, key: str
) -> tuple[Mapping[str, Any], str] | None:
    """The answer and the comment of a picture; None if it has no answer."""
    tags = [tag for tag in image.iterfind("tag") if tag.get("label") == ANSWER]
    if not tags:
        return None
    if len(tags) > 1:
        raise UsageError(f"it has {len(tags)} tags '{ANSWER}'; leave one")
    words = {
        question.get("name", ""): question.text or "" for question in tags[0].iterfind("attribute")
    }
    known = (*FORMS[stage], *TEXTS.get(stage, ()), *list_flags(stage), "comment")
    for name in words:
        if name not in known:
            raise unknown("question", name, known)
    texts = {name: words.get(name, "") for name in TEXTS.get(stage, ())}
    unanswered = [name for name in FORMS[stage] if words.get(name, NOTHING) == NOTHING]
    unanswered += [name for name, text in texts.items() if not text]
    if unanswered and CANNOT_TELL not in texts.values():
        raise UsageError(f"its question '{unanswered[0]}' was not answered")
    choices = {name: words[name] for name in FORMS[stage] if words.get(name, NOTHING) != NOTHING}
    answer: dict[str, Any] = dict(from_choices(stage, {**choices, **texts}))
    if list_flags(stage):
        answer["reasons"] = [name for name in list_flags(stage) if words.get(name) == "true"]
    if stage == "anchors":
        labels = [tag.get("label", "") for tag in image.iterfind("tag")]
        answer["labels"] = [label for label in labels if label != ANSWER]
    if stage in SHAPED:
        name = key if stage in DRAWN else folder.objects[key]["image"]
        shapes = _read_boxes(image, read_size(image_path(folder.root, name)))
        answer |= take_boxes(folder, stage, key, shapes)
    return answer, words.get("comment", "")


def _read_boxes(image: Element, size: tuple[int, int]) -> Sequence[Mapping[str, Any]]:
    """The boxes of a picture; `size`: (width, height) of it in the set, in pixels."""
    other = [shape.tag for shape in image if shape.tag in SHAPES]
    if other:
        raise UsageError(f"it has a {other[0]}; draw boxes only")
    annotated = f"{image.get('width')} × {image.get('height')}"
    expected = f"{size[0]} × {size[1]}"
    if annotated != expected:
        raise UsageError(
            f"it is {annotated} pixels there, and {expected} in this set; annotate the pictures "
            "that were exported"
        )
    boxes = []
    for number, element in enumerate(image.iterfind("box"), start=1):
        try:
            corners = [float(element.get(name, "nan")) for name in CORNERS]
            rotation = float(element.get("rotation", 0))
        except ValueError:
            corners, rotation = [math.nan] * 4, 0.0
        box = inside(corners, *size)
        if box is None or rotation:
            raise UsageError(f"its box {number} is rotated or outside the image; correct it")
        track = element.findtext(f"attribute[@name='{TRACK}']") or "0"
        if not track.isdecimal():
            raise UsageError(f"its box {number} is of track '{track}'; give a number, 0 for none")
        more = {"track": int(track)} if int(track) else {}
        boxes.append({"box": list(box), "label": element.get("label", ""), **more})
    return boxes


def _parse_time(text: str) -> float | None:
    if not text:
        return None
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"'{text}' is not a date; export the task again") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
