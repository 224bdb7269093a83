"""One pm-set measured frame by frame: two images are held at a time."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from steadyeye.core.boxes import Boxes
from steadyeye.core.errors import SampleError
from steadyeye.core.types import Image, Sample
from steadyeye.metrics.covariates.motion import motion, reduced
from steadyeye.metrics.covariates.objects import box_changes
from steadyeye.metrics.covariates.pixels import Luma, changes, distances, frame, luma


@dataclass(frozen=True)
class MeasuredFrame:
    """What was measured of one frame. `error`: why something was not, or ''."""

    id: str
    values: dict[str, float] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, eq=False)
class _Frame:
    image: Image
    small: Luma
    values: dict[str, float]
    boxes: Boxes | None


def measure_set(samples: Iterable[Sample]) -> list[MeasuredFrame]:
    """What is measured of each frame of a pm-set, the anchor being the first.

    A frame that cannot be decoded has no values; where the anchor cannot, or has another size, a
    frame is measured on its own only. Either way the reason is told.
    """
    rows: list[MeasuredFrame] = []
    anchor: _Frame | None = None
    missing = "its set has no anchor"
    for sample in samples:
        is_anchor = sample.tags["offset"] == 0
        try:
            shown = _frame(sample)
        except SampleError as error:
            rows.append(MeasuredFrame(sample.id, {}, str(error)))
            missing = f"no anchor to compare it with: {error}" if is_anchor else missing
            continue
        if is_anchor:
            anchor = shown
            rows.append(MeasuredFrame(sample.id, shown.values))
            continue
        reason = _unlike(anchor, shown) if anchor else missing
        pair = _pair(anchor, shown) if anchor and not reason else {}
        rows.append(MeasuredFrame(sample.id, shown.values | pair, reason))
    return rows


def _frame(sample: Sample) -> _Frame:
    image = sample.image()
    grey = luma(image)
    return _Frame(image, reduced(grey), frame(grey), sample.boxes)


def _unlike(anchor: _Frame, shown: _Frame) -> str:
    if anchor.image.shape == shown.image.shape:
        return ""
    sizes = ["×".join(map(str, each.image.shape[1::-1])) for each in (shown, anchor)]
    return f"its size {sizes[0]} is not the anchor's, {sizes[1]}"


def _pair(anchor: _Frame, shown: _Frame) -> dict[str, float]:
    diagonal = float(np.hypot(*anchor.image.shape[:2]))
    return {
        **distances(anchor.image, shown.image),
        "motion": motion(anchor.small, shown.small),
        **changes(anchor.values, shown.values),
        **box_changes(anchor.boxes, shown.boxes, diagonal),
    }
