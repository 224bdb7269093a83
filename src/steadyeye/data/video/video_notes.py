"""Notes on videos, for the notes of a source."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sized

from steadyeye.core.format import number_of
from steadyeye.data.images.file_copies import find_copies
from steadyeye.data.video.video_copies import find_picture_copies
from steadyeye.data.video.video_index import Display, VideoIndex


def video_notes(videos: Mapping[str, VideoIndex]) -> tuple[str, ...]:
    """How videos are read, by name: in order from the start, of one stream, as coded, twice."""
    notes = []
    slow = [name for name, video in videos.items() if video.in_order]
    if slow:
        notes.append(
            f"{_count(slow, videos)} decoded in order from their "
            "start, because it is not proven that decoding can start at their key frames; first "
            f"'{slow[0]}': {videos[slow[0]].in_order}"
        )
    several = [name for name, video in videos.items() if video.others]
    if several:
        notes.append(
            f"{_count(several, videos)} with several video streams, of which the first is read, "
            f"such as '{several[0]}' with {videos[several[0]].others + 1}"
        )
    notes += _loss_notes(videos)
    notes += _display_notes(videos)
    notes += _copy_notes(videos)
    return tuple(notes)


def _copy_notes(videos: Mapping[str, VideoIndex]) -> Iterator[str]:
    """Notes on videos that show the same as another one."""
    keys = (lambda video: video.path.stat().st_size, lambda video: video.digest)
    copies = find_copies(videos, keys)
    originals = {name: video for name, video in videos.items() if name not in copies}
    kinds = (
        ("with the same content as another", copies),
        ("with the same pictures as another, cut or recoded", find_picture_copies(originals)),
    )
    for text, some in kinds:
        if some:
            name, original = next(iter(some.items()))
            yield (
                f"{_count(some, videos)} {text}, first '{name}' as '{original}'; intervals treat "
                "them as different videos"
            )


def _loss_notes(videos: Mapping[str, VideoIndex]) -> Iterator[str]:
    """Notes on packets that fail to decode, and on frames that the decoder patches."""
    kinds = (
        ("packet", "lost", "cannot be decoded; frames are numbered without them"),
        (
            "frame",
            "damaged",
            "may be damaged: data of them, or of frames that they refer to, are missing, and the "
            "decoder patches them",
        ),
    )
    for noun, field, text in kinds:
        counts = {name: getattr(video, field) for name, video in videos.items()}
        some = [name for name, count in counts.items() if count]
        if some:
            total = number_of(sum(counts.values()), noun)
            yield f"{total} in {number_of(len(some), 'video')} {text}; first '{some[0]}'"


def _display_notes(videos: Mapping[str, VideoIndex]) -> Iterator[str]:
    """Notes on differences between the decoded pictures and those of a player, by difference."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, video in videos.items():
        for text in describe_display(video.display):
            names[text].append(name)
    for text, some in names.items():
        yield f"{_count(some, videos)} {text}; first '{some[0]}'"


def describe_display(display: Display) -> Iterator[str]:
    """What a player would show differently, as a phrase after "videos" or "frames"."""
    if display.interlaced:
        yield (
            "interlaced and read so: a frame shows two moments, and moving objects have combed "
            "edges; deinterlace what the model will see deinterlaced"
        )
    if display.aspect != 1:
        pixels = f"{display.aspect.numerator}:{display.aspect.denominator}"
        yield (
            f"with pixels that are not square ({pixels}), read as coded: a player stretches the "
            "frames"
        )
    if display.hd_untagged:
        yield (
            "in HD without a stated matrix of colours, read as BT.601 as by FFmpeg and OpenCV, "
            "though most HD videos are BT.709: colours may be slightly off"
        )
    if display.hdr:
        yield (
            "in HDR (PQ or HLG), read without tone mapping as by FFmpeg and OpenCV: frames are "
            "paler than a player shows them; convert to SDR what the model will see as SDR"
        )


def _count(some: Sized, videos: Sized) -> str:
    return f"{len(some):,} of {number_of(len(videos), 'video')}"
