"""The measurements of the frames of a pm-set: pixels, motion and the main object."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.boxes import OOD, Boxes, areas
from steadyeye.core.errors import SampleError
from steadyeye.core.types import Image, Sample

Luma = NDArray[np.uint8]
"""(h, w) luma 0…255: 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601), rounded."""
# the noise of rounding to whole grey values, uniform with variance 1/12; below it nothing is told
# apart. In the Laplacian, whose weights are 1, 1, 1, 1 and −4, it is 20/12.
CONTRAST_FLOOR = (1 / 12) ** 0.5
SHARPNESS_FLOOR = 20 / 12
SIDE = 320  # pixels of the longer side in which flow is computed
FINEST = 2  # flow is sought down to a quarter of that, and smoothed up from there
NAN = float("nan")


def luma(image: Image) -> Luma:
    """(h, w) the luma of an image."""
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), dtype=np.uint8)


def frame(grey: Luma) -> dict[str, float]:
    """The measurements of a single frame.

    `brightness`: mean luma, 0…255. `contrast`: its standard deviation, grey values. `sharpness`:
    variance of its Laplacian (4 neighbours, edges mirrored), squared grey values; it depends on
    the decoded size, so compare it between frames of one video only.
    """
    mean, deviation = cv2.meanStdDev(grey)
    _, edges = cv2.meanStdDev(cv2.Laplacian(grey, cv2.CV_16S))
    return {
        "brightness": float(mean[0, 0]),
        "contrast": float(deviation[0, 0]),
        "sharpness": float(edges[0, 0] ** 2),
    }


def distances(anchor: Image, neighbour: Image) -> dict[str, float]:
    """How far two frames of one size are apart, pixels in 0…1 at the decoded size.

    `linf`: the largest difference of any channel of any pixel, a multiple of 1/255. `difference`:
    the mean over all of them. Shankar et al., Figure 10.
    """
    apart = cv2.absdiff(anchor, neighbour)
    return {
        "linf": float(apart.max()) / 255,
        "difference": float(np.mean(cv2.mean(apart)[:3])) / 255,
    }


def changes(anchor: dict[str, float], neighbour: dict[str, float]) -> dict[str, float]:
    """The measurements of a frame relative to its anchor; above 0: the frame has more.

    `brightness_change`: grey values. `contrast_change`, `sharpness_change`: natural logarithm of
    the ratio, each at least the noise of rounding.
    """
    return {
        "brightness_change": neighbour["brightness"] - anchor["brightness"],
        "contrast_change": _log_ratio(anchor["contrast"], neighbour["contrast"], CONTRAST_FLOOR),
        "sharpness_change": _log_ratio(
            anchor["sharpness"], neighbour["sharpness"], SHARPNESS_FLOOR
        ),
    }


def _log_ratio(before: float, after: float, floor: float) -> float:
    return float(np.log(max(after, floor) / max(before, floor)))


def reduce_luma(grey: Luma) -> Luma:
    """The luma with its longer side at most 320 pixels, by area averaging."""
    height, width = grey.shape
    scale = SIDE / max(height, width)
    if scale >= 1:
        return np.ascontiguousarray(grey)
    size = (max(round(width * scale), 1), max(round(height * scale), 1))
    return np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def motion(anchor: Luma, neighbour: Luma) -> float:
    """The mean length of the optical flow from one reduced frame to the other, % of the diagonal.

    DIS flow, the medium preset without its finest scale (Kroeger et al., "Fast Optical Flow using
    Dense Inverse Search", ECCV 2016): a seventh of the time, and over 30 pairs of DAVIS 0.92 (one
    standard deviation: 8 %) of what the whole preset gives at twice the side. Independent of the
    size of the video; the same on any machine as long as OpenCV uses one thread, for its stripes
    are one a thread. NaN for frames below 16 pixels a side, too small for a patch to be sought.
    """
    if min(anchor.shape) < 16:
        return float("nan")
    seeker = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
    seeker.setFinestScale(FINEST)
    # no flow to begin with, which the library's own types do not know of
    flow: NDArray[np.float32] = seeker.calc(anchor, neighbour, None)  # type: ignore[call-overload]
    # not cv2.magnitude, whose last bit depends on where in memory the flow lies
    lengths = np.sqrt(flow[..., 0] ** 2 + flow[..., 1] ** 2)
    return 100 * float(np.mean(lengths)) / float(np.hypot(*anchor.shape))


def box_changes(anchor: Boxes | None, frame: Boxes | None, diagonal: float) -> dict[str, float]:
    """The change of the anchor's largest box in another frame.

    It is followed to the box of its class that overlaps it most (IoU; where none overlaps, the one
    with the nearest centre). `box_area_change`: natural logarithm of the ratio of areas, above 0:
    larger. `box_shift`: distance of the centres, % of the frame's diagonal. `diagonal`: pixels.
    NaN where the anchor has no box or the frame none of that class; neither crowds nor objects
    outside the classes count.
    """
    unknown = {"box_area_change": NAN, "box_shift": NAN}
    if anchor is None or frame is None:
        return unknown
    aside = anchor.crowd | (anchor.labels == OOD)
    if aside.all():
        return unknown
    size = np.where(aside, -1.0, areas(anchor.boxes))
    largest = int(size.argmax())
    box, label = anchor.boxes[largest], anchor.labels[largest]
    others = frame.boxes[(frame.labels == label) & ~frame.crowd]
    if not len(others):
        return unknown
    shift = np.hypot(*(_centres(others) - _centres(box[None])).T)
    match = int(np.lexsort((shift, -_overlap(box, others)))[0])
    ratio = areas(others)[match] / size[largest]
    return {
        "box_area_change": float(np.log(ratio)) if ratio > 0 else NAN,
        "box_shift": 100 * float(shift[match]) / diagonal,
    }


def _centres(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((boxes[:, :2] + boxes[:, 2:]) / 2)


def _overlap(box: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) IoU of one box with n others."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    common = np.prod(np.maximum(sides, 0), axis=1)
    return np.asarray(common / np.maximum(areas(box[None])[0] + areas(others) - common, 1e-12))


@dataclass(frozen=True)
class MeasuredFrame:
    """The measurements of one frame. `error`: why a measurement is missing, or ''."""

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
    """The measurements of each frame of a pm-set, the anchor first.

    A frame that cannot be decoded has no values; if the anchor cannot, or has another size, a frame
    has only its own measurements. Either way `error` gives the reason.
    """
    rows: list[MeasuredFrame] = []
    anchor: _Frame | None = None
    missing = "its set has no anchor"
    for sample in samples:
        is_anchor = sample.tags["offset"] == 0
        try:
            image = sample.image()
            grey = luma(image)
            measured = _Frame(image, reduce_luma(grey), frame(grey), sample.boxes)
        except SampleError as error:
            rows.append(MeasuredFrame(sample.id, {}, str(error)))
            missing = f"no anchor to compare it with: {error}" if is_anchor else missing
            continue
        if is_anchor:
            anchor = measured
            rows.append(MeasuredFrame(sample.id, measured.values))
            continue
        reason = _unlike(anchor, measured) if anchor else missing
        pair = _pair(anchor, measured) if anchor and not reason else {}
        rows.append(MeasuredFrame(sample.id, measured.values | pair, reason))
    return rows


def _unlike(anchor: _Frame, other: _Frame) -> str:
    if anchor.image.shape == other.image.shape:
        return ""
    sizes = ["×".join(map(str, sample.image.shape[1::-1])) for sample in (other, anchor)]
    return f"its size {sizes[0]} is not the anchor's, {sizes[1]}"


def _pair(anchor: _Frame, other: _Frame) -> dict[str, float]:
    diagonal = float(np.hypot(*anchor.image.shape[:2]))
    return {
        **distances(anchor.image, other.image),
        "motion": motion(anchor.small, other.small),
        **changes(anchor.values, other.values),
        **box_changes(anchor.boxes, other.boxes, diagonal),
    }
