"""ILSVRC 2015 VID: videos with the boxes of thirty classes on every frame."""

from pathlib import Path

from steadyeye.core.boxes import Boxes, boxes
from steadyeye.core.errors import UsageError, every, unknown
from steadyeye.core.storage.text_files import read_number, read_xml
from steadyeye.data.annotations.boxed_videos import Sequences, boxed_sets
from steadyeye.data.annotations.coco_geometry import SIDES, read_xml_size
from steadyeye.data.classes.class_lists import shipped_classes
from steadyeye.data.images.image_file import SUFFIXES
from steadyeye.data.video.frame_folders import without_gaps
from steadyeye.data.video.paths import list_files, resolve
from steadyeye.data.video.pm_set_source import Drawing, FrameSets


def imagenet_vid(
    root: str, split: str = "val", anchors: int | str = 1, k: int = 10, seed: int = 0
) -> FrameSets:
    """ILSVRC's layout, Data/VID/SPLIT/VIDEO and Annotations/VID/SPLIT/VIDEO, as pm-sets.

    `root`: the folder that contains both. `split`: train or val. Corners are used unchanged,
    half-open. `anchors`: number per video, drawn by `seed` from the frames with an object; "all"
    takes each, as for training (with k=0). Neighbours are all frames within ±`k`. Raises
    `UsageError` for frames without annotation, and for gaps between the frames. Russakovsky et al.,
    IJCV 115, 2015.

    Example: `imagenet_vid(root='ILSVRC2015', anchors=1, k=10)`
    """
    base, how = resolve(root), Drawing(anchors, k, seed)
    data, annotated = base / "Data" / "VID" / split, base / "Annotations" / "VID" / split
    if not data.is_dir() or not annotated.is_dir():
        raise UsageError(
            f"'{base}' has no Data/VID/{split} and Annotations/VID/{split}; give the folder of both"
        )
    # videos are one folder below the split, or in train one more
    folders = sorted({path.parent for path in list_files(data, SUFFIXES)})
    names = {folder.relative_to(data).as_posix(): folder for folder in folders}
    frames = {name: without_gaps(name, list_files(own, SUFFIXES)) for name, own in names.items()}
    classes = shipped_classes("vid30")
    position = {wnid: i for i, wnid in enumerate(classes.wnids or ())}
    objects = {
        video: every(
            [annotated / video / f"{path.stem}.xml" for path in paths],
            lambda path: _boxes(path, position),
        )
        for video, paths in frames.items()
    }
    # the frames of a video have one size
    firsts = {video: annotated / video / f"{paths[0].stem}.xml" for video, paths in frames.items()}
    sizes = {
        video: size
        for video, path in firsts.items()
        if (size := read_xml_size(read_xml(path, "annotation"), path))
    }
    videos = Sequences(frames, objects, sizes)
    return boxed_sets(f"{base.name}-{split}", videos, classes, how)


def _boxes(path: Path, position: dict[str, int]) -> Boxes:
    root = read_xml(path, "annotation")
    corners, labels = [], []
    for element in root.iter("object"):
        name = element.findtext("name") or ""
        if name not in position:
            raise unknown(f"class in '{path}'", name, position)
        box = [
            read_number(element.findtext(f"bndbox/{side}") or "", f"'{path}': {side} of a '{name}'")
            for side in SIDES
        ]
        if not (box[0] <= box[2] and box[1] <= box[3]):
            raise UsageError(f"'{path}' has an invalid box, {box}; correct it")
        corners.append(box)
        labels.append(position[name])
    return boxes(corners, labels)
