"""The frames of a source by its path or address."""

from pathlib import Path

from steadyeye.core.errors import UsageError
from steadyeye.data.video.paths import VIDEOS
from steadyeye.watch.file_feeds import FileFeed, FolderFeed
from steadyeye.watch.frames import ADDRESSES, Feed, FeedMark, FrameCounts, Thinning, is_live, redact
from steadyeye.watch.stream_feed import StreamFeed

START = FeedMark()
"""Before all files."""


def open_feed(source: str, counts: FrameCounts, rate: float | None, mark: FeedMark = START) -> Feed:
    """The frames of a source, which `check_source` has passed.

    `rate`: frames a second at most, None: all. `counts`: those of the watch that is resumed; the
    frames of a file that it received are skipped. `mark`: where the feed of a folder was.
    """
    thinned = Thinning(rate)
    if is_live(source):
        return StreamFeed(source, counts, thinned)
    path = Path(source)
    if path.is_dir():
        return FolderFeed(path, counts, thinned, mark)
    return FileFeed(path, counts, thinned, skipped=int(counts.received))


def check_source(source: str) -> None:
    """Raises `UsageError` where a source is no video, folder, address or camera."""
    path = Path(source)
    if is_live(source) or path.is_dir():
        return
    if path.is_file():
        if path.suffix.lower() not in VIDEOS:
            raise UsageError(f"'{source}' is no video; give a video, a folder or an address")
        return
    kinds = ", ".join(f"{scheme}://" for scheme in ADDRESSES)
    raise UsageError(
        f"no file or folder '{redact(source)}'; give one, an address ({kinds}) or a camera such as "
        "/dev/video0"
    )
