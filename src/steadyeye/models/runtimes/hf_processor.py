"""An image processor of transformers as a recipe."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL.Image import Resampling

from steadyeye.core.errors import UsageError
from steadyeye.models.preprocessing.recipe import Preprocessing
from steadyeye.models.runtimes.classifier import unit_range
from steadyeye.models.runtimes.probe_images import patterns


def preprocessing(processor: Any) -> Preprocessing:
    """The recipe with the same output as an image processor.

    Processors differ in the meaning of `size` and `crop_pct`, so each meaning is tried and the
    pixels decide. Raises `UsageError` for a processor with other steps.
    """
    image = patterns(337, 451, 1)[0]
    expected = np.asarray(processor(images=image, return_tensors="np")["pixel_values"][0])
    for candidate in _candidates(processor):
        pixels = np.empty((3, *candidate.size), dtype=np.float32)
        candidate(image, pixels)
        one_level = 1 / min(candidate.std)
        if pixels.shape == expected.shape and np.abs(pixels - expected).max() < one_level:
            return candidate
    raise UsageError(
        f"{type(processor).__name__} does more than resize, centre crop and normalise; "
        "export the model and use onnx(path=…, recipe=…)"
    )


def _candidates(processor: Any) -> Iterator[Preprocessing]:
    """One recipe for each meaning that `size`, `crop_size` and `crop_pct` have in transformers."""
    settings = processor.to_dict()
    size, crop = dict(settings.get("size") or {}), dict(settings.get("crop_size") or {})
    short = size.get("shortest_edge")
    exact = (size["height"], size["width"]) if "height" in size else None
    crops = (crop["height"], crop["width"]) if settings.get("do_center_crop") and crop else None
    resizes: list[tuple[tuple[int, int], int | tuple[int, int]]] = []
    if exact:
        resizes.append((crops or exact, exact))
    if short:
        side = (short, short)
        crop_share = settings.get("crop_pct") or 224 / 256
        resizes += [(crops or side, short), (side, int(short / crop_share)), (side, side)]
        # LeViT states the crop as its size and resizes to 256 / 224 of it
        resizes.append((crops or side, int(256 / 224 * short)))
    mean, std = _normalisation(settings)
    interpolation = Resampling(settings.get("resample") or Resampling.BILINEAR).name.lower()
    for target, resize in resizes:
        smallest = (resize, resize) if isinstance(resize, int) else resize
        if target[0] <= smallest[0] and target[1] <= smallest[1]:
            yield Preprocessing(target, resize, mean, std, interpolation, "down")


def _normalisation(
    settings: dict[str, Any],
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    factor = settings["rescale_factor"] if settings.get("do_rescale") else 1.0
    to_unit = 1 / (255 * factor)
    if not settings.get("do_normalize"):
        return unit_range((0.0,) * 3, (to_unit,) * 3)
    mean, std = settings["image_mean"], settings["image_std"]
    return unit_range(
        tuple(value * to_unit for value in mean), tuple(value * to_unit for value in std)
    )
