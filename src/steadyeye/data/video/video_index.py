"""The frames of a video, and the packets at which a decoder can start.

Read from its packets if these are proven, otherwise by decoding it once.
"""

import hashlib
from bisect import insort
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise, repeat
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.format import number_of
from steadyeye.core.storage.files import Place
from steadyeye.core.storage.remote_path import Remote
from steadyeye.data.images.image_file import VARIABLE, read_max_pixels
from steadyeye.data.video.bitstream import Examiner, UnprovenError
from steadyeye.data.video.damage import Damage, decode_with_damage, read_to_end
from steadyeye.data.video.key_frames import SINGLE, examiner

EDGES = 2**16  # pixels that a decoder adds around the smallest frames
MOST_OF_FFMPEG = 2**31 - 1  # the highest limit that it takes

CONTAINERS = (
    "apng,asf,av1,avi,avs,cavsvideo,dirac,dv,flv,gif,gxf,h261,h263,h264,hevc,ivf,live_flv,m4v,"
    "matroska,mjpeg,mov,mpeg,mpegts,mpegvideo,mxf,nsv,nut,obu,ogg,rm,vc1,vvc,wtv,yuv4mpegpipe"
)
"""FFmpeg's names of the supported containers, which contain their pictures themselves.

Playlists (HLS, DASH, concat) would open every video that they name, wherever it lies.
"""
PROGRESSIVE, UNSPECIFIED = 1, 2
"""FFmpeg's AV_FIELD_PROGRESSIVE, below all orders of fields, and AVCOL_SPC_UNSPECIFIED."""
HDR_TRANSFERS = frozenset({16, 18})
"""FFmpeg's AVCOL_TRC_SMPTE2084 (PQ) and AVCOL_TRC_ARIB_STD_B67 (HLG)."""
HD_WIDTH, SD_HEIGHT = 1280, 576
"""From which width and above which height players take colours for BT.709."""
FARTHEST_REORDER = 16
"""Frames by which a codec may reorder: by more only a clock that starts again falls back."""
TIMED = frozenset({"mov", "matroska", "mpegts", "flv"})
"""Containers that say when a frame is shown, not only when its packet is decoded, as AVI does."""


@dataclass
class Packets:
    """The information in the packets of a stream.

    `times`: presentation times of the packets of frames, None if missing; `starts`: presentation
    and decoding times of packets at which a decoder can start; `last`: the latest decoding time;
    `count`: number of packets with or without content; `unproven`: why the starts are not proven;
    `sizes`: bytes of the packets of frames.
    """

    times: list[int | None]
    starts: list[tuple[int, int]]
    last: int | None = None
    count: int = 0
    reorder: int = 0
    unproven: str = ""
    sizes: list[int] = field(default_factory=list)


def read_packets(container: Any, stream: Any) -> Packets:
    """The packets of a stream, read without decoding."""
    packets = Packets([], [])
    context = stream.codec_context
    check: Examiner | None = None
    try:
        codec = context.codec.canonical_name
        check = examiner(codec, bytes(context.extradata or b""))
        if codec not in SINGLE and not _is_timed(container):
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
            packets.sizes.append(packet.size)
        if check and not packets.unproven:
            try:
                _examine(packets, check, packet)
            except UnprovenError as why:
                packets.unproven = str(why)
    return packets


def _is_timed(container: Any) -> bool:
    return not TIMED.isdisjoint(container.format.name.split(","))


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
    """Why the times of the packets are not those of the frames; empty if they are."""
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


@dataclass(frozen=True)
class Display:
    """How a player would change the pictures of a stream, which are read as coded.

    `interlaced`: their lines show two moments in turn. `aspect`: width of a pixel over its height.
    `hd_untagged`: they are in HD without a stated colour matrix, which players take as BT.709.
    `hdr`: their brightness is coded for HDR (PQ or HLG), which players map to that of the screen.
    """

    interlaced: bool = False
    aspect: Fraction = Fraction(1)
    hd_untagged: bool = False
    hdr: bool = False


