"""Video files: anchors drawn from each, with the frames around them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from steadyeye.core.boxes import present
from steadyeye.core.errors import UsageError
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.text_files import read_text
from steadyeye.core.types import Classes, Sample, Tag
from steadyeye.data.annotations import box_file
from steadyeye.data.video import decoder, label_sidecar
from steadyeye.data.video import shot_detection as shots
from steadyeye.data.video.paths import (
    VIDEOS,
    absence_notes,
    check_names,
    list_files,
    name_video,
    resolve_path,
    unread_notes,
)
from steadyeye.data.video.pm_set_source import (
    COLUMNS,
    Drawing,
    FrameSets,
    Member,
    check_anchors,
    draw,
    draw_notes,
    empty_notes,
    tags,
    unlabelled_notes,
)
from steadyeye.data.video.video_notes import video_notes


@dataclass(frozen=True, eq=False)
class _Known:
    """The content of files next to the videos: labels and cuts, and boxes."""

    labels: label_sidecar.Sidecar
    boxes: box_file.BoxFile | None
    cuts: str

    @property
    def classes(self) -> Classes | None:
        return self.boxes.classes if self.boxes else self.labels.classes

    def labelled_videos(self, videos: list[str]) -> list[str]:
        if not self.boxes:
            return self.labels.labelled_videos(videos)
        boxes = self.boxes.videos
        check_names(videos, boxes, "boxes")
        check_names(videos, self.labels.videos, "cuts")
        empty = [v for v in videos if not any(map(present, self.boxes.of(v).values()))]
        if empty:
            message = f"the boxes have no object in '{empty[0]}'; add its objects"
            raise UsageError("; ".join([message, *absence_notes(videos, boxes, "boxes")]))
        return videos

    def of(self, video: str, index: decoder.VideoIndex) -> label_sidecar.VideoLabels:
        labels = self.labels.of(video).within(video, len(index))
        return shots.cut(self.cuts, labels, lambda: shots.of_video(index))

    def members(
        self, video: str, frames: int, labels: label_sidecar.VideoLabels, how: Drawing
    ) -> list[Member]:
        if self.boxes is None:
            return draw(video, frames, labels, how)
        ranges = self.boxes.labels(video, frames, labels.cuts)
        sets = draw(video, frames, ranges, how, any_neighbour=True)
        return [replace(m, truth=present(self.boxes.at(video, m.frame))) for m in sets]


def video(  # noqa: PLR0913 — the keyword arguments of a spec
    *,
    path: str,
    anchors: int | str = 1,
    k: int = 10,
    labels: str | None = None,
    seed: int = 0,
    boxes: str | None = None,
    cuts: str = "sidecar",
) -> FrameSets:
    """A video or a folder of videos: random anchors with the frames within ±k of them.

    `path`: the file or folder, `seed`: of the random anchors. `labels`: a JSON or CSV sidecar (see
    `label_sidecar`), one class name for all, or none: then only label-free numbers are available.
    `boxes`: a CSV file or COCO's JSON with the boxes of every frame (see `box_file`); anchors are
    then drawn from frames with an object, and of `labels` only the scene cuts count. `anchors`:
    number per video, or "all" possible ones, as for training (with k=0). `k`: native frames.
    `cuts`: neighbours are in the same scene; "sidecar": by its cuts, "detect": also by detected
    cuts of videos for which it names none (see `shot_detection`). Raises `UsageError` without a
    video, or without a frame that can be an anchor. Tags: offset, video, frame, seconds, fps,
    frame_type.

    Example: `video(path='clip.mp4', anchors=20, k=10, labels='clip.json')`
    """
    root = resolve_path(path)
    known = _Known(label_sidecar.read(labels), box_file.read(boxes) if boxes else None, cuts)
    how = Drawing(anchors, k, seed)
    files = {name_video(file, root): file for file in list_files(root, VIDEOS)}
    videos = {name: decoder.index(files[name]) for name in known.labelled_videos(list(files))}
    labels_of = {name: known.of(name, index) for name, index in videos.items()}
    members: list[Member] = []
    for name, index in videos.items():
        members += known.members(name, len(index), labels_of[name], how)

    check_anchors(members, how)
    cut_notes = shots.notes(cuts, labels_of)
    truth = (*(("truth",) if known.classes else ()), *(("boxes",) if boxes else ()))
    return FrameSets(
        name=root.stem,
        classes=known.classes,
        columns=(*COLUMNS, "seconds", "fps", "frame_type", *truth),
        fingerprint=fingerprint(
            *_marks(videos, boxes), *shots.marks(cuts, labels_of), repr(known.labels), repr(how)
        ),
        members=tuple(members),
        sample=lambda member: _sample(videos[member.video], known, member),
        cut_notes=cut_notes,
        image_files=lambda member: [videos[member.video].path],
        notes=(
            *draw_notes(members, {name: len(index_) for name, index_ in videos.items()}, how),
            *unlabelled_notes(list(files), list(videos)),
            *known.labels.notes(files),
            *cut_notes,
            *shots.note_repeats(labels_of),
            *video_notes(videos),
            *unread_notes(root, VIDEOS),
            *((*empty_notes(members), *known.boxes.notes(videos)) if known.boxes else ()),
        ),
    )


def _marks(videos: Mapping[str, decoder.VideoIndex], boxes: str | None) -> list[str]:
    """The parts of a source's fingerprint for its videos and boxes."""
    marks = [f"{name}:{len(own)}:{own.path.stat().st_size}" for name, own in videos.items()]
    return marks + ([read_text(resolve_path(boxes), "boxes")] if boxes else [])


def _sample(index: decoder.VideoIndex, known: _Known, member: Member) -> Sample:
    merged: dict[str, Tag] = {
        **tags(member),
        "seconds": index.seconds(member.frame),
        "fps": index.fps,
        "frame_type": decoder.UNSEEN,
    }
    return Sample(
        id=member.id,
        image=lambda: decoder.frame(index, member.frame).image(),
        truth=member.truth,
        group=member.group,
        tags=merged,
        measure=lambda _: {"frame_type": decoder.frame(index, member.frame).kind},
        boxes=known.boxes.at(member.video, member.frame) if known.boxes else None,
        size=known.boxes.size(member.video, member.frame) if known.boxes else None,
        key=lambda: index.key(member.frame),
    )
