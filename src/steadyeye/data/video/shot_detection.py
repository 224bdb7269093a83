"""Scene cuts, found by PySceneDetect's adaptive detector: where frames jump, not where they move.

It compares hue, saturation and brightness of each frame with the one before, and calls a cut what
stands out from the two frames before and after; a scene lasts at least 15 frames. On the packaged
`bikes.mp4` it finds the five cuts to the frame. Dissolves and fades are not found.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import SampleError, unknown
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place
from steadyeye.data.images import image_file
from steadyeye.data.video.decoder import ONE_THREAD, VideoIndex, every_frame
from steadyeye.data.video.label_sidecar import VideoLabels
from steadyeye.data.video.repeated_frames import (
    find_repeats,
    repeat_notes,
    share_changed,
    share_of_repeats,
)

CHOICES = ("sidecar", "detect")


@dataclass(frozen=True)
class Scan:
    """What a pass over a video shows.

    `cuts`: the first frame of each scene but the first, in native frames. `repeats`: (frames - 1,)
    of `find_repeats`.
    """

    cuts: tuple[int, ...] = ()
    repeats: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


def cut(choice: str, labels: VideoLabels, find: Callable[[], Scan]) -> VideoLabels:
    """The labels of a video, with the cuts of `find` if "detect" is chosen.

    Given cuts are unchanged. Raises `UsageError` for another choice.
    """
    if choice not in CHOICES:
        raise unknown("value of cuts", choice, CHOICES)
    if choice != "detect" or labels.cuts:
        return labels
    scan = find()
    return replace(labels, cuts=scan.cuts, repeats=share_of_repeats(scan.repeats))


def notes(choice: str, videos: Mapping[str, VideoLabels]) -> tuple[str, ...]:
    """Notes on the cuts: their number, or that none are known."""
    if choice == "detect":
        count = sum(len(labels.cuts) for labels in videos.values())
        return (f"{number_of(count, 'scene cut')} named or found",)
    blind = [name for name, labels in videos.items() if not labels.cuts]
    if not blind:
        return ()
    return (
        f"no scene cuts named in {len(blind):,} of {number_of(len(videos), 'video')}, so "
        "neighbours may lie across one; cuts='detect' finds them",
    )


def note_repeats(videos: Mapping[str, VideoLabels]) -> tuple[str, ...]:
    """A note on repeated frames, which the frames of a reviewed set no longer show."""
    return repeat_notes({name: labels.repeats for name, labels in videos.items()})


def marks(choice: str, videos: Mapping[str, VideoLabels]) -> list[str]:
    """The part of a source's fingerprint for cuts that are not from a sidecar."""
    return [f"{name} {labels.cuts}" for name, labels in videos.items() if choice == "detect"]


WIDTH = 256  # pixels at which frames are compared; PySceneDetect too shrinks them to about this


def of_video(video: VideoIndex) -> Scan:
    """The cuts and repeated frames of a video.

    Decodes the video once, in order. A damaged frame is left out of the comparison.
    """
    return _detect(_small_frames(video))


def of_images(paths: Sequence[Place]) -> Scan:
    """The same for frames kept as image files, in their order."""
    return _detect(_small_images(paths))


def _detect(frames: Iterable[tuple[int, NDArray[np.uint8]]]) -> Scan:
    """`frames`: number and (h, w, 3) uint8 BGR, in order."""
    # imported here as it takes most of a second, and known cuts do not need it
    from scenedetect import AdaptiveDetector, FrameTimecode

    detector = AdaptiveDetector()
    numbers: list[int] = []
    changes: list[float] = []
    last, before = 0, None
    for number, image in frames:
        grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), dtype=np.uint8)
        if before is not None:
            changes.append(share_changed(grey, before))
        last, before = number, grey
        # the rate is any: frames are counted, and no length is given in seconds
        at = detector.process_frame(FrameTimecode(number, fps=25.0), image)
        numbers += [int(cut.frame_num) for cut in at]
    numbers += [int(cut.frame_num) for cut in detector.post_process(FrameTimecode(last, fps=25.0))]
    return Scan(tuple(sorted(set(numbers))), find_repeats(changes))


def _small_frames(video: VideoIndex) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    reformatter = av.video.reformatter.VideoReformatter()
    size: tuple[int, int] | None = None

    def convert(native: Any) -> NDArray[np.uint8]:
        nonlocal size
        # frames of another size than the first are compared at its size
        size = size or _small(native.width, native.height)
        width, height = size
        small = reformatter.reformat(
            native, width=width, height=height, format="bgr24", interpolation="AREA", **ONE_THREAD
        )
        return np.asarray(small.to_ndarray(), dtype=np.uint8)

    return every_frame(video, convert)


def _small_images(paths: Sequence[Place]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    size: tuple[int, int] | None = None
    for number, path in enumerate(paths):
        try:
            image = image_file.read(path)
        except SampleError:
            continue
        # frames of another size than the first are compared at its size
        size = size or _small(image.shape[1], image.shape[0])
        small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        yield number, np.ascontiguousarray(small[..., ::-1], dtype=np.uint8)


def _small(width: int, height: int) -> tuple[int, int]:
    smaller = min(WIDTH, width)
    return smaller, max(round(height * smaller / width), 1)
