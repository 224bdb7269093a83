"""Recipes that users write down: a dict of the few things that surround a network."""

from collections.abc import Mapping
from typing import Any

from steadyeye.core.errors import UsageError, unknown
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes.classifier import Recipe

DEFAULTS: Mapping[str, Any] = {
    "size": 224,
    "resize": None,
    "mean": (123.675, 116.28, 103.53),
    "std": (58.395, 57.12, 57.375),
    "interpolation": "bicubic",
    "output": "logits",
    "layout": "nchw",
}
"""What a recipe leaves out. The mean and std are ImageNet's, 255 × (0.485, 0.456, 0.406) …"""

OUTPUTS = ("logits", "probabilities")
LAYOUTS = ("nchw", "nhwc")


def recipe(record: Mapping[str, Any] | None, **defaults: Any) -> Recipe:
    """The `Recipe` a dict writes down, over what a file says, `defaults`, over `DEFAULTS`.

    `size`: side or (height, width); `resize`: short side or exact (height, width), by default
    size / 0.875; `mean`, `std`: one number or three, in 0…255; `interpolation`; `output`;
    `layout`. Raises `UsageError` for an unknown key and a value that cannot be meant.
    """
    for key in record or {}:
        if key not in DEFAULTS:
            raise unknown("key of a recipe", key, DEFAULTS)
    settings = {**DEFAULTS, **defaults, **(record or {})}
    if settings["output"] not in OUTPUTS:
        raise unknown("output", str(settings["output"]), OUTPUTS)
    if settings["layout"] not in LAYOUTS:
        raise unknown("layout", str(settings["layout"]), LAYOUTS)
    return Recipe(_preprocessing(settings), settings["output"], settings["layout"])


def unit_range(
    mean: tuple[float, ...], std: tuple[float, ...]
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """`mean` and `std` of pixels in 0…1, as most libraries state them, in 0…255."""
    low, high = (tuple(255.0 * float(value) for value in values) for values in (mean, std))
    return _three("mean", low), _three("std", high)


def _preprocessing(settings: Mapping[str, Any]) -> Preprocessing:
    size = _size("size", settings["size"])
    if settings["resize"] is None:
        resize: int | tuple[int, int] = int(max(size) / 0.875)
    else:
        resize = (
            settings["resize"] if isinstance(settings["resize"], int) else _pair(settings["resize"])
        )
    mean, std = _three("mean", settings["mean"]), _three("std", settings["std"])
    if min(std) <= 0 or max(std) < 1:
        raise UsageError(
            f"std={settings['std']} is not in 0…255; multiply mean and std by 255 if they are for "
            "0…1"
        )
    return Preprocessing(size, resize, mean, std, str(settings["interpolation"]))


def _size(key: str, value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else _pair(value, key)


def _pair(value: Any, key: str = "resize") -> tuple[int, int]:
    try:
        height, width = value
        return int(height), int(width)
    except (TypeError, ValueError):
        raise UsageError(f"{key}={value!r} is neither a side nor (height, width)") from None


def _three(key: str, value: Any) -> tuple[float, float, float]:
    try:
        values = [float(value)] * 3 if isinstance(value, int | float) else list(map(float, value))
        red, green, blue = values
    except (TypeError, ValueError):
        raise UsageError(f"{key}={value!r} is neither one number nor three (R, G, B)") from None
    return red, green, blue
