"""Images with boxes in COCO's format."""

from collections.abc import Mapping
from typing import Any

from steadyeye.core.seeds import fingerprint
from steadyeye.footage import coco_file
from steadyeye.footage.boxed_images import BoxedImage, BoxedImages
from steadyeye.footage.paths import located


def coco(annotations: str, images: str | None = None) -> BoxedImages:
    """Images with boxes: COCO's JSON of instances, and the folder the images are in.

    The box is `bbox`; without one it is that around `segmentation`, polygons or run lengths.
    `iscrowd` regions neither reward nor punish; `area` is taken as it stands. A sample's id is
    the image's id, which saved detections name; `images` is not needed to score those. Raises
    `UsageError` for annotations of unknown images or categories and for boxes that are none.
    """
    path = located(annotations)
    content = coco_file.read(path)
    folder = located(images) if images else None
    return BoxedImages(
        name=path.stem,
        classes=content.classes,
        fingerprint=fingerprint(path.read_bytes()),
        images=[
            BoxedImage(
                str(image["id"]),
                folder / image["file_name"] if folder else None,
                content.boxes(image),
                _size(image),
            )
            for image in content.images
        ],
        category_ids=content.category_ids,
    )


def _size(image: Mapping[str, Any]) -> tuple[int, int] | None:
    """Height and width, where they are given."""
    height, width = image.get("height"), image.get("width")
    return (int(height), int(width)) if height and width else None
