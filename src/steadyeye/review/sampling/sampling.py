"""Samples a set to review: anchors with their neighbours, each stored once, or suggested boxes.

Shankar et al., "Do Image Classifiers Generalize Across Time?", Section 2.1: one anchor a video,
drawn uniformly, and the frames within ±k.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import UsageError, list_texts
from steadyeye.core.format import number_of
from steadyeye.core.provenance import provenance
from steadyeye.core.storage.confinement import confine
from steadyeye.core.storage.files import write_output
from steadyeye.core.storage.sha256sums import write_sums
from steadyeye.core.types import Classes, Image, Model, Sample, Source, Tag
from steadyeye.data.annotations.coco_geometry import inside
from steadyeye.data.annotations.review_candidates import Candidate, Candidates, read
from steadyeye.data.annotations.review_set import (
    BOXES,
    FRAMES,
    SCENE_CUT,
    VERSION,
    check_vacant,
    table,
    write_manifest,
)
from steadyeye.data.classes.class_mapping import between, by_meaning, list_unmatched, named_map
from steadyeye.data.classes.matching import ALIAS, LIST, NAME, SYNSET
from steadyeye.data.images.image_file import ImageFile
from steadyeye.data.images.near_duplicates import find_near_duplicates, make_view
from steadyeye.review.sampling.image_store import store_image

JUMP = 30.0  # grey levels between consecutive thumbnails: a scene cut


@dataclass(frozen=True)
class Sampling:
    """The name of a set, and how it was drawn, as its manifest records it.

    `notes`: what must be known of its sources, complete once their frames are read.
    """

    name: str
    parameters: Mapping[str, Any]
    classes: Classes | None
    notes: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class StoredFrame:
    """A stored frame: its row of the table, and a small grey copy for comparisons."""

    row: Mapping[str, Any]
    view: NDArray[np.float32]


def store_frames(source: Source, out: Path) -> Iterator[StoredFrame]:
    """The frames of all pm-sets of a source, each stored under a folder.

    They are JPEG files named by their content; JPEG files are copied as they are, and existing
    files are not written again. Raises `UsageError` for a source without pm-sets.
    """
    if not {"group", "offset"} <= set(source.columns):
        raise UsageError(f"{source.name} has no anchors and neighbours; sample videos")
    for number in range(len(source)):
        sample = source[number]
        name, image = store_image(out, sample.image)
        measured = sample.measure(image) if sample.measure else {}
        row = _build_row(sample, name, {**sample.tags, **measured})
        yield StoredFrame(row, make_view(image))


def write_set(frames: Iterable[StoredFrame], out: Path, how: Sampling) -> int:
    """Writes the set of stored frames to their folder; returns the number of frames.

    The manifest is written last, so that a stopped sampling is no set and can be started again.
    Raises `UsageError` if the folder already holds a set, and for two frames with one id.
    """
    check_vacant(out)
    rows: list[dict[str, Any]] = []
    views: dict[str, NDArray[np.float32]] = {}
    for frame in frames:
        if frame.row["id"] in views:
            raise UsageError(
                f"two frames are called '{frame.row['id']}'; give one source that has both, or "
                "rename a video"
            )
        rows.append(dict(frame.row))
        views[frame.row["id"]] = frame.view
    if not rows:
        raise UsageError("there are no frames to review; give videos")
    marked = _mark_duplicates(_mark_cuts(rows, views), views)
    classes = how.classes
    names = classes.names if classes else ()
    write_output(out / "frames.parquet", table(marked, FRAMES, names))
    content = {
        "version": VERSION,
        "name": how.name,
        "kind": "frames",
        "classes": {"names": names, "wnids": classes.wnids, "closed": classes.closed}
        if classes
        else None,
        "drawn": dict(how.parameters),
        "notes": list(how.notes),
        "provenance": provenance(),
    }
    # set.json is not listed: people write into it how the set is to be reviewed
    write_sums(out, [out / "frames.parquet"])
    write_manifest(out, content)
    return len(rows)


def _build_row(sample: Sample, image: str, tags: Mapping[str, Tag]) -> dict[str, Any]:
    return {
        "id": sample.id,
        "group": sample.group,
        "video": str(tags.get("video", sample.group)),
        "frame": int(tags.get("frame", tags["offset"])),
        "offset": int(tags["offset"]),
        "seconds": float(tags["seconds"]) if "seconds" in tags else None,
        "fps": float(tags.get("fps", 0.0)),
        "frame_type": str(tags.get("frame_type", "")),
        "labels": list(sample.truth),
        "image": image,
        "across_cut": False,
        "duplicate_of": "",
        "accepted": True,
        "reason": "",
    }


def _mark_cuts(
    rows: Sequence[dict[str, Any]], views: Mapping[str, NDArray[np.float32]]
) -> list[dict[str, Any]]:
    """The rows; one with a scene cut between it and its anchor is marked, and not accepted."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    marked = []
    for group in groups.values():
        ordered = sorted(group, key=lambda row: row["offset"])
        jumps = [
            later["offset"]
            for sooner, later in pairwise(ordered)
            if np.abs(views[sooner["id"]] - views[later["id"]]).mean() > JUMP
        ]
        for row in ordered:
            low, high = sorted((0, row["offset"]))
            is_across = any(low < jump <= high for jump in jumps)
            rejected = {"across_cut": True, "accepted": False, "reason": SCENE_CUT}
            marked.append({**row, **rejected} if is_across else row)
    return marked


