"""Images with boxes in Pascal VOC's format."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steadyeye.core.boxes import Boxes, boxes, check_pixels
from steadyeye.core.errors import UsageError, every, find_repeated
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.confinement import confine
from steadyeye.core.storage.files import Place, relative_path, walk_files
from steadyeye.core.storage.text_files import read_number, read_xml
from steadyeye.core.types import Classes
from steadyeye.data.annotations.coco_geometry import SIDES, read_xml_size
from steadyeye.data.annotations.column_images import BoxedImage, ColumnImages, join_images
from steadyeye.data.classes.class_lists import classes_of_names, find_class, read
from steadyeye.data.images.image_file import SUFFIXES
from steadyeye.data.video.paths import list_files, resolve


@dataclass(frozen=True)
class _Object:
    """An object of a file: its class, its corners as written, whether it is difficult."""

    name: str
    corners: tuple[float, ...]
    difficult: bool


@dataclass(frozen=True)
class _File:
    """What an XML file says: the image's file, its (height, width) if known, its objects."""

    path: Path
    image: str
    size: tuple[int, int] | None
    objects: list[_Object]


def voc(annotations: str, images: str, classes: str | None = None) -> ColumnImages:
    """Pascal VOC: a folder of XML files, one per image, and the folder of the images.

    `annotations`, `images`: the two folders. VOC counts pixels from 1 and includes the last one:
    `xmin`, `ymin` minus 1 and `xmax`, `ymax` are half-open. `difficult` objects count as crowds,
    which neither reward nor punish. `classes`: a list or file; by default the sorted names in the
    files. Raises `UsageError` for invalid boxes and repeated images.

    Example: `voc(annotations='VOC2012/Annotations', images='VOC2012/JPEGImages')`
    """
    folder, root = resolve(images), resolve(annotations)
    paths = list(list_files(root, frozenset({".xml"})))
    files = every(paths, _read_file)
    twice = find_repeated(file.image for file in files)
    if twice:
        raise UsageError(
            f"'{root}': {number_of(len(twice), 'image is', 'images are')} named by several files, "
            f"first '{twice[0]}'; join their boxes in one"
        )
    sides = [part.corners for file in files for part in file.objects]
    check_pixels(max(map(max, sides), default=0.0), f"'{root}'")
    names = sorted({part.name for file in files for part in file.objects})
    known = read(classes) if classes else classes_of_names(names, root)
    locate = confine(folder, root)
    boxed = every(
        files,
        lambda file: BoxedImage(file.path.stem, locate(file.image), _boxes(file, known), file.size),
    )
    columns, remarks = join_images(boxed)
    return ColumnImages(
        name=root.name if root.is_dir() else root.stem,
        classes=known,
        fingerprint=fingerprint(*(path.read_bytes() for path in paths), *known.names),
        parts=(columns,),
        remarks=(*_without_file(folder, boxed), *remarks, *_from_zero(sides)),
    )


def _read_file(path: Path) -> _File:
    root = read_xml(path, "annotations")
    objects = []
    for element in root.iter("object"):
        box = element.find("bndbox")
        name = " ".join((element.findtext("name") or "").split())
        if not name:
            raise UsageError(f"'{path}' has an object without a name; complete it")
        sides = [(box.findtext(side) if box is not None else "") or "" for side in SIDES]
        if not all(sides):
            raise UsageError(f"'{path}' has an object without {', '.join(SIDES)}; complete it")
        corners = tuple(
            read_number(text, f"'{path}': {side} of a '{name}'")
            for side, text in zip(SIDES, sides, strict=True)
        )
        is_hard = (element.findtext("difficult") or "").strip() in ("1", "true")
        objects.append(_Object(name, corners, is_hard))
    image = (root.findtext("filename") or "").strip() or f"{path.stem}.jpg"
    return _File(path, image, read_xml_size(root, path), objects)


def _without_file(folder: Place, images: Sequence[BoxedImage]) -> tuple[str, ...]:
    """A note on images in the folder without an XML file, if there are any."""
    known = {image.path for image in images}
    inside = walk_files(folder) if folder.is_dir() else ()
    names = sorted(
        relative_path(path, folder).as_posix()
        for path in inside
        if path.suffix.lower() in SUFFIXES and path not in known
    )
    if not names:
        return ()
    return (f"{number_of(len(names), 'image')} without an XML file left out, first '{names[0]}'",)


def _from_zero(sides: Sequence[tuple[float, ...]]) -> tuple[str, ...]:
    """The note on boxes that begin at 0, which VOC's numbering does not have."""
    zero = sum(corners[0] == 0 or corners[1] == 0 for corners in sides)
    if not zero:
        return ()
    return (
        f"{zero:,} of {number_of(len(sides), 'box')} with xmin or ymin 0, but VOC counts pixels "
        "from 1: if these files count from 0, all boxes are a pixel too far left and up",
    )


def _boxes(file: _File, classes: Classes) -> Boxes:
    labels = [find_class(part.name, classes, f"class in '{file.path}'") for part in file.objects]
    corners = [part.corners for part in file.objects]
    for box in corners:
        if box[2] < box[0] or box[3] < box[1]:
            raise UsageError(f"'{file.path}' has a box of negative size, {box}; correct it")
    # the first pixel is number 1, and the last one belongs to the box
    half_open = [(x0 - 1, y0 - 1, x1, y1) for x0, y0, x1, y1 in corners]
    return boxes(half_open, labels, [part.difficult for part in file.objects])
