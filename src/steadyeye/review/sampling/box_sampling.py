"""A set of suggested boxes to review: NAO's candidates, a detector's mistakes, anyone's boxes."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.provenance import provenance
from steadyeye.core.storage.confinement import confine
from steadyeye.core.storage.files import write_output
from steadyeye.core.storage.sha256sums import write_sums
from steadyeye.core.types import Image
from steadyeye.data.annotations.coco_geometry import inside
from steadyeye.data.annotations.review_candidates import Candidate, Candidates, read
from steadyeye.data.annotations.review_set import (
    BOXES,
    VERSION,
    check_vacant,
    table,
    write_manifest,
)
from steadyeye.data.images.image_file import ImageFile
from steadyeye.review.sampling.image_store import store_image


def sample_boxes(
    boxes: Path, images: Path, out: Path, advance: Callable[[int], None]
) -> tuple[int, int]:
    """Writes a set of the boxes in a file to a folder; returns its numbers of images and boxes.

    `boxes`: see `steadyeye.data.annotations.review_candidates`. Images without a box are left out,
    which the manifest counts. Raises `UsageError` for a box outside its image, an image that is
    missing, and two names for the same picture.
    """
    check_vacant(out)
    candidates = read(boxes)
    files = dict.fromkeys(box.file for box in candidates.boxes)
    locate = confine(images, boxes)
    absent = [file for file in files if not locate(file).is_file()]
    if absent:
        raise UsageError(
            f"{number_of(len(absent), 'image is', 'images are')} not in '{images}', first "
            f"'{absent[0]}'; copy them there, or give the folder that has them"
        )
    digest = hashlib.sha256(boxes.read_bytes()).hexdigest()[:16]
    origin = {"name": boxes.name, "fingerprint": digest}
    return store_boxes(candidates, lambda file: ImageFile(locate(file)), out, origin, advance)


def store_boxes(
    candidates: Candidates,
    find_picture: Callable[[str], Callable[[], Image]],
    out: Path,
    origin: Mapping[str, str],
    advance: Callable[[int], None],
) -> tuple[int, int]:
    """Writes a set of suggested boxes to a folder; returns its numbers of images and boxes.

    `find_picture`: file → function that reads its picture. `origin`: name and fingerprint of the
    source of the boxes. Raises `UsageError` as `sample_boxes` does.
    """
    check_vacant(out)
    of_file: dict[str, list[Candidate]] = {}
    for box in candidates.boxes:
        of_file.setdefault(box.file, []).append(box)
    rows: list[dict[str, Any]] = []
    file_of: dict[str, str] = {}
    for file, boxes in of_file.items():
        name, image = store_image(out, find_picture(file))
        if name in file_of:
            raise UsageError(f"'{file_of[name]}' and '{file}' are the same image; remove one")
        file_of[name] = file
        height, width = image.shape[:2]
        rows += [_build_row(box, name, (width, height)) for box in boxes]
        advance(1)
    write_output(out / "boxes.parquet", table(rows, BOXES))
    content = _build_manifest(origin, out, candidates, len(of_file))
    # set.json is not listed: people write into it how the set is to be reviewed
    write_sums(out, [out / "boxes.parquet"])
    write_manifest(out, content)
    return len(of_file), len(rows)


def _build_row(candidate: Candidate, image: str, size: tuple[int, int]) -> dict[str, Any]:
    box = inside(candidate.box, *size)
    if box is None:
        corners = ", ".join(f"{value:g}" for value in candidate.box)
        raise UsageError(
            f"the box {candidate.id} of '{candidate.file}' has the corners {corners}, outside the "
            f"image of {size[0]} × {size[1]} pixels; correct it"
        )
    return {
        "id": candidate.id,
        "image": image,
        "name": candidate.file,
        **dict(zip(("x0", "y0", "x1", "y1"), box, strict=True)),
        "label": candidate.label,
        "score": candidate.score,
        "annotated": candidate.annotated,
    }


def _build_manifest(
    origin: Mapping[str, str], out: Path, candidates: Candidates, images: int
) -> dict[str, Any]:
    return {
        "version": VERSION,
        "name": out.name,
        "kind": "boxes",
        "classes": {"names": candidates.classes.names, "wnids": candidates.classes.wnids},
        "category_ids": candidates.category_ids,
        "drawn": {
            "images": images,
            "boxes": len(candidates.boxes),
            "images_without_box": len(candidates.files) - images,
        },
        "sources": [dict(origin)],
        "provenance": provenance(),
    }
