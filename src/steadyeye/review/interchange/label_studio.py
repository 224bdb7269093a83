"""Label Studio: one project per stage, its tasks, and the answers of its annotators.

::

    pairs.xml           the labeling config of a project
    pairs.tasks.json    its tasks, suggested boxes as predictions
    pairs.results.json  the decisions made here, in the form in which Label Studio exports

The forms are those of https://labelstud.io/guide/task_format and /guide/predictions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import encode, make_folder, write_file
from steadyeye.core.storage.text_files import read_json
from steadyeye.data.annotations.coco_geometry import inside
from steadyeye.data.annotations.review_set import SetFolder, image_path
from steadyeye.review.interchange.answers import (
    ASKED,
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
from steadyeye.review.protocol.stages import DRAWN, REASONS, STAGES, ReviewPlan
from steadyeye.review.sampling.image_store import read_size

MANY = ("labels", "reasons")
"""Questions with multiple choices."""

WORDS = ("choices", "number", "textarea")
"""The types of answers other than regions."""


def build_config(stage: str, classes: Sequence[str], *, tracks: bool = False) -> str:
    """The config of a project for one stage, XML; `tracks`: boxes have the number of a track."""
    lines = ["<View>", f"  <Header value={quoteattr(STAGES[stage].question)}/>"]
    if stage not in DRAWN:
        lines.append('  <Text name="shown" value="$labels"/>')
    if stage in ("pairs", "joint"):
        lines.append('  <Image name="anchor" value="$anchor" zoom="true"/>')
    lines.append('  <Image name="image" value="$image" zoom="true"/>')
    if stage in SHAPED:
        lines += [
            '  <RectangleLabels name="boxes" toName="image" canRotate="false">',
            *(
                f"    <Label value={quoteattr(name)}/>"
                for name in list_shape_labels(stage, classes)
            ),
            "  </RectangleLabels>",
        ]
    if tracks:
        lines.append('  <Number name="track" toName="image" perRegion="true" min="1" step="1"/>')
    for name in TEXTS.get(stage, ()):
        lines.append(f"  <Header value={quoteattr(ASKED[name])}/>")
        lines.append(f'  <TextArea name="{name}" toName="image" rows="1" maxSubmissions="1"/>')
    for name, choices in FORMS[stage].items():
        lines += _build_choices(name, choices, 'choice="single" required="true" showInline="true"')
    if stage == "anchors" and classes:
        lines += _build_choices("labels", classes, 'choice="multiple" layout="select"')
    if stage in ("pairs", "joint"):
        lines += _build_choices("reasons", REASONS, 'choice="multiple" showInline="true"')
    lines += ['  <TextArea name="comment" toName="image" rows="1" maxSubmissions="1"/>', "</View>"]
    return "\n".join(lines) + "\n"


def _build_choices(name: str, choices: Sequence[str], how: str) -> list[str]:
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


def export_tasks(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """Writes tasks, annotations and configs to `label_studio/`; returns the first two numbers.

    `partial` has no effect, because open items are exported too. Images are not copied; see
    `SERVED`.
    """
    target = out / "label_studio"
    make_folder(target)
    classes = folder.class_names
    counts = {"tasks": 0, "annotations": 0}
    for stage in plan.votes:
        rows = list_answered(connection, stage)
        if not rows:
            continue
        sizes = {row.payload["image"]: _read_size(folder, row.payload["image"]) for row in rows}
        tasks = [_build_task(row, sizes[row.payload["image"]]) for row in rows]
        results = [
            {
                **task,
                "id": number,
                "annotations": [_build_annotation(d, row, sizes) for d in row.decisions],
            }
            for number, (task, row) in enumerate(zip(tasks, rows, strict=True), start=1)
            if row.decisions
        ]
        config = build_config(stage, classes, tracks=any("sequence" in r.payload for r in rows))
        write_file(target / f"{stage}.xml", config.encode())
        write_file(target / f"{stage}.tasks.json", encode(tasks))
        write_file(target / f"{stage}.results.json", encode(results))
        counts["tasks"] += len(tasks)
        counts["annotations"] += sum(len(row.decisions) for row in rows)
    return counts


def _read_size(folder: SetFolder, image: str) -> Size:
    return read_size(image_path(folder.root, image))


def _build_task(row: AnsweredItem, shape: Size) -> Entry:
    payload = row.payload
    data = {"stage": row.stage, "key": row.key, "image": _make_url(payload["image"])}
    if "anchor" in payload:
        data["anchor"] = _make_url(payload["anchor"])
    data["labels"] = ", ".join(payload.get("labels", ())) or " or ".join(payload.get("choices", ()))
    if "duplicate_image" in payload:
        data["labels"] += f" (near duplicate of the anchor {payload['duplicate_of']})"
    suggested = _build_boxes(list_shapes(row), shape)
    return {
        "data": data,
        "predictions": [{"model_version": "suggested", "result": suggested}] if suggested else [],
    }


def _make_url(image: str) -> str:
    return f"{SERVED}{image[:2]}/{image}"


def _build_boxes(boxes: Sequence[Entry], shape: Size) -> Sequence[Entry]:
    """A region for each box, and one more of the same id for its track."""
    regions = []
    for number, box in enumerate(boxes):
        where = {**to_percent(box["box"], shape), "rotation": 0}
        region = {
            "id": f"box{number}",
            "to_name": "image",
            "original_width": shape[0],
            "original_height": shape[1],
            "image_rotation": 0,
        }
        labels = {**where, "rectanglelabels": [box["label"]]}
        kinds = [("boxes", "rectanglelabels", labels)]
        if "track" in box:
            kinds.append(("track", "number", {**where, "number": box["track"]}))
        regions += [{**region, "from_name": n, "type": t, "value": v} for n, t, v in kinds]
    return regions


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


def _build_annotation(
    decision: StandingDecision, row: AnsweredItem, sizes: Mapping[str, Size]
) -> Entry:
    answer = decision.answer
    time = datetime.fromtimestamp(decision.made_at, UTC).isoformat().replace("+00:00", "Z")
    result = [_build_choice(name, [word]) for name, word in to_choices(row.stage, answer).items()]
    many = {name: answer[name] for name in MANY if answer.get(name)}
    result += [_build_choice(name, words) for name, words in many.items()]
    boxes = answer.get("boxes", ())
    shape = sizes[row.payload["image"]]
    result += _build_boxes(boxes, shape)
    texts = {**to_texts(row.stage, answer), "comment": decision.comment}
    for name, text in texts.items():
        if text:
            control = {"from_name": name, "to_name": "image", "type": "textarea"}
            result.append({**control, "value": {"text": [text]}})
    return {
        "id": decision.id,
        "completed_by": {"id": decision.reviewer, "email": "", "first_name": decision.name},
        "result": result,
        "was_cancelled": False,
        "created_at": time,
        "updated_at": time,
        "lead_time": decision.seconds,
    }


def _build_choice(name: str, words: Sequence[str]) -> Entry:
    control = {"from_name": name, "to_name": "image", "type": "choices"}
    return {**control, "value": {"choices": list(words)}}


IMAGE = r"[0-9a-f]{64}\.jpg"


def read_annotations(folder: SetFolder, path: Path, annotator: str = "") -> Annotations:
    """The annotations in a file that Label Studio exported as JSON.

    `annotator`: the annotator of entries without one.

    Skipped answers and drafts are counted, not imported. Raises `UsageError` with the number and
    the first of those that name no item or no annotator, or have an invalid box.
    """
    annotations: list[Annotation] = []
    skipped = 0
    faults: list[str] = []
    for number, task in enumerate(_read_tasks(path), start=1):
        for entry in _list_annotations(task, path):
            where = f"task {task.get('id', number)} annotation {entry.get('id', '?')}"
            if entry.get("was_cancelled"):
                skipped += 1
                continue
            try:
                attributed = {"completed_by": annotator, **entry}
                annotations.append(_read_annotation(folder, task, attributed, where))
            except (UsageError, KeyError, TypeError, ValueError, AttributeError) as error:
                fault = (
                    error
                    if isinstance(error, UsageError)
                    else f"its form is not the expected one: {error!r}"
                )
                faults.append(f"{where}: {fault}")
    if faults:
        count = number_of(len(faults), "annotation")
        raise UsageError(f"'{path}': {count} cannot be read, first {faults[0]}")
    return Annotations(path, annotations, {"skipped_by_their_annotator": skipped})


def _read_tasks(path: Path) -> Sequence[Entry]:
    content = read_json(path, "annotations")
    if not isinstance(content, list) or not all(isinstance(task, dict) for task in content):
        raise UsageError(f"'{path}' is no list of tasks; export from Label Studio as JSON")
    return content


def _list_annotations(task: Entry, path: Path) -> Sequence[Entry]:
    if "annotations" not in task and "annotation_id" in task:
        raise UsageError(
            f"'{path}' has Label Studio's form JSON-MIN; export from Label Studio as JSON"
        )
    entries = task.get("annotations", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise UsageError(
            f"'{path}': the annotations of task {task.get('id', '?')} are no list of annotations; "
            "export from Label Studio as JSON"
        )
    return entries


def _read_annotation(folder: SetFolder, task: Entry, entry: Entry, where: str) -> Annotation:
    data = task["data"]
    is_whole = {"stage", "key", "image"} <= set(data)
    if not is_whole or data["stage"] not in STAGES or not isinstance(data["key"], str):
        raise UsageError("its task names no stage and key of a set; annotate exported tasks")
    answer, comment = _read_answer(folder, data, entry["result"])
    time = entry.get("updated_at") or entry.get("created_at")
    version = f"{entry.get('id')}/{time or ''}"
    return Annotation(
        data["stage"],
        data["key"],
        _name_annotator(entry.get("completed_by")),
        answer,
        f"label_studio/{version}",
        where,
        comment,
        float(entry.get("lead_time") or 0.0),
        _read_time(time) if time else None,
    )


def _read_time(text: str) -> float:
    """Seconds since 1970; a time without a zone is UTC, on whatever machine it is read."""
    when = datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _name_annotator(who: Any) -> str:
    """The name of the annotator: first and last name, e-mail, or number, whichever is present."""
    if isinstance(who, dict):
        name = f"{who.get('first_name') or ''} {who.get('last_name') or ''}".strip()
        who = name or who.get("email") or who.get("username") or who.get("id")
    if who in (None, ""):
        raise UsageError("it does not say who made it (completed_by)")
    return f"annotator {who}" if isinstance(who, int) else str(who)


def _read_answer(folder: SetFolder, data: Entry, result: Sequence[Entry]) -> tuple[Entry, str]:
    stage = data["stage"]
    choices: dict[str, str] = {}
    shapes = list(_read_boxes(folder, data, result))
    answer: dict[str, Any] = dict(take_boxes(folder, stage, data["key"], shapes))
    comment = ""
    for part in result:
        name, value = part["from_name"], part["value"]
        if part["type"] == "textarea" and name in TEXTS.get(stage, ()):
            choices[name] = "\n".join(value["text"])
        elif part["type"] == "textarea":
            comment = "\n".join(value["text"])
        elif part["type"] == "choices" and name in MANY:
            answer[name] = list(value["choices"])
        elif part["type"] == "choices":
            (choices[name],) = value["choices"]
    return {**answer, **from_choices(stage, choices)}, comment


def _read_boxes(folder: SetFolder, data: Entry, result: Sequence[Entry]) -> Iterator[Entry]:
    image = next(iter(re.findall(IMAGE, str(data["image"]))), "")
    numbers = {p.get("id"): p["value"]["number"] for p in result if p["from_name"] == "track"}
    for part in result if data["stage"] in SHAPED else ():
        if part["type"] in WORDS:
            continue
        _check_region(part)
        if image not in folder.images:
            raise UsageError(f"this set has no image '{data['image']}'")
        shape = read_size(image_path(folder.root, image))
        (label,) = part["value"]["rectanglelabels"]
        box = inside(to_pixels(part["value"], shape), *shape)
        if part["value"].get("rotation") or box is None:
            raise UsageError(
                f"the box {part.get('id')} is rotated or outside the image; correct it"
            )
        number = numbers.get(part.get("id"))
        track = {} if number is None else {"track": _read_whole(number)}
        yield {"box": list(box), "label": label, **track}


def _check_region(part: Entry) -> None:
    """Raises `UsageError` for a region that is not an upright box inside the image."""
    if part["type"] != "rectanglelabels":
        raise UsageError(f"it has a region of the type {part['type']}; draw boxes only")
    if part.get("image_rotation"):
        raise UsageError(
            f"the image of the box {part.get('id')} was turned by {part['image_rotation']} "
            "degrees; turn it back"
        )


def _read_whole(number: float) -> float:
    # Label Studio may write 7 as 7.0; what is no whole number is refused as a track
    return int(number) if float(number).is_integer() else number


def to_pixels(value: Entry, shape: Size) -> tuple[float, float, float, float]:
    """Corners in pixels of a (width, height), of x, y, width and height in percent."""
    x, y, w, h = (float(value[key]) for key in ("x", "y", "width", "height"))
    width, height = shape
    return x * width / 100, y * height / 100, (x + w) * width / 100, (y + h) * height / 100
