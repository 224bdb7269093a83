"""Reviewed boxes as COCO's JSON of instances and its images."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.core.provenance import provenance
from steadyeye.footage.set_folder import SetFolder, image_path
from steadyeye.predictions.cell import encode
from steadyeye.review import status
from steadyeye.review.pictures import place, size
from steadyeye.review.plan import Plan
from steadyeye.review.verdicts import BoxVerdict, box_verdicts, undecided
from steadyeye.storage.write import write_file

Row = Mapping[str, Any]
WHOLE = {"segmentation": [], "iscrowd": 0}


def export(
    connection: Connection, folder: SetFolder, plan: Plan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """Writes `annotations.json` and `images/`; `--data "coco(annotations=…, images=…)"` reads them.

    `rejected`, a list beside COCO's own, holds the suggested boxes that people rejected, each with
    its `reason`, and of the images that are left out. Returns counts. Raises `UsageError` where
    images are not decided, unless `partial`: they are then left out.
    """
    if folder.content.get("kind") != "boxes" or folder.classes is None:
        raise UsageError(f"'{folder.root}' has no boxes; COCO's format holds sets of boxes only")
    if (out / "annotations.json").exists():
        raise UsageError(f"'{out}' holds annotations already; choose another --out")
    found = box_verdicts(connection, folder, plan)
    left = undecided("images", found, partial=partial)
    names = folder.classes.names
    ids = folder.content.get("category_ids") or range(1, len(names) + 1)
    category = dict(zip(names, ids, strict=True))
    files = {row["image"]: file_name(row["name"]) for row in folder.boxes.to_pylist()}
    kept = [image for image, verdict in found.items() if verdict.accepted]
    for image in kept:
        place(folder.root, image, out / "images" / files[image])
    annotations = _annotations([found[image] for image in kept], category)
    rejected = [
        _rejected(row, found[row["image"]].rejected[row["id"]], category, files)
        for row in folder.boxes.to_pylist()
        if row["id"] in found[row["image"]].rejected
    ]
    counts = {
        "images": len(found),
        "images_accepted": len(kept),
        "boxes_suggested": folder.boxes.num_rows,
        "boxes_rejected": len(rejected),
        "boxes": len(annotations),
        "undecided": left,
    }
    told = {"counts": counts, "status": status.status(connection, folder, plan)}
    content = {
        "info": {"description": folder.name, "reviewed": told, "provenance": provenance()},
        "images": [
            _image(number, image_path(folder.root, image), files[image])
            for number, image in enumerate(kept, start=1)
        ],
        "categories": [{"id": id_, "name": name} for name, id_ in category.items()],
        "annotations": annotations,
        "rejected": rejected,
    }
    write_file(out / "annotations.json", encode(content))
    return counts


def file_name(name: str) -> str:
    """What an image is called in the export: its own name, with `.jpg` where it became a JPEG."""
    return name if name.lower().endswith((".jpg", ".jpeg")) else f"{name}.jpg"


def _image(number: int, path: Path, name: str) -> Row:
    width, height = size(path)
    return {"id": number, "file_name": name, "width": width, "height": height}


def _annotations(kept: Sequence[BoxVerdict], category: Mapping[str, int]) -> list[Row]:
    boxes = [(image, box) for image, verdict in enumerate(kept, start=1) for box in verdict.boxes]
    return [
        {"id": number, "image_id": image, **_box(box["box"], category[box["label"]]), **WHOLE}
        for number, (image, box) in enumerate(boxes, start=1)
    ]


def _box(corners: Sequence[float], category: int) -> Row:
    x0, y0, x1, y1 = corners
    width, height = x1 - x0, y1 - y0
    return {"category_id": category, "bbox": [x0, y0, width, height], "area": width * height}


def _rejected(
    row: Row, reason: str, category: Mapping[str, int], files: Mapping[str, str]
) -> Mapping[str, Any]:
    corners = [row[key] for key in ("x0", "y0", "x1", "y1")]
    box = _box(corners, category[row["label"]])
    return {"id": row["id"], "file_name": files[row["image"]], **box, "reason": reason}