def _mark_duplicates(
    rows: Sequence[dict[str, Any]], views: Mapping[str, NDArray[np.float32]]
) -> list[dict[str, Any]]:
    """The rows, in which an anchor names the earlier anchor that it nearly equals."""
    anchors = [row for row in rows if row["offset"] == 0]
    earlier: dict[str, str] = {}
    for first, second in find_near_duplicates([views[row["id"]] for row in anchors]):
        earlier.setdefault(anchors[second]["group"], anchors[first]["group"])
    return [{**row, "duplicate_of": earlier.get(row["group"], "")} for row in rows]


SAME = (LIST, ALIAS, SYNSET, NAME)
"""The matches for which two classes are the same; a subclass is another class."""


NAMED = 20  # classes that a line names


@dataclass(frozen=True)
class SourceLabels:
    """The labels of a source: its list of classes, and the classes that occur.

    `name`: name of the source in errors.
    """

    name: str
    classes: Classes | None
    present: frozenset[int]


def merge_classes(
    sources: Sequence[SourceLabels], classes: Classes | None
) -> tuple[Classes | None, tuple[tuple[int, ...], ...]]:
    """The class list of a set, and for each source the index in it of each of its own classes.

    `classes`: the user's list; None: all classes of the sources, in order of appearance; classes of
    the same meaning, WordNet id or name count once. The index is −1 if the list does not have the
    class. Raises `UsageError` if a class that occurs has no index, and if two sources use one name
    for different classes.
    """
    whole = classes
    if classes is None:
        for source in sources:
            whole = _add_classes(whole, source) if source.classes else whole
    return whole, tuple(_find_places(source, whole) for source in sources)


def describe_unnamed(model: Model, classes: Classes, class_map: str | None = None) -> str | None:
    """Which classes of a set a model does not have, and what to do; None if it has them all.

    `class_map`: as `steadyeye run --class-map` takes it; None: classes meet by meaning. Raises
    `UsageError` if the model has none of them.
    """
    if model.classes is None:
        return (
            f"{model.name} has no class names: its outputs are taken to be the set's "
            f"{number_of(len(classes), 'class')}, in their order"
        )
    mapping = (
        named_map(class_map, model.classes, classes)
        if class_map
        else between(model.classes, classes)
    )
    if not mapping.missing:
        return None
    unnamed = list_texts(list_unmatched(mapping), NAMED)
    cure = "with --class-map" if class_map is None else f"in {class_map}"
    return (
        f"{model.name} has no class for {len(mapping.missing):,} of the set's "
        f"{number_of(len(classes), 'class')}: {unnamed}; on frames with no other label it is "
        f"always wrong, so leave these out, or map the classes {cure}"
    )


def relabel_frames(frames: Iterable[StoredFrame], places: Sequence[int]) -> Iterator[StoredFrame]:
    """Stored frames with labels as indices of the set's list; `places`: index of each class."""
    for frame in frames:
        labels = sorted({places[label] for label in frame.row["labels"]})
        yield replace(frame, row={**frame.row, "labels": labels})


def _add_classes(whole: Classes | None, source: SourceLabels) -> Classes:
    """A class list, extended by the new classes of a source."""
    assert source.classes is not None, "asked before"
    more = source.classes
    if whole is None:
        return replace(more, parents=None)
    places = _match_classes(more, whole)
    names, wnids = list(whole.names), list(whole.wnids or ("",) * len(whole))
    for index, name in enumerate(more.names):
        if places[index] >= 0:
            continue
        if name in names:
            raise UsageError(
                f"'{source.name}' defines the class '{name}' differently from an earlier source; "
                "rename one of the two, or sample them separately"
            )
        names.append(name)
        wnids.append(more.wnids[index] if more.wnids else "")
    both = whole.closed and more.closed
    return Classes(tuple(names), tuple(wnids) if any(wnids) else None, closed=both)


