"""Reviewed boxes as COCO's JSON of instances and its images, in parts to train and test with."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.core.provenance import provenance
from steadyeye.core.storage.files import encode, write_file
from steadyeye.core.storage.sha256sums import write_sums
from steadyeye.data.annotations.coco_images import OUTSIDE
from steadyeye.data.annotations.review_set import SetFolder, image_path
from steadyeye.data.images import image_file as image_files
from steadyeye.review.interchange.card import card, statistics
from steadyeye.review.protocol.plan import ReviewPlan
from steadyeye.review.results import status
from steadyeye.review.results.verdicts import BoxVerdict, box_verdicts, count_undecided
from steadyeye.review.sampling.image_store import place, size
from steadyeye.review.sampling.sampling import alike, view
from steadyeye.review.sampling.splits import SHARES, origins, split

Row = Mapping[str, Any]
WHOLE = {"segmentation": [], "iscrowd": 0}
PARTS = {"train": "train", "val": "validation", "test": "test"}
"""Split → its name among the files, as in NAO's release."""


def export(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """Writes `annotations.json`, `annotations/instances_*.json`, `images/` and `README.md`.

    `--data "nao(root=…)"` reads them, and `coco(annotations=…, images=…)` each file. Boxes that
    people called `ood` get a category of that name, where there are any. Each image has its
    `split` and its `source`; the files beside hold one split each. `rejected`, a list beside
    COCO's own, holds the suggested boxes that people rejected, each with its `reason`, and of the
    images that are left out. Returns counts. Raises `UsageError` where images are not decided,
    unless `partial`: they are then left out.
    """
    if folder.content.get("kind") != "boxes" or folder.classes is None:
        raise UsageError(f"'{folder.root}' has no boxes; COCO's format holds sets of boxes only")
    if (out / "annotations.json").exists():
        raise UsageError(f"'{out}' holds annotations already; choose another --out")
    found = box_verdicts(connection, folder, plan)
    left = count_undecided("images", found, partial=partial)
    files = {row["image"]: file_name(row["name"]) for row in folder.boxes.to_pylist()}
    kept = [image for image, verdict in found.items() if verdict.accepted]
    for image in kept:
        place(folder.root, image, out / "images" / files[image])
    category = _categories(folder, [found[image] for image in kept])
    content: dict[str, Any] = {
        "images": _images(folder, kept, files, found, plan.seed),
        "categories": [{"id": id_, "name": name} for name, id_ in category.items()],
        "annotations": _annotations([found[image] for image in kept], category),
        "rejected": _list_rejected(folder, found, category, files),
    }
    placed = Counter(image["split"] for image in content["images"])
    counted = statistics(content, OUTSIDE)
    counts = {
        "images": len(found),
        "images_accepted": len(kept),
        "boxes_suggested": folder.boxes.num_rows,
        "boxes_rejected": len(content["rejected"]),
        "boxes": len(content["annotations"]),
        "boxes_outside_the_classes": counted.outside,
        **{name: placed[name] for name in SHARES},
        "undecided": left,
    }
    told = {"counts": counts, "status": status.status(connection, folder, plan)}
    made = {"reviewed": told, "statistics": asdict(counted), "provenance": provenance()}
    whole = {"info": {"description": folder.name, **made}, **content}
    written = _write(out, whole)
    write_sums(out, [*written, *(out / "images" / files[image] for image in kept)])
    write_file(out / "README.md", card(whole, folder.content, plan).encode())
    return counts


def file_name(name: str) -> str:
    """What an image is called in the export: its own name, with `.jpg` where it became a JPEG."""
    return name if name.lower().endswith((".jpg", ".jpeg")) else f"{name}.jpg"


def _write(out: Path, whole: Mapping[str, Any]) -> list[Path]:
    """Writes the files of the splits, and last the one with everything; returns them."""
    files = [out / "annotations" / f"instances_{called}.json" for called in PARTS.values()]
    (out / "annotations").mkdir(parents=True, exist_ok=True)
    for name, file in zip(PARTS, files, strict=True):
        images = [image for image in whole["images"] if image["split"] == name]
        here = {image["id"] for image in images}
        part = {
            "info": {"description": f"{whole['info']['description']}, {name}"},
            "images": images,
            "categories": whole["categories"],
            "annotations": [each for each in whole["annotations"] if each["image_id"] in here],
        }
        write_file(file, encode(part))
    write_file(out / "annotations.json", encode(whole))
    return [*files, out / "annotations.json"]


def _categories(folder: SetFolder, kept: Sequence[BoxVerdict]) -> Mapping[str, int]:
    """Class → category id; one more for objects outside the classes, where there are any."""
    names = folder.classes.names if folder.classes else ()
    ids = folder.content.get("category_ids") or range(1, len(names) + 1)
    category = dict(zip(names, ids, strict=True))
    if any(box["label"] == OUTSIDE for each in kept for box in each.boxes):
        category.setdefault(OUTSIDE, max(category.values()) + 1)
    return category


def _images(
    folder: SetFolder,
    kept: Sequence[str],
    files: Mapping[str, str],
    found: Mapping[str, BoxVerdict],
    seed: int,
) -> list[dict[str, Any]]:
    """The entries of the images, each with its source and its split."""
    paths = [image_path(folder.root, image) for image in kept]
    names = [files[image] for image in kept]
    sources = origins(names, alike([view(image_files.read(path)) for path in paths]))
    labels = [{box["label"] for box in found[image].boxes} for image in kept]
    splits = split(labels, sources, seed)
    return [
        {"id": number, "file_name": name, **_size(path), "split": part, "source": source}
        for number, (name, path, part, source) in enumerate(
            zip(names, paths, splits, sources, strict=True), start=1
        )
    ]


def _size(path: Path) -> Mapping[str, int]:
    width, height = size(path)
    return {"width": width, "height": height}


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


def _list_rejected(
    folder: SetFolder,
    found: Mapping[str, BoxVerdict],
    category: Mapping[str, int],
    files: Mapping[str, str],
) -> list[Row]:
    """The suggested boxes that people rejected, with the reason."""
    return [
        {
            "id": row["id"],
            "file_name": files[row["image"]],
            **_box([row[key] for key in ("x0", "y0", "x1", "y1")], category[row["label"]]),
            "reason": found[row["image"]].rejected[row["id"]],
        }
        for row in folder.boxes.to_pylist()
        if row["id"] in found[row["image"]].rejected
    ]
