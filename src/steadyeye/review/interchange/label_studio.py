"""Label Studio: a project a stage, its tasks, and what its people said.

::

    pairs.xml           the labeling config of a project
    pairs.tasks.json    its tasks, suggested boxes as predictions
    pairs.results.json  what was decided here, in the form in which Label Studio exports

The forms are those of https://labelstud.io/guide/task_format and /guide/predictions.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
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
from steadyeye.review.protocol.stages import DRAWN, REASONS, STAGES, list_labels
from steadyeye.review.results.import_decisions import Annotation, Annotations
from steadyeye.review.sampling.image_store import size

MANY = ("labels", "reasons")
"""Questions of which several choices may hold."""


def labeling(stage: str, classes: Sequence[str]) -> str:
    """The config of a project for one stage, XML."""
    lines = ["<View>", f"  <Header value={quoteattr(STAGES[stage].question)}/>"]
    if stage not in DRAWN:
        lines.append('  <Text name="shown" value="$labels"/>')
    if stage in ("pairs", "joint"):
        lines.append('  <Image name="anchor" value="$anchor" zoom="true"/>')
    lines.append('  <Image name="image" value="$image" zoom="true"/>')
    if stage in ("classification", *DRAWN):
        lines += [
            '  <RectangleLabels name="boxes" toName="image" canRotate="false">',
            *(f"    <Label value={quoteattr(name)}/>" for name in list_labels(stage, classes)),
            "  </RectangleLabels>",
        ]
    for name, choices in FORMS[stage].items():
        lines += _choices(name, choices, 'choice="single" required="true" showInline="true"')
    if stage == "anchors" and classes:
        lines += _choices("labels", classes, 'choice="multiple" layout="select"')
    if stage in ("pairs", "joint"):
        lines += _choices("reasons", REASONS, 'choice="multiple" showInline="true"')
    lines += ['  <TextArea name="comment" toName="image" rows="1" maxSubmissions="1"/>', "</View>"]
    return "\n".join(lines) + "\n"


def _choices(name: str, choices: Sequence[str], how: str) -> list[str]:
    return [
        f'  <Header value={quoteattr(name.replace("_", " "))} size="5"/>',
        f'  <Choices name="{name}" toName="image" {how}>',
        *(f"    <Choice value={quoteattr(choice)}/>" for choice in choices),
        "  </Choices>",
    ]


SERVED = "/data/local-files/?d=images/"
"""Where Label Studio serves images whose document root is the folder of the set."""

Entry = Mapping[str, Any]
Size = tuple[int, int]


def export(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """Writes `label_studio/`: config, tasks and results of every stage that asks something.

    Returns how many tasks and annotations. `partial` changes nothing: what is open is what there
    is to ask. Images are not copied; see `SERVED`.
    """
    target = out / "label_studio"
    target.mkdir(parents=True, exist_ok=True)
    classes = folder.classes.names if folder.classes else ()
    counts = {"tasks": 0, "annotations": 0}
    for stage in plan.votes:
        rows = list_answered(connection, stage)
        if not rows:
            continue
        sizes = {row.payload["image"]: _size(folder, row.payload["image"]) for row in rows}
        tasks = [_task(row, sizes[row.payload["image"]]) for row in rows]
        results = [
            {
                **task,
                "id": number,
                "annotations": [_annotation(one, row, sizes) for one in row.said],
            }
            for number, (task, row) in enumerate(zip(tasks, rows, strict=True), start=1)
            if row.said
        ]
        write_file(target / f"{stage}.xml", labeling(stage, classes).encode())
        write_file(target / f"{stage}.tasks.json", _json(tasks))
        write_file(target / f"{stage}.results.json", _json(results))
        counts["tasks"] += len(tasks)
        counts["annotations"] += sum(len(row.said) for row in rows)
    return counts


def _json(content: Sequence[Entry]) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def _size(folder: SetFolder, image: str) -> Size:
    return size(image_path(folder.root, image))


def _task(row: AnsweredItem, shape: Size) -> Entry:
    payload = row.payload
    data = {"stage": row.stage, "key": row.key, "image": _url(payload["image"])}
    if "anchor" in payload:
        data["anchor"] = _url(payload["anchor"])
    data["labels"] = ", ".join(payload.get("labels", ())) or payload.get("label", "")
    if "duplicate_image" in payload:
        data["labels"] += f" (nearly equals the anchor {payload['duplicate_of']})"
    boxes = payload.get("boxes") or ([payload] if "box" in payload else [])
    suggested = [_rectangle(number, box, shape) for number, box in enumerate(boxes)]
    return {
        "data": data,
        "predictions": [{"model_version": "suggested", "result": suggested}] if suggested else [],
    }


def _url(image: str) -> str:
    return f"{SERVED}{image[:2]}/{image}"


def _rectangle(number: int, box: Entry, shape: Size) -> Entry:
    return {
        "id": f"box{number}",
        "from_name": "boxes",
        "to_name": "image",
        "type": "rectanglelabels",
        "original_width": shape[0],
        "original_height": shape[1],
        "image_rotation": 0,
        "value": {
            **to_percent(box["box"], shape),
            "rotation": 0,
            "rectanglelabels": [box["label"]],
        },
    }


def to_percent(box: Sequence[float], shape: Size) -> Mapping[str, float]:
    """x, y, width and height in percent of a (width, height), of corners in pixels."""
    x0, y0, x1, y1 = (float(value) for value in box)
    width, height = shape
    return {
        "x": 100 * x0 / width,
        "y": 100 * y0 / height,
        "width": 100 * (x1 - x0) / width,
        "height": 100 * (y1 - y0) / height,
    }


def _annotation(said: Said, row: AnsweredItem, sizes: Mapping[str, Size]) -> Entry:
    made = datetime.fromtimestamp(said.made_at, UTC).isoformat().replace("+00:00", "Z")
    result = [_choice(name, [word]) for name, word in as_choices(row.stage, said.answer).items()]
    many = {name: said.answer[name] for name in MANY if said.answer.get(name)}
    result += [_choice(name, words) for name, words in many.items()]
    boxes = said.answer.get("boxes", ())
    shape = sizes[row.payload["image"]]
    result += [_rectangle(number, box, shape) for number, box in enumerate(boxes)]
    if said.comment:
        text = {"from_name": "comment", "to_name": "image", "type": "textarea"}
        result.append({**text, "value": {"text": [said.comment]}})
    return {
        "id": said.id,
        "completed_by": {"id": said.reviewer, "email": "", "first_name": said.name},
        "result": result,
        "was_cancelled": False,
        "created_at": made,
        "updated_at": made,
        "lead_time": said.seconds,
    }


def _choice(name: str, words: Sequence[str]) -> Entry:
    control = {"from_name": name, "to_name": "image", "type": "choices"}
    return {**control, "value": {"choices": list(words)}}


IMAGE = r"[0-9a-f]{64}\.jpg"


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
        elif each["type"] == "choices" and name in MANY:
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
