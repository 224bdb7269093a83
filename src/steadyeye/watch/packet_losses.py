"""Which packets of a stream come with lost ones, as FFmpeg's log reports it.

RTSP does not mark packets behind a gap, and the mark of the first packet of a transport stream is
dropped where packets are put together. The log has both. Nothing else of this process may close a
decoder with threads meanwhile: it would wait for a thread that waits to write into the log.
"""

import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import av

GAPS = ("RTP: missed", "Failed reading RTSP data")
"""Behind the second, at the end of a connection, FFmpeg returns what it has of a picture."""
LOG_PACKETS = {"fdebug": "ts"}
"""Options of FFmpeg with which a container is to be opened: its log then has a line per packet."""

_lock = threading.Lock()
_levels: dict[int, int] = {}
# what other threads log meanwhile would be printed
logging.getLogger("libav").addHandler(logging.NullHandler())


class PacketLosses:
    """The packets of one container, in order: those that were read to open it, then the others.

    `log`: level, name and message of each line, of which those that were read are removed.
    """

    def __init__(self, log: list[tuple[int, str, str]]) -> None:
        self._log = log
        self._opening: set[int] = set()

    def end_opening(self, stream: int) -> None:
        """Takes what the log has of the packets that FFmpeg read ahead; call it once, after that.

        `stream`: the number of the stream whose packets are read from now on.
        """
        number, unmarked = 0, f"Packet corrupt (stream = {stream},"
        for _, _, message in self._log:
            number += message.startswith(f"read_frame_internal stream={stream},")
            if message.startswith(GAPS) or (number == 0 and message.startswith(unmarked)):
                self._opening.add(number)
        self._log.clear()
        _set_level(id(self._log), av.logging.WARNING)

    def follow(self, packets: Iterable[Any]) -> Iterator[tuple[Any, bool]]:
        """Each packet, and whether others were lost in or beside it."""
        for number, packet in enumerate(packets):
            is_lossy = any(message.startswith(GAPS) for _, _, message in self._log)
            self._log.clear()
            yield packet, is_lossy or number in self._opening


@contextmanager
def read_packet_losses() -> Iterator[PacketLosses]:
    """A block in which a container is opened with `LOG_PACKETS` and read, by this thread alone."""
    av.logging.set_skip_repeated(False)
    with av.logging.Capture() as log:
        _set_level(id(log), av.logging.DEBUG)
        try:
            yield PacketLosses(log)
        finally:
            _set_level(id(log), None)


def _set_level(block: int, level: int | None) -> None:
    """Sets FFmpeg's log to the most that any block needs; `level`: of one, None at its end."""
    with _lock:
        _levels.pop(block, None)
        if level is not None:
            _levels[block] = level
        av.logging.set_level(max(_levels.values(), default=None))
