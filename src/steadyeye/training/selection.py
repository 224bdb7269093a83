"""The selection of training and held-out data from the user's sources."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.format import number_of, percent
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import place
from steadyeye.core.types import Source
from steadyeye.data.classes.class_lists import read
from steadyeye.training.dataset import (
    check_learnable,
    choose_examples,
    examples,
    names,
    onto,
    present,
)
from steadyeye.training.leakage import check_leakage
from steadyeye.training.protocol import Example, Examples

WAYS = ("video", "time")


@dataclass(frozen=True)
class Selection:
    """The labels for training, and the held-out data.

    `several`: all labels of an image, not only that of its largest object. `classes`: a class list
    onto which the labels are mapped, known or a file; None: the source's own. `class_map`: a file
    with the mapping. `holdout`: the share of held-out data, None if another source is given; `by`:
    "video" or "time"; `gap`: frames left out between the sides of a split by time. `boxed`: boxes
    are trained, as for a detector.
    """

    several: bool = False
    classes: str | None = None
    class_map: str | None = None
    holdout: float | None = None
    by: str = "video"
    gap: int | None = None
    seed: int = 0
    boxed: bool = False


@dataclass(frozen=True)
class Data:
    """Both sides, checked: they share no video and no frame, except for a split by time.

    `notes`: how the labels were selected, how the sides were split, and what was compared.
    """

    train: Examples
    validation: Examples
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """The data as plain values, for run.json."""
        return {
            "classes": list(self.train.classes.names),
            "train": _describe_side(self.train),
            "held": _describe_side(self.validation),
            "notes": list(self.notes),
        }


def data(source: Source, val: Source | None, selection: Selection) -> Data:
    """The examples of a source, split as `selection` says, or with those of `val` as held-out data.

    Raises `UsageError`, before any training, for: no labels, one class only, an empty side, a label
    of `val` that is not among the classes, both or neither of `val` and a holdout, a gap that is
    missing or not needed, shared videos, and near duplicates on both sides.
    """
    _check(selection, val)
    examples_of_data = _select_training(source, selection)
    if val is not None:
        split = pair_sources(examples_of_data, _select_held(val, examples_of_data, selection))
    elif selection.by == "time":
        split = split_by_time(examples_of_data, selection.holdout or 0, selection.gap)
    else:
        split = split_by_video(examples_of_data, selection.holdout or 0, selection.seed)
    check_learnable(split.train, 1 if selection.boxed else 2)
    leakage_notes = check_leakage(
        split.train, split.validation, in_time=val is None and selection.by == "time"
    )
    notes = (*split.notes, *leakage_notes, *split.train.notes, *split.validation.notes)
    return Data(split.train, split.validation, tuple(dict.fromkeys(notes)))


def _select_training(source: Source, selection: Selection) -> Examples:
    examples_of_data = examples(source, selection.several, selection.boxed)
    if selection.classes is None:
        if selection.class_map is not None:
            raise UsageError("a class map needs the classes it maps onto; give --classes too")
        return examples_of_data
    class_map = None if selection.class_map is None else place(selection.class_map)
    return onto(examples_of_data, read(selection.classes), class_map)


def _select_held(val: Source, train: Examples, selection: Selection) -> Examples:
    examples_of_val = examples(val, selection.several, selection.boxed)
    if examples_of_val.classes.names == train.classes.names:
        return examples_of_val
    # with --classes both are mapped alike; otherwise all classes of `val` must be trained
    class_map = None if selection.class_map is None else place(selection.class_map)
    return onto(examples_of_val, train.classes, class_map, strict=selection.classes is None)


def _check(selection: Selection, val: Source | None) -> None:
    if selection.by not in WAYS:
        raise unknown("way to split", selection.by, WAYS)
    if (val is None) == (selection.holdout is None):
        raise UsageError(
            "no held-out data; give --val SPEC or --holdout 0.2"
            if val is None
            else "--val and --holdout exclude each other; give one"
        )
    if selection.gap is not None and (val is not None or selection.by != "time"):
        raise UsageError(
            f"--gap {selection.gap} is for a split by time; add --by time, or leave it out"
        )


def _describe_side(side: Examples) -> Mapping[str, Any]:
    counts = Counter(label for example in side.items for label in example.labels[:1])
    return {
        "name": side.name,
        "fingerprint": side.fingerprint,
        "n": len(side.items),
        "videos": len({example.video for example in side.items}),
        "per class": {side.classes.names[label]: counts[label] for label in sorted(counts)},
    }


@dataclass(frozen=True)
class Split:
    """The two sides, over the same classes; `notes`: how they were split, for the report."""

    train: Examples
    validation: Examples
    notes: tuple[str, ...]


def split_by_video(examples: Examples, share: float, seed: int = 0) -> Split:
    """Whole videos on either side: `share` of the videos of each class are held out, seeded.

    The class of a video is that of most of its frames; videos without any object are a class of
    their own. Of a class with several videos at least one is held out and at least one is not; a
    single video is not held out. The choice depends on (seed, video) alone. Raises `UsageError` if
    no class has two videos.
    """
    _check_share(share)
    videos = _videos(examples.items)
    of_class: dict[int, list[str]] = {}
    for video, items in videos.items():
        counts = Counter(label for example in items for label in example.labels[:1])
        main = min(counts, key=lambda label: (-counts[label], label), default=-1)
        of_class.setdefault(main, []).append(video)
    chosen: set[str] = set()
    for videos_of_class in of_class.values():
        count = min(max(round(share * len(videos_of_class)), 1), len(videos_of_class) - 1)
        chosen.update(sorted(videos_of_class, key=lambda v: fingerprint(str(seed), v))[:count])
    if not chosen:
        raise UsageError(
            f"'{examples.name}' has one video of each class, so none can be held out whole; "
            "split by time with a gap (--by time --gap N), or give --val"
        )
    text = (
        f"{len(chosen):,} of {number_of(len(videos), 'video')} held out whole: "
        f"{percent(share, 0)} of those of each class, at least one if there are two, seed {seed}"
    )
    train = [example for example in examples.items if example.video not in chosen]
    validation = [example for example in examples.items if example.video in chosen]
    return _split(examples, train, validation, (text,))


def split_by_time(examples: Examples, share: float, gap: int | None) -> Split:
    """The last part of every video is held out, and the frames just before it are left out.

    `share`: of the labelled frames of each video, rounded up. `gap`: the number of native frames
    between the last training frame and the first held-out one; the frames in between are on neither
    side, and counted, as are videos too short for it. Raises `UsageError` without a gap, for images
    without a known place in a video, and if a side is empty.
    """
    _check_share(share)
    if gap is None or gap < 1:
        raise UsageError(
            f"a split by time needs a gap{'' if gap is None else f' above 0, not {gap}'}: frames "
            "next to each other are nearly the same; give --gap N in frames"
        )
    timeless = [example.id for example in examples.items if example.frame is None]
    if timeless:
        raise UsageError(
            f"'{examples.name}' does not say when its images were taken, first '{timeless[0]}'; "
            "split by video, or give --val"
        )
    sides: tuple[list[Example], list[Example]] = ([], [])
    short: list[str] = []
    for video, items in _videos(examples.items).items():
        before, after = _in_time(items, share, gap)
        if before and after:
            sides[0].extend(before)
            sides[1].extend(after)
        else:
            short.append(video)
    between = len(examples.items) - len(sides[0]) - len(sides[1])
    text = (
        f"the last {percent(share, 0)} of every video held out; gap: "
        f"{number_of(gap, 'frame')} between the sides, {number_of(between, 'example')} on neither"
    )
    notes = [f"{text}; both sides share their videos, as a split by time does"]
    if short:
        notes.append(
            f"{number_of(len(short), 'video')} too short for that, left out, first '{short[0]}'"
        )
    return _split(examples, *sides, notes)


def pair_sources(train: Examples, validation: Examples) -> Split:
    """Two sources as the two sides, over the same classes, after `onto` for the held-out one.

    Ids of single pictures are file names, which two folders may share: the held-out ones then have
    `val:` before their ids.
    """
    train_ids = {example.id for example in train.items}
    if any(example.id in train_ids and example.video == example.id for example in validation.items):
        items = [
            replace(example, id=f"val:{example.id}", video=f"val:{example.id}")
            if example.video == example.id
            else example
            for example in validation.items
        ]
        validation = choose_examples(validation, items)
    note = f"held-out data from another source, '{validation.name}'"
    return _check_split(Split(train, validation, (note,)))


def _split(
    examples: Examples,
    train: Sequence[Example],
    validation: Sequence[Example],
    notes: Sequence[str],
) -> Split:
    sides = choose_examples(examples, train), choose_examples(examples, validation)
    return _check_split(Split(*sides, tuple(notes)))


def _check_split(split: Split) -> Split:
    """The split with notes on missing classes; raises `UsageError` for an empty side."""
    for purpose, side in (("train on", split.train), ("validate on", split.validation)):
        if not side.items:
            raise UsageError(
                f"'{side.name}' leaves no examples to {purpose} ({'; '.join(split.notes)}); "
                "change --holdout, or give --val"
            )
    classes = split.train.classes
    train, validation = set(present(split.train.items)), set(present(split.validation.items))
    notes = list(split.notes)
    for only, text in (
        (train - validation, "only in the training data, so never validated"),
        (validation - train, "only in the held-out data, so never trained"),
        (set(range(len(classes))) - train - validation, "without any example"),
    ):
        if only:
            notes.append(
                f"{len(only)} of {number_of(len(classes), 'class')} {text}: "
                f"{names(classes, sorted(only))}"
            )
    return Split(split.train, split.validation, tuple(notes))


def _in_time(
    items: Sequence[Example], share: float, gap: int
) -> tuple[list[Example], list[Example]]:
    ordered = sorted(items, key=lambda example: example.frame or 0)
    last = ordered[len(ordered) - ceil(share * len(ordered)) :]
    first = last[0].frame or 0
    return [example for example in ordered if (example.frame or 0) < first - gap], last


def _videos(items: Sequence[Example]) -> Mapping[str, list[Example]]:
    videos: dict[str, list[Example]] = {}
    for example in items:
        videos.setdefault(example.video, []).append(example)
    return videos


def _check_share(share: float) -> None:
    if not 0 < share < 1:
        raise UsageError(f"holdout {share:g}: give a share above 0 and below 1, such as 0.2")
