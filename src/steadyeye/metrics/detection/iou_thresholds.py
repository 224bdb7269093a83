"""The thresholds at which boxes are matched, COCO's ten."""

import numpy as np

from steadyeye.core.errors import UsageError

IOUS = tuple(float(iou) for iou in np.linspace(0.5, 0.95, 10))
"""The IoU thresholds 0.5, 0.55 … 0.95; bit i of a flag speaks of `IOUS[i]`."""


def ious(iou: float | str) -> tuple[float, ...]:
    """The thresholds of a parameter: one of 0.5 … 0.95, or "coco" for all ten.

    Raises `UsageError` for another.
    """
    if iou == "coco":
        return IOUS
    near = [
        threshold
        for threshold in IOUS
        if isinstance(iou, int | float) and abs(threshold - iou) < 1e-9
    ]
    if not near:
        raise UsageError(f"iou={iou!r}: give 0.5, 0.55 … 0.95, or 'coco' for all ten")
    return (near[0],)
