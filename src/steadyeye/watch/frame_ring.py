"""Stored frames of broken promises: the newest ones, up to a number of bytes."""

import json
import re
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import make_folder, write_lightly
from steadyeye.core.types import Image
from steadyeye.data.images.image_file import thumbnail
from steadyeye.metrics.sequences.tracklets import GAP
from steadyeye.watch.measures import FrameEvent

NAME = re.compile(r"\d{8}T\d{6}\.\d{3}Z-(\d+)-[a-z_]+\.jpg")
QUALITY = 92
WHOLE = 1 << 16
"""Longer than the sides of any frame: it is stored at its own size."""
UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
SIZE = re.compile(r"\s*([0-9.]+)\s*(KB|MB|GB)\s*", re.IGNORECASE)
RECENT_BYTES = 64 << 20
"""Bytes of RGB in the frames that are held until a blink is settled, a second later."""
APART = 1.0
"""Seconds from one stored frame of a measure to the next."""


class FrameRing:
    """Pictures in a folder, each with a JSON file on its event; the oldest are deleted first.

    `most`: bytes of all of them. `left_out`: events whose frame was not stored, because a frame of
    the same measure was stored within `APART` seconds, or its pixels were gone.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self.folder, self.most = folder, most
        self.left_out = 0
        make_folder(folder)
        # by number: a watch may be begun again by an earlier clock
        matches = ((NAME.fullmatch(file.name), file.name) for file in folder.iterdir())
        order = sorted((int(match[1]), name) for match, name in matches if match)
        self._files = deque(name for _, name in order)
        self._total = sum(self._size(name) for name in self._files)
        self._last: dict[str, float] = {}
        self._recent: deque[tuple[int, float, str, Callable[[], Image], int]] = deque()
        self._recent_bytes = 0
        self._shrink()

    @property
    def names(self) -> list[str]:
        """Names of the stored pictures, oldest first."""
        return list(self._files)

    @property
    def size(self) -> int:
        """Bytes of the pictures and their JSON files."""
        return self._total

    def buffer(
        self, number: int, seconds: float, stamp: str, image: Callable[[], Image], size: int
    ) -> None:
        """Keeps a frame in memory for a while, because it may have to be stored.

        `image()`: its pixels, of `size` bytes; called only if the frame is stored.
        """
        self._recent.append((number, seconds, stamp, image, size))
        self._recent_bytes += size
        while len(self._recent) > 1 and (
            self._recent_bytes > RECENT_BYTES or seconds > self._recent[0][1] + 2 * GAP
        ):
            self._recent_bytes -= self._recent.popleft()[4]

    def store(self, event: FrameEvent, more: Mapping[str, Any]) -> str | None:
        """The file name of an event's frame; None if the frame is not stored.

        `more`: entries of its JSON file besides the event.
        """
        recent = next((entry for entry in self._recent if entry[0] == event.frame), None)
        if recent is None:
            self.left_out += 1
            return None
        number, seconds, stamp, image, _ = recent
        if abs(seconds - self._last.get(event.measure, -2 * APART)) < APART:
            self.left_out += 1
            return None
        self._last[event.measure] = seconds
        name = f"{stamp}-{number}-{event.measure}.jpg"
        text = {"measure": event.measure, "what": event.text, "box": event.box, "frame": number}
        beside = json.dumps({**text, "seconds": seconds, **more}, ensure_ascii=False)
        write_lightly(self.folder / name, thumbnail(image(), WHOLE, QUALITY))
        write_lightly((self.folder / name).with_suffix(".json"), beside.encode())
        if name not in self._files:
            self._files.append(name)
            self._total += self._size(name)
        self._shrink()
        return name

    def read(self, name: str) -> bytes | None:
        """A stored picture; None if no picture has this name."""
        try:
            return (self.folder / name).read_bytes() if NAME.fullmatch(name) else None
        except OSError:
            return None

    def describe(self, name: str) -> dict[str, Any]:
        """The content of a picture's JSON file; empty if the file is missing or damaged."""
        try:
            content = json.loads((self.folder / name).with_suffix(".json").read_bytes())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def delete_from(self, number: int) -> None:
        """Deletes the pictures of frames from a number on, because these frames are read again."""
        for name in self.names:
            match = NAME.fullmatch(name)
            if match and int(match[1]) >= number:
                self._files.remove(name)
                self._delete(name)

    def _shrink(self) -> None:
        while self._files and self._total > self.most:
            self._delete(self._files.popleft())

    def _delete(self, name: str) -> None:
        self._total -= self._size(name)
        for file in (self.folder / name, (self.folder / name).with_suffix(".json")):
            file.unlink(missing_ok=True)

    def _size(self, name: str) -> int:
        total = 0
        for file in (self.folder / name, (self.folder / name).with_suffix(".json")):
            if file.is_file():
                total += file.stat().st_size
        return total


def read_size(text: str) -> int:
    """The bytes that a text such as `200MB` means. Raises `UsageError` for another text."""
    match = SIZE.fullmatch(text)
    try:
        size = int(float(match[1]) * UNITS[match[2].upper()]) if match else 0
    except ValueError:
        size = 0
    if size < 1:
        raise UsageError(f"'{text}' is no size; write one such as 200MB, with KB, MB or GB")
    return size
