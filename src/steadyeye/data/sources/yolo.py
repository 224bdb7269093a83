"""Images with boxes as YOLO trainers keep them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from steadyeye.core.boxes import Boxes, boxes
from steadyeye.core.errors import SampleError, UsageError, every, find_repeated, one_line
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.confinement import check_folder, confine
from steadyeye.core.storage.files import relative_path, walk_files
from steadyeye.core.storage.text_files import check_text, read_number, read_text
from steadyeye.data.annotations.column_images import BoxedImage, ColumnImages, join_images
from steadyeye.data.classes.class_lists import classes_of_names, close_list
from steadyeye.data.images import image_file
from steadyeye.data.images.image_header import UPRIGHT, read_orientation
from steadyeye.data.video.paths import list_files, resolve

SLACK = 0.01  # tools round
CURE = "give yolo(…, root='FOLDER')"


def yolo(data: str, split: str = "val", root: str | None = None) -> ColumnImages:
    """A data.yaml with `names`, and images with one text file of boxes for each.

    `data`: the data.yaml. `split`: its key that names a folder of images, a `.txt` file with one
    image per line, or a list of these. The labels of `images/…/a.jpg` are in `labels/…/a.txt`, one
    line per box: class, centre x, centre y, width, height, as shares of the image, followed by key
    points if there is a `kpt_shape`; or class and the corners of a polygon, which counts as the box
    around it. An image without a file has no object. `root`: the folder that contains all files
    named in data.yaml, by default its own. Raises `UsageError` for lines that are no boxes.

    Example: `yolo(data='coco128/data.yaml', split='train')`
    """
    path = resolve(data)
    content = _content(path)
    listed_names = _names(path, content)
    folder, images, folders = _list_images(path, content, split, resolve(root or str(path.parent)))
    form = _Form(len(listed_names), "kpt_shape" in content)
    boxed = every(images, lambda image: _image(folder, image, form))
    columns, remarks = join_images(boxed)
    marks = [
        f"{image_.id} {image_.boxes.boxes.tolist()} {image_.boxes.labels.tolist()}"
        for image_ in boxed
    ]
    return ColumnImages(
        name=f"{path.absolute().parent.name}-{split}",
        classes=close_list(classes_of_names(listed_names)),
        fingerprint=fingerprint(*marks, *listed_names),
        parts=(columns,),
        remarks=(*_without_file(boxed), *_without_image(folders, images), *remarks),
    )


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML without aliases, which few lines of can stand for more than any memory holds."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError(f"an alias in line {self.peek_event().start_mark.line + 1}")
        return super().compose_node(parent, index)

    def compose_document(self) -> yaml.Node:
        """The file, with the classes under `names` as they are written, such as 007 and no."""
        document = super().compose_document()
        for key, names in document.value if isinstance(document, yaml.MappingNode) else ():
            if key.value == "names" and isinstance(names, yaml.CollectionNode):
                is_map = isinstance(names, yaml.MappingNode)
                for name in (value for _, value in names.value) if is_map else names.value:
                    if isinstance(name, yaml.ScalarNode) and name.value:
                        name.tag = "tag:yaml.org,2002:str"
        return document


def _content(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(read_text(path, "description"), _Loader)  # noqa: S506 - a safe loader
    except RecursionError:
        raise UsageError(f"cannot read '{path}': it is nested too deeply; flatten it") from None
    # of tags whose value is none PyYAML raises all of these
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError) as error:
        reason = one_line(error)
        raise UsageError(f"cannot read '{path}': {reason}; write names: and folders") from None
    if not isinstance(content, dict) or not content.get("names"):
        raise UsageError(f"'{path}' has no names; list the classes under names:")
    return content


def _list_images(
    path: Path, content: dict[str, Any], split: str, root: Path
) -> tuple[Path, list[Path], list[Path]]:
    """The folder that ids are relative to, the images of a split, sorted, and its image folders."""
    if split not in content:
        raise UsageError(f"'{path}' has no '{split}'; its keys are {', '.join(map(str, content))}")
    entries = content[split] if isinstance(content[split], list) else [content[split]]
    base = path.parent / check_text(content.get("path") or ".", f"'{path}': path")
    images: set[Path] = set()
    folders: list[Path] = []
    for entry in entries:
        place = _locate(base, check_text(entry, f"'{path}': {split}"))
        check_folder(root, place, path, CURE)
        if place.suffix.lower() == ".txt":
            images.update(_read_list(place, root))
        else:
            images.update(list_files(place, image_file.SUFFIXES))
            folders += [place] if "images" in place.parts else []  # its labels may be anywhere
    is_one = len(entries) == 1 and place.suffix.lower() != ".txt"
    return place if is_one else base, sorted(images), folders


def _locate(base: Path, name: str) -> Path:
    """The folder or list of a split; Roboflow's exports name `../valid/images`."""
    place = base / name
    return place if os.path.exists(place) else base / name.removeprefix("../")


def _read_list(path: Path, root: Path) -> list[Path]:
    """The images that a text file names, an image a line, relative to its own folder."""
    locate = confine(Path(os.path.abspath(root)), path, CURE)
    locate(os.path.abspath(path))
    lines = (line.strip() for line in read_text(path, "list of images").splitlines())
    images = [Path(os.path.normpath(path.parent / line)) for line in lines if line]
    for image in images:
        locate(os.path.abspath(image))
    if not images:
        raise UsageError(f"'{path}' names no image; write one a line")
    return images


