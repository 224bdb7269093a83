"""Label Studio: a project a stage, its tasks, and what its people said.

::

    pairs.xml           the labeling config of a project
    pairs.tasks.json    its tasks, suggested boxes as predictions
    pairs.results.json  what was decided here, in the form in which Label Studio exports

The forms are those of https://labelstud.io/guide/task_format and /guide/predictions.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from steadyeye.core.storage.files import write_file
from steadyeye.data.annotations.review_set import SetFolder, image_path
from steadyeye.review.interchange import label_studio_config as config
from steadyeye.review.interchange.asked import AnsweredItem, Said, as_choices, list_answered
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.sampling.image_store import size

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
        write_file(target / f"{stage}.xml", config.labeling(stage, classes).encode())
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
    many = {name: said.answer[name] for name in config.MANY if said.answer.get(name)}
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
