"""Which packets of a stream come with lost ones, as FFmpeg's log reports it.

RTSP does not mark packets behind a gap, and the mark of the first packet of a transport stream is
dropped where packets are put together. The log has both.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import av

GAPS = ("RTP: missed", "Failed reading RTSP data")
"""Behind the second, at the end of a connection, FFmpeg returns what it has of a picture."""
LOG_PACKETS = {"fdebug": "ts"}
"""Options of FFmpeg with which a container is to be opened: its log then has a line per packet."""

# what other threads log meanwhile would be printed
logging.getLogger("libav").addHandler(logging.NullHandler())


class PacketLosses:
    """The packets of one container, in order: those that were read to open it, then the others.

    `log`: level, name and message of each line, of which those that were read are removed.
    """

    def __init__(self, log: list[tuple[int, str, str]]) -> None:
        self._log, self._number = log, -1
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
        av.logging.set_level(av.logging.WARNING)

    def is_next_lossy(self) -> bool:
        """Whether packets were lost in or beside the next packet; call it once it has been read."""
        self._number += 1
        is_lossy = any(message.startswith(GAPS) for _, _, message in self._log)
        self._log.clear()
        return is_lossy or self._number in self._opening


@contextmanager
def read_packet_losses() -> Iterator[PacketLosses]:
    """A block in which a container is opened with `LOG_PACKETS` and read, by this thread alone."""
    level, skips = av.logging.get_level(), av.logging.get_skip_repeated()
    av.logging.set_level(av.logging.DEBUG)
    av.logging.set_skip_repeated(False)
    try:
        with av.logging.Capture() as log:
            yield PacketLosses(log)
    finally:
        av.logging.set_level(level)
        av.logging.set_skip_repeated(skips)
