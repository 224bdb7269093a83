"""Every frame of videos, in order and without labels."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.storage.files import Place, find_missing
from steadyeye.core.types import Classes, Labels, Sample, Tag
from steadyeye.data.images import image_file
from steadyeye.data.video import decoder, label_sidecar, shot_detection
from steadyeye.data.video.decoder import UNSEEN, Frame
from steadyeye.data.video.frame_folders import list_frame_folders
from steadyeye.data.video.paths import (
    VIDEOS,
    check_names,
    holds,
    list_files,
    name_video,
    resolve_path,
    unread_notes,
)
from steadyeye.data.video.repeated_frames import repeat_notes, share_of_repeats
from steadyeye.data.video.shot_detection import Scan
from steadyeye.data.video.video_notes import video_notes

COLUMNS = ("group", "video", "frame", "step", "scene", "seconds", "fps")


@dataclass(frozen=True, eq=False)
class Clip:
    """One video to be read from its first frame to its last.

    `frames`: native frames. `fps`: native frames per second. `cuts`: the first frame of each scene
    except the first. `seconds`: frame number → seconds since frame 0. `read`: frame number → frame.
    `key`: frame number → the key of its content.
    """

    name: str
    frames: int
    fps: float
    cuts: tuple[int, ...]
    seconds: Callable[[int], float] = field(repr=False)
    read: Callable[[int], Frame] = field(repr=False)
    key: Callable[[int], str] = field(repr=False)
    files: Sequence[Place] = field(repr=False)

    @property
    def scenes(self) -> int:
        """How many scenes there are."""
        return 1 + sum(0 < cut < self.frames for cut in self.cuts)


@source_in_short
@dataclass(frozen=True, eq=False)
class WholeClips:
    """A `Source` over every `step`-th frame of clips; a group is a scene of one of them.

    `reading`: notes on how the clips are read.
    """

    name: str
    columns: tuple[str, ...]
    fingerprint: str
    clips: Sequence[Clip] = field(repr=False)
    step: int = 1
    classes: Classes | None = None
    reading: tuple[str, ...] = ()

    @cached_property
    def _starts(self) -> list[int]:
        """The index of each clip's first sample, and of what would follow the last."""
        return [0, *accumulate(-(-clip.frames // self.step) for clip in self.clips)]

    @property
    def ids(self) -> Sequence[str]:
        """The id of every frame."""
        return [
            _id(clip, frame) for clip in self.clips for frame in range(0, clip.frames, self.step)
        ]

    @property
    def truths(self) -> Sequence[Labels]:
        """Nothing is labelled."""
        return [()] * len(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """How many videos, frames and scenes there are, and where the cuts are."""
        scenes = sum(clip.scenes for clip in self.clips)
        total = f"{number_of(len(self.clips), 'video')}, {number_of(len(self), 'frame')}"
        cuts = [f"{c.name} at frames {', '.join(map(str, c.cuts))}" for c in self.clips if c.cuts]
        more = f"; and {len(cuts) - 10} more videos" if len(cuts) > 10 else ""
        cut = f"; cuts in {'; '.join(cuts[:10])}{more}" if cuts else "; no cut"
        return (f"{total}, {number_of(scenes, 'scene')}{cut}", *self.reading)

    def missing(self) -> Sequence[str]:
        """Files that inference would need and that are not there."""
        return find_missing(self.files())

    def files(self) -> Sequence[Place]:
        """The files that the images are read from, each once, in the order of the samples."""
        return list(dict.fromkeys(file for clip in self.clips for file in clip.files))

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < len(self):
            raise IndexError(index)
        place = bisect_right(self._starts, index) - 1
        clip, number = self.clips[place], (index - self._starts[place]) * self.step
        scene = bisect_right(clip.cuts, number)
        tags: dict[str, Tag] = {
            "video": clip.name,
            "frame": number,
            "step": self.step,
            "scene": scene,
            "seconds": clip.seconds(number),
            "fps": clip.fps,
        }
        typed = "frame_type" in self.columns
        if typed:
            tags["frame_type"] = UNSEEN
        return Sample(
            id=_id(clip, number),
            image=lambda: clip.read(number).image(),
            group=f"{clip.name}/scene {scene:04d}",
            tags=tags,
            measure=(lambda _: {"frame_type": clip.read(number).kind}) if typed else None,
            key=lambda: clip.key(number),
        )


def _id(clip: Clip, number: int) -> str:
    return f"{clip.name}/{number:06d}"


CHOICES = ("detect", "none")


def every_frame(
    path: str, step: int = 1, cuts: str = "detect", fps: float | None = None
) -> WholeClips:
    """Every frame of a video or of a folder of videos, in order and without labels.

    `path`: the file or folder. `step`: only every n-th frame. `cuts`: "detect" detects the scene
    cuts (a pass over each video, see `shot_detection`), "none" treats each video as one scene, and
    a JSON sidecar names them (see `label_sidecar`). A folder without videos must have folders of
    numbered images, one per video, and needs `fps`, their frames per second. Tags: video, frame,
    step, scene, seconds (since the first frame), fps, and for videos frame_type (I, P or B). Raises
    `UsageError` if there are no videos or none can be decoded.

    Example: `every_frame(path='clip.mp4', step=2)`
    """
    if step < 1:
        raise UsageError(f"step={step}: take every frame (1), every second one (2), and so on")
    root = resolve_path(path)
    if cuts not in CHOICES and Path(cuts).suffix.lower() != ".json":
        raise UsageError(
            f"cuts='{cuts}' is neither 'detect' nor 'none' nor a JSON sidecar that names the cuts; "
            "give one of these"
        )
    if root.is_dir() and not holds(root, VIDEOS) and holds(root, image_file.SUFFIXES):
        return _of_images(root, step, cuts, fps)
    if fps is not None:
        raise UsageError(
            f"fps={fps} is for folders of images; leave it out: '{path}' has its own frame rate"
        )
    clips: list[Clip] = []
    marks: list[str] = []
    videos: dict[str, decoder.VideoIndex] = {}
    shares: dict[str, float | None] = {}
    files = {name_video(file, root): file for file in list_files(root, VIDEOS)}
    known = _read_cuts(cuts, files)
    for name, file in files.items():
        index = videos[name] = decoder.index(file)
        scan = known(name, len(index)) if known else shot_detection.of_video(index)
        shares[name] = share_of_repeats(scan.repeats, step)
        read = partial(decoder.frame, index)
        clip = Clip(name, len(index), index.fps, scan.cuts, index.seconds, read, index.key, [file])
        clips.append(clip)
        marks.append(f"{name}:{len(index)}:{file.stat().st_size}:{scan.cuts}")
    return WholeClips(
        name=root.stem,
        columns=(*COLUMNS, "frame_type"),
        fingerprint=fingerprint("every_frame", *marks, str(step)),
        clips=clips,
        step=step,
        reading=(*video_notes(videos), *repeat_notes(shares), *unread_notes(root, VIDEOS)),
    )


def _of_images(root: Place, step: int, cuts: str, fps: float | None) -> WholeClips:
    if fps is None or not 0 < fps < float("inf"):
        raise UsageError(
            f"'{root}' holds images, which do not say how fast they follow each other; give "
            f"fps={'25, or what they were taken at' if fps is None else f'… above 0, not {fps}'}"
        )
    clips: list[Clip] = []
    marks: list[str] = []
    shares: dict[str, float | None] = {}
    videos = list_frame_folders(root)
    known = _read_cuts(cuts, videos)
    for name, paths in videos.items():
        scan = known(name, len(paths)) if known else shot_detection.of_images(paths)
        shares[name] = share_of_repeats(scan.repeats, step)
        at, read, key = partial(_at, fps), partial(_still, paths), partial(_key, paths)
        clips.append(Clip(name, len(paths), float(fps), scan.cuts, at, read, key, paths))
        marks += [f"{name}/{path.name}:{path.stat().st_size}" for path in paths]
        marks.append(str(scan.cuts))

    return WholeClips(
        name=root.name,
        columns=COLUMNS,
        fingerprint=fingerprint("every_frame", *marks, str(step), str(fps)),
        clips=clips,
        step=step,
        reading=(*repeat_notes(shares), *unread_notes(root, image_file.SUFFIXES)),
    )


def _read_cuts(cuts: str, videos: Iterable[str]) -> Callable[[str, int], Scan] | None:
    """What names the cuts of each of the videos; None where they are to be found."""
    if cuts == "detect":
        return None
    if cuts == "none":
        return lambda *_: Scan()
    sidecar = label_sidecar.read(cuts)
    check_names(videos, sidecar.videos, "cuts")
    return lambda name, frames: Scan(sidecar.of(name).within(name, frames).cuts)


def _at(fps: float, number: int) -> float:
    return number / fps


def _still(paths: Sequence[Place], number: int) -> Frame:
    return Frame(UNSEEN, partial(image_file.read, paths[number]))


def _key(paths: Sequence[Place], number: int) -> str:
    return image_file.ImageFile(paths[number]).key()
