"""Reviewed boxes as COCO's JSON, with images, splits to train and test with, and a data card."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from steadyeye.core.errors import UsageError
from steadyeye.core.format import format_agreement_ends, number_of
from steadyeye.core.provenance import provenance
from steadyeye.core.storage.files import encode, make_folder, write_file
from steadyeye.core.storage.sha256sums import write_sums
from steadyeye.data.annotations.coco_file import OUTSIDE
from steadyeye.data.annotations.review_set import SetFolder, image_path
from steadyeye.data.images import image_file
from steadyeye.data.images.near_duplicates import find_near_duplicates, make_view
from steadyeye.review.interchange.tracks import add_videos, place_images
from steadyeye.review.protocol.stages import STAGES, ReviewPlan
from steadyeye.review.results.status import record_status
from steadyeye.review.results.verdicts import BoxVerdict, count_undecided, judge_images
from steadyeye.review.sampling.image_store import copy_image, read_size
from steadyeye.review.sampling.splits import SHARES, find_origins, split_images

Row = Mapping[str, Any]
WHOLE = {"segmentation": [], "iscrowd": 0}
PARTS = {"train": "train", "val": "validation", "test": "test"}
"""Split → its name among the files, as in NAO's release."""


def export_coco(
    connection: Connection, folder: SetFolder, plan: ReviewPlan, out: Path, *, partial: bool = False
) -> Mapping[str, int]:
    """The counts of the export: `annotations.json` and a file a split, `images/`, `README.md`.

    `--data "nao(root=…)"` reads them, and `coco(annotations=…, images=…)` each file. Boxes that
    people marked `ood` get a category of that name, if there are any. Each image has its `split`
    and its `source`; each of the other files holds one split. Boxes of videos have their
    `track_id`. Additional lists hold the suggested boxes, also of images that are left out:
    `rejected` with the `reason`; `confirmed`, the natural adversarial objects, and
    `detector_was_right` with the class that people gave (`true_class`) and, if known, the class in
    the data (`annotated`, empty if there is none), which is then a mistake of the annotation.
    Raises `UsageError` where images are not decided, unless `partial`: they are then left out.
    """
    if folder.content.get("kind") != "boxes" or folder.classes is None:
        raise UsageError(f"'{folder.root}' has no boxes; COCO's format holds sets of boxes only")
    verdicts = judge_images(connection, folder, plan)
    left = count_undecided("images", verdicts, partial=partial)
    files = {row["image"]: name_file(row["name"]) for row in folder.boxes.to_pylist()}
    accepted = [image for image, verdict in verdicts.items() if verdict.accepted]
    pictures = [out / "images" / files[image] for image in accepted]
    for image, picture in zip(accepted, pictures, strict=True):
        copy_image(folder.root, image, picture)
    content = _build_content(folder, verdicts, files, plan)
    objects = count_objects(content, OUTSIDE)
    splits = Counter(image["split"] for image in content["images"])
    counts = {
        "images": len(verdicts),
        "images_accepted": len(accepted),
        "boxes_suggested": folder.boxes.num_rows,
        **_count_suggested(content),
        "boxes": len(content["annotations"]),
        "boxes_outside_the_classes": objects.outside,
        **{name: splits[name] for name in SHARES},
        "undecided": left,
    }
    info = {
        "description": folder.name,
        "reviewed": {"counts": counts, "status": record_status(connection, folder, plan)},
        "statistics": asdict(objects),
        "provenance": provenance(),
    }
    whole = {"info": info, **content}
    _write_annotations(out, whole, pictures)
    write_file(out / "README.md", write_card(whole, folder.content, plan).encode())
    return counts


