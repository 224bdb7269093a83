"""What the packets of a video say of its frames, and whether that is proven."""

from bisect import insort
from dataclasses import dataclass
from typing import Any

from steadyeye.data.video.key_frames import SINGLE, examiner
from steadyeye.data.video.random_access import Examiner, UnprovenError

TIMED = frozenset({"mov", "matroska", "mpegts", "flv"})
"""Containers that say when a frame is shown, not only when its packet is decoded, as AVI does."""


@dataclass
class Packets:
    """What the packets of a stream say.

    `times`: presentation times of the packets of frames, None where it is not said; `starts`:
    presentation and decoding times of where a decoder can start; `last`: the latest decoding time;
    `count`: all packets with or without content; `unproven`: why starts prove nothing.
    """

    times: list[int | None]
    starts: list[tuple[int, int]]
    last: int | None = None
    count: int = 0
    reorder: int = 0
    unproven: str = ""


def read_packets(container: Any, stream: Any) -> Packets:
    """What the packets of a stream say, read without decoding them."""
    packets = Packets([], [])
    context = stream.codec_context
    check: Examiner | None = None
    try:
        codec = context.codec.canonical_name
        check = examiner(codec, bytes(context.extradata or b""))
        if codec not in SINGLE and not TIMED.intersection(container.format.name.split(",")):
            raise UnprovenError(f"{container.format.long_name} does not say when frames are shown")
        packets.reorder = check.reorder
    except UnprovenError as why:
        packets.unproven = str(why)
    for packet in container.demux(stream):
        if packet.pts is None and packet.dts is None and not packet.size:
            continue  # the end, which PyAV marks by an empty packet
        packets.count += 1
        if not packet.size:
            continue
        if not packet.is_discard:
            packets.times.append(packet.pts)
        if check and not packets.unproven:
            try:
                _examine(packets, check, packet)
            except UnprovenError as why:
                packets.unproven = str(why)
    return packets


def _examine(packets: Packets, check: Examiner, packet: Any) -> None:
    if packet.is_corrupt or packet.has_sidedata("new_extradata"):
        raise UnprovenError(
            "its parameters change within the stream, or a packet is marked as damaged"
        )
    if packet.pts is None:
        raise UnprovenError("its packets lack times")
    if packet.dts is not None:
        if packets.last is not None and packet.dts <= packets.last:
            raise UnprovenError("the times of its packets do not rise")
        packets.last = packet.dts
    if check.starts(bytes(packet)) and packet.is_keyframe:
        packets.starts.append((packet.pts, packet.pts if packet.dts is None else packet.dts))


def disorder(packets: Packets) -> str:
    """Why the times of the packets are not those of the frames; empty where they are."""
    times = [pts for pts in packets.times if pts is not None]
    if len(set(times)) < len(packets.times):
        return "frames share their times or lack them"
    if not packets.starts:
        return "it has no key frame"
    earlier: list[int] = []
    for pts in times:
        insort(earlier, pts)
        if len(earlier) - earlier.index(pts, max(len(earlier) - 64, 0)) - 1 > packets.reorder:
            return "it does not say how far its frames are reordered"
    return ""
