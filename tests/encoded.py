"""Videos written with PyAV's encoders, whose every frame shows a wrong reference."""

from fractions import Fraction

import av
import numpy as np

RATE = 25


def picture(number, width=96, height=64):
    """A texture that moves, of which a part is new in every frame."""
    rng = np.random.default_rng(0)
    field = rng.integers(0, 256, (height + 64, width + 128, 3))
    ramp = np.add.outer(np.arange(height + 64), np.arange(width + 128))[..., None]
    texture = (field // 3 + ramp % 170).astype(np.uint8)
    top, left = 2 * number % 64, 3 * number % 128
    image = np.ascontiguousarray(texture[top : top + height, left : left + width])
    own = np.random.default_rng(number).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    image[height // 4 : height // 4 + 16, width // 3 : width // 3 + 16] = own
    return image


def packets(context, numbers, times=None):
    """The packets that an encoder makes of numbered pictures, shown at `times`."""
    shape = context.width, context.height
    for place, number in enumerate(numbers):
        frame = av.VideoFrame.from_ndarray(picture(number, *shape), format="rgb24")
        frame = frame.reformat(format=context.pix_fmt)
        frame.pts = number if times is None else times[place]
        frame.time_base = Fraction(1, RATE)
        yield from context.encode(frame)
    yield from context.encode(None)


def write(  # noqa: PLR0917
    path, codec, form="yuv420p", options=(), count=60, group=10, size=(96, 64), times=None
):
    """A video of `count` frames with a key frame every `group`."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=RATE)
        stream.width, stream.height = size
        stream.pix_fmt, stream.gop_size = form, group
        stream.options = dict(options)
        for packet in packets(stream.codec_context, range(count), times):
            packet.stream = stream
            container.mux(packet)
    return path


def rewrite(source, target, change, **options):
    """The packets of a video in another file; `change`: number and packet → packet or None."""
    with av.open(str(source)) as old, av.open(str(target), "w", **options) as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        for number, packet in enumerate(old.demux(video=0)):
            if packet.dts is None and not packet.size:
                continue
            kept = change(number, packet)
            if kept is not None:
                kept.stream = stream
                new.mux(kept)
    return target


def of_two_sizes(path, codec, options=(), sizes=((96, 64), (128, 80))):
    """A stream whose pictures change their size in the middle, as each encoder's packets say."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=RATE)
        stream.width, stream.height = sizes[0]
        stream.pix_fmt, stream.gop_size = "yuv420p", 10
        stream.options = dict(options)
        for part, (width, height) in enumerate(sizes):
            context = av.CodecContext.create(codec, "w")
            context.width, context.height, context.pix_fmt = width, height, "yuv420p"
            context.time_base, context.gop_size = Fraction(1, RATE), 10
            context.options = dict(options)
            for packet in packets(context, range(30 * part, 30 * part + 30)):
                packet.stream = stream
                packet.time_base = Fraction(1, RATE)
                container.mux(packet)
    return path


def damage(path, target, numbers, by=lambda size: range(size // 3, size // 3 + 12)):
    """A copy in which some packets have other bytes; `numbers`: which, in their order."""
    data = bytearray(path.read_bytes())
    with av.open(str(path)) as container:
        for number, packet in enumerate(container.demux(video=0)):
            if number in numbers:
                for place in by(packet.size):
                    data[packet.pos + place] ^= 0x5A
    target.write_bytes(bytes(data))
    return target