def _build_content(
    folder: SetFolder,
    verdicts: Mapping[str, BoxVerdict],
    files: Mapping[str, str],
    plan: ReviewPlan,
) -> dict[str, Any]:
    """The lists of `annotations.json`; `files`: image → its name in the export."""
    accepted = {image: verdict for image, verdict in verdicts.items() if verdict.accepted}
    category = _number_categories(folder, accepted.values())
    content = {
        "images": _list_images(folder, accepted, files, plan.seed),
        "categories": [{"id": id_, "name": name} for name, id_ in category.items()],
        "annotations": _list_annotations(accepted.values(), category),
        **_list_suggested(folder, verdicts, category, files),
    }
    boxes = {image: verdict.boxes for image, verdict in accepted.items()}
    return add_videos(content, boxes, place_images(folder, plan))


def name_file(name: str) -> str:
    """The name of an image in the export: its own, with `.jpg` if it was converted to JPEG."""
    return name if name.lower().endswith((".jpg", ".jpeg")) else f"{name}.jpg"


def _write_annotations(out: Path, whole: Mapping[str, Any], pictures: Sequence[Path]) -> None:
    """Writes the files of the splits, the file with everything, and the checksums of all files."""
    files = [out / "annotations" / f"instances_{part}.json" for part in PARTS.values()]
    make_folder(out / "annotations")
    for name, file in zip(PARTS, files, strict=True):
        images = [image for image in whole["images"] if image["split"] == name]
        ids = {image["id"] for image in images}
        part = {
            "info": {"description": f"{whole['info']['description']}, {name}"},
            "images": images,
            "categories": whole["categories"],
            **({"videos": whole["videos"]} if "videos" in whole else {}),
            "annotations": [box for box in whole["annotations"] if box["image_id"] in ids],
        }
        write_file(file, encode(part))
    write_file(out / "annotations.json", encode(whole))
    write_sums(out, [*files, out / "annotations.json", *pictures])


def _number_categories(folder: SetFolder, accepted: Iterable[BoxVerdict]) -> Mapping[str, int]:
    """Class → category id; one more for objects outside the classes, where there are any."""
    names = folder.class_names
    ids = folder.content.get("category_ids") or range(1, len(names) + 1)
    category = dict(zip(names, ids, strict=True))
    if any(box["label"] == OUTSIDE for image in accepted for box in image.boxes):
        category.setdefault(OUTSIDE, max(category.values()) + 1)
    return category


def _list_images(
    folder: SetFolder, accepted: Mapping[str, BoxVerdict], files: Mapping[str, str], seed: int
) -> list[dict[str, Any]]:
    """The entries of the images, each with its source and its split."""
    paths = [image_path(folder.root, image) for image in accepted]
    names = [files[image] for image in accepted]
    views = [make_view(image_file.read(path)) for path in paths]
    sources = find_origins(names, find_near_duplicates(views))
    labels = [{box["label"] for box in verdict.boxes} for verdict in accepted.values()]
    splits = split_images(labels, sources, seed)
    images: list[dict[str, Any]] = []
    for name, path, split, source in zip(names, paths, splits, sources, strict=True):
        width, height = read_size(path)
        place = {"id": len(images) + 1, "file_name": name, "width": width, "height": height}
        images.append({**place, "split": split, "source": source})
    return images


def _list_annotations(accepted: Iterable[BoxVerdict], category: Mapping[str, int]) -> list[Row]:
    boxes = [(image, box) for image, v in enumerate(accepted, start=1) for box in v.boxes]
    return [
        {
            **{"id": number, "image_id": image},
            **_describe_box(box["box"], category[box["label"]]),
            **WHOLE,
        }
        for number, (image, box) in enumerate(boxes, start=1)
    ]


def _describe_box(corners: Sequence[float], category: int) -> Row:
    x0, y0, x1, y1 = corners
    width, height = x1 - x0, y1 - y0
    return {"category_id": category, "bbox": [x0, y0, width, height], "area": width * height}


def _count_suggested(content: Mapping[str, Sequence[Row]]) -> Mapping[str, int]:
    right = content["detector_was_right"]
    return {
        "boxes_rejected": len(content["rejected"]),
        "boxes_confirmed": len(content["confirmed"]),
        "detector_was_right": len(right),
        "annotation_mistakes": sum("annotated" in box for box in right),
    }


