"""Examples from any labelled source: one label per image, the largest object's, or all labels."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from steadyeye.core.boxes import OOD, Boxes, describe_size_fault
from steadyeye.core.errors import SampleError, UsageError, list_texts
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import Place
from steadyeye.core.types import Classes, Image, Sample, Source
from steadyeye.data.classes import class_mapping
from steadyeye.data.classes.class_map import ClassMap, of_destinations
from steadyeye.data.classes.map_file import from_file
from steadyeye.training.protocol import Example, Examples

LISTED = 5  # classes in a note
MOST = 10_000  # videos in a model's record


def examples(source: Source, several: bool = False, boxed: bool = False) -> Examples:
    """The training examples of a source: its labelled images, each frame of a video once.

    The first label is that of the largest object (Shankar et al., "Do Image Classifiers Generalize
    Across Time?", Section 3.1): by the area of its mask, or else of its box, without crowds and
    objects outside the classes; ties go to the lower class. A frame has the labels of all its sets.
    `several`: all labels are used. Otherwise an image without boxes and with several labels is left
    out, because its main label is not known. `boxed`: boxes are used, so images without annotated
    boxes are left out, and images annotated as empty stay. The notes count everything left out.
    Nothing is decoded. Raises `UsageError` if nothing is labelled, and for a label outside the
    classes.
    """
    classes = source.classes
    if classes is None or not any(source.truths):
        raise UsageError(
            f"'{source.name}' has no labels to train on; give a source with labels or boxes"
        )
    read = [_read(source[i], classes, source.name, boxed) for i in range(len(source))]
    merged = _merge_frames(read)
    lacks = [_find_lack(example, several, boxed) for example in merged]
    unique = [example for example, why in zip(merged, lacks, strict=True) if not why]
    times = Counter(example.id for example in read)
    twice = sum(times[example.id] - 1 for example in unique)
    notes = [
        f"{number_of(lacks.count(why), 'image')} {text}"
        for why, text in LEFT_OUT.items()
        if why in lacks
    ]
    if twice:
        frames = number_of(twice, "frame that is", "frames that are")
        notes.append(f"{frames} in several sets, each used once")
    if any(example.boxes is not None for example in unique) and not (several or boxed):
        notes.append("the label of a frame is that of its largest object")
    if not unique:
        raise UsageError(f"'{source.name}' leaves nothing to train on: {'; '.join(notes)}")
    if several and any(example.verified is not None for example in unique):
        notes.append("a class that nobody verified in an image is left out of its loss")
    whole = Examples(source.name, classes, (), source.fingerprint)
    # notes on pm-sets are about neighbours and anchors, which training does not use
    of_source = () if "offset" in source.columns else source.notes
    return choose_examples(whole, unique, (*notes, *of_source))


UNLABELLED, AMBIGUOUS, UNBOXED = "unlabelled", "ambiguous", "unboxed"
LEFT_OUT = {
    UNLABELLED: "without a label, left out",
    AMBIGUOUS: "with several labels and no boxes to find the largest object, left out",
    UNBOXED: "without boxes, left out",
}


def choose_examples(
    whole: Examples,
    items: Sequence[Example],
    notes: Sequence[str] = (),
    classes: Classes | None = None,
) -> Examples:
    """A selection of examples, or changed ones; its notes follow the new ones.

    The fingerprint covers that of the original with the ids, the labels, the boxes and the classes.
    """
    over = classes or whole.classes
    marks = (
        f"{example.id} {example.labels} {example.verified}{_boxes_mark(example.boxes)}"
        for example in items
    )
    mark = fingerprint(whole.fingerprint, repr(over), *marks)
    notes_of_both = tuple(dict.fromkeys((*notes, *whole.notes)))
    return Examples(whole.name, over, tuple(items), mark, notes_of_both)


def largest(boxes: Boxes) -> int | None:
    """The class of the largest object; None without an object of the classes."""
    objects = np.flatnonzero(~boxes.crowd & (boxes.labels != OOD))
    if not len(objects):
        return None
    order = np.lexsort((boxes.labels[objects], -boxes.area[objects]))
    return int(boxes.labels[objects[order[0]]])


def onto(
    data: Examples, classes: Classes, class_map: Place | None = None, strict: bool = False
) -> Examples:
    """The examples with the labels of another class list, such as ILSVRC's thousand over VID's 30.

    By `class_map`, a file, else by name or WordNet as for models
    (`steadyeye.data.classes.class_mapping`). Labels without a mapped class are left out, and
    counted with the images that have no other label; with `strict` they are refused.
    """
    if data.classes == classes and class_map is None:
        return data
    table = _table(data.classes, classes, class_map)
    if strict:
        _check_reached(data, table)
    items = [moved for example in data.items if (moved := _move_labels(example, table)).labels]
    lost = len(data.items) - len(items)
    if not items:
        raise UsageError(
            f"no label of '{data.name}' maps to any of {', '.join(classes.names[:LISTED])}; "
            "give --class-map"
        )
    note = f"labels mapped onto {number_of(len(classes), 'class')} {table.origin}"
    note += f"; {number_of(lost, 'image')} without one of them, left out" if lost else ""
    return choose_examples(data, items, (note,), classes)


def trained_on(train: Examples) -> dict[str, Any]:
    """The record of the training data of a model.

    `name`, `fingerprint`, `n`; `videos`: each with the first and the last training frame, None if
    frames have no number; left out above 10,000.
    """
    spans: dict[str, list[int] | None] = {}
    for example in train.items:
        before = spans.get(example.video)
        numbers = [example.frame] if example.frame is not None else []
        all_numbers = [*(before or ()), *numbers]
        spans[example.video] = [min(all_numbers), max(all_numbers)] if all_numbers else None
    content = {"name": train.name, "fingerprint": train.fingerprint, "n": len(train.items)}
    return {**content, "videos": spans} if len(spans) <= MOST else content


def check_learnable(train: Examples, least: int = 2) -> None:
    """Raises `UsageError` for examples of fewer than `least` classes; boxes need only one."""
    labels = present(train.items)
    if len(labels) < least:
        only = f"'{train.classes.names[labels[0]]}' alone" if labels else "no class"
        raise UsageError(
            f"'{train.name}' has {only} among {len(train.items):,} training examples; at least "
            f"{'two classes are' if least == 2 else 'one class is'} needed"
        )


def present(items: Iterable[Example]) -> tuple[int, ...]:
    """The classes of the examples, rising."""
    return tuple(sorted({label for example in items for label in example.labels}))


def names(classes: Classes, labels: Iterable[int]) -> str:
    """The names of some classes, or of the first few of many."""
    return list_texts([classes.names[i] for i in labels])


def _read(sample: Sample, classes: Classes, name: str, boxed: bool) -> Example:
    first = largest(sample.boxes) if sample.boxes is not None else None
    labels = tuple(dict.fromkeys((*(() if first is None else (first,)), *sample.truth)))
    outside = [label for label in labels if not 0 <= label < len(classes)]
    if outside:
        raise UsageError(
            f"'{name}': the label {outside[0]} of '{sample.id}' is not in the class list, which "
            f"has {len(classes)}; correct the label or the list"
        )
    frame = sample.tags.get("frame")
    video = str(sample.tags.get("video") or sample.group)
    known = isinstance(frame, int) and bool(video)
    id_ = f"{video}/{frame:06d}" if known else sample.id
    return Example(
        id_,
        video or id_,
        partial(_read_annotated_image, sample) if boxed and sample.size else sample.image,
        labels,
        sample.boxes,
        int(frame) if isinstance(frame, int) else None,
        sample.verified,
    )


def _read_annotated_image(sample: Sample) -> Image:
    """The image of a sample. Raises `SampleError` if its boxes are for another image size."""
    image = sample.image()
    if fault := describe_size_fault(sample.id, sample.size, (image.shape[0], image.shape[1])):
        raise SampleError(fault)
    return image


def _merge_frames(items: Sequence[Example]) -> list[Example]:
    """Each id once, with all its labels: sets may label a frame differently."""
    merged: dict[str, Example] = {}
    for example in items:
        before = merged.setdefault(example.id, example)
        if not set(example.labels) <= set(before.labels):
            labels = tuple(dict.fromkeys((*before.labels, *example.labels)))
            merged[example.id] = replace(before, labels=labels)
    return list(merged.values())


def _find_lack(example: Example, several: bool, boxed: bool) -> str:
    """Why an example is left out, a key of `LEFT_OUT`; empty if it is not."""
    if boxed:  # an image annotated as empty is a training example, too
        return UNBOXED if example.boxes is None else ""
    if not example.labels:
        return UNLABELLED
    unclear = len(example.labels) > 1 and example.boxes is None and not several
    return AMBIGUOUS if unclear else ""


def _table(source: Classes, target: Classes, class_map: Place | None) -> ClassMap:
    if class_map is not None:
        return from_file(class_map, source, target)
    try:
        return class_mapping.between(source, target)
    except UsageError:
        # no class maps; that error is about a model's classes, ours lists the lost labels
        return of_destinations(source, target, {}, "by name")


def _check_reached(data: Examples, table: ClassMap) -> None:
    lost = [label for label in present(data.items) if table.destinations[label] < 0]
    if lost:
        raise UsageError(
            f"'{data.name}' has labels that are not among the classes trained on: "
            f"{names(data.classes, lost)}; leave them out, or give --class-map"
        )


def _move_labels(example: Example, table: ClassMap) -> Example:
    to = table.destinations
    labels = tuple(dict.fromkeys(to[label] for label in example.labels if to[label] >= 0))
    verified = example.verified
    if verified is not None:
        verified = tuple(sorted({to[label] for label in verified if to[label] >= 0}))
    return replace(example, labels=labels, boxes=_boxes(example.boxes, to), verified=verified)


def _boxes(boxes: Boxes | None, to: Sequence[int]) -> Boxes | None:
    """The boxes with mapped labels; labels without a mapped class are outside the classes."""
    if boxes is None:
        return None
    moved = [to[label] if label != OOD else OOD for label in boxes.labels.tolist()]
    # −1 is both "no mapped class" and OOD
    return replace(boxes, labels=np.asarray(moved, dtype=np.int32))


def _boxes_mark(boxes: Boxes | None) -> str:
    if boxes is None:
        return ""
    return f" {boxes.boxes.tolist()} {boxes.labels.tolist()} {boxes.crowd.tolist()}"
