"""Images under random masks, for attribution maps of black boxes."""

from steadyeye.core.errors import UsageError
from steadyeye.core.types import Image
from steadyeye.explain.attributions import MEASURED, sizes
from steadyeye.explain.context import Probe, ProbeGrid, Step, Subject
from steadyeye.explain.saliency import centres, fade_image, random_mask
from steadyeye.explain.targets import Target


def rise(
    subject: Subject, masks: int = 400, cells: int = 8, keep: float = 0.5, fill: int = 0
) -> Probe:
    """Images under smooth random masks that show or hide each position (RISE, D-RISE).

    `masks`: number per target. `cells`: of the grid along each axis, each visible with probability
    `keep`; hidden parts have the grey value `fill`. A mask depends on (seed, target, number) alone;
    0 is the unchanged image. Raises `UsageError` for values out of range. Petsiuk et al. 2018 and,
    of detections, 2021 (5,000 masks of 16 cells): fewer masks need fewer cells, or the map is
    noise, which the agreement of its halves shows.

    Example: `attribution(probe='rise', masks=800, cells=8)`
    """
    if masks < 2 or cells < 1 or not 0 < keep < 1 or not 0 <= fill <= 255:
        raise UsageError(
            f"rise(masks={masks}, cells={cells}, keep={keep:g}, fill={fill}): give at least two "
            "masks and one cell, keep between 0 and 1, and a grey value 0…255"
        )
    settings = {"masks": masks, "cells": cells, "keep": keep, "fill": fill}
    steps: list[Step] = [{"attribution": "rise", "mask": number} for number in range(masks + 1)]

    def change(image: Image, target: Target, step: Step) -> Image:
        number = int(step["mask"])
        if number == 0:
            return image
        mask = random_mask(cells, keep, subject.seed, target.cause, target.id, str(number))
        height, width = image.shape[:2]
        return fade_image(image, mask.at(centres(height), centres(width)), fill)

    return Probe(
        ProbeGrid(subject, "rise", steps, change, settings, measure=sizes, unmeasured=MEASURED)
    )
