"""Video files: anchors drawn from each, with the frames around them."""

from steadyeye.core.seeds import fingerprint
from steadyeye.core.types import Sample, Tag
from steadyeye.footage import reader, sidecar
from steadyeye.footage.paths import listed, resolve
from steadyeye.footage.sets import COLUMNS, Drawing, FrameSets, Member, draw, set_notes, tags

SUFFIXES = frozenset({".mp4", ".mkv", ".mov", ".avi", ".webm", ".m4v", ".mpg", ".mpeg", ".ts"})


def video(
    path: str, anchors: int = 1, k: int = 10, labels: str | None = None, seed: int = 0
) -> FrameSets:
    """Videos, a file or a folder: anchors drawn uniformly with the frames within ±k of them.

    `labels`: a JSON or CSV sidecar (see `steadyeye.footage.sidecar`), one class name for all, or
    none: then only label-free numbers are offered. `anchors`: a video. `k`: native frames.
    Tags: offset, video, frame, seconds, fps, frame_type (I, P or B).
    """
    root = resolve(path)
    known = sidecar.read(labels)
    how = Drawing(anchors, k, seed)
    videos: dict[str, reader.VideoIndex] = {}
    members: list[Member] = []
    for file in listed(root, SUFFIXES):
        name = file.name if root.is_file() else file.relative_to(root).as_posix()
        videos[name] = reader.index(file)
        members += draw(name, len(videos[name]), known.of(name), how)

    def sample(member: Member) -> Sample:
        index = videos[member.video]
        decoded = reader.frame(index, member.frame)
        merged: dict[str, Tag] = {
            **tags(member),
            "seconds": float(index.pts[member.frame] * index.time_base),
            "fps": index.fps,
            "frame_type": decoded.kind,
        }
        return Sample(member.id, decoded.image, member.truth, member.group, merged)

    marks = [f"{name}:{len(index)}:{index.path.stat().st_size}" for name, index in videos.items()]
    return FrameSets(
        name=root.stem,
        classes=known.classes,
        columns=(*COLUMNS, "seconds", "fps", "frame_type") + (("truth",) if known.classes else ()),
        fingerprint=fingerprint(*marks, repr(known), repr(how)),
        members=tuple(members),
        sample=sample,
        notes=set_notes(members),
    )