def _list_suggested(
    folder: SetFolder,
    verdicts: Mapping[str, BoxVerdict],
    category: Mapping[str, int],
    files: Mapping[str, str],
) -> dict[str, list[Row]]:
    """The suggested boxes that are decided, by outcome."""
    lists: dict[str, list[Row]] = {"rejected": [], "confirmed": [], "detector_was_right": []}
    for row in folder.boxes.to_pylist():
        verdict, id_ = verdicts[row["image"]], row["id"]
        corners = [row[key] for key in ("x0", "y0", "x1", "y1")]
        place = {"file_name": files[row["image"]], **_describe_box(corners, category[row["label"]])}
        data = {} if row["annotated"] is None else {"annotated": row["annotated"]}
        if id_ in verdict.rejected:
            lists["rejected"].append({"id": id_, **place, "reason": verdict.rejected[id_]})
        for name, objects in (
            ("confirmed", verdict.confirmed),
            ("detector_was_right", verdict.right),
        ):
            if id_ in objects:
                lists[name].append({"id": id_, **place, "true_class": objects[id_], **data})
    return lists


def write_card(content: Mapping[str, Any], manifest: Mapping[str, Any], plan: ReviewPlan) -> str:
    """The README of an export in Markdown.

    `content`: its annotations.json. `manifest`: the set.json of what was reviewed.
    """
    info = content["info"]
    parts = [
        f"# {info['description']}",
        _describe_set(info["statistics"]),
        "## Contents",
        _build_statistics(content),
        "## Review",
        _describe_making(info["reviewed"], manifest, plan),
        "## Splits",
        _describe_splits(content, plan),
        "## Use",
        _describe_use(info["statistics"]),
        "## Licence",
        "Fill this in before you publish the data:\n\n- images: …\n- annotations: …",
        _describe_origin(info["provenance"]),
    ]
    return "\n\n".join(parts) + "\n"


def _describe_set(counted: Mapping[str, Any]) -> str:
    outside = (
        f", and {number_of(counted['outside'], 'object')} outside them (category `{OUTSIDE}`)"
        if counted["outside"]
        else ""
    )
    return (
        f"{number_of(counted['images'], 'image')} with {number_of(counted['objects'], 'box')} of "
        f"{number_of(len(counted['classes']), 'class')}{outside}, confirmed by people. Where a "
        "detector's confident mistakes were suggested, as in Lau et al., *Natural Adversarial "
        "Objects*, 2021, the set is hard by design: values measured on it do not apply to other "
        "data."
    )


def _build_statistics(content: Mapping[str, Any]) -> str:
    """Table 1 of Lau et al., and every class."""
    counted = content["info"]["statistics"]
    classes = counted["classes"]
    first = [f"{row['name']} ({row['objects']:,})" for row in classes[:3]]
    head = ("images", "objects", "1st object", "2nd object", "3rd object")
    numbers = (f"{counted['images']:,}", f"{counted['objects']:,}")
    table = _build_table(head, [(*numbers, *[*first, "—", "—", "—"][:3])])
    rows = [(row["name"], f"{row['images']:,}", f"{row['objects']:,}") for row in classes]
    return f"{table}\n\n{_build_table(('class', 'images', 'objects'), rows)}"