@dataclass(frozen=True, eq=False)
class VideoIndex:
    """The frames of a video, numbered from 0 in the order in which decoding shows them.

    `pts`: (frames,) presentation time of each frame in `time_base` seconds. `key_pts`, `key_dts`:
    presentation and decoding time of the packets a decoder can start at, proven by
    `steadyeye.data.video.key_frames`. `in_order`: why the video is decoded in order from its start;
    empty if it is not. Its frames are then those of decoding, `lost` packets failed to decode, and
    `damaged` frames are patched by the decoder. `fps`: frames per second. `others`: number of video
    streams that are not read. `display`: how players change its pictures. `packet_sizes`: bytes of
    each packet, in the order of decoding.
    """

    path: Place
    pts: NDArray[np.int64]
    key_pts: NDArray[np.int64]
    key_dts: NDArray[np.int64]
    time_base: Fraction
    fps: float
    in_order: str = ""
    lost: int = 0
    damaged: int = 0
    others: int = 0
    display: Display = Display()
    packet_sizes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def __len__(self) -> int:
        return len(self.pts)

    @cached_property
    def digest(self) -> str:
        """A digest of the file, computed once; for an object, its version in the store."""
        if isinstance(self.path, Remote):
            return f"{self.path} {self.path.version()}"
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def seconds(self, number: int) -> float:
        """When frame `number` is shown, in seconds since the first frame, as a player counts."""
        return float((self.pts[number] - self.pts[0]) * self.time_base)

    def key(self, number: int) -> str:
        """A key of frame `number` by content. Raises `SampleError` if the file is gone."""
        try:
            # "picture", as frames were read without a proof of their key frames, and not upright;
            # "first", as the stream that FFmpeg prefers was read
            first = "first " if self.others else ""
            return f"{first}picture {number} of {self.digest}"
        except OSError as error:
            raise SampleError(f"cannot read the video '{self.path}': {error.strerror}") from error


def open_video(path: Place, **options: str) -> Any:
    """A file opened by PyAV, or an object of a store, which is read in pieces.

    Words in it (titles, names of encoders) may be of any encoding. `options`: FFmpeg's own. Raises
    `av.ArgumentError` for a container that is none of `CONTAINERS`.
    """
    # FFmpeg takes what stands before the first colon of a relative path for a protocol
    file = path.open("rb") if isinstance(path, Remote) else str(path.absolute())
    options = {"format_whitelist": CONTAINERS} | options
    return av.open(file, metadata_errors="replace", options=options)


def picture_stream(container: Any) -> Any:
    """The first video stream of a container that is no picture of its cover; None without one.

    Whichever FFmpeg would prefer, by a mark or by bits a second: those differ between copies.
    Its decoder refuses frames of more than twice the pixels that are read, whatever the container
    says of them: twice, as it counts the pixels that it adds at the edges.
    """
    stream = next(iter(_list_streams(container)), None)
    if stream is not None and stream.codec_context is not None:
        most = min(2 * (read_max_pixels() + EDGES), MOST_OF_FFMPEG)
        stream.codec_context.options = {"max_pixels": str(most)}
    return stream


