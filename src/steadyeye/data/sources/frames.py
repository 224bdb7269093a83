"""Folders of numbered images, one folder a video."""

from functools import partial

from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import Place
from steadyeye.data.video import label_sidecar
from steadyeye.data.video import shot_detection as shots
from steadyeye.data.video.frame_folders import absentees, list_frame_folders, sampler
from steadyeye.data.video.paths import resolve_path
from steadyeye.data.video.pm_set_source import (
    COLUMNS,
    Drawing,
    FrameSets,
    Member,
    check_anchors,
    draw,
    draw_notes,
    unlabelled_notes,
)


def frames(
    path: str,
    anchors: int | str = 1,
    k: int = 10,
    labels: str | None = None,
    seed: int = 0,
    cuts: str = "sidecar",
) -> FrameSets:
    """Folders of numbered images, one per video: random anchors and the frames within ±k of them.

    `path`: a folder of images, or of such folders. The last number in a file's name orders the
    frames; frame 0 is the first one. `labels`, `anchors`, `k`, `seed` and `cuts` are those of
    `video`. Tags: offset, video, frame.

    Example: `frames(path='clips', labels='labels.json', anchors=20, k=10)`
    """
    root = resolve_path(path)
    known = label_sidecar.read(labels)
    how = Drawing(anchors, k, seed)
    folders = list_frame_folders(root)
    videos = {name: folders[name] for name in known.labelled_videos(list(folders))}
    labels_of = {
        name: shots.cut(
            cuts, known.of(name).within(name, len(paths)), partial(shots.of_images, paths)
        )
        for name, paths in videos.items()
    }
    members = tuple(
        member
        for name, paths in videos.items()
        for member in draw(name, len(paths), labels_of[name], how)
    )
    check_anchors(members, how)
    lengths = {name: len(paths) for name, paths in videos.items()}
    left_out = (*unlabelled_notes(list(folders), list(videos)), *known.notes(folders))

    def locate(member: Member) -> Place:
        return videos[member.video][member.frame]

    marks = [f"{file.name}:{file.stat().st_size}" for paths in videos.values() for file in paths]
    marks += shots.marks(cuts, labels_of)
    return FrameSets(
        name=root.name,
        classes=known.classes,
        columns=COLUMNS + (("truth",) if known.classes else ()),
        fingerprint=fingerprint(*marks, repr(known), repr(how)),
        members=members,
        sample=sampler(locate),
        image_files=lambda member: [locate(member)],
        absent=absentees(locate),
        notes=(*draw_notes(members, lengths, how), *left_out, *shots.notes(cuts, labels_of)),
    )