def _describe_making(
    reviewed: Mapping[str, Any], manifest: Mapping[str, Any], plan: ReviewPlan
) -> str:
    counts, status = reviewed["counts"], reviewed["status"]
    sources = ", ".join(f"`{source['name']}`" for source in manifest.get("sources", ())) or "—"
    people = [person for person in status["reviewers"] if person["decisions"]]
    agreements = {stage["stage"]: stage for stage in status["agreement"]}
    settled = {stage["stage"]: stage for stage in status["table"]}
    rows = []
    for name, votes in plan.votes.items():
        own = agreements[name]
        ends = format_agreement_ends(own["low"], own["high"])
        number = number_of(own["n"], "item")
        rows.append(
            (
                STAGES[name].title,
                f"{votes or 'all'}",
                f"{settled[name]['reviewed']:,}",
                f"{settled[name]['accepted']:,}",
                "—" if own["alpha"] is None else f"{own['alpha']:.2f} ({ends}; {number})",
            )
        )
    head = ("stage", "votes", "settled", "accepted", "Krippendorff's α (95 % interval)")
    decisions = sum(person["decisions"] for person in people)
    return (
        f"{number_of(counts['boxes_suggested'], 'box')} in {number_of(counts['images'], 'image')} "
        f"were suggested ({sources}). {number_of(len(people), 'reviewer')} made "
        f"{number_of(decisions, 'decision')} on them in the "
        f"review app of steadyeye:\n\n{_build_table(head, rows)}\n\n{counts['boxes_confirmed']:,} "
        f"suggested boxes were confirmed, {counts['boxes_rejected']:,} rejected, and in "
        f"{counts['detector_was_right']:,} the detector was right "
        f"({number_of(counts['annotation_mistakes'], 'mistake')} of the annotation); "
        "annotations.json lists them under `confirmed`, `rejected` and `detector_was_right`. "
        "Left out: images with no confirmed suggestion, and undecided ones "
        f"({counts['undecided']:,})."
    )


def _describe_splits(content: Mapping[str, Any], plan: ReviewPlan) -> str:
    rows = []
    for name, share in SHARES.items():
        images = {image["id"]: image for image in content["images"] if image["split"] == name}
        boxes = [box for box in content["annotations"] if box["image_id"] in images]
        sources = {image["source"] for image in images.values()}
        numbers = (f"{len(part):,}" for part in (images, boxes, sources))
        rows.append((name, f"{share:.0%}", *numbers))
    table = _build_table(("split", "aimed at", "images", "boxes", "sources"), rows)
    return (
        f"{table}\n\nBalanced class by class (Sechidis et al. 2011). All images of one source "
        "are in one split: the images of one folder, such as the frames of a video, and near "
        f"duplicates. Random seed {plan.seed}; with few sources the shares deviate from those "
        "intended."
    )


def _describe_use(counted: Mapping[str, Any]) -> str:
    metrics = "map, map_without_ood, mar" if counted["outside"] else "map, mar"
    return (
        "`annotations.json` holds everything, `annotations/instances_*.json` one split each, all "
        "COCO's JSON of instances; `images/` the pictures.\n\n```\n"
        "steadyeye run --model … --data \"nao(root='.')\" "
        f'--metrics "{metrics}"\n```'
    )


def _describe_origin(source: Mapping[str, str]) -> str:
    commit = f", commit {source['commit'][:12]}" if source.get("commit") else ""
    return f"Written by steadyeye {source['steadyeye']}{commit}."


def _build_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


@dataclass(frozen=True)
class ClassCount:
    """A class with its number of images and its number of objects."""

    name: str
    images: int
    objects: int


@dataclass(frozen=True)
class Statistics:
    """The numbers of a set of boxes. `images`: all; `annotated`: those with an object of any class.

    `objects`: of the classes, `outside`: outside them. `classes`: those that occur, most objects
    first.
    """

    images: int
    annotated: int
    objects: int
    outside: int
    classes: tuple[ClassCount, ...]


def count_objects(content: Mapping[str, Any], outside: str | None = None) -> Statistics:
    """The numbers of COCO's JSON of instances; crowds are no objects.

    `outside`: the name of the category of objects outside the classes. Lau et al., "Natural
    Adversarial Objects", 2021, Table 1: images, objects, and the three commonest classes.
    """
    names = {category["id"]: category["name"] for category in content["categories"]}
    images: dict[str, list[Any]] = {}  # class → the image of each of its objects
    for box in content["annotations"]:
        if not box.get("iscrowd"):
            images.setdefault(names[box["category_id"]], []).append(box["image_id"])
    others = images.pop(outside, []) if outside else []
    classes = [ClassCount(name, len(set(own)), len(own)) for name, own in images.items()]
    return Statistics(
        len(content["images"]),
        len({image for own in images.values() for image in own}),
        sum(row.objects for row in classes),
        len(others),
        tuple(sorted(classes, key=lambda row: (-row.objects, row.name))),
    )
