"""Labels of data of Python: names, numbers, one-hot rows, scores or boxes, and their classes."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import Boxes, boxes
from steadyeye.core.errors import UsageError
from steadyeye.core.types import Classes, Labels
from steadyeye.data.classes.class_lists import (
    find_class,
    from_names,
    read_given,
    read_index_to_label,
)
from steadyeye.data.python_boxes import CATEGORY_KEYS, BoxRow, holds_boxes, read_boxes
from steadyeye.data.python_items import LABEL_KEYS, ask, describe, read_array

Label: TypeAlias = int | str | tuple[int | str, ...] | NDArray[Any] | BoxRow | None
"""A label as it came; an array: numbers or scores in a row, read once the classes are known."""


def read_label(label: Any, name: str) -> Label:
    """A label as a number or a name, several of them, boxes, or None. Raises `UsageError`."""
    if label is None or isinstance(label, str):
        return label
    if isinstance(label, list | tuple | set | frozenset) and all(
        isinstance(part, str) for part in label
    ):
        return tuple(sorted(label))
    if holds_boxes(label):
        return cast(BoxRow, ask(lambda: read_boxes(label, name), f"the label of '{name}'"))
    numbers = np.zeros(())
    if not isinstance(label, Mapping):
        values = list(label) if isinstance(label, set | frozenset) else label
        numbers = read_array(values, f"the label of '{name}'")
    if numbers.ndim == 0 and np.issubdtype(numbers.dtype, np.integer):
        return int(numbers)
    scores = numbers.dtype.kind in "fb" and len(numbers.ravel()) > 1
    if numbers.ndim != 1 or not (scores or np.issubdtype(numbers.dtype, np.integer)):
        raise UsageError(
            f"the label of '{name}' is {describe(label)}; give a number, the name of a class, or "
            "boxes as {'boxes': [[x0, y0, x1, y1], …], 'labels': [0, …]}"
        )
    return numbers


def find_classes(
    data: Any, labels: Sequence[Label], classes: str | Sequence[str] | None
) -> Classes | None:
    """The classes that the data name, that are given, or whose names the labels are.

    Numbers are over the names that the data have for them, in their order, whatever a model is
    over; given names are other words for them where there are as many and none is the same.
    """
    names = _read_names(data)
    own = read_given(names) if names else None
    others = read_given(classes) if classes else None
    if own and others and (len(own) != len(others) or set(own.names) & set(others.names)):
        return own
    if own or others:
        return others or own
    parts = [part for label in labels for part in _list_parts(label)]
    if not parts:
        return None
    if any(isinstance(part, int) for part in parts):
        raise UsageError(
            "the labels are numbers and the data name no classes; give classes=[…] in the order "
            "of the numbers, a known list or a file"
        )
    return from_names(sorted({str(part) for part in parts}))


def _read_names(data: Any) -> Sequence[str] | None:
    """The names of the classes as torchvision, Hugging Face `datasets` and MAITE keep them."""
    names = getattr(data, "classes", None)
    names = names.tolist() if isinstance(names, np.ndarray) else names
    if names:
        # a set has no order, and a mapping may have another one
        if not isinstance(names, Sequence) or isinstance(names, str | bytes):
            raise UsageError(
                f"the classes of the data are {repr(names)[:60]}; give classes=[…] with their names"
            )
        # torchvision's ImageNet has the synonyms of each
        return [", ".join(name) if isinstance(name, tuple) else name for name in names]
    features = getattr(data, "features", None)
    if isinstance(features, Mapping):
        kinds = [features[key] for key in LABEL_KEYS if key in features]
        # of boxes the class is a part of each, in a list
        parts = [getattr(kind, "feature", kind) for kind in kinds]
        parts += [
            p[key] for p in parts if isinstance(p, Mapping) for key in CATEGORY_KEYS if key in p
        ]
        parts += [getattr(part, "feature", part) for part in parts]
        return next((list(part.names) for part in parts if getattr(part, "names", None)), None)
    return read_index_to_label(getattr(data, "metadata", None))


def number_label(label: Label, known: Classes | None, name: str) -> Labels:
    """The indices of a label among the classes. Raises `UsageError` for unknown labels."""
    if known is None:
        return ()
    parts = _list_parts(label)
    if isinstance(label, np.ndarray):
        if label.dtype.kind in "fb" or _is_indicator(label, len(known), name):
            return read_scores(label, len(known), name)
        if len(set(parts)) < len(parts):
            raise UsageError(
                f"the label of '{name}' has a number twice, and {len(parts)} numbers for "
                f"{len(known)} classes; give the numbers of its classes, or one score a class"
            )
    places = []
    for part in parts:
        if isinstance(part, str):
            places.append(find_class(part, known, f"class of '{name}'"))
        elif not 0 <= part < len(known):
            if part == -1:  # datasets write −1 where a label is not told
                continue
            raise UsageError(f"the label of '{name}' is {part}; classes go to {len(known) - 1}")
        else:
            places.append(part)
    return tuple(sorted(set(places)))


def _is_indicator(row: NDArray[Any], width: int, name: str) -> bool:
    """Whether whole numbers say 0 or 1 of each class, as one-hot rows do.

    Raises `UsageError` where they may as well be the numbers of the classes: 0 and 1 of two.
    """
    if len(row) != width or width < 2 or not np.isin(row, (0, 1)).all():
        return False
    if width == 2 and row.sum() == 1:
        raise UsageError(
            f"the label of '{name}' is {row.tolist()}, which may be one-hot or both classes; "
            "give the number of a class, its name, or one-hot rows of floats"
        )
    return True


def read_scores(row: NDArray[Any], width: int, name: str) -> Labels:
    """The classes with the highest score of a row, as one-hot rows and scores over classes have it.

    `row`: (width,). None where all scores are 0. Raises `UsageError` for another width, scores that
    are no numbers, and the same score of every class, but for 1.
    """
    if len(row) != width:
        raise UsageError(
            f"the label of '{name}' has {len(row)} scores for {width} classes; give one per class"
        )
    if not np.isfinite(row).all():
        raise UsageError(f"the label of '{name}' has scores that are no numbers; correct them")
    if not row.any():
        return ()
    places = np.flatnonzero(row == row.max())
    if len(places) == width > 1 and row[0] != 1:
        raise UsageError(f"the label of '{name}' scores all classes alike; give it as None")
    return tuple(places.tolist())


def number_label_boxes(label: Label, known: Classes | None, name: str) -> Boxes:
    """The true boxes of an image. Raises `UsageError` for a label beside those of boxes."""
    if not isinstance(label, BoxRow):
        raise UsageError(f"'{name}' has no boxes and others do; give it empty ones")
    places = [number_label(part, known, name) for part in label.labels]
    if any(len(place) != 1 for place in places):
        raise UsageError(f"'{name}' has a box with the label −1; leave such boxes out")
    return boxes(label.corners, [place[0] for place in places], label.crowd, label.area)


def _list_parts(label: Label) -> tuple[int | str, ...]:
    """The names and numbers of a label; of scores their places."""
    if label is None:
        return ()
    if isinstance(label, BoxRow):
        return label.labels
    if isinstance(label, np.ndarray):
        return tuple(range(len(label)) if label.dtype.kind in "fb" else label.tolist())
    return label if isinstance(label, tuple) else (label,)
