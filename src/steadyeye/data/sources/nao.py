"""Natural adversarial objects: a set of `steadyeye review-export`, or the release."""

from collections.abc import Mapping
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.storage.confinement import confine
from steadyeye.core.storage.files import Place
from steadyeye.data.annotations.coco_file import OUTSIDE
from steadyeye.data.annotations.coco_images import coco_images
from steadyeye.data.annotations.column_images import ColumnImages
from steadyeye.data.video.paths import resolve

SPLITS = {
    split: f"annotations/instances_{name}.json"
    for split, name in (("train", "train"), ("val", "validation"), ("test", "test"))
}
"""The files of the release, and of an export beside `annotations.json`, which has them all."""


def nao(root: str, split: str = "all", ood: str | None = OUTSIDE) -> ColumnImages:
    """Natural adversarial objects: a folder that `steadyeye review-export` writes for boxes.

    `root`: the folder. `split`: train, val, test, or all. Boxes of the category `ood` are around
    objects outside the classes; None: every category is a class. The release of Lau et al. (2021)
    has the same layout, `annotations/instances_train.json` and so on beside `images/`, and no such
    boxes. Raises `UsageError` for a folder without these.

    Example: `nao(root='nao', split='test')`
    """
    if split not in ("all", *SPLITS):
        raise unknown("split", split, ("all", *SPLITS))
    folder = resolve(root)
    whole = folder / "annotations.json"
    if split != "all":
        files = [folder / SPLITS[split]]
    else:
        files = [whole] if whole.is_file() else [folder / name for name in SPLITS.values()]
    absent = [file for file in files if not file.is_file()]
    if absent:
        raise UsageError(
            f"'{folder}' lacks {absent[0].relative_to(folder)}; give the folder of "
            "`steadyeye review-export`, or NAO's with annotations/ and images/"
        )

    images = confine(folder / "images", files[0])

    def locate(image: Mapping[str, Any]) -> Place:
        path_ = images(str(image.get("file_name", "")))
        if path_.is_file() or "_image_id" not in image:
            return path_
        # the release names some by their id at OpenImages
        return images(f"{image['_image_id']}.jpg")

    return coco_images("nao" if split == "all" else f"nao-{split}", files, locate, ood)
