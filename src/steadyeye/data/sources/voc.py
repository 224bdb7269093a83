"""Images with boxes in Pascal VOC's format."""

from collections.abc import Sequence
from pathlib import Path

from steadyeye.core.boxes import Boxes, boxes, check_pixels
from steadyeye.core.errors import UsageError, every
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.confinement import confine
from steadyeye.core.storage.files import Place, relative_path, walk_files
from steadyeye.core.storage.text_columns import find_repeated_texts
from steadyeye.core.storage.text_files import read_number, read_xml
from steadyeye.core.types import Classes
from steadyeye.data.annotations.coco_geometry import SIDES, read_xml_size
from steadyeye.data.annotations.column_images import BoxedImage, ColumnImages, join_images
from steadyeye.data.classes.class_lists import classes_of_names, find_class, read
from steadyeye.data.images.image_file import SUFFIXES
from steadyeye.data.video.paths import list_files, resolve

Object = tuple[str, tuple[float, ...], bool]
Size = tuple[int, int] | None


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
    files = every(paths, _objects)
    twice = find_repeated_texts([name for name, *_ in files])
    if twice:
        raise UsageError(
            f"'{root}': {number_of(len(twice), 'image is', 'images are')} named by several files, "
            f"first '{twice[0]}'; join their boxes in one"
        )
    sides = [corners for *_, objects in files for _, corners, _ in objects]
    check_pixels(max(map(max, sides), default=0.0), f"'{root}'")
    names = sorted({name for *_, objects in files for name, _, _ in objects})
    known = read(classes) if classes else classes_of_names(dict.fromkeys(names), root)
    locate = confine(folder, root)
    boxed = every(
        zip(paths, files, strict=True),
        lambda pair: BoxedImage(
            pair[0].stem, locate(pair[1][0]), _boxes(pair[0], pair[1][2], known), pair[1][1]
        ),
    )
    columns, remarks = join_images(boxed)
    return ColumnImages(
        name=root.name if root.is_dir() else root.stem,
        classes=known,
        fingerprint=fingerprint(*(path.read_bytes() for path in paths), *known.names),
        parts=(columns,),
        remarks=(*_without_file(folder, boxed), *remarks, *_from_zero(sides)),
    )


def _objects(path: Path) -> tuple[str, Size, list[Object]]:
    """The image file's name, its size, and its objects: class, corners as written, difficult."""
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
        objects.append((name, corners, is_hard))
    size = read_xml_size(root, path)
    return (root.findtext("filename") or "").strip() or f"{path.stem}.jpg", size, objects


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


def _boxes(path: Path, objects: list[Object], classes: Classes) -> Boxes:
    labels = [find_class(name, classes, f"class in '{path}'") for name, _, _ in objects]
    for _, corners, _ in objects:
        if corners[2] < corners[0] or corners[3] < corners[1]:
            raise UsageError(f"'{path}' has a box of negative size, {corners}; correct it")
    # the first pixel is number 1, and the last one belongs to the box
    halves = [(x0 - 1, y0 - 1, x1, y1) for _, (x0, y0, x1, y1), _ in objects]
    return boxes(halves, labels, [hard for _, _, hard in objects])
