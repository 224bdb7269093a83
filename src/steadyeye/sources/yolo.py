"""Images with boxes as YOLO trainers keep them."""

import math
from pathlib import Path
from typing import Any

import yaml

from steadyeye.classes.known import named
from steadyeye.core.boxes import Boxes, boxes
from steadyeye.core.errors import SampleError, UsageError, every
from steadyeye.core.seeds import fingerprint
from steadyeye.footage.boxed_images import BoxedImage, BoxedImages
from steadyeye.footage.paths import listed, resolve
from steadyeye.images import files


def yolo(data: str, split: str = "val") -> BoxedImages:
    """A data.yaml with `names`, and its folder of images with a text file of boxes for each.

    The labels of `images/…/a.jpg` are `labels/…/a.txt`, a line a box: class, centre x, centre y,
    width, height, as shares of the image. An image without a file has no object. `split`: the key
    of data.yaml. Raises `UsageError` for lines that are no boxes.
    """
    path = resolve(data)
    content = _content(path)
    names = content["names"]
    listed_names = list(names.values()) if isinstance(names, dict) else list(names)
    if split not in content:
        raise UsageError(f"'{path}' has no '{split}'; its keys are {', '.join(map(str, content))}")
    root = (path.parent / content.get("path", "")).resolve()
    folder = root / content[split]
    images = sorted(listed(folder, files.SUFFIXES))
    found = every(images, lambda image: _image(folder, image, len(listed_names)))
    marks = [
        f"{each.id} {each.boxes.boxes.tolist()} {each.boxes.labels.tolist()}" for each in found
    ]
    return BoxedImages(
        name=f"{path.parent.name}-{split}",
        classes=named({str(name): None for name in listed_names}),
        fingerprint=fingerprint(*marks, *map(str, listed_names)),
        images=found,
    )


def _content(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"cannot read '{path}': {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or not content.get("names"):
        raise UsageError(f"'{path}' has no names; list the classes under names:")
    return content


def _image(folder: Path, image: Path, classes: int) -> BoxedImage:
    found, size = _boxes(image, classes)
    return BoxedImage(image.relative_to(folder).as_posix(), image, found, size)


def _boxes(image: Path, classes: int) -> tuple[Boxes, tuple[int, int] | None]:
    """The boxes of an image and its size, which only its boxes need."""
    parts = list(image.parts)
    if "images" not in parts:
        raise UsageError(f"'{image}' is in no folder 'images', beside which its labels would be")
    place = len(parts) - 1 - parts[::-1].index("images")
    parts[place] = "labels"
    path = Path(*parts).with_suffix(".txt")
    if not path.is_file():
        return boxes([], []), None
    try:
        height, width = files.read(image).shape[:2]
    except SampleError as error:
        raise UsageError(
            f"{error}; boxes are shares of the image, so it must be readable"
        ) from error
    corners, labels = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        label, x, y, w, h = _line(path, number, line, classes)
        corners.append(
            [(x - w / 2) * width, (y - h / 2) * height, (x + w / 2) * width, (y + h / 2) * height]
        )
        labels.append(label)
    return boxes(corners, labels), (height, width)


def _line(
    path: Path, number: int, line: str, classes: int
) -> tuple[int, float, float, float, float]:
    try:
        label, x, y, w, h = (float(value) for value in line.split()[:5])
    except ValueError:
        raise UsageError(
            f"'{path}', line {number}: {line[:60]!r} is no box; write class x y width height"
        ) from None
    if not (0 <= label < classes and w >= 0 and h >= 0 and math.isfinite(x + y + w + h)):
        raise UsageError(
            f"'{path}', line {number}: {line[:60]!r}: classes go from 0 to {classes - 1}, and "
            "sizes are not negative"
        )
    return int(label), x, y, w, h
