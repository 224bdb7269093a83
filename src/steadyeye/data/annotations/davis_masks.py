"""Masks of DAVIS: which object each pixel of a frame is of, and the tight boxes around them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, boxes
from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.types import Classes, Labels
from steadyeye.data.annotations.coco_geometry import extent
from steadyeye.data.images import image_file
from steadyeye.data.images.image_file import SUFFIXES
from steadyeye.data.video import label_sidecar
from steadyeye.data.video.frame_folders import without_gaps
from steadyeye.data.video.paths import check_names, list_files

PNG, PALETTE = b"\x89PNG\r\n\x1a\n", b"\x03"


def find_sequences(base: Path) -> dict[str, Sequence[Path]]:
    """The frames of each sequence in order. Raises `UsageError` if there is no such folder."""
    folder = base / "JPEGImages"
    # the released archive has the resolution as one more folder
    folder = folder / "480p" if (folder / "480p").is_dir() else folder
    if not folder.is_dir():
        raise UsageError(f"'{base}' has no folder JPEGImages; give the root of DAVIS")
    names = sorted(path.name for path in folder.iterdir() if path.is_dir())
    return {name: without_gaps(name, list_files(folder / name, SUFFIXES)) for name in names}


def read_objects(
    sequences: Mapping[str, Sequence[Path]], labels: str
) -> tuple[dict[str, list[Boxes]], dict[str, Labels], Classes]:
    """The boxes of every frame, the classes of the objects of each sequence, and all classes.

    `labels`: a sidecar of `video,labels`. Raises `UsageError` where it does not name each sequence.
    """
    known = label_sidecar.read(labels)
    if known.classes is None:
        raise UsageError(f"'{labels}' names no classes; write video,labels for each sequence")
    check_names(sequences, known.videos, "labels")
    objects: dict[str, list[Boxes]] = {}
    labels_of: dict[str, Labels] = {}
    for name, frames in sequences.items():
        ranges = known.of(name).ranges
        if not ranges:
            raise UsageError(f"'{labels}' has no label for the sequence '{name}'; give its class")
        if ranges != (label_sidecar.Range(0, label_sidecar.WHOLE, ranges[0].labels),):
            raise UsageError(
                f"'{labels}' has frames for the sequence '{name}'; give one line for all of it"
            )
        labels_of[name] = ranges[0].labels
        objects[name] = [_read_boxes(frame, labels_of[name]) for frame in frames]
    return objects, labels_of, known.classes


def read_parts(frame: Path, several: int) -> NDArray[np.bool_]:
    """(n, h, w) the masks of a frame: of all non-zero pixels, or of 1, 2, … for several objects."""
    path = locate_mask(frame)
    if not path.is_file():
        raise UsageError(f"there is no mask '{path}' for the frame '{frame}'; complete the data")
    mask = _numbers(path)
    numbers = np.unique(mask[mask > 0]).tolist()
    if several == 1 and len(numbers) < 2:
        return (mask > 0)[None]
    if max(numbers, default=0) > several:
        raise UsageError(
            f"the mask '{path}' has the objects {', '.join(map(str, numbers[:5]))}, but there "
            f"{'is one label' if several == 1 else f'are {several} labels'} for it; give one for "
            "each object, as dog|dog"
        )
    return np.stack([mask == i + 1 for i in range(several)])


def _numbers(path: Path) -> NDArray[np.uint8]:
    """(h, w) the number of the object at each pixel, 0: none; of a palette not the colour."""
    content = image_file.read_content(path)
    if content[:8] == PNG and content[25:26] == PALETTE:
        image_file.check_pixels(content, str(path))
        try:
            with av.open(str(path.absolute())) as file:
                indices, _ = next(file.decode(video=0)).to_ndarray()
        except (av.FFmpegError, StopIteration, ValueError) as error:
            raise SampleError(f"cannot read the mask '{path}': it is damaged or cut off") from error
        return np.asarray(indices, dtype=np.uint8)
    mask = image_file.decode_by_opencv(content, str(path), cv2.IMREAD_UNCHANGED)
    if mask.ndim == 3 and len(np.unique(mask.reshape(-1, mask.shape[2]), axis=0)) > 2:
        raise UsageError(f"the mask '{path}' is in colour; write object numbers instead")
    return np.asarray(mask.max(axis=2) if mask.ndim == 3 else mask, dtype=np.uint8)


def locate_mask(frame: Path) -> Path:
    """The file of the masks of a frame."""
    parts = list(frame.parts)
    # the last one: the folder of the data may be in another of this name
    parts[len(parts) - 1 - parts[::-1].index("JPEGImages")] = "Annotations"
    return Path(*parts).with_suffix(".png")


def _read_boxes(frame: Path, labels: Labels) -> Boxes:
    """The tight boxes of the masks of a frame that are not empty.

    Raises `UsageError` for masks of another size than the frame.
    """
    masks = read_parts(frame, len(labels))
    height, width = masks.shape[1:]
    with suppress(SampleError):  # said where its pixels are read
        tall, wide = image_file.size(frame)
        if (tall, wide) != (height, width):
            raise UsageError(
                f"the mask '{locate_mask(frame)}' has {width} × {height} pixels, its frame "
                f"{wide} × {tall}; give both in one size"
            )
    parts = [
        (box, label, int(np.sum(part)), number)
        for number, (part, label) in enumerate(zip(masks, labels, strict=True))
        if (box := extent(part)) is not None
    ]
    corners, classes, sizes = [p[0] for p in parts], [p[1] for p in parts], [p[2] for p in parts]
    return boxes(corners, classes, None, sizes, [p[3] for p in parts])