def _names(path: Path, content: dict[str, Any]) -> list[str]:
    """The names in the order of their numbers. Raises `UsageError` for gaps and for two of one."""
    names = content["names"]
    if isinstance(names, dict):
        by_number = {str(number): name for number, name in names.items()}
        if set(by_number) != set(map(str, range(len(names)))):
            raise UsageError(f"'{path}': the numbers under names: must go from 0, each once")
        names = [by_number[str(number)] for number in range(len(names))]
    if not isinstance(names, list):
        raise UsageError(f"'{path}': names: is no list of classes; write names: [cat, dog]")
    texts = [
        # YAML takes 7 and `no` for other things than texts
        check_text(
            str(name) if isinstance(name, int | float) else name, f"'{path}': class {number}"
        )
        for number, name in enumerate(names)
    ]
    names_ = [" ".join(text.split()) for text in texts]
    twice = find_repeated(names_)
    if twice:
        raise UsageError(f"'{path}' names the class '{twice[0]}' twice; rename one")
    if content.get("nc", len(names_)) != len(names_):
        raise UsageError(
            f"'{path}' has nc: {content['nc']}, but {number_of(len(names_), 'name')}; correct one"
        )
    return names_


def _without_file(images: Sequence[BoxedImage]) -> tuple[str, ...]:
    """A note on images without a file of labels, if there are any."""
    ids = [image.id for image in images if image.size is None]
    if not ids:
        return ()
    return (
        f"{number_of(len(ids), 'image')} without a file of labels, first '{ids[0]}': taken for "
        "images without any object",
    )


def _without_image(folders: Sequence[Path], images: Sequence[Path]) -> tuple[str, ...]:
    """A note on the files of labels of folders of images that are of no image, if there are any."""
    expected = {_label_file(image) for image in images}
    lost = [
        relative_path(file, labels).as_posix()
        for labels in map(_label_folder, folders)
        for file in sorted(walk_files(labels), key=str)
        if file.suffix == ".txt" and file.name != "classes.txt" and file not in expected
    ]
    if not lost:
        return ()
    files = number_of(len(lost), "file of labels", "files of labels")
    return (f"{files} without an image, first '{lost[0]}': left out",)


@dataclass(frozen=True)
class _Form:
    """How many classes there are, and whether key points stand behind the boxes."""

    classes: int
    has_key_points: bool


def _image(folder: Path, image: Path, form: _Form) -> BoxedImage:
    objects, size = _boxes(image, form)
    return BoxedImage(Path(os.path.relpath(image, folder)).as_posix(), image, objects, size)


def _label_file(image: Path) -> Path:
    return _label_folder(image).with_suffix(".txt")


def _label_folder(path: Path) -> Path:
    """The path with the last folder `images` replaced by `labels`."""
    parts = list(path.parts)
    if "images" not in parts:
        raise UsageError(
            f"'{path}' is not in a folder 'images'; move it there, and its labels to 'labels'"
        )
    parts[len(parts) - 1 - parts[::-1].index("images")] = "labels"
    return Path(*parts)


def _boxes(image: Path, form: _Form) -> tuple[Boxes, tuple[int, int] | None]:
    """The boxes of an image and its size, which only its boxes need."""
    path = _label_file(image)
    if not os.path.isfile(path):  # False for a name that is too long, too
        return boxes([], []), None
    try:
        height, width = image_file.read(image).shape[:2]
    except SampleError as error:
        raise UsageError(
            f"{error}; boxes are shares of the image, so it must be readable"
        ) from error
    if (turn := read_orientation(image)) != UPRIGHT:
        raise UsageError(
            f"'{image}' has EXIF orientation {turn}: its boxes are of the rotated image, but "
            "models get it unrotated; rotate its pixels (mogrify -auto-orient)"
        )
    corners, labels = [], []
    for number, line in enumerate(read_text(path, "labels").splitlines(), start=1):
        if not line.strip():
            continue
        label, x, y, w, h = _line(path, number, line, form)
        corners.append(
            [(x - w / 2) * width, (y - h / 2) * height, (x + w / 2) * width, (y + h / 2) * height]
        )
        labels.append(label)
    return boxes(corners, labels), (height, width)


def _line(
    path: Path, number: int, line: str, form: _Form
) -> tuple[int, float, float, float, float]:
    """Class, centre, width and height; of a polygon, which has three corners or more, its box."""
    where = f"'{path}' line {number}: {line[:60]!r}"
    first, *rest = line.split()
    if form.has_key_points:
        rest = rest[:4]
    if len(rest) != 4 and (len(rest) < 6 or len(rest) % 2):
        raise UsageError(f"{where} is no box; write class x y width height")
    label, *values = (read_number(text, where) for text in (first, *rest))
    if len(values) > 4:
        xs, ys = values[0::2], values[1::2]
        sides = max(xs) - min(xs), max(ys) - min(ys)
        values = [(min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2, *sides]
    x, y, w, h = values
    if not (label in range(form.classes) and w >= 0 and h >= 0):
        raise UsageError(
            f"{where}: classes go from 0 to {form.classes - 1}, and sizes are not negative"
        )
    if not (0 <= x <= 1 and 0 <= y <= 1 and w <= 1 + SLACK and h <= 1 + SLACK):
        raise UsageError(f"{where} lies outside the image; boxes are shares of its sides, 0 to 1")
    return int(label), x, y, w, h
