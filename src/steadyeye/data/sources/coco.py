"""Images with boxes in COCO's format."""

from collections.abc import Mapping
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.confinement import confine
from steadyeye.core.storage.files import Place
from steadyeye.data.annotations.coco_file import OUTSIDE
from steadyeye.data.annotations.coco_images import coco_images
from steadyeye.data.annotations.column_images import ColumnImages
from steadyeye.data.video.paths import resolve_path


def coco(annotations: str, images: str | None = None, ood: str | None = OUTSIDE) -> ColumnImages:
    """Images with boxes: an instances JSON of COCO, and the folder of the images.

    `annotations`: the JSON. `images`: the folder, not needed to score saved detections; every
    `file_name` must lead inside it. The box is `bbox`, or without one that around `segmentation`,
    polygons or run lengths. `iscrowd` regions neither reward nor punish; `area` is used unchanged.
    A sample's id is the image's id, as in saved detections. `ood`: the category of objects outside
    the classes, which is no class; None: every category is one. Raises `UsageError` for annotations
    of unknown images or categories and for invalid boxes.

    Example: `coco(annotations='instances_val2017.json', images='val2017')`
    """
    path = resolve_path(annotations)
    if not images:
        return coco_images(path.stem, [path], lambda image: None, ood)
    locate = confine(resolve_path(images), path)

    def find_file(image: Mapping[str, Any]) -> Place:
        if "file_name" not in image:
            raise UsageError(f"'{path}': image {image['id']} has no file_name; give it")
        return locate(image["file_name"])

    return coco_images(path.stem, [path], find_file, ood)