def _find_places(source: SourceLabels, whole: Classes | None) -> tuple[int, ...]:
    if source.classes is None or whole is None:
        return ()
    places = _match_classes(source.classes, whole)
    lost = [source.classes.names[i] for i in sorted(source.present) if places[i] < 0]
    if lost:
        raise UsageError(
            f"--classes lacks {number_of(len(lost), 'class')} of '{source.name}', "
            f"{list_texts(lost)}; add them to --classes or leave it out"
        )
    return places


def _match_classes(source: Classes, target: Classes) -> tuple[int, ...]:
    """For each class the index of the same class in a list; −1 if there is none."""
    if source.names == target.names and source.wnids == target.wnids:
        return tuple(range(len(source)))
    mapping = by_meaning(source, target)
    pairs = zip(mapping.destinations, mapping.ways, strict=True)
    return tuple(to if way in SAME else -1 for to, way in pairs)


def sample_boxes(
    boxes: Path, images: Path, out: Path, advance: Callable[[int], None]
) -> tuple[int, int]:
    """Writes a set of the boxes in a file to a folder; returns its numbers of images and boxes.

    `boxes`: see `steadyeye.data.annotations.review_candidates`. Images without a box are left out,
    which the manifest counts. Raises `UsageError` for a box outside its image, an image that is
    missing, and two names for the same picture.
    """
    check_vacant(out)
    candidates = read(boxes)
    files = dict.fromkeys(box.file for box in candidates.boxes)
    locate = confine(images, boxes)
    absent = [file for file in files if not locate(file).is_file()]
    if absent:
        raise UsageError(
            f"{number_of(len(absent), 'image is', 'images are')} not in '{images}', first "
            f"'{absent[0]}'; copy them there, or give the folder that has them"
        )
    digest = hashlib.sha256(boxes.read_bytes()).hexdigest()[:16]
    origin = {"name": boxes.name, "fingerprint": digest}
    return store_boxes(candidates, lambda file: ImageFile(locate(file)), out, origin, advance)


def store_boxes(
    candidates: Candidates,
    find_picture: Callable[[str], Callable[[], Image]],
    out: Path,
    origin: Mapping[str, str],
    advance: Callable[[int], None],
) -> tuple[int, int]:
    """Writes a set of suggested boxes to a folder; returns its numbers of images and boxes.

    `find_picture`: file → function that reads its picture. `origin`: name and fingerprint of the
    source of the boxes. Raises `UsageError` as `sample_boxes` does.
    """
    check_vacant(out)
    of_file: dict[str, list[Candidate]] = {}
    for box in candidates.boxes:
        of_file.setdefault(box.file, []).append(box)
    rows: list[dict[str, Any]] = []
    file_of: dict[str, str] = {}
    for file, boxes in of_file.items():
        name, image = store_image(out, find_picture(file))
        if name in file_of:
            raise UsageError(f"'{file_of[name]}' and '{file}' are the same image; remove one")
        file_of[name] = file
        height, width = image.shape[:2]
        rows += [_build_box_row(box, name, (width, height)) for box in boxes]
        advance(1)
    write_output(out / "boxes.parquet", table(rows, BOXES))
    content = _build_manifest(origin, out, candidates, len(of_file))
    # set.json is not listed: people write into it how the set is to be reviewed
    write_sums(out, [out / "boxes.parquet"])
    write_manifest(out, content)
    return len(of_file), len(rows)


def _build_box_row(candidate: Candidate, image: str, size: tuple[int, int]) -> dict[str, Any]:
    box = inside(candidate.box, *size)
    if box is None:
        corners = ", ".join(f"{value:g}" for value in candidate.box)
        raise UsageError(
            f"the box {candidate.id} of '{candidate.file}' has the corners {corners}, outside the "
            f"image of {size[0]} × {size[1]} pixels; correct it"
        )
    return {
        "id": candidate.id,
        "image": image,
        "name": candidate.file,
        **dict(zip(("x0", "y0", "x1", "y1"), box, strict=True)),
        "label": candidate.label,
        "score": candidate.score,
        "annotated": candidate.annotated,
    }


def _build_manifest(
    origin: Mapping[str, str], out: Path, candidates: Candidates, images: int
) -> dict[str, Any]:
    return {
        "version": VERSION,
        "name": out.name,
        "kind": "boxes",
        "classes": {"names": candidates.classes.names, "wnids": candidates.classes.wnids},
        "category_ids": candidates.category_ids,
        "drawn": {
            "images": images,
            "boxes": len(candidates.boxes),
            "images_without_box": len(candidates.files) - images,
        },
        "sources": [dict(origin)],
        "provenance": provenance(),
    }
