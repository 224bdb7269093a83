"""A transform of Albumentations."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import unknown
from steadyeye.core.types import Image
from steadyeye.degradation.library_transforms import (
    Arguments,
    build_operator,
    read_levels,
    refuse_boxes,
    run,
)
from steadyeye.degradation.operator import MoveBoxes, Operator, seed_of

SPLITTING = ("RandomGridShuffle",)
"""Transforms that cut objects into pieces; the library's box is then that of one piece."""


def albumentations(
    *,
    name: str,
    level: str | None = None,
    values: Sequence[Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Operator:
    """A transform of Albumentations by name: `albumentations(name='RandomRain')`.

    `name`: of its class. `level`: the argument that has another of `values` at each level; one
    level if left out. `arguments`: further ones; the default of `p` is 1. Seeded for every image
    and level. A transform that moves objects moves true boxes too, by its own rule; those that it
    removes are ignored. After a rotation or shear, a box encloses the turned *box*, and is larger
    than the object. A transform that cuts objects into pieces cannot be used with true boxes.
    Albumentations is not installed with steadyeye. Raises `UsageError` for an unknown transform,
    argument or value: Albumentations itself would ignore an unknown argument.

    Example: `albumentations(name='MotionBlur', level='blur_limit', values=[[3, 3], [9, 9]])`, and
    in Python

        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(albumentations(name="InvertImg"), level=1))
        100 % of pixels changed, mean 127 → 128
    """
    import albumentations as library  # the user's own install

    title = f"albumentations.{name}"
    classes = {
        key: entry
        for key, entry in vars(library).items()
        if inspect.isclass(entry)
        and issubclass(entry, library.BasicTransform)
        and not entry.__module__.endswith("transforms_interface")  # the base classes of the others
    }
    if name not in classes:
        raise unknown("transform of Albumentations", name, sorted(classes))
    transform: Any = classes[name]
    others = ({} if level == "p" else {"p": 1}) | dict(arguments or {})
    levels = read_levels(title, transform, level, values, others)

    def apply(image: Image, chosen: Arguments, seed: int) -> Any:
        built = transform(**chosen)
        built.set_random_seed(seed)
        return built(image=image)["image"]

    operator = build_operator("albumentations", name, levels, apply)
    if issubclass(transform, library.ImageOnlyTransform):
        return operator
    if name in SPLITTING:
        return replace(operator, move=refuse_boxes(title))
    return replace(operator, move=_move_by(library, title, transform, levels))


def _move_by(library: Any, title: str, transform: Any, levels: Sequence[Arguments]) -> MoveBoxes:
    """The boxes after the transform; one that it removes has no area."""

    def move(
        boxes: NDArray[np.float64], level: int, size: tuple[int, int], key: np.uint64
    ) -> NDArray[np.float64]:
        def apply() -> Any:
            built = transform(**levels[level - 1])
            rule = library.BboxParams(format="pascal_voc", label_fields=["index"])
            composed = library.Compose([built], bbox_params=rule)
            # after composing, which seeds its parts
            built.set_random_seed(seed_of(key, level))
            image = np.zeros((*size, 3), dtype=np.uint8)
            return composed(image=image, bboxes=cut, index=np.flatnonzero(inside))

        cut = np.clip(boxes, 0, [size[1], size[0], size[1], size[0]])
        inside = (cut[:, 2:] > cut[:, :2]).all(axis=1)
        cut, moved = cut[inside], np.zeros_like(boxes)
        result = run(title, apply)
        order = np.asarray(result["index"], dtype=np.intp)
        moved[order] = np.asarray(result["bboxes"], dtype=np.float64).reshape(-1, 4)
        return moved

    return move
