"""Anchors drawn from a video and the frames around them: pm-sets as rows."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from steadyeye.core.errors import UsageError
from steadyeye.core.format import number_of
from steadyeye.core.seeds import stream
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.storage.files import Place, find_missing
from steadyeye.core.types import Classes, Labels, Sample
from steadyeye.data.video.label_sidecar import VideoLabels

ALL = "all"
"""For `anchors`: every frame that can be one, as for training, where k=0 is enough."""


@dataclass(frozen=True)
class Member:
    """One frame of one pm-set: frame `frame` of `video`, `offset` native frames from its anchor.

    `accepted`: the verdict of a review; None if all frames are accepted.
    """

    id: str
    group: str
    video: str
    frame: int
    offset: int
    truth: Labels = ()
    accepted: bool | None = None


@source_in_short
@dataclass(frozen=True)
class FrameSets:
    """A `Source` over members of pm-sets; `sample` makes the sample of a member.

    `image_files`: the files of a member's image; None if there are none. `cut_notes`: those of the
    notes that are about scene cuts.
    """

    name: str
    classes: Classes | None
    columns: tuple[str, ...]
    fingerprint: str
    members: tuple[Member, ...]
    sample: Callable[[Member], Sample] = field(repr=False)
    notes: tuple[str, ...] = ()
    cut_notes: tuple[str, ...] = ()
    image_files: Callable[[Member], Sequence[Place]] | None = field(repr=False, default=None)
    # a released set keeps classes that a model cannot name: it is wrong on them
    is_published_list: bool = False

    @property
    def ids(self) -> Sequence[str]:
        """The id of every member."""
        return [member.id for member in self.members]

    @property
    def truths(self) -> Sequence[Labels]:
        """The labels of every member."""
        return [member.truth for member in self.members]

    def missing(self) -> Sequence[str]:
        """Files that inference would need and that are not there."""
        return find_missing(self.files() or ())

    def files(self) -> Sequence[Place] | None:
        """The files that the images are read from, each once, in the order of the samples.

        None where the images come from no files.
        """
        if self.image_files is None:
            return None
        paths: dict[Place, None] = {}
        for member in self.members:
            paths.update(dict.fromkeys(self.image_files(member)))
        return list(paths)

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, index: int) -> Sample:
        return self.sample(self.members[index])


@dataclass(frozen=True)
class Drawing:
    """How pm-sets are drawn: anchors a video or `ALL`, distance k in native frames, seed."""

    anchors: int | str
    k: int
    seed: int

    def __post_init__(self) -> None:
        if isinstance(self.anchors, str) and self.anchors != ALL:
            raise UsageError(f"anchors='{self.anchors}': give a number, or '{ALL}' frames")
        if isinstance(self.anchors, int) and self.anchors < 1:
            raise UsageError(f"anchors={self.anchors}: give 1 or more anchors per video")
        if self.k < 0:
            raise UsageError(f"k={self.k}: give a number of frames, 0 or more")


def draw(
    video: str, frames: int, labels: VideoLabels, how: Drawing, any_neighbour: bool = False
) -> list[Member]:
    """The pm-sets of one video, anchors in rising order and each set in the order of its frames.

    Anchors are drawn uniformly without replacement from the labelled frames (from all frames
    where the video has no labels), by a stream of (seed, video name) alone; `ALL` takes each, and
    so does a number that is larger. A neighbour is a frame of the same scene within ±k that is
    labelled too, or with `any_neighbour` need not be; near an end or a cut, and in a clip that is
    shorter than k, there are fewer.
    """
    truth = [labels.at(frame) for frame in range(frames)]
    usable = [f for f in range(frames) if truth[f] or not labels.ranges]
    number = len(usable) if isinstance(how.anchors, str) else min(how.anchors, len(usable))
    if not usable:
        return []
    allowed = set(range(frames) if any_neighbour else usable)
    scene = [bisect_right(labels.cuts, frame) for frame in range(frames)]
    picked = stream(how.seed, "anchors", video).choice(usable, size=number, replace=False)
    members = []
    for anchor in sorted(int(frame) for frame in picked):
        near = range(max(anchor - how.k, 0), min(anchor + how.k, frames - 1) + 1)
        for frame in (f for f in near if f in allowed and scene[f] == scene[anchor]):
            group = f"{video}/{anchor:06d}"
            id_ = f"{group}/{frame:06d}"
            members.append(Member(id_, group, video, frame, frame - anchor, truth[frame]))
    return members


def check_anchors(members: Iterable[Member], how: Drawing) -> None:
    """Raises `UsageError` where no video has as many anchors as were asked for."""
    anchors = Counter(member.video for member in members if member.offset == 0)
    most = max(anchors.values(), default=0)
    if isinstance(how.anchors, int) and most < how.anchors:
        raise UsageError(
            f"anchors={how.anchors}, but no video has more than {number_of(most, 'frame')} that "
            "can be anchors (all, or those with a label); give a smaller number"
        )


def draw_notes(
    members: Iterable[Member], frames: Mapping[str, int], how: Drawing
) -> tuple[str, ...]:
    """Notes on sampled sets: their number, and the number of sets smaller than requested.

    `frames`: video → its frames.
    """
    members = list(members)
    sizes = Counter(member.group for member in members if member.offset)
    anchors = Counter(member.video for member in members if member.offset == 0)
    sets = {member.group for member in members}
    notes = list(set_notes(members))
    fewer = sum(sizes[group] < 2 * how.k for group in sets)
    if fewer:
        notes.append(
            f"{fewer:,} of {number_of(len(sets), 'pm-set')} with fewer than "
            f"{number_of(2 * how.k, 'neighbour')}: the start or end of the clip, a cut or a frame "
            f"without a label lies within ±{how.k}"
        )
    short = [video for video, count in frames.items() if count <= how.k]
    if short:
        notes.append(
            f"{len(short):,} of {number_of(len(frames), 'video')} no longer than k = "
            f"{number_of(how.k, 'frame')}, first '{short[0]}' with {frames[short[0]]}"
        )
    few = [
        video for video in frames if isinstance(how.anchors, int) and anchors[video] < how.anchors
    ]
    if few:
        notes.append(
            f"fewer than {how.anchors} anchors in {len(few):,} of "
            f"{number_of(len(frames), 'video')}, because no more frames can be anchors, first "
            f"'{few[0]}' with {anchors[few[0]]}"
        )
    return tuple(notes)


def set_notes(members: Iterable[Member]) -> tuple[str, ...]:
    """Notes on the sets: their number, and the number without neighbours."""
    sizes: dict[str, int] = {}
    for member in members:
        sizes[member.group] = sizes.get(member.group, 0) + (member.offset != 0)
    empty = sum(size == 0 for size in sizes.values())
    text = f"{number_of(len(sizes), 'pm-set')} with {number_of(sum(sizes.values()), 'neighbour')}"
    if empty:
        text += f"; {number_of(empty, 'set')} without a neighbour, counted as the anchor alone"
    return (text,)


def unlabelled_notes(videos: Sequence[str], labelled: Sequence[str]) -> tuple[str, ...]:
    """How many videos the labels say nothing of, which are left out; the first."""
    out = [video for video in videos if video not in set(labelled)]
    if not out:
        return ()
    return (
        f"{len(out):,} of {number_of(len(videos), 'video')} left out: no labels, first '{out[0]}'",
    )


def empty_notes(members: Iterable[Member]) -> tuple[str, ...]:
    """How many frames have no object, which are no candidates for the worst frame; the first."""
    frames = {f"{member.video}/{member.frame:06d}": member.truth for member in members}
    empty = [name for name, truth in frames.items() if not truth]
    first = f", first '{empty[0]}'" if empty else ""
    return (f"{len(empty):,} of {number_of(len(frames), 'frame')} without an object{first}",)


def tags(member: Member) -> Mapping[str, int | float | str]:
    """The tags every frame of a pm-set carries, and the review's decision where there was one."""
    known = {} if member.accepted is None else {"accepted": int(member.accepted)}
    return {"offset": member.offset, "video": member.video, "frame": member.frame, **known}


COLUMNS = ("group", "offset", "video", "frame")
