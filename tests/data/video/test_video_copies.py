"""Copies of a video under other names: which they are is known here, as they are written."""

import av
import cv2
import numpy as np
import pytest
from encoded import picture, texture, write_images

from steadyeye.data.sources.every_frame import every_frame
from steadyeye.data.sources.video import video

H264 = "libx264", {"crf": "20", "preset": "veryfast", "g": "20"}
PICTURES = [picture(number) for number in range(60)]


def notes(folder):
    source = video(path=str(folder), k=1)
    of_copies = [note for note in source.notes if "same pictures" in note]
    assert of_copies == [
        note for note in every_frame(path=str(folder), cuts="none").notes if "same pictures" in note
    ]
    return of_copies


def copy_packets(path, out, first=0):
    """Writes the packets of a video from a time in seconds on, as `ffmpeg -c copy` does."""
    with av.open(str(path)) as old, av.open(str(out), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        for packet in old.demux(old.streams.video[0]):
            if packet.dts is not None and packet.pts * packet.time_base >= first:
                packet.stream = stream
                new.mux(packet)


def recode_small(path):
    images = [cv2.resize(image, (64, 44), interpolation=cv2.INTER_AREA) for image in PICTURES]
    write_images(path, "libx264", {"crf": "30", "preset": "veryfast"}, images)


COPIES = {
    "b.mkv": lambda path: copy_packets(path.parent / "a.mp4", path),
    "cut.mp4": lambda path: copy_packets(path.parent / "a.mp4", path, first=0.8),
    "b.mp4": recode_small,
    "b.avi": lambda path: write_images(path, "mpeg4", {"qscale": "5"}, PICTURES),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_video_in_another_form_is_noted(name, tmp_path):
    """An interval over two videos that are one would be too narrow without a word."""
    write_images(tmp_path / "a.mp4", *H264, PICTURES)
    COPIES[name](tmp_path / name)
    other = [picture(number) for number in range(100, 160)]
    write_images(tmp_path / "c.mp4", *H264, other)
    assert notes(tmp_path) == [
        f"1 of 3 videos with the same pictures as another, cut or recoded, first '{name}' as "
        "'a.mp4'; intervals treat them as different videos"
    ]


def film_street(seed):
    """A still camera before which something moves in another way for every seed."""
    rng = np.random.default_rng(seed)
    for left, top in rng.integers(0, 48, (60, 2)):
        image = texture(96, 64)[:64, :96].copy()
        image[top : top + 16, left : left + 24] = rng.integers(0, 256, 3)
        yield np.clip(image + rng.normal(0, 3, image.shape), 0, 255).astype(np.uint8)


def show_slides(seed):
    """Still pictures, one after the other, which begin with the same one."""
    for number in range(60):
        yield picture(1000 * seed * (number // 20))


def show_nothing(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        yield rng.integers(0, 3, (64, 96, 3), dtype=np.uint8)


def begin_alike(seed):
    """The same title, then something else."""
    yield from (picture(number) for number in range(25))
    yield from (picture(number + 500 * seed) for number in range(25, 60))


def show_still(seed):
    """A scene in which nothing moves: nobody can tell a copy from another moment."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        noise = rng.normal(0, 3, (64, 96, 3))
        yield np.clip(picture(0) + noise, 0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    "film",
    [film_street, show_slides, show_nothing, begin_alike, show_still],
    ids=lambda f: f.__name__,
)
def test_other_videos_of_the_same_length_are_not(film, tmp_path):
    for seed in (1, 2, 3):
        write_images(tmp_path / f"{seed}.mp4", *H264, list(film(seed)))
    assert notes(tmp_path) == []
