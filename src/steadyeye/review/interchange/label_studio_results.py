"""What people said in Label Studio, as annotations."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations.coco_geometry import inside
from steadyeye.data.annotations.review_set import SetFolder, image_path
from steadyeye.review.interchange import label_studio_config as config
from steadyeye.review.interchange.asked import from_choices
from steadyeye.review.protocol.stages import DRAWN, STAGES
from steadyeye.review.results.import_decisions import Annotation, Annotations
from steadyeye.review.sampling.image_store import size

IMAGE = r"[0-9a-f]{64}\.jpg"
Entry = Mapping[str, Any]
Size = tuple[int, int]


def read(folder: SetFolder, path: Path, annotator: str = "") -> Annotations:
    """The annotations in a file that Label Studio exported as JSON.

    `annotator`: who made those that do not say.

    Answers that people skipped or that drafts hold are counted, not taken. Raises `UsageError`
    with how many, and the first, that name no item, no annotator, or have a box that is none.
    """
    found: list[Annotation] = []
    skipped = 0
    wrong: list[str] = []
    for number, task in enumerate(_tasks(path), start=1):
        for entry in task.get("annotations", ()):
            where = f"task {task.get('id', number)} annotation {entry.get('id', '?')}"
            if entry.get("was_cancelled"):
                skipped += 1
                continue
            try:
                found.append(_read(folder, task, {"completed_by": annotator, **entry}, where))
            except (UsageError, KeyError, TypeError, ValueError, AttributeError) as error:
                told = error if isinstance(error, UsageError) else f"not as expected, {error!r}"
                wrong.append(f"{where}: {told}")
    if wrong:
        raise UsageError(f"'{path}': {len(wrong):,} annotations cannot be read, first {wrong[0]}")
    return Annotations(found, {"skipped_by_their_annotator": skipped})


def _tasks(path: Path) -> Sequence[Entry]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the annotations '{path}': {error}") from error
    if not isinstance(content, list) or not all(isinstance(one, dict) for one in content):
        raise UsageError(f"'{path}' is no list of tasks; export from Label Studio as JSON")
    return content


def _read(folder: SetFolder, task: Entry, entry: Entry, where: str) -> Annotation:
    data = task["data"]
    if not {"stage", "key", "image"} <= set(data) or data["stage"] not in STAGES:
        raise UsageError("its task names no stage and key of a set; annotate exported tasks")
    answer, comment = _answer(folder, data, entry["result"])
    made = entry.get("updated_at") or entry.get("created_at")
    version = f"{entry.get('id')}/{made or ''}"
    return Annotation(
        data["stage"],
        data["key"],
        _annotator(entry.get("completed_by")),
        answer,
        f"label_studio/{version}",
        where,
        comment,
        float(entry.get("lead_time") or 0.0),
        datetime.fromisoformat(made).timestamp() if made else None,
    )


def _annotator(who: Any) -> str:
    """The name of who annotated: first and last name, e-mail, or number, what there is."""
    if isinstance(who, dict):
        name = f"{who.get('first_name') or ''} {who.get('last_name') or ''}".strip()
        who = name or who.get("email") or who.get("username") or who.get("id")
    if who in (None, ""):
        raise UsageError("it does not say who made it (completed_by)")
    return f"annotator {who}" if isinstance(who, int) else str(who)


def _answer(folder: SetFolder, data: Entry, result: Sequence[Entry]) -> tuple[Entry, str]:
    stage = data["stage"]
    one: dict[str, str] = {}
    answer: dict[str, Any] = {"boxes": list(_boxes(folder, data, result))}
    comment = ""
    for each in result:
        name, value = each["from_name"], each["value"]
        if each["type"] == "textarea":
            comment = "\n".join(value["text"])
        elif each["type"] == "choices" and name in config.MANY:
            answer[name] = list(value["choices"])
        elif each["type"] == "choices":
            (one[name],) = value["choices"]
    if stage not in DRAWN:
        del answer["boxes"]
    return {**answer, **from_choices(stage, one)}, comment


def _boxes(folder: SetFolder, data: Entry, result: Sequence[Entry]) -> Iterator[Entry]:
    image = next(iter(re.findall(IMAGE, str(data["image"]))), "")
    for each in result:
        if each["type"] != "rectanglelabels" or data["stage"] not in DRAWN:
            continue
        if image not in folder.images:
            raise UsageError(f"this set has no image '{data['image']}'")
        shape = size(image_path(folder.root, image))
        (label,) = each["value"]["rectanglelabels"]
        box = inside(to_pixels(each["value"], shape), *shape)
        if each["value"].get("rotation") or box is None:
            raise UsageError(
                f"the box {each.get('id')} is rotated or outside the image; correct it"
            )
        yield {"box": list(box), "label": label}


def to_pixels(value: Entry, shape: Size) -> tuple[float, float, float, float]:
    """Corners in pixels of a (width, height), of x, y, width and height in percent."""
    x, y, w, h = (float(value[key]) for key in ("x", "y", "width", "height"))
    width, height = shape
    return x * width / 100, y * height / 100, (x + w) * width / 100, (y + h) * height / 100
