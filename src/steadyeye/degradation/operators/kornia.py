"""An augmentation of Kornia."""

import inspect
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from steadyeye.core.errors import unknown
from steadyeye.core.types import Image
from steadyeye.degradation.library_transforms import (
    Arguments,
    build_operator,
    read_levels,
    refuse_boxes,
)
from steadyeye.degradation.operator import Operator

LOCK = threading.Lock()


def kornia(
    *,
    name: str,
    level: str | None = None,
    values: Sequence[Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Operator:
    """An augmentation of Kornia by name: `kornia(name='RandomRain')`.

    `name`: of its class in `kornia.augmentation`. `level`: the argument that has another of
    `values` at each level; one level if left out. `arguments`: further ones; the default of `p` is
    1. Computed on the CPU, in fp32 of values in 0…1, and rounded. Seeded for every image and level.
    An augmentation that moves objects cannot be used with true boxes. Kornia is not installed with
    steadyeye. Raises `UsageError` for an unknown augmentation, argument or value.

    Example: `kornia(name='RandomGaussianNoise', level='std', values=[0.02, 0.05, 0.1])`, and in
    Python

        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(kornia(name="RandomInvert"), level=1))
        100 % of pixels changed, mean 127 → 128
    """
    import torch
    from kornia import augmentation as library  # the user's own install

    title = f"kornia.{name}"
    base = library.AugmentationBase2D
    classes = {
        key: entry
        for key, entry in vars(library).items()
        if inspect.isclass(entry) and issubclass(entry, base) and "Base" not in key
    }
    if name not in classes:
        raise unknown("augmentation of Kornia", name, sorted(classes))
    augmentation = classes[name]
    others = ({} if level == "p" else {"p": 1.0}) | dict(arguments or {})
    levels = read_levels(title, augmentation, level, values, others)

    def apply(image: Image, chosen: Arguments, seed: int) -> Any:
        values_ = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
        # one at a time: all threads share torch's generator
        with LOCK, torch.random.fork_rng(devices=[]), torch.inference_mode():
            torch.manual_seed(seed)
            augmented = augmentation(**chosen)(values_)
        grey = (augmented[0].permute(1, 2, 0).clamp(0, 1) * 255).round()
        return np.ascontiguousarray(grey.to(torch.uint8).numpy())

    operator = build_operator("kornia", name, levels, apply)
    if issubclass(augmentation, library.IntensityAugmentationBase2D):
        return operator
    return replace(operator, move=refuse_boxes(title))
