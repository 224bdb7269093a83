"""Whole videos as samples: every frame, or every n-th, in order."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from steadyeye.core.format import number_of
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.storage.files import Place
from steadyeye.core.types import Classes, Labels, Sample, Tag
from steadyeye.data.video.decoder import UNSEEN, Frame

COLUMNS = ("group", "video", "frame", "step", "scene", "seconds", "fps")


@dataclass(frozen=True, eq=False)
class Clip:
    """One video to be read from its first frame to its last.

    `frames`: native frames. `fps`: native frames a second. `cuts`: the first frame of each scene
    but the first. `seconds`: frame number → seconds since frame 0. `read`: frame number → frame.
    `key`: frame number → what names its content.
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
    absent: Callable[[], Sequence[str]] = field(repr=False, default=list)
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
        return self.absent()

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
