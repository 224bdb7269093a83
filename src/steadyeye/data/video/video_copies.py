"""Videos that show the same as others under other names: copies of files, cut ones, recoded ones.

Intervals take videos for independent, and copies make them too narrow. Nothing is decoded but a
few frames of videos of the same length. Not found are copies that are cropped, mirrored or both
recoded and cut, and those in which nothing moves: of these nobody can tell. Of more than
`MOST_VIEWED` videos that have as many frames as another, the rest are compared by packets alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import SampleError
from steadyeye.core.storage.remote_path import Remote
from steadyeye.data.video import decoder
from steadyeye.data.video.video_index import VideoIndex

RUN = 16
"""Consecutive packets whose sizes are compared; more than chance makes equal."""
DISTINCT, USUAL_BYTES = 12, 100
"""Different sizes in a run, and their least median: packets of still pictures are all as small."""
MOST_RUNS = 4_000_000
"""Compared runs, over all videos; of more, those whose hash is a multiple of some number."""
SIDE = 32
FLAT = 4.0
"""Grey levels: the least standard deviation of a view, or of the change between two."""
ALIKE = 0.95
"""Correlation of views, and of the changes from one view to the next, in a copy.

Of nine clips recoded by H.264 and VP9, made brighter or a quarter as wide, changes correlate by
0.98 or more; of clips of the same scene at other times, at least one of them by 0.35 or less.
"""
PLACES = (0.0, 1 / 3, 2 / 3, 1.0)
"""Where in a video its views are, as shares of its length: many videos begin in the same way."""
MOST_VIEWED = 200
"""Videos of which a frame may be decoded, since a frame of each of 10,000 would take minutes."""

Pair: TypeAlias = tuple[str, str]
Vector: TypeAlias = NDArray[np.float32]


def find_picture_copies(videos: Mapping[str, VideoIndex]) -> dict[str, str]:
    """Each video that shows the pictures of an earlier one, and the first of these.

    `videos`: without copies of files. A video shows those of another if half of the packets of the
    shorter one are in both, or if it has as many frames, which change in the same way.
    """
    copies: dict[str, str] = {}
    order = {name: place for place, name in enumerate(videos)}
    pairs = sorted(
        [*_share_packets(videos), *_change_alike(videos)],
        key=lambda pair: (order[pair[1]], order[pair[0]]),
    )
    for first, later in pairs:
        copies.setdefault(later, copies.get(first, first))
    return copies


def _share_packets(videos: Mapping[str, VideoIndex]) -> list[Pair]:
    """The pairs of videos that share half of the packets of the shorter one, by their sizes."""
    names = list(videos)
    step = 1 + sum(len(video.packet_sizes) for video in videos.values()) // MOST_RUNS
    runs = [np.unique(_hash_runs(videos[name].packet_sizes, step)) for name in names]
    counts = np.array([len(own) for own in runs], dtype=np.int64)
    hashes = np.concatenate(runs) if runs else np.zeros(0, np.uint64)
    owners = np.repeat(np.arange(len(names)), counts)
    order = np.argsort(hashes, kind="stable")
    hashes, owners = hashes[order], owners[order]
    begins = np.ones(len(hashes), dtype=np.bool_)
    begins[1:] = hashes[1:] != hashes[:-1]
    firsts = owners[begins][np.cumsum(begins) - 1]
    shared = np.stack([firsts, owners])[:, firsts != owners]
    pairs, times = np.unique(shared, axis=1, return_counts=True)
    enough = 2 * times >= counts[pairs].min(axis=0)
    return [(names[first], names[later]) for first, later in pairs[:, enough].T.tolist()]


def _hash_runs(sizes: NDArray[np.int32], step: int) -> NDArray[np.uint64]:
    """Hashes of the runs of `RUN` sizes that tell one video from another, a `step`-th of them."""
    if len(sizes) < RUN:
        return np.zeros(0, np.uint64)
    windows = np.lib.stride_tricks.sliding_window_view(sizes.astype(np.uint64), RUN)
    ordered = np.sort(windows, axis=1)
    distinct = 1 + (np.diff(ordered.astype(np.int64), axis=1) > 0).sum(axis=1)
    telling = (distinct >= DISTINCT) & (ordered[:, RUN // 2] >= USUAL_BYTES)
    # wraps around: a polynomial with the multiplier of Knuth's generator MMIX
    hashes = np.zeros(len(windows), np.uint64)
    for column in windows.T:
        hashes = (hashes + column) * np.uint64(6364136223846793005)
    hashes ^= hashes >> np.uint64(32)
    return np.asarray(hashes[telling & (hashes % np.uint64(step) == 0)])


def _change_alike(videos: Mapping[str, VideoIndex]) -> list[Pair]:
    """The pairs of videos with as many frames whose pictures change in the same way.

    Cameras that film one place show the same views but other changes. A view of a pair is decoded
    only where all before it were alike.
    """
    by_length: dict[int, list[str]] = defaultdict(list)
    for name, video in videos.items():
        if len(video) >= len(PLACES) and not isinstance(video.path, Remote):
            by_length[len(video)].append(name)
    pairs: list[Pair] = []
    left = MOST_VIEWED
    for names in by_length.values():
        if len(names) > 1:
            pairs += _compare_group({name: videos[name] for name in names[:left]})
            left -= len(names[:left])
    return pairs


def _compare_group(videos: Mapping[str, VideoIndex]) -> list[Pair]:
    names = list(videos)
    before: dict[str, Vector] = {}
    marks: list[dict[str, Vector]] = []
    for place in PLACES:
        views = _read_views(videos, names, place)
        # the first view itself, then the changes
        changes = {name: view - before.get(name, np.float32(0)) for name, view in views.items()}
        marks.append({n: mark for n in changes if (mark := _scale(changes[n])) is not None})
        partners = _find_partners([name for name in names if name in marks[-1]], marks)
        names, before = list(partners), views
    order = {name: place for place, name in enumerate(videos)}
    return [(first, name) for name, first in partners.items() if order[first] < order[name]]


def _find_partners(names: Sequence[str], marks: Sequence[Mapping[str, Vector]]) -> dict[str, str]:
    """The first other video whose marks of all places are `ALIKE`, for each that has one."""
    if not names:
        return {}
    alike = np.ones((len(names), len(names)), dtype=np.bool_)
    for of_place in marks:
        stacked = np.stack([of_place[name] for name in names])
        alike &= stacked @ stacked.T >= ALIKE
    np.fill_diagonal(alike, False)
    some = np.flatnonzero(alike.any(axis=1)).tolist()
    return {names[row]: names[int(alike[row].argmax())] for row in some}


def _read_views(
    videos: Mapping[str, VideoIndex], names: Iterable[str], place: float
) -> dict[str, Vector]:
    """(1024,) grey levels of the frame at a place, for each video where it can be decoded."""
    views: dict[str, Vector] = {}
    for name in names:
        video = videos[name]
        with suppress(SampleError):
            image = decoder.frame(video, int(place * (len(video) - 1))).image()
            grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
            small = cv2.resize(grey, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
            views[name] = np.asarray(small, dtype=np.float32).reshape(-1)
    return views


def _scale(view: Vector) -> Vector | None:
    """A view of mean 0 and length 1; None if it is too flat to say anything."""
    centred = view - view.mean()
    length = float(np.linalg.norm(centred))
    return centred / length if length >= FLAT * SIDE else None
