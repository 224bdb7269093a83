"""A set of suggested boxes to review: NAO's candidates, a detector's mistakes, anyone's boxes."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.provenance import provenance
from steadyeye.core.storage.files import encode, write_file
from steadyeye.core.storage.sha256sums import write_sums
from steadyeye.core.types import Image
from steadyeye.data.annotations.coco_geometry import inside
from steadyeye.data.annotations.review_candidates import Candidate, Candidates, read
from steadyeye.data.annotations.review_set import BOXES, VERSION, check_vacant, table
from steadyeye.data.images.image_file import ImageFile
from steadyeye.review.sampling.image_store import keep


def sample_boxes(
    boxes: Path, images: Path, out: Path, advance: Callable[[int], None]
) -> tuple[int, int]:
    """Writes the set of the boxes in a file to a folder; returns how many images and boxes.

    `boxes`: see `steadyeye.data.annotations.review_candidates`. Images without a box are left out,
    which the manifest counts. Raises `UsageError` for a box outside its image, an image that is
    missing, and two names for the same picture.
    """
    check_vacant(out)
    found = read(boxes)
    absent = [f for f in dict.fromkeys(b.file for b in found.boxes) if not (images / f).is_file()]
    if absent:
        raise UsageError(
            f"{number_of(len(absent), 'image is', 'images are')} not in '{images}', first "
            f"'{absent[0]}'"
        )
    digest = hashlib.sha256(boxes.read_bytes()).hexdigest()[:16]
    origin = {"name": boxes.name, "fingerprint": digest}
    return store_boxes(found, lambda file: ImageFile(images / file), out, origin, advance)


def store_boxes(
    found: Candidates,
    picture: Callable[[str], Callable[[], Image]],
    out: Path,
    origin: Mapping[str, str],
    advance: Callable[[int], None],
) -> tuple[int, int]:
    """Writes the set of suggested boxes to a folder; returns how many images and boxes.

    `picture`: what reads the picture of a file. `origin`: name and fingerprint of where the boxes
    are from. Raises `UsageError` as `sample_boxes` does.
    """
    check_vacant(out)
    of_file: dict[str, list[Candidate]] = {}
    for box in found.boxes:
        of_file.setdefault(box.file, []).append(box)
    rows: list[dict[str, Any]] = []
    named: dict[str, str] = {}
    for file, candidates in of_file.items():
        name, image = keep(out, picture(file))
        if name in named:
            raise UsageError(f"'{named[name]}' and '{file}' are the same image; remove one")
        named[name] = file
        height, width = image.shape[:2]
        rows += [_row(one, name, (width, height)) for one in candidates]
        advance(1)
    write_file(out / "boxes.parquet", table(rows, BOXES))
    content = encode(_manifest(origin, out, found, len(of_file)))
    # set.json is not listed: people write into it how the set is to be reviewed
    write_sums(out, [out / "boxes.parquet"])
    write_file(out / "set.json", content)
    return len(of_file), len(rows)


def _row(one: Candidate, image: str, size: tuple[int, int]) -> dict[str, Any]:
    box = inside(one.box, *size)
    if box is None:
        shown = ", ".join(f"{value:g}" for value in one.box)
        raise UsageError(
            f"the box {one.id} of '{one.file}' has the corners {shown}, outside the image of "
            f"{size[0]} × {size[1]} pixels; correct it"
        )
    corners = dict(zip(("x0", "y0", "x1", "y1"), box, strict=True))
    label, score = one.label, one.score
    return {
        "id": one.id,
        "image": image,
        "name": one.file,
        **corners,
        "label": label,
        "score": score,
    }


def _manifest(
    origin: Mapping[str, str], out: Path, found: Candidates, images: int
) -> dict[str, Any]:
    return {
        "version": VERSION,
        "name": out.name,
        "kind": "boxes",
        "classes": {"names": found.classes.names, "wnids": found.classes.wnids},
        "category_ids": found.category_ids,
        "drawn": {
            "images": images,
            "boxes": len(found.boxes),
            "images_without_box": len(found.files) - images,
        },
        "sources": [dict(origin)],
        "provenance": provenance(),
    }
