"""What a model is trained on and judged by, from the sources that a user names."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.storage.files import place
from steadyeye.core.types import Source
from steadyeye.data.classes.class_lists import read
from steadyeye.training import leakage, splits
from steadyeye.training.dataset import check_learnable, examples, onto
from steadyeye.training.protocol import Examples

WAYS = ("video", "time")


@dataclass(frozen=True)
class Selection:
    """Which labels are learned, and what is held out.

    `several`: all labels of an image, not that of its largest object alone. `classes`: a class
    list that the labels are mapped onto, known or a file; None: the source's own. `class_map`: a
    file that says how. `holdout`: the share that is held, None where another source is given;
    `by`: "video" or "time"; `gap`: frames left out between the sides of a split by time. `boxed`:
    boxes are learned, as by a detector.
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
    """Both sides, checked: they share no video and no frame, but for a split by time.

    `notes`: how the labels were chosen, how the sides were parted and what was compared.
    """

    train: Examples
    held: Examples
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """The data as plain values, for run.json."""
        return {
            "classes": list(self.train.classes.names),
            "train": _record(self.train),
            "held": _record(self.held),
            "notes": list(self.notes),
        }


def data(source: Source, val: Source | None, selection: Selection) -> Data:
    """The examples of a source, parted as `selection` says, or judged by those of `val`.

    Raises `UsageError`, before anything is trained, for: no labels, one class only, an empty side,
    a label of `val` that is not among the classes, both or neither of `val` and a holdout, a gap
    that is missing or not asked for, shared videos, and frames nearly the same on both sides.
    """
    _check(selection, val)
    found = _select_training(source, selection)
    if val is not None:
        split = splits.pair_sources(found, _select_held(val, found, selection))
    elif selection.by == "time":
        split = splits.by_time(found, selection.holdout or 0, selection.gap)
    else:
        split = splits.by_video(found, selection.holdout or 0, selection.seed)
    check_learnable(split.train, 1 if selection.boxed else 2)
    told = leakage.check(split.train, split.held, in_time=val is None and selection.by == "time")
    notes = (*split.notes, *told, *split.train.notes, *split.held.notes)
    return Data(split.train, split.held, tuple(dict.fromkeys(notes)))


def _select_training(source: Source, selection: Selection) -> Examples:
    found = examples(source, selection.several, selection.boxed)
    if selection.classes is None:
        if selection.class_map is not None:
            raise UsageError("a class map needs the classes it maps onto; give --classes too")
        return found
    class_map = None if selection.class_map is None else place(selection.class_map)
    return onto(found, read(selection.classes), class_map)


def _select_held(val: Source, train: Examples, selection: Selection) -> Examples:
    found = examples(val, selection.several, selection.boxed)
    if found.classes.names == train.classes.names:
        return found
    # with --classes both are mapped alike; otherwise all that is judged has to be learned
    class_map = None if selection.class_map is None else place(selection.class_map)
    return onto(found, train.classes, class_map, strict=selection.classes is None)


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


def _record(side: Examples) -> Mapping[str, Any]:
    counts = Counter(label for one in side.items for label in one.labels[:1])
    return {
        "name": side.name,
        "fingerprint": side.fingerprint,
        "n": len(side.items),
        "videos": len({one.video for one in side.items}),
        "per class": {side.classes.names[label]: counts[label] for label in sorted(counts)},
    }
