"""A perturber of NRTK."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.core.types import Image
from steadyeye.degradation.library_transforms import (
    Arguments,
    build_operator,
    read_levels,
    refuse_boxes,
)
from steadyeye.degradation.operator import Operator

IN_PLACE = (
    *("photometric.blur", "photometric.enhance", "photometric.noise"),
    *("environment", "optical.otf"),
)
"""Modules of `nrtk.impls.perturb_image` whose perturbers leave objects where they are."""
MOVING = ("optical", "generative", "geometric.random")
"""Modules with perturbers that may move them."""


def nrtk(
    *,
    name: str,
    level: str | None = None,
    values: Sequence[Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Operator:
    """A perturber of NRTK by name: `nrtk(name='HazePerturber')`.

    `name`: of its class. `level`: the argument that has another of `values` at each level; one
    level if left out. `arguments`: further ones. Random perturbers are seeded for every image and
    level. One that moves objects cannot be used with true boxes. NRTK is not installed with
    steadyeye, and some of its perturbers need further packages. Raises `UsageError` for an unknown
    perturber, argument or value.

    Example: `nrtk(name='AverageBlurPerturber', level='ksize', values=[3, 7, 11])`, and in Python

        >>> from steadyeye.testing import degrade_example
        >>> print(degrade_example(nrtk(name="HazePerturber"), level=1))
        100 % of pixels changed, mean 127 → 126
    """
    title = f"nrtk.{name}"
    place, perturber = _find_class(name)
    levels = read_levels(title, perturber, level, values, arguments or {})
    is_random = "seed" in inspect.signature(perturber).parameters

    def apply(image: Image, chosen: Arguments, seed: int) -> Any:
        seeded = {**chosen, "seed": seed} if is_random and "seed" not in chosen else chosen
        pixels, _ = perturber(**seeded)(image=image)
        return pixels

    operator = build_operator("nrtk", name, levels, apply)
    return operator if place in IN_PLACE else replace(operator, move=refuse_boxes(title))


def _find_class(name: str) -> tuple[str, Any]:
    """(module, class) of a perturber. Raises `UsageError` if it or a package is missing."""
    import_module("nrtk")  # the user's own install; if it is missing, this error comes first
    known: list[str] = []
    for place in (*IN_PLACE, *MOVING):
        module = import_module(f"nrtk.impls.perturb_image.{place}")
        known += [entry for entry in dir(module) if entry.endswith("Perturber")]
        try:
            perturber = getattr(module, name, None)
        except ImportError as error:
            # NRTK names the missing packages of a perturber
            raise UsageError(f"nrtk.{name}: {' '.join(str(error).split())}") from error
        if inspect.isclass(perturber):
            return place, perturber
    raise unknown("perturber of NRTK", name, sorted(set(known)))
