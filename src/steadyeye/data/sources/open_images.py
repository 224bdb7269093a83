"""Images with boxes as Open Images keeps them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.data.annotations.coco_geometry import repeats
from steadyeye.data.open_images import labels as label_file
from steadyeye.data.open_images.boxes import BoxRows, read
from steadyeye.data.open_images.classes import Kinds, kinds
from steadyeye.data.open_images.image_table import ImageTable, join_tables, select_images
from steadyeye.data.open_images.images import ImageFolder, OpenImages
from steadyeye.data.video.paths import resolve


def open_images(
    boxes: str,
    images: str | None = None,
    classes: str | None = None,
    labels: str | None = None,
    hierarchy: str | None = None,
    present: bool = False,
) -> OpenImages:
    """Open Images V4 to V7: the CSV files of boxes and of verified labels, and the images.

    `boxes`: …-annotations-bbox.csv. `images`: a folder with `ImageID.jpg` at any depth; not needed
    to score saved detections where `boxes` has the columns Width and Height. `classes`:
    class-descriptions-boxable.csv, the 601 that are shipped if left out. `labels`:
    …-human-imagelabels-boxable.csv: of which classes people verified that an image holds them or
    does not. `hierarchy`: the released JSON, the shipped one if left out. `present`: only the
    images that the folder holds; otherwise all that the files list, and a run is refused while
    some are not there. Boxes of groups neither reward nor punish; drawings count as objects.
    Raises `UsageError` with how many and the first for rows that cannot be used.

    Example: `open_images(boxes='validation-annotations-bbox.csv', images='validation')`
    """
    known = kinds(resolve(classes) if classes else None, resolve(hierarchy) if hierarchy else None)
    path = resolve(boxes)
    rows = read(path, known)
    folder = ImageFolder(resolve(images)) if images else None
    if folder is None and rows.sizes is None:
        raise UsageError(
            f"'{path}' has boxes as shares of the image and no columns Width and Height; "
            "give images=… too"
        )
    verified = label_file.read(resolve(labels), known) if labels else label_file.NOTHING
    table = join_tables(rows, verified)
    remarks = _remarks(rows, labels)
    if present:
        table, left = _present(table, folder)
        remarks = (*remarks, *left)
    return OpenImages(
        path.name.partition(".")[0].removesuffix("-annotations-bbox"),
        known,
        table,
        folder,
        _mark(table, known),
        remarks,
    )


def _present(table: ImageTable, folder: ImageFolder | None) -> tuple[ImageTable, tuple[str, ...]]:
    """The images that the folder holds, and what was left out on either side."""
    if folder is None:
        raise UsageError("present=True keeps the images that the folder holds; give images=…")
    names = pa.array(list(folder.files), pa.string())
    is_present = np.asarray(pc.is_in(table.ids, value_set=names).to_numpy(zero_copy_only=False))
    if not is_present.any():
        raise UsageError(
            f"'{folder.root}' holds none of the {number_of(len(table), 'image')} listed; give "
            "the folder of these images"
        )
    foreign = names.filter(pc.invert(pc.is_in(names, value_set=table.ids)))
    texts = [
        f"{int((~is_present).sum()):,} of {len(table):,} listed images are not there, left out"
    ]
    if len(foreign):
        texts.append(
            f"{number_of(len(foreign), 'image')} of the folder not listed, left out, first "
            f"'{pc.min(foreign).as_py()}'"
        )
    return select_images(table, is_present), tuple(texts)


def _remarks(rows: BoxRows, labels: str | None) -> tuple[str, ...]:
    texts = [
        f"{number_of(rows.depictions, 'box is a depiction', 'boxes are depictions')}, counted as "
        "objects"
        if rows.depictions
        else "",
        f"for {number_of(rows.unjudged, 'box')} the labels do not say whether they hold a group; "
        "they count as one object"
        if rows.unjudged
        else "",
        f"classes verified to be in an image or not: from {Path(labels).name} and the boxes, with "
        "what follows by the hierarchy"
        if labels
        else "classes verified to be in an image: those with boxes, and what stands above them; no "
        "file of labels was given",
        *repeats(rows.repeats, rows.repeats + len(rows.label)),
    ]
    return tuple(filter(None, texts))


def _mark(table: ImageTable, known: Kinds) -> str:
    parents = str(known.classes.parents)
    return fingerprint(table.fingerprint, *known.mids, *known.classes.names, parents)
