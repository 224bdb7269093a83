"""Which scene cuts pm-sets keep to: those a sidecar names, or those that are found."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from steadyeye.core.errors import unknown
from steadyeye.core.format import number_of
from steadyeye.data.video.label_sidecar import VideoLabels

CHOICES = ("sidecar", "detect")


def cut(choice: str, labels: VideoLabels, find: Callable[[], tuple[int, ...]]) -> VideoLabels:
    """What is known of a video, with the cuts that `find` finds where "detect" is chosen.

    Cuts that are named stay as they are. Raises `UsageError` for another choice.
    """
    if choice not in CHOICES:
        raise unknown("value of cuts", choice, CHOICES)
    return replace(labels, cuts=find()) if choice == "detect" and not labels.cuts else labels


def notes(choice: str, videos: Mapping[str, VideoLabels]) -> tuple[str, ...]:
    """What a reader must know of the cuts: how many were found, or that none are known."""
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


def marks(choice: str, videos: Mapping[str, VideoLabels]) -> list[str]:
    """What the fingerprint of a source must know of cuts that no sidecar names."""
    return [f"{name} {labels.cuts}" for name, labels in videos.items() if choice == "detect"]
