"""Folders of numbered images, one folder a video."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.files import Place
from steadyeye.data.images import image_file
from steadyeye.data.video import label_sidecar
from steadyeye.data.video import shot_detection as shots
from steadyeye.data.video.frame_folders import list_frame_folders, sampler
from steadyeye.data.video.paths import resolve_path, unread_notes
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
    labels_of = _read_cuts(cuts, known, videos)
    lengths = {name: len(paths) for name, paths in videos.items()}
    sets = (draw(name, n, labels_of[name], how) for name, n in lengths.items())
    members = tuple(chain.from_iterable(sets))
    check_anchors(members, how)

    def locate(member: Member) -> Place:
        return videos[member.video][member.frame]

    marks = [f"{file.name}:{file.stat().st_size}" for paths in videos.values() for file in paths]
    marks += shots.marks(cuts, labels_of)
    cut_notes = shots.notes(cuts, labels_of)
    return FrameSets(
        name=root.name,
        classes=known.classes,
        columns=COLUMNS + (("truth",) if known.classes else ()),
        fingerprint=fingerprint(*marks, repr(known), repr(how)),
        members=members,
        sample=sampler(locate),
        cut_notes=cut_notes,
        image_files=lambda member: [locate(member)],
        notes=(
            *draw_notes(members, lengths, how),
            *unlabelled_notes(list(folders), list(videos)),
            *known.notes(folders),
            *cut_notes,
            *shots.note_repeats(labels_of),
            *unread_notes(root, image_file.SUFFIXES),
        ),
    )


def _read_cuts(
    cuts: str, known: label_sidecar.Sidecar, videos: Mapping[str, Sequence[Place]]
) -> Mapping[str, label_sidecar.VideoLabels]:
    """The labels of each video, with the cuts that are found in its frames where `cuts` says so."""
    labels_of = {}
    for name, paths in videos.items():
        labels = known.of(name).within(name, len(paths))
        labels_of[name] = shots.cut(cuts, labels, partial(shots.of_images, paths))
    return labels_of