def index(path: Place) -> VideoIndex:
    """The index of a video.

    Raises `UsageError` for a file that is missing, no video, empty, or shorter than it says.
    """
    if not path.is_file():
        raise UsageError(f"no video at '{path}'; check the path")
    if isinstance(path, Remote):
        return _index(path)
    stat = path.stat()
    return _index_of_version(path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


@lru_cache(maxsize=1024)
def _index_of_version(path: Place, *stamp: int) -> VideoIndex:
    """The index of a local file, made once per process while the file is unchanged."""
    del stamp
    return _index(path)


def _index(path: Place) -> VideoIndex:
    try:
        with open_video(path) as container:
            stream = picture_stream(container)
            if stream is None or stream.codec_context is None:
                raise UsageError(
                    f"the first video stream of '{path}' cannot be read, or there is none but a "
                    "picture of a cover; give a video or a folder of videos"
                )
            _check_pixels(path, stream.codec_context)
            packets = read_packets(container, stream)
            _check_whole(path, stream.frames, packets)
            why = packets.unproven or disorder(packets)
            video = _of_frames(path, why) if why else _of_packets(path, stream, packets)
            others = len(_list_streams(container)) - 1
            sizes = np.array(packets.sizes, dtype=np.int32)
            display = read_display(stream, video.display)
            return replace(video, others=others, display=display, packet_sizes=sizes)
    except av.EOFError as error:
        raise _empty(path) from error
    except av.FFmpegError as error:
        hint = "it is no video, a list of other files, or truncated"
        raise UsageError(f"cannot open the video '{path}': {error.strerror}; {hint}") from error


def read_display(stream: Any, decoded: Display = Display()) -> Display:
    """How a player would change a stream; `decoded`: what the frames of a decoded one say."""
    context = stream.codec_context
    order = getattr(context, "field_order", 0)  # PyAV 16 does not say it of undecoded streams
    return Display(
        interlaced=decoded.interlaced or order > PROGRESSIVE,
        aspect=stream.sample_aspect_ratio or Fraction(1),
        hd_untagged=(context.width >= HD_WIDTH or context.height > SD_HEIGHT)
        and context.colorspace == UNSPECIFIED
        and str(context.pix_fmt).startswith("yuv"),
        hdr=context.color_trc in HDR_TRANSFERS,
    )


def _list_streams(container: Any) -> list[Any]:
    """The video streams of a container, pictures of the cover aside."""
    cover = av.stream.Disposition.attached_pic
    return [stream for stream in container.streams.video if not stream.disposition & cover]


def _check_pixels(path: Place, context: Any) -> None:
    pixels, most = context.width * context.height, read_max_pixels()
    if pixels > most:
        raise UsageError(
            f"the frames of '{path}' have {context.width} × {context.height} pixels, over "
            f"{most:,}; make them smaller, or set {VARIABLE} to a higher number"
        )


def _check_whole(path: Place, promised: int, packets: Packets) -> None:
    if not packets.times:
        raise _empty(path)
    if packets.count >= promised:
        return
    with open_video(path, ignore_editlist="1") as container:
        # frames that an edit list cuts away are there as well
        count = sum(1 for packet in container.demux(picture_stream(container)) if packet.size)
    if count < promised:
        raise UsageError(
            f"the video '{path}' is truncated: its header states {number_of(promised, 'frame')}, "
            f"and it has {count}; copy it again or cut it to those"
        )


def _of_packets(path: Place, stream: Any, packets: Packets) -> VideoIndex:
    starts = sorted(packets.starts)
    return VideoIndex(
        path=path,
        pts=np.array(sorted(pts for pts in packets.times if pts is not None), dtype=np.int64),
        key_pts=np.array([pts for pts, _ in starts], dtype=np.int64),
        key_dts=np.array([dts for _, dts in starts], dtype=np.int64),
        time_base=stream.time_base,
        fps=_rate(stream),
    )


def _of_frames(path: Place, why: str) -> VideoIndex:
    presentation: list[int | None] = []
    decoding: list[int | None] = []
    lost = damaged = 0
    interlaced = False
    with open_video(path) as container:
        stream = picture_stream(container)
        stream.thread_type = "NONE"
        base, rate = stream.time_base, _rate(stream)
        timed = _is_timed(container)
        packets = zip(read_to_end(container, stream), repeat(False))
        for frame, is_damaged in decode_with_damage(packets, Damage(stream.codec_context)):
            if frame is None:
                lost += 1
            else:
                damaged += is_damaged
                presentation.append(frame.pts)
                decoding.append(frame.dts)
                interlaced |= frame.interlaced_frame
    if not presentation:
        raise _empty(path)
    known = presentation if timed else min(presentation, decoding, key=_count_faults)
    times = _complete(known, 1 / (rate or 1) / base)
    none = np.zeros(0, np.int64)
    display = Display(interlaced)
    return VideoIndex(path, times, none, none, base, rate, why, lost, damaged, display=display)


def _count_faults(times: list[int | None]) -> tuple[bool, int]:
    """Whether no frame has a time, and how many are not later than the frame before.

    AVI gives each packet the time at which it is decoded: frames that are reordered have the times
    of others.
    """
    known = [time for time in times if time is not None]
    return not known, sum(after <= before for before, after in pairwise(known))


def _complete(times: list[int | None], step: float) -> NDArray[np.int64]:
    """The times of frames in order, with missing ones filled in.

    Missing times are interpolated evenly. A clock that restarts, as in joined recordings,
    continues. `step`: the time between frames if nothing else is known.
    """
    known = [number for number, time in enumerate(times) if time is not None] or [0]
    values = [times[number] or 0 for number in known]
    numbers = np.arange(len(times))
    filled = np.interp(numbers, known, values)
    filled += np.minimum(numbers - known[0], 0) * step + np.maximum(numbers - known[-1], 0) * step
    apart = np.diff(filled)
    apart[apart < -FARTHEST_REORDER * step] = step
    whole = np.round(filled[0] + np.concatenate([[0], np.cumsum(apart)]))
    return np.asarray(whole, dtype=np.int64)


def _rate(stream: Any) -> float:
    return float(stream.average_rate or stream.guessed_rate or 0)


def _empty(path: Place) -> UsageError:
    return UsageError(f"the video '{path}' holds no frames; remove it or record it again")
